"""Compares several values, named or not, with several others, with a tuple or set, or with one value.

Policies: the order of a list without brackets does not matter (`Policy.order`), that of a tuple does; names bind
(x=2, y=3 is not (3, 2)); a list is never the same as one of its items. A list in the order of a tuple of three or
more is that tuple; of two only where it cannot be an interval.
"""

from __future__ import annotations

from collections.abc import Sequence

from ulorl.verify.comparison.matching import (
    Compare,
    compare_distinct,
    compare_ordered,
    compare_rows,
    compare_unordered,
)
from ulorl.verify.comparison.sets import may_be_interval
from ulorl.verify.comparison.solutions import Solutions, solutions
from ulorl.verify.grammar.values import Equation, Group, Listing, Matrix, Membership, Named, Scalar, Value, Word
from ulorl.verify.outcome import DIFFERENT, Outcome, undecided
from ulorl.verify.policy import Policy


def flipped(compare: Compare) -> Compare:
    """``compare`` for arguments of which the second belongs to the reference."""
    return lambda x, y: compare(y, x)


def compare_several(a: Value, b: Value, compare: Compare, policy: Policy) -> Outcome:
    """Two values of which one at least is a `Listing` or named; "and" is not "or"."""
    outcome = _compare_several(a, b, compare, policy)
    joiners = {side.joiner for side in (a, b) if isinstance(side, Listing)}
    if outcome.relation == "equal" and joiners == {"and", "or"}:
        return undecided("'and' against 'or'")
    return outcome


def _compare_several(a: Value, b: Value, compare: Compare, policy: Policy) -> Outcome:
    if any(isinstance(item, Equation) for value in (a, b) if isinstance(value, Listing) for item in value.items):
        return compare_unordered(_items(a), _items(b), compare)
    named_a, named_b = solutions(a), solutions(b)
    if named_a is not None and named_b is not None:
        return _compare_solutions(named_a, named_b, compare)
    if isinstance(a, Listing) and isinstance(b, Listing) and _has_names(a) and _has_names(b):
        return _compare_plain(a, b, compare, policy)
    if named_a is not None:
        return _compare_with_plain(named_a, b, compare, policy)
    if named_b is not None:
        return _compare_with_plain(named_b, a, flipped(compare), policy)
    if isinstance(a, Listing) and isinstance(b, Listing):
        return _compare_plain(a, b, compare, policy)
    if isinstance(a, Listing):
        return _compare_with_single(a, b, compare)
    if isinstance(b, Listing):
        return _compare_with_single(b, a, flipped(compare))
    return undecided("names that are not understood")


def _has_names(several: Listing) -> bool:
    return any(isinstance(item, Named | Membership) for item in several.items)


def _items(value: Value) -> tuple[Value, ...]:
    return value.items if isinstance(value, Listing) else (value,)


def _compare_solutions(a: Solutions, b: Solutions, compare: Compare) -> Outcome:
    if len(a.names) == len(b.names) == 1 and (len(a.rows) > 1 or len(b.rows) > 1):
        return compare_unordered(_renamed(a), _renamed(b), compare)
    if set(a.names) == set(b.names):
        return compare_rows(a.rows, b.ordered_as(a.names).rows, compare)
    root_a, root_b = a.roots_of(), b.roots_of()
    if (root_a, root_b) != (None, None) and (root_a or a.names[0], root_b or b.names[0]) in (
        (root_a, root_a),
        (root_b, root_b),
    ):
        return compare_unordered(_values(a), _values(b), compare)
    if len(a.names) == len(b.names):
        outcome = compare_rows(a.rows, b.rows, compare)
        if outcome.relation == "different" and len(a.names) == 1:
            return DIFFERENT
    return undecided(f"values of {', '.join(a.names)} against {', '.join(b.names)}")


def _renamed(named: Solutions) -> list[Value]:
    """Each value under its name, so that functions of other arguments are recognised."""
    return [Named(named.names[0], value) for value in _values(named)]


def _values(named: Solutions) -> list[Value]:
    return [value for row in named.rows for value in row]


def _compare_with_plain(named: Solutions, plain: Value, compare: Compare, policy: Policy) -> Outcome:
    """Named values against values without names."""
    if len(named.names) == 1:
        values = tuple(_values(named))
        return compare(values[0] if len(values) == 1 else Listing(values), plain)
    if len(named.rows) == 1 and len(set(map(id, named.rows[0]))) == 1 and isinstance(plain, Scalar):
        return compare(named.rows[0][0], plain)  # "x = y = z = 1"
    points = any(isinstance(value, Group | Matrix) for value in _values(named))
    tuples = None if points else _tuples(plain, len(named.names))
    if tuples is not None:
        return _compare_with_tuples(named, tuples, compare)
    if len(named.rows) == 1 and isinstance(plain, Listing | Group):
        outcome = compare_ordered(named.rows[0], plain.items, compare)
        if outcome.relation == "equal" and isinstance(plain, Listing) and plain.joiner != "or":
            return outcome
        loose = compare_unordered(named.rows[0], plain.items, compare)
        if loose.relation == "equal":
            return loose if named.roots_of() else undecided("named values against values in another order")
        return loose
    if isinstance(plain, Scalar | Word):
        outcomes = [compare(value, plain) for value in _values(named)]
        if all(outcome.relation == "different" for outcome in outcomes):
            return DIFFERENT
    return undecided("named values against values without names")


def _is_tuple(group: Group) -> bool:
    """No set, and no half-open interval."""
    return (group.opening, group.closing) in (("(", ")"), ("[", "]"), ("langle", "rangle"))


def _tuples(plain: Value, width: int) -> list[tuple[Value, ...]] | None:
    """The tuples of ``width`` values that ``plain`` is or lists."""
    if isinstance(plain, Matrix) and len(plain.rows) == width and len(plain.rows[0]) == 1:
        return [tuple(row[0] for row in plain.rows)]
    if isinstance(plain, Group) and _is_tuple(plain) and not any(isinstance(i, Group) for i in plain.items):
        return [plain.items]
    if isinstance(plain, Listing) or (isinstance(plain, Group) and plain.opening in "[{"):
        rows = [item.items for item in plain.items if isinstance(item, Group) and _is_tuple(item)]
        return rows if len(rows) == len(plain.items) and rows else None
    return None


def _compare_with_tuples(named: Solutions, tuples: Sequence[tuple[Value, ...]], compare: Compare) -> Outcome:
    usual = named.usual_order()
    written = compare_rows(named.rows, tuples, compare)
    if usual is None:
        return written
    other = compare_rows(usual.rows, tuples, compare)
    if written.relation == "different":
        return other
    return written if other.relation == written.relation else undecided("a tuple of values named in another order")


def _compare_plain(a: Listing, b: Listing, compare: Compare, policy: Policy) -> Outcome:
    in_order = compare_ordered(a.items, b.items, compare)
    outcome = in_order
    if in_order.relation != "equal" and policy.order == "free":
        outcome = compare_unordered(a.items, b.items, compare)
    return outcome


def _compare_with_single(several: Listing, single: Value, compare: Compare) -> Outcome:
    """A list against a set, a tuple, or one value that is not a list."""
    items = several.items
    if isinstance(single, Group):
        if single.opening == "{":
            return compare_distinct(items, single.items, compare)
        holds_groups = all(isinstance(item, Group) for item in single.items)
        if holds_groups and single.opening == "[":
            return compare_unordered(items, single.items, compare)
        if not any(isinstance(item, Group) for item in items):
            loose = compare_unordered(items, single.items, compare)
            if loose.relation != "equal":
                return loose
            if len(items) > 2 or holds_groups or not may_be_interval(single):
                in_order = compare_ordered(items, single.items, compare)
                return in_order if in_order.relation == "equal" else undecided("a list against a tuple")
            return undecided("a list against a tuple")
    bare = [item.value if isinstance(item, Named) else item for item in items]
    bare = [item.within if isinstance(item, Membership) else item for item in bare]
    if any(isinstance(item, Scalar) and item.unit for item in (*bare, single)):
        return undecided("one value against several")  # "1 ft, 6 in" may be one length.
    if any(compare(item, single).relation == "different" for item in bare):
        return DIFFERENT
    return undecided("one value against several")
