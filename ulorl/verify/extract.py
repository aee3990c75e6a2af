"""Finds the final answer that a response states.

Only what follows the thinking part counts. In order of trust: boxes, and statements such as "#### 42" or
"Answer: 42" (whichever comes last); "the answer is 42", also in Chinese; a bold conclusion; the last number
where the caller allows it. Time is linear in the length of the response. Nothing is parsed here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

TAIL = 20_000
"""Statements in words are looked for in this many final characters."""
MAX_ANSWER = 20_000
MAX_BOXES = 32

_BRACES = re.compile(r"\\(?:boxed|fbox)\s?\{|\\.|[{}]", re.DOTALL)
_BARE_BOX = re.compile(r"\\boxed\s(\S{1,40})")
_STATEMENT = re.compile(
    r"(?:^|\n)[ \t>#*_]{0,20}(?:the )?(?:final |correct )?answer[*_]{0,3}[ ]?[:：]"
    r"[*_ ]{0,4}\n{0,2}(?P<answer>[^\n]+)"
    r"|(?<!#)####(?!#)[ \t]{0,9}"
    r"(?P<hash>[-+$€£(]{0,4}[ ]?[\d.\\][^\n]*|\(?[A-Z]\)?(?=\s|$)|(?:yes|no|true|false)\b)"
    r"|<answer>(?P<tag>[^<]{0,2000})</answer>",
    re.IGNORECASE,
)
_PHRASE = re.compile(
    r"\banswer[*_]{0,3}(?: to [^\n.:]{1,100})? ?(?:is|are|equals|=|[:：])[*_ ]{0,4}[:：]?"
    r"(?P<english>(?:(?!\banswer\b)[^\n])+)"
    r"|答案(?:应该)?[*_]{0,2}[是为：:]{1,2}(?P<chinese>[^\n。；]+)",
    re.IGNORECASE,
)
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
_NUMBER = re.compile(r"(?:(?<![\w)\]}])[-+])?\d[\d,]{0,400}(?:\.\d{1,400})?(?:/\d{1,400})?%?")
_BLANK = re.compile(r"(?:\\phantom\s?\{[^{}]*\}|\\q?quad|\\square|\\[,;:! ]|[\s?_~.])*")
_RETRACTION = re.compile(r"\b(?:wait|mistake|error|incorrect|correction|wrong)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.。](?:\s|$)")


@dataclass(frozen=True)
class Extraction:
    """``answers`` in order of appearance, several only for several boxes; empty where none was found."""

    answers: tuple[str, ...]
    how: str


NOTHING = Extraction((), "none")


def extract(response: str, *, last_number: bool = False) -> Extraction:
    """The final answer of a whole response."""
    visible = _after_thinking(response)
    stated = stated_answer(visible)
    if stated.answers:
        return stated
    tail = visible[-TAIL:]
    phrase = _last(_PHRASE, tail)
    if phrase:
        return Extraction((_first_sentence(phrase),), "phrase")
    bold = [match for match in _BOLD.findall(tail[-600:]) if not match.rstrip().endswith(":")]
    if bold:
        return Extraction((bold[-1].strip(),), "bold")
    if last_number:
        numbers = list(_NUMBER.finditer(tail))
        # A number that ends a LaTeX group, as in \frac{1}{25}, is only a part of the answer.
        if numbers and not tail.startswith("}", numbers[-1].end()):
            return Extraction((numbers[-1][0].rstrip(","),), "last_number")
    return NOTHING


def stated_answer(text: str) -> Extraction:
    """The answer in boxes, after "####" or "Answer:", or in an answer tag."""
    boxes = _boxes(text)
    offset = max(0, len(text) - TAIL)
    statements = list(_STATEMENT.finditer(text, offset))
    for statement in reversed(statements):
        if boxes and statement.start() < boxes[-1][0]:
            break
        content = next((group for group in statement.groups() if group is not None), "").strip(" *_")
        if content:
            content = _last(_PHRASE, content) or content  # "Answer: the final answer is 5"
            return Extraction((_first_sentence(content),), "statement")
    if boxes:
        return Extraction(tuple(dict.fromkeys(_standing(text, boxes))), "boxed")
    bare = _BARE_BOX.findall(text[-TAIL:])
    return Extraction((bare[-1],), "boxed") if bare else NOTHING


def _after_thinking(response: str) -> str:
    _, closed, after = response.rpartition("</think>")
    if closed:
        return after
    return response.partition("<think>")[0]


def _boxes(text: str) -> list[tuple[int, str]]:
    """Positions and contents of the outermost closed boxes, the last MAX_BOXES of them, in one pass."""
    if "\\boxed" not in text and "\\fbox" not in text:
        return []
    found: list[tuple[int, str]] = []
    open_braces: list[int] = []  # start of the content for a box, -1 for another brace
    for match in _BRACES.finditer(text):
        token = match[0]
        if token == "{":
            open_braces.append(-1)
        elif token == "}":
            if open_braces and (start := open_braces.pop()) >= 0:
                while found and found[-1][0] >= start:
                    found.pop()  # a box inside this one
                content = text[start : match.start()].strip() if match.start() - start <= MAX_ANSWER else ""
                if content and not _BLANK.fullmatch(content):
                    found.append((start, content))
        elif len(token) > 2:
            open_braces.append(match.end())
    return found[-MAX_BOXES:]


def _standing(text: str, boxes: list[tuple[int, str]]) -> list[str]:
    """Contents of the boxes after the last retraction ("wait, that is a mistake") between two of them."""
    contents = [boxes[0][1]]
    for (start, before), (position, content) in pairwise(boxes):
        between = text[max(start + len(before), position - 2000) : position]
        contents = [content] if _RETRACTION.search(between) else [*contents, content]
    return contents


def _last(pattern: re.Pattern[str], text: str) -> str:
    """What the last match of ``pattern`` with any content says."""
    for match in reversed(list(pattern.finditer(text))):
        content = next((group for group in match.groups() if group is not None), "").strip(" *_:")
        if content:
            return content
    return ""


def _first_sentence(text: str) -> str:
    end = _SENTENCE_END.search(text)
    return (text[: end.start()] if end else text).strip(" *_") or text
