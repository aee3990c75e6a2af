r"""Finds the boxes of a response: ``\boxed{...}``, ``\fbox{...}`` and a model's own box tokens.

Invariants: only closed boxes count, the outermost of nested ones; blank boxes do not. Time is linear in the
text: at most MAX_BOXES boxes, the last ones, are read, each at most MAX_ANSWER characters long.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

MAX_ANSWER = 20_000
MAX_BOXES = 64
MAX_MENTIONS = 4096
"""Mentions of a box, from the end, that are looked at."""
MAX_BETWEEN = 2000
"""Characters before a second answer in which the first is taken back."""
MAX_LINK = 80
"""Longest text that can link a box to its restatement."""

_MENTION = "box"
_OPENING = re.compile(r"(?P<name>boxed|fbox|framebox)\s?\{|<\|begin_of_box\|>")
_OFFSETS = (0, 1, 5, len("<|begin_of_"))
"""How far in front of the mention an opening may begin."""
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_BARE_BOX = re.compile(r"\\boxed\s{0,3}([^\s{}$.,;]{1,40})")
_BLANK = re.compile(r"(?:\\phantom\s?\{[^{}]*\}|\\q?quad|\\square|\\l?dots|\\[,;:! ]|[\s?_~.])*")
_PLACEHOLDER = re.compile(r"(?:\\text\s?\{)?\s?(?:your |the |final |my ){0,2}answer(?: here)?\s?\}?", re.IGNORECASE)
"""What a prompt shows in a box, and a response repeats."""
RETRACTED = re.compile(
    r"\b(?:wait|mistaken?|error|incorrect|correct(?:ion|ed)|wrong|contradict\w*|recheck\w*|reconsider\w*"
    r"|closer (?:look|examination|inspection)|actually)\b|更正|不对|错误|重新",
    re.IGNORECASE,
)
_RESTATED = re.compile(
    r"equivalent|simplif|i\.e\.|that is|in other words|which (?:is|equals)|approx|\band then\b|^\W*[=≈]\W*$"
)
_NEW_RESPONSE = re.compile(r"#{2,6} ?(?:response|solution|answer|output)\b", re.IGNORECASE)
"""A heading with which a whole response begins again."""
_FINAL = re.compile(r"\bfinal(?:ly)?\b|\banswers? (?:is|are)\b|最终|答案", re.IGNORECASE)


@dataclass(frozen=True)
class Box:
    """``start`` is the offset of the box itself, ``end`` the offset behind it."""

    start: int
    end: int
    content: str


def find_boxes(text: str) -> list[Box]:
    """The outermost closed boxes, in order."""
    found: list[Box] = []
    for opening in _openings(text):
        if found and opening.start() < found[-1].end:
            continue
        box = _read(text, opening)
        if box is not None and not _BLANK.fullmatch(box.content) and not _PLACEHOLDER.fullmatch(box.content):
            found.append(box)
    return found


def _openings(text: str) -> list[re.Match[str]]:
    """The last MAX_BOXES places where a box opens, in order."""
    found: list[re.Match[str]] = []
    position = len(text)
    for _ in range(MAX_MENTIONS):
        position = text.rfind(_MENTION, 0, position)
        if position < 0 or len(found) == MAX_BOXES:
            break
        for offset in _OFFSETS:
            opening = _OPENING.match(text, max(0, position - offset))
            if opening and not (opening["name"] and text[max(0, opening.start() - 1) : opening.start()].isalpha()):
                found.append(opening)
                break
    return found[::-1]


def bare_box(text: str) -> str | None:
    r"""What the last ``\boxed 5`` without braces holds."""
    found = None
    for match in _BARE_BOX.finditer(text):
        found = match[1]
    return found


def standing(text: str, boxes: list[Box], *, parts: bool) -> list[str]:
    """Contents of the boxes that the response still holds at its end.

    A box replaces those before it where the text between them retracts or restates them or, unless boxes may be
    ``parts`` of one answer, announces a final answer.
    """
    contents = [boxes[0].content]
    for before, box in pairwise(boxes):
        between = text[max(before.end, box.start - MAX_BETWEEN) : box.start]
        replaces = (
            RETRACTED.search(between)
            or _NEW_RESPONSE.search(between)
            or (len(between) <= MAX_LINK and _RESTATED.search(between))
            or (not parts and _FINAL.search(between))
        )
        contents = [box.content] if replaces else [*contents, box.content]
    return contents if parts else list(dict.fromkeys(contents))


def _read(text: str, opening: re.Match[str]) -> Box | None:
    start = opening.start()
    if opening[0].startswith("<"):
        end = text.find("<|end_of_box|>", opening.end(), opening.end() + MAX_ANSWER)
        return None if end < 0 else Box(start, end, text[opening.end() : end].strip())
    depth = 1
    for brace in _BRACE.finditer(text, opening.end(), opening.end() + MAX_ANSWER):
        token = brace[0]
        if token == "{":
            depth += 1
        elif token == "}":
            depth -= 1
            if depth == 0:
                content = text[opening.end() : brace.start()].strip()
                before = text[max(0, start - 8) : start]
                slashes = len(before) - len(before.rstrip("\\"))
                if slashes and slashes % 2 == 0:  # escaped twice, as in a JSON string that was not decoded
                    content = content.replace("\\\\", "\\")
                return Box(start, brace.end(), content)
    return None
