"""Whether what a program printed is what was expected.

Lines are compared one by one, and in each the words between white space; white space at the end and empty lines at the
end do not count. Where an expected word is a number with a decimal point or an exponent, a number may differ by the
tolerance, relative or absolute; every other word has to be the same, letter by letter. Time is linear.
"""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_WHOLE = re.compile(r"[+-]?[0-9]+")
MAX_DIGITS = 400


def difference(printed: str, expected: str, tolerance: float) -> str:
    """Where they first differ, for people; "" where they do not."""
    ours, theirs = _lines(printed), _lines(expected)
    for number, (line, wanted) in enumerate(zip(ours, theirs, strict=False), 1):
        if not _same(line, wanted, tolerance):
            place = f"line {number}: " if len(theirs) > 1 else ""
            return f"{place}printed {' '.join(line)[:60]!r}, expected {' '.join(wanted)[:60]!r}"
    if len(ours) == len(theirs):
        return ""
    if not ours:
        return "printed nothing"
    return f"printed {len(ours)} lines, expected {len(theirs)}"


def _lines(text: str) -> list[list[str]]:
    lines = [line.split() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _same(line: list[str], wanted: list[str], tolerance: float) -> bool:
    if line == wanted:
        return True
    return len(line) == len(wanted) and all(map(_same_word, line, wanted, [tolerance] * len(line)))


def _same_word(word: str, wanted: str, tolerance: float) -> bool:
    if word == wanted:
        return True
    if not tolerance or max(len(word), len(wanted)) > MAX_DIGITS:
        return False
    if _WHOLE.fullmatch(wanted) or not _NUMBER.fullmatch(wanted) or not _NUMBER.fullmatch(word):
        return False
    a, b = float(word), float(wanted)
    return math.isfinite(a) and math.isfinite(b) and math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
