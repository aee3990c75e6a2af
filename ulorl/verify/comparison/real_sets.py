"""Subsets of the real line with finitely many exact endpoints, and their algebra.

Invariant: ``points`` rise strictly; ``cells`` has one flag for each open piece and each point from left to
right (2 n + 1 flags for n points). Two sets are equal when their flags agree on the union of their points, so
neither the order of a union nor touching pieces matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cmp_to_key, reduce

from ulorl.verify.exact.algebra import Expression, Unsupported, number
from ulorl.verify.exact.signs import infinite, order, sign
from ulorl.verify.grammar.number_sets import words_set
from ulorl.verify.grammar.values import Group, Listing, Membership, Named, NumberSet, Scalar, SetOperation, Value, Word

MAX_POINTS = 64
_CLOSED = {"[": True, "]": True, "(": False, ")": False}
_HALF_LINES = {"R": (True, True, True), "R+": (False, False, True), "R0+": (False, True, True),
               "R-": (True, False, False), "R0-": (True, True, False), "R*": (True, False, True)}  # fmt: skip


@dataclass(frozen=True)
class RealSet:
    points: tuple[Expression, ...]
    cells: tuple[bool, ...]

    def is_finite(self) -> bool:
        """Whether only points belong to the set."""
        return not any(self.cells[::2])


_ZERO = number(0)
EMPTY = RealSet((), (False,))
_OPERATIONS: dict[str, Callable[[bool, bool], bool]] = {
    "union": lambda a, b: a or b,
    "intersection": lambda a, b: a and b,
    "difference": lambda a, b: a and not b,
}


def equal_sets(a: RealSet, b: RealSet) -> bool:
    """Whether the two sets have the same elements."""
    _, (left, right) = _aligned([a, b])
    return left == right


def real_set(value: Value) -> RealSet:
    """The set of real numbers that ``value`` describes; raises `Unsupported` where it is none, or not known."""
    match value:
        case Scalar():
            if value.unit:
                raise Unsupported("a set of quantities")
            sign(value.expression)  # A real constant, or `Unsupported`.
            return _interval(value.expression, True, value.expression, True)
        case NumberSet() if value.name in _HALF_LINES:
            cells = _HALF_LINES[value.name]
            return RealSet((), (True,)) if all(cells) else RealSet((_ZERO,), cells)
        case Word():
            if value.text == "no solution":
                return EMPTY
            named = words_set(value.text)
            if named is not None:
                return real_set(named)
        case Group(opening="{"):
            return _folded("union", [real_set(item) for item in value.items])
        case Group(items=(Scalar() as low, Scalar() as high)) if {value.opening, value.closing} <= set(_CLOSED):
            if low.unit or high.unit:
                raise Unsupported("a set of quantities")
            return _interval(low.expression, _CLOSED[value.opening], high.expression, _CLOSED[value.closing])
        case SetOperation():
            return _folded(value.operator, [real_set(item) for item in value.items])
        case Membership():
            return real_set(value.within)
        case Named():
            return real_set(value.value)
        case Listing():
            if len({item.name for item in value.items if isinstance(item, Membership | Named)}) > 1:
                raise Unsupported("sets of several variables")
            return _folded("union", [real_set(item) for item in value.items])
    raise Unsupported("not a set of real numbers")


def _folded(operator: str, sets: Sequence[RealSet]) -> RealSet:
    if not sets:
        return EMPTY
    points, rows = _aligned(sets)
    operation = _OPERATIONS[operator]
    return RealSet(points, tuple(reduce(operation, column) for column in zip(*rows, strict=True)))


def _interval(low: Expression, low_closed: bool, high: Expression, high_closed: bool) -> RealSet:
    left, right = infinite(low), infinite(high)
    if left > 0 or right < 0:
        raise Unsupported("bounds in the wrong order")
    if left and right:
        return RealSet((), (True,))
    if left:
        return RealSet((high,), (True, high_closed, False))
    if right:
        return RealSet((low,), (False, low_closed, True))
    direction = order(low, high)
    if direction > 0:
        raise Unsupported("bounds in the wrong order")
    if direction == 0 and not (low_closed and high_closed):
        raise Unsupported("an interval without elements")
    if direction == 0:
        return RealSet((low,), (False, True, False))
    return RealSet((low, high), (False, low_closed, True, high_closed, False))


def _aligned(sets: Sequence[RealSet]) -> tuple[tuple[Expression, ...], list[tuple[bool, ...]]]:
    """The points of all ``sets`` and, for each, its flags for these points; one sort in all."""
    owned = [(point, index) for index, within in enumerate(sets) for point in within.points]
    if len(owned) > MAX_POINTS:
        raise Unsupported("too many endpoints")
    by_position = cmp_to_key(order)
    owned.sort(key=lambda pair: by_position(pair[0]))
    points: list[Expression] = []
    owners: list[set[int]] = []
    for point, index in owned:
        if not points or order(points[-1], point):
            points.append(point)
            owners.append(set())
        owners[-1].add(index)
    return tuple(points), [_refined(within, [i in at for at in owners]) for i, within in enumerate(sets)]


def _refined(within: RealSet, own: Sequence[bool]) -> tuple[bool, ...]:
    """Flags of ``within`` for points of which ``own`` says whether they are its own."""
    cells: list[bool] = []
    passed = 0
    for is_own in own:
        cells.append(within.cells[2 * passed])
        cells.append(within.cells[2 * passed + 1] if is_own else within.cells[2 * passed])
        passed += is_own
    return (*cells, within.cells[2 * passed])
