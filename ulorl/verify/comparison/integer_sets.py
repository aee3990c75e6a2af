"""Sets of integers between bounds, ``-1 \\le n \\le 1, n \\in \\mathbb{Z}``, as the integers that they hold."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

from ulorl.verify.comparison.real_sets import RealSet, real_set
from ulorl.verify.exact import algebra, numerics
from ulorl.verify.exact.algebra import Unsupported
from ulorl.verify.exact.signs import order
from ulorl.verify.grammar.values import Conditioned, Group, Membership, NumberSet, Scalar, SetOperation, Value

MAX_INTEGERS = 200
_LOWEST: dict[str, int | None] = {"Z": None, "Z+": 1, "Z0+": 0, "N": 0}


def listed(value: Value) -> Value:
    """``value``, or the set of its elements where it is a bounded set of integers. N with 0 in reach is left alone."""
    parts = _parts(value)
    if parts is None:
        return value
    domain, bounds = parts
    try:
        within = real_set(bounds)
    except Unsupported:
        return value
    found = _integers(within, _LOWEST[domain])
    if found is None or (domain == "N" and 0 in found):
        return value
    return Group("{", "}", tuple(Scalar(algebra.number(integer)) for integer in found))


def is_above_zero(bounds: Value) -> bool:
    """Whether nothing below 1 is within ``bounds``."""
    try:
        within = real_set(bounds)
        return not within.cells[0] and bool(within.points) and order(within.points[0], algebra.number(1)) >= 0
    except Unsupported:
        return False


def _parts(value: Value) -> tuple[str, Value] | None:
    if isinstance(value, Conditioned) and isinstance(value.value, Membership) and len(value.conditions) == 1:
        condition = value.conditions[0]
        if condition.names == (value.value.name,) and condition.domain in _LOWEST:
            return condition.domain, value.value.within
    if isinstance(value, Membership):
        return _parts(value.within)
    if isinstance(value, SetOperation) and value.operator == "intersection" and len(value.items) == 2:
        for domain, bounds in (value.items, value.items[::-1]):
            if isinstance(domain, NumberSet) and domain.name in _LOWEST and not isinstance(bounds, NumberSet):
                return domain.name, bounds
    return None


def _integers(within: RealSet, lowest: int | None) -> list[int] | None:
    """The integers in a bounded set, in their order; None where there are infinitely many or too many."""
    ends = [numerics.approximate(point) for point in within.points]
    if any(end is None for end in ends) or not ends or within.cells[-1] or (within.cells[0] and lowest is None):
        return None
    known = [end for end in ends if end is not None]
    low = ceil(known[0]) if lowest is None else lowest if within.cells[0] else max(lowest, ceil(known[0]))
    if floor(known[-1]) - low >= MAX_INTEGERS:
        return None
    return [integer for integer in range(low, floor(known[-1]) + 1) if _holds(within, known, Fraction(integer))]


def _holds(within: RealSet, ends: list[Fraction], value: Fraction) -> bool:
    if value in ends:
        return within.cells[2 * ends.index(value) + 1]
    return within.cells[2 * sum(end < value for end in ends)]
