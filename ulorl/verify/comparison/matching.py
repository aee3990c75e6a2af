"""Three-valued comparison of sequences and of collections without order.

``compare`` takes an item of the reference first. Invariant: "equal" needs a partner for every item, found by
bipartite matching since equality under rounding is not transitive; "different" needs a proof that no partners
exist even if everything undecided were equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ulorl.verify.exact.algebra import Unsupported
from ulorl.verify.grammar.values import Value
from ulorl.verify.outcome import DIFFERENT, EQUAL, Outcome, undecided

MAX_UNORDERED = 64
T = TypeVar("T")
Compare = Callable[[Value, Value], Outcome]


def compare_ordered(a: Sequence[Value], b: Sequence[Value], compare: Compare) -> Outcome:
    """Item by item."""
    if len(a) != len(b):
        return DIFFERENT
    open_question: Outcome | None = None
    for x, y in zip(a, b, strict=True):
        outcome = compare(x, y)
        if outcome.relation == "different":
            return DIFFERENT
        if outcome.relation == "undecided":
            open_question = open_question or outcome
    return open_question or EQUAL


def compare_rows(a: Sequence[Sequence[Value]], b: Sequence[Sequence[Value]], compare: Compare) -> Outcome:
    """Rows in any order, the cells of a row in theirs."""
    return _match(a, b, lambda x, y: compare_ordered(x, y, compare))


def compare_unordered(a: Sequence[Value], b: Sequence[Value], compare: Compare) -> Outcome:
    """Items in any order, each as often as it stands there."""
    return _match(a, b, compare)


def compare_distinct(a: Sequence[Value], b: Sequence[Value], compare: Compare) -> Outcome:
    """Items in any order, repetitions aside."""
    return compare_unordered(distinct(a, compare), distinct(b, compare), compare)


def distinct(items: Sequence[Value], compare: Compare) -> list[Value]:
    """The items without those equal to an earlier one."""
    if len(items) > MAX_UNORDERED:
        raise Unsupported("list too long")
    kept: list[Value] = []
    for item in items:
        if all(compare(other, item).relation != "equal" for other in kept):
            kept.append(item)
    return kept


def _match(a: Sequence[T], b: Sequence[T], compare: Callable[[T, T], Outcome]) -> Outcome:
    if max(len(a), len(b)) > MAX_UNORDERED:
        return undecided("list too long")
    known: dict[tuple[int, int], str] = {}

    def relation(i: int, j: int) -> str:
        if (i, j) not in known:
            known[i, j] = compare(a[i], b[j]).relation
        return known[i, j]

    if len(a) == len(b):
        if _have_partners(len(a), relation, ("equal",)):
            return EQUAL
        understood = not _have_partners(len(a), relation, ("equal", "undecided"))
        return DIFFERENT if understood else undecided("items that are not understood")
    if not a or not b:
        return DIFFERENT
    rows = [[relation(i, j) for j in range(len(b))] for i in range(len(a))]
    for line in [*rows, *zip(*rows, strict=True)]:
        if all(relation == "different" for relation in line):
            return DIFFERENT
    return undecided("items that are repeated or not understood")


def _have_partners(count: int, relation: Callable[[int, int], str], accepted: tuple[str, ...]) -> bool:
    """Whether every row can have a column of its own among the accepted (augmenting paths)."""
    owner: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        # The same position first: most lists are in the same order.
        for column in (row, *range(row), *range(row + 1, count)):
            if column not in tried and relation(row, column) in accepted:
                tried.add(column)
                if column not in owner or place(owner[column], tried):
                    owner[column] = row
                    return True
        return False

    return all(place(row, set()) for row in range(count))
