"""Compares sets: as subsets of the real line where every endpoint is known, else by their structure.

``(1, 2)`` is a point against a tuple and an interval against a set. Structure proves only equality.
"""

from __future__ import annotations

from ulorl.verify.comparison.matching import Compare, compare_distinct, compare_ordered, compare_unordered
from ulorl.verify.comparison.real_sets import equal_sets, real_set
from ulorl.verify.exact import algebra
from ulorl.verify.exact.algebra import Unsupported
from ulorl.verify.exact.signs import infinite, order
from ulorl.verify.grammar.number_sets import words_set
from ulorl.verify.grammar.values import Group, Listing, Membership, NumberSet, Scalar, SetOperation, Value, Word
from ulorl.verify.outcome import DIFFERENT, EQUAL, Outcome, undecided

_APART = frozenset({"R", "Z", "Q", "C", "R+", "R-", "Z+", "Q+"})
"""Number sets of which no two are the same."""
_ROUND = ({"(", ")"}, {"langle", "rangle"})


def compare_sets(a: Value, b: Value, compare: Compare) -> Outcome:
    """Two values of which one at least is a set expression or a membership."""
    a, b = _bare(a), _bare(b)
    if isinstance(a, NumberSet) and isinstance(b, NumberSet):
        if a == b:
            return EQUAL
        return DIFFERENT if {a.name, b.name} <= _APART else undecided("number sets")
    try:
        otherwise = EQUAL if equal_sets(real_set(a), real_set(b)) else DIFFERENT
    except Unsupported as error:
        otherwise = undecided(str(error))
    if otherwise.relation == "equal":
        return EQUAL
    # Endpoints may be equal under a policy for rounding or tolerance, which exact sets do not know.
    outcome = _compare_structure(a, b, compare)
    return outcome if outcome.relation == "equal" else otherwise


def _bare(value: Value) -> Value:
    if isinstance(value, Membership):
        return _bare(value.within)
    if isinstance(value, Word):
        return words_set(value.text) or value
    return value


def _compare_structure(a: Value, b: Value, compare: Compare) -> Outcome:
    if isinstance(a, SetOperation) and isinstance(b, SetOperation) and a.operator == b.operator:
        compare_items = compare_ordered if a.operator == "difference" else compare_unordered
        return compare_items(a.items, b.items, compare)
    if isinstance(a, Group) and isinstance(b, Group):
        if a.opening == b.opening == "{":
            return compare_distinct(a.items, b.items, compare)
        if "{" not in (a.opening, b.opening):
            return compare_groups(a, b, compare)
    return undecided("sets written in different ways")


def compare_groups(a: Group, b: Group, compare: Compare) -> Outcome:
    """Tuples, intervals and lists in brackets; a set is compared elsewhere."""
    brackets_a, brackets_b = {a.opening, a.closing}, {b.opening, b.closing}
    outcome = compare_ordered(a.items, b.items, compare)
    if outcome.relation == "different" or (a.opening, a.closing) == (b.opening, b.closing):
        return _same_brackets(a, b, outcome)
    if brackets_a in _ROUND and brackets_b in _ROUND:
        return outcome
    if {"(", "]"} in (brackets_a, brackets_b) or {"[", ")"} in (brackets_a, brackets_b):
        return _compare_intervals(a, b)
    if len(a.items) == 2 and may_be_interval(a) and may_be_interval(b):
        return DIFFERENT if outcome.relation == "equal" and {"[", "]"} in (brackets_a, brackets_b) else outcome
    return outcome if len(a.items) > 2 else undecided("other brackets")


def _same_brackets(a: Group, b: Group, outcome: Outcome) -> Outcome:
    """Lists of tuples or lists in any order; everything else in its own."""
    nested = a.items and b.items and all(isinstance(item, Group) for item in (*a.items, *b.items))
    if outcome.relation == "different" and a.opening == b.opening == "[" and nested:
        return undecided("lists in another order")
    return outcome


def _compare_intervals(a: Group, b: Group) -> Outcome:
    """Half-open intervals with other brackets: equal only where the bracket stands at infinity."""
    try:
        return EQUAL if equal_sets(real_set(a), real_set(b)) else DIFFERENT
    except Unsupported:
        return undecided("intervals with other brackets")


def may_be_interval(group: Group) -> bool:
    """Whether a pair in brackets has ends in the order of an interval, as far as is known."""
    if len(group.items) != 2 or not all(isinstance(item, Scalar) and not item.unit for item in group.items):
        return False
    low, high = (item.expression for item in group.items if isinstance(item, Scalar))
    try:
        return order(low, high) < 0 or infinite(low) != 0 or infinite(high) != 0
    except Unsupported:
        return True


def as_set(value: Value) -> bool:
    """Whether ``value`` can only be a set of numbers."""
    if isinstance(value, Membership | SetOperation | NumberSet):
        return True
    return isinstance(value, Group) and (value.opening, value.closing) in (("(", "]"), ("[", ")"))


def one_element(group: Group) -> Value | None:
    """The element of a set of one."""
    return group.items[0] if group.opening == "{" and len(group.items) == 1 else None


def may_be_points(several: Listing) -> bool:
    """Whether a list of pairs in parentheses says nowhere that they are intervals."""
    pairs = [item for item in several.items if isinstance(item, Group)]
    bounds = [item.expression for pair in pairs for item in pair.items if isinstance(item, Scalar)]
    round_only = all({pair.opening, pair.closing} == {"(", ")"} for pair in pairs)
    return bool(pairs) and round_only and not any(algebra.INFINITY in bound.atoms() for bound in bounds)
