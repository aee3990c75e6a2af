"""Values with tolerances and units, as references of short answers write them.

``a ± b`` with a number ``b`` is a measured value and its tolerance. With anything else behind the sign that the
verifier reads ("2 ± \\sqrt{3}", "3 ± 2i"), or no number before it ("±3", "x = ±3"), it is two values. What may be
either, or cannot be read, is a RowError.

Invariants: numbers and units are what the verifier's grammar reads, within its bounds; a tolerance is relative to the
value beside it, before a power of ten outside their common brackets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NoReturn

from ulorl.verify.exact import numerics
from ulorl.verify.grammar import units
from ulorl.verify.grammar.scalars import SUBSTANCE
from ulorl.verify.grammar.values import Named, Scalar, Value
from ulorl.verify.tasks.choices import RowError
from ulorl.verify.tiers import read_answer
from ulorl.verify.verifier import reference_answer

LARGEST = Fraction(1, 10)
"""Relative tolerances are below this (`verify.relative_tolerance`)."""
_SIGN = re.compile(r"\\pm(?![A-Za-z])|\+/-|\+-")
_POWER = r"(?:\\times|\\cdot|[x*])\s?10\s?\^\s?(?:\{\s?[-+]?\d{1,3}\s?\}|[-+]?\d{1,3}(?!\d))"
_NUMBER = re.compile(
    r"(?:(?:\d{1,3}(?:,\d{3}){1,6}|\d{1,20})(?:\.\d{1,20})?|\.\d{1,20})(?![\d.]|,\d)(?:[eE][-+]?\d{1,3}(?![\d.]))?"
    rf"(?:\s?{_POWER})?"
)
_COLUMN = re.compile(rf"(?P<number>{_NUMBER.pattern})\s?(?P<percent>\\?%)?")
_POWER_FIRST = re.compile(rf"\A\s?{_POWER}")
_DIVIDED = re.compile(r"\s?/\s?[\d(]")
_SEPARATOR = re.compile(r",(?!\d{3}(?!\d))|;|\\text ?\{ ?(?:and|or) ?\}|\b(?:and|or)\b")
_PROBE = 100
"""A number behind which a text shows whether it is a unit; 1 would make "1 pm" a time of day."""
_APART = "two values apart, as in '2, 8'"
_COLUMN_OR_APART = f"write the tolerance in its own column tolerance, or {_APART}"


@dataclass(frozen=True)
class Quantity:
    """A real constant and the unit that the verifier reads; ``exact``: it is a rational number."""

    size: Fraction
    unit: str
    exact: bool


@dataclass(frozen=True)
class Measured:
    """A reference without its tolerance, and the tolerance as a share of the value."""

    reference: str
    share: Fraction


@lru_cache(maxsize=1024)
def quantity(text: str) -> Quantity | None:
    """The number that a text states, with its unit; None for a letter, several values, words and whatever else."""
    value = _stated(reference_answer(text).value)
    for reading in (value, value.other) if isinstance(value, Scalar) else ():
        if reading is not None and not reading.expression.variables():
            size = numerics.approximate(reading.expression)
            if size is not None:
                return Quantity(size, reading.unit, reading.expression.rational() is not None)
    return None


@lru_cache(maxsize=1024)
def measured(reference: str) -> Measured | None:
    """What a reference with a tolerance says; None for one without, as two values are. RowError for the rest."""
    read = reference_answer(reference)
    pieces = _SEPARATOR.split(read.normal)
    found = [_measured(piece, read.value is not None) for piece in pieces if _SIGN.search(piece)]
    if len(pieces) == 1 and found:
        return found[0]
    if any(found):
        raise RowError(
            f"the reference {reference[:60]!r} gives a tolerance to one of several values; {_COLUMN_OR_APART}"
        )
    return None


def tolerance_of(given: Any, reference: str) -> Fraction:
    """The column ``tolerance`` (a number in the reference's unit, or a percentage) as a share of the reference."""
    found = _COLUMN.fullmatch(str(given).strip())
    if found is None:
        raise RowError(f"the column tolerance is {given!r}, neither a number nor a percentage")
    value, size = quantity(reference), _number(found["number"])
    several = not isinstance(_stated(reference_answer(reference).value), Scalar)
    if value is None and not (found["percent"] and several):
        raise RowError(f"a tolerance needs a number, with a unit that the verifier reads, not {reference[:60]!r}")
    share = size / 100 if found["percent"] or value is None else _relative(size, value)
    return _small(share, str(given), "give a smaller one")


def with_unit(reference: str, unit: Any) -> str:
    """The reference with the column ``unit`` behind it, unless it has this unit."""
    if unit is None or unit == "":
        return reference
    if not isinstance(unit, str):
        raise RowError(f"the column unit is {unit!r}; give text, as in 'kg'")
    unit = unit.strip()
    unit = "\\$" if unit == "$" else unit
    if not unit or re.search(rf"(?<![^\W\d_]){re.escape(unit)}\Z", reference):
        return reference
    own, other = quantity(reference), quantity(f"{_PROBE} {unit}")
    if own is None or not own.unit:
        return f"{reference} {unit}"
    if other is None or not _same_unit(own.unit, other.unit):
        raise RowError(f"the reference {reference[:60]!r} has another unit than the column unit, {unit!r}; give one")
    return reference


def _measured(piece: str, understood: bool) -> Measured | None:
    """`measured` of one value; ``understood``: the verifier reads the whole reference as it is."""
    sign = _SIGN.search(piece)
    assert sign is not None
    before, behind = piece[: sign.start()].strip(), piece[sign.end() :].strip()
    shared = before.endswith("(") or (before.startswith("(") and ")" not in before)
    head = (before[:-1] if before.endswith("(") else before[shared:]).strip()
    value, number = quantity(head), _NUMBER.match(behind)
    if value is None:
        if not understood and any(character.isdigit() for character in head):
            _refuse(piece)
        return None
    if number is None:
        if not _is_mathematics("", behind.partition(")")[0] if shared else behind):
            _refuse(piece)
        return None
    inside, closed, outside = behind[number.end() :].partition(")") if shared else (behind[number.end() :], "", "")
    if shared and not closed:
        _refuse(piece)
    percent = inside.strip().startswith("%")
    inside = inside.strip()[1:] if percent else inside
    labels = []
    for text in (inside, _POWER_FIRST.sub("", outside)):
        label = _unit_of(text)
        if label is None:
            if not _is_mathematics(f"{_PROBE} ", text) and not (closed and _DIVIDED.match(text)):
                _refuse(piece)
            return None
        labels.append(label)
    size = _size(_number(number[0]), percent, value, labels)
    kept = " ".join(f"{head} {'' if value.unit else inside} {outside}".split())
    if size is None or quantity(kept) is None:
        _refuse(piece)
    return Measured(kept, _small(_relative(size, value), f"± {behind}", f"give a smaller one, or {_APART}"))


def _size(number: Fraction, percent: bool, value: Quantity, labels: list[str]) -> Fraction | None:
    """A tolerance in the unit of ``value``; None where that is not certain. ``labels``: units of it and of both."""
    if percent:  # of the value, or points of a percentage
        return None if "%" in (value.unit, *labels) else number / 100 * value.size
    if value.unit and labels[0]:
        factor = _conversion(value.unit, labels[0])
        return None if factor is None else number * factor
    may_be_roots = not value.exact and number.denominator == 1 and not value.unit and not any(labels)
    return None if may_be_roots else number  # \sqrt{101} ± 1


def _refuse(piece: str) -> NoReturn:
    shown = piece.strip().replace("\\pm", "±")[:60]
    raise RowError(f"{shown!r} is no value with a tolerance and a unit that the verifier reads; {_COLUMN_OR_APART}")


def _relative(size: Fraction, value: Quantity) -> Fraction | None:
    return abs(size / value.size) if value.size else None


def _small(share: Fraction | None, tolerance: str, advice: str) -> Fraction:
    if share is None or share >= LARGEST:
        raise RowError(f"the tolerance {tolerance[:60]!r} is no share below {float(LARGEST):g} of the value; {advice}")
    return share


def _stated(value: Value | None) -> Value | None:
    return value.value if isinstance(value, Named) else value


def _number(text: str) -> Fraction:
    """The value of a text of `_NUMBER`."""
    value = quantity(text)
    if value is None:
        raise RowError(f"the tolerance {text[:60]!r} is too large or too small a number")
    return value.size


def _unit_of(text: str) -> str | None:
    """What the verifier calls the unit ``text``; "" for an empty text, None for what is none."""
    if not text.strip():
        return ""
    value = read_answer(f"{_PROBE} {text}").value
    is_unit = isinstance(value, Scalar) and value.unit and value.expression.rational() == _PROBE
    return value.unit if is_unit and isinstance(value, Scalar) else None


def _is_mathematics(number: str, text: str) -> bool:
    """Whether ``text`` is a root, i or the like, which no tolerance has, behind a ``number`` or the sign itself.

    Plain letters after a number may be a unit that the verifier does not read ("0.10 ± 0.005 M").
    """
    value = read_answer(f"{number}{text}").value
    if not isinstance(value, Scalar):
        return value is not None and not number
    expression = value.expression
    letters = bool(number and expression.variables()) and not expression.applications()
    return not value.unit and value.other is None and expression.rational() is None and not letters


def _same_unit(first: str, second: str) -> bool:
    """Two names of one unit, whatever it is a unit of."""
    first, second = (text.partition(SUBSTANCE)[0] for text in (first, second))
    return first == second or not set(units.readings(first)).isdisjoint(units.readings(second))


def _conversion(to: str, of: str) -> Fraction | None:
    """How many ``to`` a difference of one ``of`` is; None where that is not certain."""
    if to == of:
        return Fraction(1)
    pairs = [(a, b) for a in units.readings(to) for b in units.readings(of) if (a.dims, a.pi) == (b.dims, b.pi)]
    factors = {b.factor / a.factor for a, b in pairs}
    return factors.pop() if len(factors) == 1 else None
