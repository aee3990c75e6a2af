"""The program that a response gives: its last block of Python, else what stands in an answer tag, else all of it.

Blocks are CommonMark's fenced code blocks, also in lists. A program may hold anything as text: inside a block that
ends, marks of thinking and of the end of a turn are part of it, and so is anywhere a mark that a quotation mark or a
backslash follows.

Invariants: nothing inside a thinking part counts; no text is read as Python; time is linear in the response.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ulorl.verify.extraction.thinking import CLOSED, END_OF_TURN, OPENED

_PYTHON = frozenset({"py", "python", "python3", "py3"})
_MARK = re.compile(
    rf"(?:(?P<closed>{CLOSED.pattern})|(?P<opened>{OPENED.pattern})|(?P<turn>{END_OF_TURN.pattern})|(?P<tag></?answer>))"
    r"(?!['\"\\])"
)
_FENCE = re.compile(
    r"(?P<indent>[ \t]*(?P<marker>(?:[-*+]|\d{1,9}[.)])[ \t]+)?)(?P<run>(?P<ticks>`{3,})|~{3,})"
    r"(?P<info>(?(ticks)[^`]*|.*))"
)
_ANSWER, _END_OF_ANSWER = re.compile(r"(?<!['\"])<answer>"), re.compile(r"</answer>(?!['\"\\])")


class _Mark(NamedTuple):
    start: int
    end: int
    kind: str


class _Piece(NamedTuple):
    """A line as far as its first mark, what is between two marks of it, or the rest of it (``mark`` None)."""

    start: int
    end: int
    mark: _Mark | None
    leads: bool


class _Fence(NamedTuple):
    """``width`` is the indentation in columns, ``info`` what follows the run of backticks or tildes."""

    width: int
    run: str
    info: str
    listed: bool


@dataclass
class _Block:
    """A block as far as it is read. ``mark`` is the end of the last mark in it that closes thinking, or 0."""

    fence: _Fence
    lines: list[str] = field(default_factory=list)
    mark: int = 0
    opens: bool = False
    """Whether it holds a mark that opens thinking."""
    deep: int | None = None
    """Lines before the last fence that would end it, were it not indented further; for a block without another end."""

    def ended_by(self, fence: _Fence | None) -> bool:
        return fence is not None and self.looks_ended_by(fence) and fence.width < self.fence.width + 4

    def looks_ended_by(self, fence: _Fence | None) -> bool:
        return fence is not None and not fence.info and not fence.listed and fence.run.startswith(self.fence.run)

    def left_open_at(self, fence: _Fence | None) -> bool:
        """Whether another block begins, one with a language."""
        return fence is not None and bool(fence.info) and fence.run.startswith(self.fence.run)

    def add(self, line: str) -> None:
        """A line without as much of its indentation as the fence has."""
        at = column = 0
        while at < len(line) and column < self.fence.width and line[at] in " \t":
            column += _columns(line[at], column)
            at += 1
        self.lines.append(" " * (column - self.fence.width) + line[at:])


def program_of(response: str) -> str | None:
    """The last block of Python (else the last without a language) of the visible response; without any block, the
    inside of its last answer tag, else all of it. None where there is nothing, or only a block that does not end."""
    marks = [_Mark(found.start(), found.end(), str(found.lastgroup)) for found in _MARK.finditer(response)]
    blocks, text = _visible(response, marks, _thought(response, marks) if marks else 0)
    if blocks is None:
        found = _tagged(text)
    else:
        languages = [block.fence.info.lower().partition(" ")[0] for block in blocks]
        labelled = [block for block, language in zip(blocks, languages, strict=True) if language in _PYTHON]
        plain = [block for block, language in zip(blocks, languages, strict=True) if not language]
        found = "\n".join([*plain, *labelled][-1].lines) if plain or labelled else ""
    return found if found.strip() else None


def _thought(text: str, marks: Sequence[_Mark]) -> int:
    """Where thinking has ended: after the last mark that says so and belongs to no program.

    Drafts inside a thinking part may be left open. So a mark belongs to a program where its block ends before another
    begins; but not where thinking has been opened, here or in the prompt (a mark alone on its
    line that no other in the block opens).
    """
    start = at = 0
    block, thinking = None, False
    while True:
        fresh = False
        for piece in _pieces(text, marks, at):
            fence = _fence(text, piece) if piece.leads or fresh else None
            outside = block is None
            if block is None:
                block = None if fence is None else _Block(fence)
            elif block.ended_by(fence):
                block, outside = None, True
            elif block.mark and block.left_open_at(fence):
                break
            fresh = block is None
            kind = "" if piece.mark is None else piece.mark.kind
            if kind == "opened":
                thinking = thinking or outside
                if block is not None:
                    block.opens = True
            elif piece.mark is not None and kind == "closed":
                if outside or thinking or (block is not None and not block.opens and _alone(text, piece)):
                    start, block, thinking, fresh = piece.mark.end, None, False, True
                elif block is not None:
                    block.mark = piece.mark.end
        else:
            return start if block is None else max(start, block.mark)
        start = at = block.mark  # the block was left open; what follows its last mark is read once more
        block, thinking = None, False


def _alone(text: str, piece: _Piece) -> bool:
    """Whether nothing else is in the line of the mark."""
    assert piece.mark is not None
    if not piece.leads or text[piece.start : piece.end].strip():
        return False
    end = text.find("\n", piece.mark.end)
    return not text[piece.mark.end : len(text) if end < 0 else end].strip()


def _visible(text: str, marks: Sequence[_Mark], start: int) -> tuple[list[_Block] | None, str]:
    """The blocks that end between ``start`` and the end of the turn, or more thinking; None where none begins. And the
    text there."""
    blocks, begun, fresh, line = list[_Block](), False, False, start
    block: _Block | None = None
    for piece in _pieces(text, marks, start):
        line = piece.start if piece.leads else line
        fence = _fence(text, piece) if piece.leads or fresh else None
        outside = block is None
        if block is None:
            block = None if fence is None else _Block(fence)
            begun = begun or block is not None
        elif block.ended_by(fence):
            blocks.append(block)
            block, outside = None, True
        elif piece.mark is None:
            block.deep = len(block.lines) if block.looks_ended_by(fence) else block.deep
            block.add(text[line : piece.end])
        fresh = block is None
        if outside and piece.mark is not None and piece.mark.kind in ("opened", "turn"):
            if piece.mark.kind == "opened" or text[start : piece.end].strip():
                break
            start = piece.mark.end  # a turn without anything in it
    if block is not None and block.deep is not None:
        del block.lines[block.deep :]
        blocks.append(block)
    return blocks if begun else None, text[start : piece.end].strip()


def _tagged(text: str) -> str:
    """The inside of the last answer tag; without one all of ``text``."""
    end = max((found.start() for found in _END_OF_ANSWER.finditer(text)), default=0)
    begin = max((found.end() for found in _ANSWER.finditer(text, 0, end)), default=0)
    return text[begin:end].strip() if begin else text


def _pieces(text: str, marks: Sequence[_Mark], at: int) -> Iterator[_Piece]:
    number = bisect_left(marks, at, key=lambda mark: mark.start)
    while at <= len(text):
        end, leads = text.find("\n", at), True
        end = len(text) if end < 0 else end
        while number < len(marks) and marks[number].start < end:
            mark = marks[number]
            yield _Piece(at, mark.start, mark, leads)
            at, number, leads = mark.end, number + 1, False
            if at > end:
                end = text.find("\n", at)
                end = len(text) if end < 0 else end
        yield _Piece(at, end, None, leads)
        at = end + 1


def _fence(text: str, piece: _Piece) -> _Fence | None:
    found = _FENCE.fullmatch(text, piece.start, piece.end)
    if found is None:
        return None
    width = 0
    for character in found["indent"]:
        width += _columns(character, width)
    return _Fence(width, found["run"], found["info"].strip(), found["marker"] is not None)


def _columns(character: str, column: int) -> int:
    return 4 - column % 4 if character == "\t" else 1
