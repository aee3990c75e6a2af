"""Three-valued comparison of parsed answers.

"different" is said only of values that were both fully understood and cannot be equal under any reading we
know; whatever depends on the question (missing names, percent against number, other variables, units to
convert) is undecided. Symmetric in its arguments.

Policies: a number with a unit or currency sign equals the same number without one; the order of a list
without brackets does not matter, that of a tuple does; p% equals p/100, and equals p because questions that
ask for a percentage leave the sign out; with a tolerance of 0 a decimal equals only the rational number it
spells.
"""

from __future__ import annotations

from collections.abc import Sequence

from ulorl.verify import algebra
from ulorl.verify.algebra import Expression, Unsupported
from ulorl.verify.compare_scalars import compare_based, compare_scalars, compare_words
from ulorl.verify.outcome import DIFFERENT, EQUAL, Outcome, undecided
from ulorl.verify.policy import DEFAULT, Policy
from ulorl.verify.values import Based, Equation, Group, Listing, Matrix, Named, Scalar, Union, Value, Word

MAX_UNORDERED = 64


def compare(a: Value, b: Value, policy: Policy = DEFAULT) -> Outcome:
    """Whether two answers are equivalent under ``policy``."""
    try:
        return _compare(a, b, policy)
    except Unsupported as error:
        return undecided(str(error))


def _compare(a: Value, b: Value, policy: Policy) -> Outcome:
    if isinstance(a, Named) or isinstance(b, Named):
        return _compare_named(a, b, policy)
    match a, b:
        case Scalar(), Scalar():
            return compare_scalars(a, b, policy)
        case Word(), Word():
            return compare_words(a, b)
        case Based(), Based() | Scalar():
            return compare_based(a, b)
        case Scalar(), Based():
            return compare_based(b, a)
        case Group(), Group():
            return _compare_groups(a, b, policy)
        case Listing(), Listing():
            if a.joiner != b.joiner and "," not in (a.joiner, b.joiner):
                return undecided("'and' against 'or'")
            return _compare_lists(a.items, b.items, policy)
        case (Listing() as listing, Group() as group) | (Group() as group, Listing() as listing):
            if group.opening == "{" and listing.joiner == ",":
                return _compare_unordered(listing.items, group.items, policy)
            if all(isinstance(item, Named) for item in listing.items):
                return _compare_lists(listing.items, group.items, policy)
            return undecided("a list against a tuple")
        case (Listing() as listing, Scalar() as scalar) | (Scalar() as scalar, Listing() as listing):
            return _compare_with_several(scalar, listing, policy)
        case Union(), Union():
            outcome = _compare_unordered(a.items, b.items, policy)
            return outcome if outcome.relation == "equal" else undecided("unions written in different ways")
        case Matrix(), Matrix():
            return _compare_matrices(a, b, policy)
        case Equation(), Equation():
            return _compare_equations(a.difference, b.difference)
    return undecided(f"{type(a).__name__.lower()} against {type(b).__name__.lower()}")


def _compare_named(a: Value, b: Value, policy: Policy) -> Outcome:
    if isinstance(a, Named) and isinstance(b, Named):
        outcome = _compare(a.value, b.value, policy)
        if a.name == b.name or outcome.relation == "undecided":
            return outcome
        if _is_function_of(a) and _is_function_of(b):
            return outcome
        return undecided(f"{a.name} against {b.name}")
    named, other = (a, b) if isinstance(a, Named) else (b, a)
    assert isinstance(named, Named)
    if isinstance(other, Equation):
        if not isinstance(named.value, Scalar) or "(" in named.name:
            return undecided("equations of different kinds")
        difference = algebra.subtract(algebra.atom(named.name), named.value.expression)
        return _compare_equations(difference, other.difference)
    if isinstance(other, Listing | Based):
        return undecided("one named value against several")
    return _compare(named.value, other, policy)


def _is_function_of(named: Named) -> bool:
    """y = 2x + 3 and f(x) = 2x + 3 name the same function."""
    return (named.name == "y" or "(" in named.name) and isinstance(named.value, Scalar)


def _compare_groups(a: Group, b: Group, policy: Policy) -> Outcome:
    if a.opening == b.opening == "{":
        return _compare_unordered(_distinct(a.items, policy), _distinct(b.items, policy), policy)
    angled = {"langle": "(", "rangle": ")"}
    brackets_a = angled.get(a.opening, a.opening) + angled.get(a.closing, a.closing)
    brackets_b = angled.get(b.opening, b.opening) + angled.get(b.closing, b.closing)
    outcome = _compare_ordered(a.items, b.items, policy)
    if brackets_a == brackets_b or outcome.relation == "different":
        return outcome
    if {brackets_a, brackets_b} & {"(]", "[)"}:
        return DIFFERENT
    return undecided("other brackets")


def _compare_lists(a: Sequence[Value], b: Sequence[Value], policy: Policy) -> Outcome:
    """Lists without brackets: by name where both name their items, in order where one does, else in any."""
    names_a, names_b = _names(a), _names(b)
    if names_a is None and names_b is None:
        return _compare_unordered(a, b, policy)
    if names_a is not None and names_b is not None and set(names_a) == set(names_b):
        return _compare_ordered([names_a[n] for n in sorted(names_a)], [names_b[n] for n in sorted(names_b)], policy)
    one_named = (names_a is None) != (names_b is None)
    if one_named and _compare_ordered(a, b, policy).relation == "equal":
        return EQUAL
    return undecided("named values against values in another order")


def _names(items: Sequence[Value]) -> dict[str, Value] | None:
    """The values by name, where every item has a name of its own."""
    named = {item.name: item.value for item in items if isinstance(item, Named)}
    return named if len(named) == len(items) > 1 else None


def _compare_with_several(scalar: Scalar, listing: Listing, policy: Policy) -> Outcome:
    """One value against several of which one differs; parts with units ("1 ft, 6 in") may be one value."""
    items = [item.value if isinstance(item, Named) else item for item in listing.items]
    if scalar.unit or any(isinstance(item, Scalar) and item.unit for item in items):
        return undecided("one value against several")
    if any(_compare(scalar, item, policy).relation == "different" for item in items):
        return DIFFERENT
    return undecided("one value against several")


def _compare_matrices(a: Matrix, b: Matrix, policy: Policy) -> Outcome:
    if (len(a.rows), len(a.rows[0])) != (len(b.rows), len(b.rows[0])):
        return undecided("matrices of different shapes")
    return _compare_ordered([c for row in a.rows for c in row], [c for row in b.rows for c in row], policy)


def _compare_ordered(a: Sequence[Value], b: Sequence[Value], policy: Policy) -> Outcome:
    if len(a) != len(b):
        return DIFFERENT
    outcomes = [_compare(x, y, policy) for x, y in zip(a, b, strict=True)]
    if all(outcome.relation == "equal" for outcome in outcomes):
        return EQUAL
    if any(outcome.relation == "different" for outcome in outcomes):
        return DIFFERENT
    return next(outcome for outcome in outcomes if outcome.relation == "undecided")


def _compare_unordered(a: Sequence[Value], b: Sequence[Value], policy: Policy) -> Outcome:
    """Equal when every item has a partner; different when some item differs from all of the other side."""
    if max(len(a), len(b)) > MAX_UNORDERED:
        return undecided("list too long")
    relations = [[_compare(x, y, policy).relation for y in b] for x in a]
    free = set(range(len(b)))
    for row in relations:
        # Greedy: "equal" without tolerance is an equivalence of understood values.
        free.discard(next((i for i in sorted(free) if row[i] == "equal"), -1))
    if not free and len(a) == len(b):
        return EQUAL
    for line in [*relations, *zip(*relations, strict=True)]:
        if all(relation == "different" for relation in line):
            return DIFFERENT
    return undecided("items that are repeated or not understood")


def _distinct(items: Sequence[Value], policy: Policy) -> list[Value]:
    if len(items) > MAX_UNORDERED:
        raise Unsupported("list too long")
    kept: list[Value] = []
    for item in items:
        if all(_compare(item, other, policy).relation != "equal" for other in kept):
            kept.append(item)
    return kept


def _compare_equations(a: Expression, b: Expression) -> Outcome:
    """Equal when one side's difference is a non-zero rational multiple of the other's."""
    if len(a.denominator) == len(b.denominator) == 1 and a.atoms() == b.atoms() and a.numerator and b.numerator:
        first = min(a.numerator)
        if first in b.numerator and set(a.denominator) == set(b.denominator) == {algebra.ONE}:
            ratio = algebra.number(b.numerator[first] / a.numerator[first])
            if algebra.same(algebra.multiply(a, ratio), b):
                return EQUAL
    return undecided("equations written in different ways")
