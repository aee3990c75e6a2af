r"""First step: clean text without touching mathematics, and give every row an id of its own.

Invariants:
- between the delimiters of mathematics (``$..$``, ``\(..\)``, ``\[..\]``, environments) no byte changes
  except Unicode NFC, NUL and line endings;
- elsewhere only white space at line ends, runs of blank lines, HTML mark-up and HTML entities change; an
  angle bracket that opens no known tag, or an inline tag that nothing closes (``a<b>c``), survives;
- ids are unique: the hash of the text, and ``-2``, ``-3``, ... for further rows with the same text (``ids``).

Does not read files (``ulorl.rows``). Linear in the length of the text.
"""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import replace

from ulorl.curate.ids import UniqueIds
from ulorl.curate.reasons import drop
from ulorl.curate.result import StepResult
from ulorl.problem import Dropped, Problem, problem_id

_CONTROL = {code: None for code in range(32) if chr(code) not in "\n\t"} | {
    0x7F: None,
    0xFEFF: None,
    0x200B: None,
}
_ATTRIBUTES = r"(?:\s[a-z-]{1,20}\s?=[^<>]{0,300})?\s?/?"
_LINE_TAG = re.compile(rf"</?(?:br|p|div|li|ul|ol|tr|table|tbody|thead){_ATTRIBUTES}>", re.IGNORECASE)
_INLINE_TAG = re.compile(
    rf"<(/?)(span|b|i|u|em|strong|font|a|td|th|center|details|summary|small|big|code|html|"
    rf"body){_ATTRIBUTES}>",
    re.IGNORECASE,
)
_SUPERSCRIPT = re.compile(r"<(sup|sub)>([^<>]{0,200})</\1>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp|#39|#x27|#34|times|divide|minus|le|ge|ne|pi|deg|sup2|sup3);")
_MATHEMATICS = re.compile(
    r"((?<!\\)\$\$|(?<!\\)\$|\\\(|\\\)|\\\[|\\\]|\\begin\{[a-z*]{1,20}\}|\\end\{[a-z*]{1,20}\}|\[asy\]|"
    r"\[/asy\])",
    re.IGNORECASE,
)
_UNCLEAN = re.compile(r"[<&\t\r\x00-\x08\x0b-\x1f\x7f\xa0\ufeff\u200b\ud800-\udfff]|  | \n|\n\n\n")
_CLOSES = {"$": "$", "$$": "$$", r"\(": r"\)", r"\[": r"\]", "[asy]": "[/asy]"}


def normalise(problems: list[Problem]) -> StepResult:
    """Clean problem and answer of every row and give it an id; rows left empty are dropped."""
    ids = UniqueIds().unique([cleaned_id(raw) for raw in problems])
    return clean_rows([replace(raw, id=identity) for raw, identity in zip(problems, ids, strict=True)])


def cleaned_id(problem: Problem) -> str:
    """The id that follows from the cleaned text alone, so that it may belong to several rows."""
    return problem_id(clean_text(problem.problem))


def clean_rows(problems: list[Problem]) -> StepResult:
    """Clean problem and answer of every row, ids unchanged; rows left empty are dropped."""
    kept: list[Problem] = []
    dropped: list[Dropped] = []
    changed = 0
    for raw in problems:
        cleaned = clean_problem(raw)
        changed += cleaned.original_problem != raw.original_problem
        if not cleaned.problem:
            dropped.append(drop(cleaned, "normalise", "empty_problem", f"was {raw.problem[:80]!r}"))
        elif not cleaned.answer:
            dropped.append(drop(cleaned, "normalise", "empty_answer", f"was {raw.answer[:80]!r}"))
        else:
            kept.append(cleaned)
    return StepResult(kept, dropped, notes={"problems cleaned": changed})


def clean_problem(problem: Problem) -> Problem:
    """The row with clean texts, and the texts it had where they changed."""
    text, answer = clean_text(problem.problem), clean_text(problem.answer)
    original_problem, original_answer = problem.original_problem, problem.original_answer
    if text != problem.problem and original_problem is None:
        original_problem = problem.problem
    if answer != problem.answer and original_answer is None:
        original_answer = problem.answer
    return replace(
        problem,
        problem=text,
        answer=answer,
        original_problem=original_problem,
        original_answer=original_answer,
    )


def clean_text(text: str) -> str:
    """Unicode NFC, no control characters, no HTML; mathematics unchanged."""
    if not _UNCLEAN.search(text) and unicodedata.is_normalized("NFC", text):
        return text.strip()
    text = text.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "replace").decode("utf-8")
    text = unicodedata.normalize("NFC", text.translate(_CONTROL))
    pieces = [piece if is_math else _clean_prose(piece) for piece, is_math in split_mathematics(text)]
    return "".join(pieces).strip()


def split_mathematics(text: str) -> list[tuple[str, bool]]:
    """``text`` cut into (piece, is mathematics); an opening delimiter that never closes opens nothing."""
    parts = _MATHEMATICS.split(text)
    last_position = {part: index for index, part in enumerate(parts) if index % 2}
    pieces: list[tuple[str, bool]] = []
    index = 0
    while index < len(parts):
        part = parts[index]
        closing = _closing(part) if index % 2 else None
        if closing is not None and last_position.get(closing, -1) > index:
            end = index + 2
            while parts[end] != closing:
                end += 2
            pieces.append(("".join(parts[index : end + 1]), True))
            index = end + 1
        else:
            pieces.append((part, False))
            index += 1
    return pieces


def _closing(delimiter: str) -> str | None:
    if delimiter.startswith(r"\begin"):
        return r"\end" + delimiter[len(r"\begin") :]
    return _CLOSES.get(delimiter)


def _clean_prose(text: str) -> str:
    text = _LINE_TAG.sub("\n", text)
    text = _SUPERSCRIPT.sub(lambda found: ("^" if found[1].lower() == "sup" else "_") + "{" + found[2] + "}", text)
    closed = {found[2].lower() for found in _INLINE_TAG.finditer(text) if found[1]}
    text = _INLINE_TAG.sub(lambda found: "" if found[2].lower() in closed else found[0], text)
    text = _ENTITY.sub(lambda found: html.unescape(found[0]), text)
    text = text.replace("\u00a0", " ").replace("\t", " ")
    text = re.sub(r"(?<! ) {2,}", " ", text)
    text = re.sub(r"(?<! ) \n", "\n", text)
    return re.sub(r"(?<!\n)\n{3,}", "\n\n", text)
