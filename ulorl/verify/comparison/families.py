"""Families of values with an integer parameter: ``\\frac{\\pi}{4} + k\\pi``, ``2n + 1``, ``x \\equiv 3 \\pmod 7``.

A side is a finite union of arithmetic progressions over all integers. Both sides are cut into classes modulo a
common period and compared as sets, so other representatives, a union of two families against one of half the
period, and other letters are equal. A parameter is understood where its clause says that it is an integer, or
where the period holds pi; of a bare ``2k + 1`` against ``2k - 1`` nothing is decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

from ulorl.verify.comparison.expressions import compare_expressions
from ulorl.verify.comparison.variables import linear
from ulorl.verify.exact import algebra, numerics
from ulorl.verify.exact.algebra import Expression
from ulorl.verify.grammar.values import Conditioned, Congruence, Group, Listing, Membership, Named, Scalar, Value
from ulorl.verify.outcome import DIFFERENT, EQUAL, Outcome, undecided
from ulorl.verify.policy import DEFAULT

MAX_CLASSES = 240
_PARAMETERS = frozenset("knmljt")


@dataclass(frozen=True)
class Family:
    """``offset + k * period`` for all integers k; a single value where there is no period."""

    offset: Expression
    period: Expression | None
    letter: str = ""
    is_declared: bool = False

    def is_certain(self) -> bool:
        """Whether the parameter is an integer beyond doubt."""
        return self.is_declared or (self.period is not None and "pi" in self.period.atoms())


def compare_families(a: Value, b: Value) -> Outcome | None:
    """None where the two are not both families, or where nothing says that they are."""
    first, second = _interval(a), _interval(b)
    if first is not None and second is not None:
        return _compare_intervals(first, second)
    names_a, names_b = _names(a), _names(b)
    if names_a and names_b and names_a != names_b:
        return None
    left, right = _families(a), _families(b)
    if left is None or right is None:
        return None
    moving_left = [family for family in left if family.period is not None]
    moving_right = [family for family in right if family.period is not None]
    certain = any(family.is_certain() for family in (*moving_left, *moving_right))
    if not moving_left and not moving_right:
        return None
    if not moving_left or not moving_right:
        return DIFFERENT if certain else None
    outcome = _compare_classes(left, right)
    if certain:
        return outcome
    letters = {family.letter for family in (*moving_left, *moving_right)}
    if outcome.relation == "equal" and letters != {"n"}:  # "2n + 1" is more often a term of a sequence.
        return undecided("families whose parameters are not declared")
    return None


def _interval(value: Value) -> tuple[Group, Family, Family] | None:
    """``[2k\\pi, 2k\\pi + \\pi], k \\in \\mathbb{Z}``: one interval whose ends move together; else None."""
    declared: set[str] = set()
    while isinstance(value, Conditioned | Membership):
        if isinstance(value, Conditioned):
            if any(condition.domain != "Z" for condition in value.conditions):
                return None
            declared |= {name for condition in value.conditions for name in condition.names}
            value = value.value
        else:
            value = value.within
    if not isinstance(value, Group) or len(value.items) != 2 or value.opening not in "([":
        return None
    low, high = (_family(item, declared) for item in value.items)
    if low is None or high is None or low.period is None or high.period is None or low.letter != high.letter:
        return None
    return (value, low, high) if algebra.same(low.period, high.period) and low.is_certain() else None


def _compare_intervals(a: tuple[Group, Family, Family], b: tuple[Group, Family, Family]) -> Outcome:
    """Equal when brackets, length and period agree and the left ends differ by whole periods."""
    outcome = _compare_classes([a[1]], [b[1]])
    lengths = [algebra.subtract(side[2].offset, side[1].offset) for side in (a, b)]
    same_length = algebra.same(lengths[0], lengths[1])
    if outcome.relation != "equal" or not same_length:
        return outcome if outcome.relation == "undecided" else DIFFERENT
    return EQUAL if (a[0].opening, a[0].closing) == (b[0].opening, b[0].closing) else DIFFERENT


def may_be_families(*variables: Iterable[str]) -> bool:
    """Whether the variables of all sides could be parameters: a quick test before `compare_families`."""
    return all(_PARAMETERS & set(names) for names in variables)


def _families(value: Value) -> list[Family] | None:
    declared: set[str] = set()
    while isinstance(value, Conditioned):
        if any(condition.domain != "Z" for condition in value.conditions):
            return None
        declared |= {name for condition in value.conditions for name in condition.names}
        value = value.value
    found: list[Family] = []
    for item in _items(value):
        family = _family(item, declared)
        if family is None:
            return None
        found.append(family)
    return found


def _names(value: Value) -> set[str]:
    """What the values are given to."""
    if isinstance(value, Conditioned):
        return _names(value.value)
    if isinstance(value, Listing):
        return {name for item in value.items for name in _names(item)}
    return {value.name} - {""} if isinstance(value, Named | Membership | Congruence) else set()


def _items(value: Value) -> list[Value]:
    if isinstance(value, Membership):
        return _items(value.within)
    if isinstance(value, Listing) or (isinstance(value, Group) and value.opening == "{"):
        return [part for item in value.items for part in _items(item)]
    if isinstance(value, Named) and "(" not in value.name and "_" not in value.name:
        return _items(value.value)
    return [value]


def _family(item: Value, declared: set[str]) -> Family | None:
    if isinstance(item, Congruence):
        if item.modulus is None or item.residue.variables() or not item.modulus.rational():
            return None
        return Family(item.residue, item.modulus, is_declared=True)
    if not isinstance(item, Scalar) or item.unit:
        return None
    names = item.expression.variables()
    if not names:
        return None if algebra.INFINITY in item.expression.atoms() else Family(item.expression, None)
    letters = names & (declared or _PARAMETERS)
    if len(names) != 1 or len(letters) != 1:
        return None
    letter = letters.pop()
    parts = linear(item.expression, letter)
    if parts is None:
        return None
    return Family(parts[0], parts[1], letter, letter in declared)


def _compare_classes(a: Sequence[Family], b: Sequence[Family]) -> Outcome:
    periods = [family.period for family in (*a, *b) if family.period is not None]
    ratios = [algebra.divide(period, periods[0]).rational() for period in periods]
    sizes = [abs(ratio) for ratio in ratios if ratio]
    if len(sizes) != len(periods):
        return undecided("periods without a common multiple")
    common = Fraction(lcm(*(s.numerator for s in sizes)), gcd(*(s.denominator for s in sizes)))
    if sum(common / size for size in sizes) > MAX_CLASSES:
        return undecided("too many classes")
    whole = algebra.multiply(periods[0], algebra.number(common))
    origin = a[0].offset
    classes_a = _classes(a, whole, origin)
    classes_b = _classes(b, whole, origin)
    if any(family.period is None for family in (*a, *b)):
        return _compare_with_points(a, b, classes_a == classes_b)
    exact_a, exact_b = _exact(classes_a), _exact(classes_b)
    if exact_a is not None and exact_b is not None:
        return EQUAL if exact_a == exact_b else DIFFERENT
    return _compare_inexact(classes_a, classes_b)


def _classes(families: Sequence[Family], whole: Expression, origin: Expression) -> list[Expression]:
    """Offsets in units of the common period, from ``origin``; one for each class of each family."""
    found = []
    for family in families:
        if family.period is None:
            continue
        share = algebra.divide(family.period, whole)
        steps = share.rational()
        assert steps is not None
        start = algebra.divide(algebra.subtract(family.offset, origin), whole)
        for step in range(abs(steps.denominator)):
            found.append(algebra.add(start, algebra.multiply(share, algebra.number(step))))
    return found


def _exact(classes: Sequence[Expression]) -> frozenset[Fraction] | None:
    values = [value.rational() for value in classes]
    return frozenset(value % 1 for value in values if value is not None) if None not in values else None


def _compare_inexact(a: Sequence[Expression], b: Sequence[Expression]) -> Outcome:
    """Every class of each side has one on the other that differs by an integer."""
    if len(a) * len(b) > MAX_CLASSES:
        return undecided("too many classes")
    for side, other in ((a, b), (b, a)):
        for value in side:
            answers = [_is_integer(algebra.subtract(value, candidate)) for candidate in other]
            if True not in answers:
                return undecided("offsets whose size is not known") if None in answers else DIFFERENT
    return EQUAL


def _is_integer(value: Expression) -> bool | None:
    rational = value.rational()
    if rational is not None:
        return rational.denominator == 1
    approximate = numerics.approximate(value)
    if approximate is None:
        return None
    nearest = round(approximate)
    if abs(approximate - nearest) > Fraction(1, 10**6):
        return False
    return True if compare_expressions(value, algebra.number(nearest), DEFAULT).relation == "equal" else None


def _compare_with_points(a: Sequence[Family], b: Sequence[Family], same_classes: bool) -> Outcome:
    """Families beside single values: equal only where both lists agree item by item."""
    points = [[f.offset for f in side if f.period is None] for side in (a, b)]
    alike = len(points[0]) == len(points[1]) and all(any(algebra.same(x, y) for y in points[1]) for x in points[0])
    return EQUAL if alike and same_classes else undecided("families beside single values")
