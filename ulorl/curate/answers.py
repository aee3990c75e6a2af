r"""Second step: the short answer out of whatever the reference is.

Invariants: the value of an answer is never changed, only what surrounds it is taken off; the first form is
kept in ``original_answer``. A bare option letter stays a letter: ``rewrite`` knows the options.

Linear in the length of the reference. Does not judge whether the reference is right (``references``).
"""

from __future__ import annotations

import re
from dataclasses import replace

from ulorl.curate.reasons import drop
from ulorl.curate.result import StepResult
from ulorl.problem import Dropped, Problem
from ulorl.recipe import CurateRecipe

_MAX_STATED_WORDS = 5
_SENTENCE_WORDS = 3
_TAIL_CHARS = 4000
_WRAPPERS = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("**", "**"))
_FONT = r"\\(?:textbf|text|mathrm|mathbf|bf|textrm|rm|textit|mbox)"
_OPTION = re.compile(
    rf"(?:{_FONT}\s?\{{\s?\(?(?P<inside>[A-H])\s?[).:]\s?\}}|{_FONT}\s?\{{\s?\((?P<opened>[A-H])\s?\}}"
    # A bare letter in a font is an option only in a font of words: \mathbf{{A}} is a matrix.
    rf"|\\(?:textbf|text|bf|textrm|mbox)\s?\{{\s?(?P<bare>[A-H])\s?\}}(?![\^_=(])"
    rf"|\*\*\(?(?P<bold>[A-H])[).:]?\*\*"
    rf"|\(\s?(?:{_FONT}\s?\{{)?(?P<round>[A-H])\}}?\s?\)|(?P<plain>[A-H])(?:[).]|:(?!\s?[A-Z]\b))(?=\s|\\|\$|-?\d))(?:\s|"
    rf"\\ |\\,|\\;|\\:|\\quad|~|:|[.)](?=\s))*"
)
_NAMED = re.compile(r"^[a-z]\w{0,4}=(?!.*=)")
_AFTER_VALUE = r"(?:\s|\\[ ,;:]|\\q?quad|~){0,8}"
_TRAILING_OPTION = re.compile(
    rf"(?<=[\d}}])\s?\([A-H]\)$|(?<=\S){_AFTER_VALUE}\((?i:option|choice)\s?[A-H]\)$"
    rf"|(?<=[\d}})]){_AFTER_VALUE}{_FONT}\s?\{{\s?\([A-H]\)\s?\}}$"
    rf"|(?<=\S){_AFTER_VALUE}{_FONT}\s?\{{\s?\((?i:option|choice)\s?[A-H]\)\s?\}}$"
)
"""``\frac{2}{3} \textbf{(C)}``, ``0.4 (option D)``."""
_OPTION_AND_VALUE = re.compile(rf"(?P<letter>[A-H])\s?{_FONT}\s?\{{\s?\((?P<value>[^{{}}()]{{1,80}})\)\s?\}}")
"""``B \text{ (20)}``."""
_MARKUP = re.compile(
    r"\\(?:left|right|displaystyle|text|mathrm|textbf|!|,|;|:|quad| )|\^\{?\\circ\}?"
    r"|[\s${}\\()*\u00b0]|(?<=\d),(?=\d{3})"
)
_UNIT = re.compile(r"(?:\s|\\ |\\,|~|\$)+(?:\\text\s?\{\s?)?[A-Za-z]{3,}(?:\s[A-Za-z]{2,}){0,2}\.?\s?\}?$")
_TEXT_OPTION = re.compile(rf"{_FONT}\s?\{{\s?\(?[A-H]\s?[).:]\s?(?=[^}}\s])")
_ANSWER_IS = re.compile(r"\banswer(?:\s(?:is|was|equals|would be)|\s?[:=])[:\s]?|\bchoices?\s?:", re.IGNORECASE)
_STATEMENT = re.compile(r"^(?:the|so|thus|hence|therefore|then|answer|we)\b", re.IGNORECASE)
_IS = re.compile(r"\b(?:is equal to|is|are|equals)\b[:\s]")
_MATRIX = re.compile(r"(?<!\\\{)(?<!\\\{ )\\begin\s?\{(?:[pbvVB]?(?:small)?matrix|array)\*?\}|\\(?:p|b)?matrix\b")
_LINES = re.compile(r"\\begin\s?\{(?:aligned?|gathered|split|cases|array|enumerate|itemize|tabular)\*?\}|\n.{0,2000}\n")
_FINITE = re.compile(r"(?<![\\A-Za-z])(?:is|are|was|were|will|can|cannot|should|must|has|have|does|do)(?![A-Za-z])")
_TEXT = re.compile(rf"{_FONT}\s?\{{([^{{}}]*)\}}")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
_VARIABLES = r"(?!(?:and|or|if|no|is|the|for|one|two|six|ten|yes|all|any)\b)[A-Za-z]{2,4}(?![A-Za-z])"
_PRODUCT = re.compile(
    rf"(?:(?<=[-+*/^=_\d{{}}])|(?<=[-+*/^=_] )){_VARIABLES}|(?<![A-Za-z\\]){_VARIABLES}(?=\s?[-+*/^=_])"
)
_SEVERAL = re.compile(
    r"[,;<>\n&:$]|\\\\|\\(?:begin|text|quad|qquad|le|ge|leq|geq|neq|ne|equiv|pm|mp|cup|in|Rightarrow|to|approx)(?![a-z])"
    r"|\b(?:and|or|if)\b"
)
_LETTER = re.compile(r"[A-Za-z]")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_CALCULATION = re.compile(r"[+*/^]|\d\s?-|\\(?:[dt]?frac|cdot|times|sqrt|div)(?![a-z])")
_EDGE = " \t\n.,;\u3002"
_ELLIPSIS = "..."


def answers(problems: list[Problem], recipe: CurateRecipe) -> StepResult:
    """Replace every reference by its short answer; drop those that have none, or one that is too complex."""
    kept: list[Problem] = []
    dropped: list[Dropped] = []
    shortened = 0
    for problem in problems:
        answer, rule = short_answer(problem.answer)
        fault = answer_fault(answer, rule, recipe)
        if answer != problem.answer:
            shortened += 1
            problem = replace(  # noqa: PLW2901
                problem, answer=answer, original_answer=problem.original_answer or problem.answer
            )
        if fault:
            dropped.append(drop(problem, "answers", fault[0], fault[1]))
        else:
            kept.append(problem)
    return StepResult(kept, dropped, notes={"answers shortened": shortened})


def answer_fault(answer: str, rule: str, recipe: CurateRecipe) -> tuple[str, str] | None:
    """(reason, detail) for an answer that is no usable reference, else None."""
    if not answer:
        return "no_final_answer", "nothing is left of the reference"
    if _MATRIX.search(answer):
        return (
            None
            if recipe.keep_matrices and len(answer) <= recipe.max_answer_chars
            else (
                "matrix_answer" if not recipe.keep_matrices else "answer_too_long",
                f"{len(answer)} characters: {answer[:80]!r}",
            )
        )
    words = prose_words(answer[:_TAIL_CHARS])
    if len(answer) > recipe.max_answer_chars:
        detail = f"{len(answer)} characters, at most {recipe.max_answer_chars}: {answer[:80]!r}"
        is_text = rule == "as given" and len(words) > 2 * _MAX_STATED_WORDS
        return ("no_final_answer" if is_text else "answer_too_long"), detail
    if _LINES.search(answer) and not recipe.keep_systems:
        return "structured_answer", f"several lines: {answer[:80]!r}"
    if len(words) > recipe.max_answer_words or (len(words) >= _SENTENCE_WORDS and _FINITE.search(answer)):
        return "text_answer", f"{len(words)} words: {answer[:80]!r}"
    return None


def short_answer(reference: str) -> tuple[str, str]:
    """(final answer, rule that found it); the rule is ``as given`` when none applied."""
    text, rule = reference.strip(), "as given"
    marker = text.rfind("####")
    if marker >= 0:
        text, rule = text[marker + 4 :].strip(), "####"
    else:
        boxed = last_boxed(text)
        if boxed is not None:
            text, rule = boxed, "boxed"
        else:
            stated = _stated_answer(text)
            if stated is not None:
                text, rule = stated, "stated"
    text, rule = _bare(text, rule)
    if text.count("=") > 1:
        value = _end_of_chain(text)
        if value is not None:
            return _bare(value, "chain")
    if rule in ("as given", "unwrapped"):
        value = _value_of_statement(text)
        if value is not None:
            return _bare(value, "statement")
    return text, rule


def _bare(text: str, rule: str) -> tuple[str, str]:
    for _ in range(6):
        simpler = _unwrap(_without_option(_unwrap(text)))
        if simpler == text:
            break
        text, rule = simpler, "unwrapped" if rule == "as given" else rule
    return text, rule


def last_boxed(text: str) -> str | None:
    r"""Content of the last ``\boxed{..}`` or ``\fbox{..}`` whose braces balance, else None."""
    for command in (r"\boxed", r"\fbox"):
        start = text.rfind(command)
        if start < 0:
            continue
        opening = start + len(command)
        while opening < len(text) and text[opening] == " ":
            opening += 1
        if opening < len(text) and text[opening] == "{":
            closing = _closing_brace(text, opening)
            if closing is not None:
                return text[opening + 1 : closing].strip()
    return None


def option_letter(answer: str) -> str | None:
    r"""The letter of an answer that begins with, or is, an option: ``C) 15``, ``\textbf{(B)}\ 12``, ``D``."""
    text = _unwrap(answer.strip())
    found = _OPTION.match(text)
    if found:
        return next(letter for letter in found.groups() if letter)
    if re.fullmatch(r"\(?[A-H]\)?\.?", text):
        return text.strip("().")
    found = _OPTION_AND_VALUE.fullmatch(text)
    return found["letter"] if found else None


def same_text(left: str, right: str) -> bool:
    """Whether two short answers are the same but for mark-up, units and the name before "="."""
    return not _spellings(left).isdisjoint(_spellings(right))


def _spellings(value: str) -> set[str]:
    spellings = {_MARKUP.sub("", form).lower() for form in (value, _UNIT.sub("", value))}
    return {_NAMED.sub("", form).replace("dfrac", "frac").replace("tfrac", "frac") for form in spellings} - {""}


def prose_words(answer: str) -> list[str]:
    r"""Words of two letters or more that are no LaTeX command, the contents of ``\text{..}`` included.

    In a formula without any other word, products of variables beside an operator (``x^3 - xyz``) are none either.
    """
    words = _WORD.findall(_TEXT.sub(r" \1 ", answer))
    return words if _TEXT.search(answer) or _WORD.search(_PRODUCT.sub(" ", answer)) else []


def _closing_brace(text: str, opening: int) -> int | None:
    depth = 0
    for index in range(opening, len(text)):
        character = text[index]
        if character == "{" and text[index - 1] != "\\":
            depth += 1
        elif character == "}" and text[index - 1] != "\\":
            depth -= 1
            if depth == 0:
                return index
    return None


def _unwrap(text: str) -> str:
    """Without surrounding delimiters of mathematics, white space, and a final stop."""
    text = _trimmed(text)
    for opening, closing in _WRAPPERS:
        inner = text[len(opening) : -len(closing)]
        if (
            len(text) > len(opening) + len(closing)
            and text.startswith(opening)
            and text.endswith(closing)
            and opening not in inner
            and closing not in inner
        ):
            return _trimmed(inner).removesuffix("\\").rstrip()
    found = re.match(rf"{_FONT}\s?(?=\{{)", text)
    if found and text.endswith("}") and _closing_brace(text, found.end()) == len(text) - 1:
        inner = text[found.end() + 1 : -1].strip()
        if not _OPTION.match(text) or len(inner) > 4:
            return _trimmed(inner)
    return text


def _trimmed(text: str) -> str:
    """Without white space around it and the stop behind it; the dots of 0.333... are no stop."""
    text = text.strip()
    return text if text.endswith(_ELLIPSIS) else text.rstrip(_EDGE)


def _without_option(text: str) -> str:
    r"""``C) 15`` -> ``15``; an option without a value is left as its letter."""
    found = _OPTION.match(text)
    if found:
        letter = next(group for group in found.groups() if group)
        rest = text[found.end() :].strip().lstrip("=:").strip()
        if rest.startswith("$ ") and rest.count("$") == 1:
            rest = rest[2:]
        return rest if rest else letter
    found = _TEXT_OPTION.match(text)
    if found:
        closing = _closing_brace(text, text.index("{"))
        if closing is not None:
            inner, rest = text[found.end() : closing], text[closing + 1 :]
            return inner if not rest.strip() else rf"\text{{{inner}}}{rest}"
    found = _OPTION_AND_VALUE.fullmatch(text)
    if found:
        return found["value"].strip()
    if re.fullmatch(r"\([A-H]\)|[A-H]\)", text):
        return text.strip("()")
    return _TRAILING_OPTION.sub("", text[:_TAIL_CHARS]) if len(text) <= _TAIL_CHARS else text


def _stated_answer(text: str) -> str | None:
    """What follows the last "answer is" up to the end of its sentence."""
    tail = text[-_TAIL_CHARS:]
    found = list(_ANSWER_IS.finditer(tail))
    if not found:
        return None
    rest = tail[found[-1].end() :].strip().lstrip(":}").strip()
    rest = re.split(r"\.(?:\s|$)|\n", rest, maxsplit=1)[0].strip()
    if rest.startswith("not ") or not rest or len(prose_words(rest)) > _MAX_STATED_WORDS:
        return None
    return rest


def _end_of_chain(text: str) -> str | None:
    r"""``S = \pi r^2 = 4\pi`` -> ``4\pi``: the result of a calculation; None where the sides are several statements."""
    if len(text) > _TAIL_CHARS or _SEVERAL.search(text):
        return None
    first, *middle, last = (side.strip() for side in text.split("="))
    if not last or not any(_CALCULATION.search(side) for side in middle):
        return None
    if any(side.count("{") != side.count("}") or side.count("(") != side.count(")") for side in (first, *middle, last)):
        return None
    # x/2 = y/3 = z/4 is a line, not a calculation.
    named = not _CALCULATION.search(first) and not any(first in side for side in middle)
    return last if named or not _LETTER.search(_COMMAND.sub(" ", last)) else None


def _value_of_statement(text: str) -> str | None:
    r"""``The range of $a$ is $[0, 1]$.`` -> ``[0, 1]``, where what follows the last "is" holds no prose."""
    if len(text) > _TAIL_CHARS or "," in text.split(" is", maxsplit=1)[0]:
        return None
    plain = _TEXT.sub(r" \1 ", text).strip().rstrip(_EDGE)
    if not _STATEMENT.match(plain):
        return None
    verbs = list(_IS.finditer(plain))
    if len(verbs) != 1:
        return None
    value = plain[verbs[0].end() :].strip().strip(":").strip()
    if not value or len(prose_words(value)) > 1 or not re.search(r"[0-9\\a-zA-Z]", value):
        return None
    if value.count("{") != value.count("}"):
        return None
    return value
