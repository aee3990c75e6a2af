"""Finds the final answer that a response states.

Only what follows the thinking part counts (`thinking`). In order of trust: boxes (`boxes`) and statements such as
"#### 42" or "Answer: 42" (`statements`), whichever comes last; "the answer is 42"; what the last sentence concludes
(`sentences`); bold text near the end; the last number where the caller allows it. All also in Chinese. Time is
linear in the length of the response. Nothing is parsed here, and whatever else a response says to its reader is
text like any other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ulorl.verify.extraction.boxes import MAX_BETWEEN, RETRACTED, bare_box, find_boxes, standing
from ulorl.verify.extraction.sentences import conclusion, is_value, value_of
from ulorl.verify.extraction.statements import TAIL, Announcement, last_phrase, last_statements
from ulorl.verify.extraction.thinking import after_thinking

_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
_NUMBER = re.compile(r"(?:(?<![\w)\]}])[-+])?(?<!\d)\d[\d,]{0,400}(?:\.\d{1,400})?(?:/\d{1,400})?(?!\d)%?")
_DENIED_BEFORE = re.compile(r"\b(?:not|cannot|never|\w+n't)(?: be)?(?: equal(?: to)?)?\W{0,3}$", re.IGNORECASE)
_DENIED_BEHIND = re.compile(
    r"\W{0,3}(?:\?|(?:is|was|are) (?:not|in|im|wrong)|isn't\b|fails?\b|or (?:more|less|fewer|greater)\b"
    r"|(?:more|less|fewer|greater) than\b)",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"[^\w(]*(?:(?:hmm+|wait|oh|no|actually|oops|but|however|sorry)\W+){0,3}"
    r"(?:(?:this|that|it)(?: is|'s| was) (?:wrong|incorrect|not (?:right|correct))|i made an? (?:error|mistake)"
    r"|correction)\b",
    re.IGNORECASE,
)
"""The first words behind a box that say that it does not hold, whatever comes after."""
MAX_BOLD = 600
"""Bold text is looked for in this many final characters."""
_MARKS = ("box", "####", "nswer", "答", "选")


@dataclass(frozen=True)
class Extraction:
    """``answers`` in order of appearance, several only where the response gives several; empty for none."""

    answers: tuple[str, ...]
    how: str


NOTHING = Extraction((), "none")


def extract(response: str, *, last_number: bool = False, parts: bool = False) -> Extraction:
    """The final answer of a whole response.

    ``parts`` says that several boxes may be the parts of one answer, as for a reference that is a list; otherwise a box
    announced as final replaces those before it.
    """
    visible = _visible(response)
    stated = stated_answer(visible, parts=parts)
    if stated.answers:
        return stated
    if phrase := last_phrase(visible):
        return Extraction((phrase.text,), "phrase")
    if concluded := conclusion(visible):
        return Extraction((concluded,), "conclusion")
    if bold := _bold(visible):
        return Extraction(bold, "bold")
    if last_number:
        tail = visible[-TAIL:]
        numbers = list(_NUMBER.finditer(tail))
        # A number that ends a LaTeX group, as in \frac{1}{25}, is only a part of the answer.
        if numbers and not tail.startswith("}", numbers[-1].end()):
            return Extraction((numbers[-1][0].rstrip(","),), "last_number")
    return NOTHING


def _bold(text: str) -> tuple[str, ...]:
    """The last bold text that is no heading, and that the words beside it do not deny; every value of its line where it
    is one of several."""
    for line in reversed(text[-MAX_BOLD:].splitlines()):
        found = [
            match[1]
            for match in _BOLD.finditer(line)
            if not match[1].rstrip().endswith((":", "："))
            and not _DENIED_BEFORE.search(line[: match.start()][-40:])
            and not _DENIED_BEHIND.match(line, match.end())
        ]
        if found:
            values = tuple(dict.fromkeys(match for match in found if is_value(match)))
            return values if len(values) > 1 else (value_of(found[-1]),)
    return ()


def given(text: str, *, parts: bool = False) -> Extraction:
    """A bare answer: what it says it is ("the answer is 5", a box), else the whole text."""
    text = text.strip()
    if any(mark in text for mark in _MARKS):
        stated = stated_answer(_visible(text), parts=parts)
        if stated.answers:
            return stated
        if phrase := last_phrase(text):
            return Extraction((phrase.text,), "phrase")
    return Extraction((text,) if text else (), "given")


def _visible(response: str) -> str:
    # "\b" is a backspace where a program forgot to escape the backslash of a box.
    return after_thinking(response).replace("\x08oxed{", "\\boxed{")


def stated_answer(text: str, *, parts: bool = False) -> Extraction:
    """The answer in boxes, after "####" or "Answer:", or in an answer tag."""
    boxes = find_boxes(text)
    statements = last_statements(text, boxes[-1].start if boxes else 0)
    if statements:
        return Extraction(_with_later_phrase(text, statements[-1].start, _kept(text, statements)), "statement")
    if boxes:
        return Extraction(_with_later_phrase(text, boxes[-1].end, tuple(standing(text, boxes, parts=parts))), "boxed")
    bare = bare_box(text[-TAIL:])
    return Extraction((bare,), "boxed") if bare else NOTHING


def _with_later_phrase(text: str, position: int, answers: tuple[str, ...]) -> tuple[str, ...]:
    """``answers``, with a plain value that a phrase behind them gives, or that alone if it corrects them."""
    rest = text[position:]
    phrase = last_phrase(rest) if "nswer" in rest or "答案" in rest else None
    if phrase is None and _TAKEN_BACK.match(rest[:MAX_BETWEEN]):
        return ()
    if phrase is None or phrase.text in answers or not is_value(phrase.text):
        return answers
    corrected = RETRACTED.search(rest[max(0, phrase.start - MAX_BETWEEN) : phrase.start])
    return (phrase.text,) if corrected else (*answers, phrase.text)


def _kept(text: str, statements: list[Announcement]) -> tuple[str, ...]:
    """Statements that still hold: all after the last that a final one or a retraction replaces."""
    kept = [statements[0]]
    for one in statements[1:]:
        between = text[max(kept[-1].start, one.start - MAX_BETWEEN) : one.start]
        if (one.final and not kept[-1].final) or RETRACTED.search(between):
            kept = [one]
        else:
            kept.append(one)
    return tuple(dict.fromkeys(one.text for one in kept))
