"""Compares values with trailing clauses.

A clause is dropped only where it says nothing about the value: the domain of a function's own argument, or a
name that does not occur. A condition on one side only, and parameters that are not understood, decide nothing,
except that values which differ under every renaming of parameters are different if there are no parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from ulorl.verify.comparison.families import compare_families
from ulorl.verify.comparison.integer_sets import is_above_zero
from ulorl.verify.comparison.matching import Compare
from ulorl.verify.comparison.variables import rename, variables_of
from ulorl.verify.grammar.names import function_of
from ulorl.verify.grammar.values import Condition, Conditioned, Listing, Membership, Named, Value
from ulorl.verify.outcome import Outcome, undecided

MAX_PARAMETERS = 3
_WHOLE = frozenset({"N", "Z", "Z+", "Z0+"})


def compare_conditioned(a: Value, b: Value, compare: Compare) -> Outcome:
    """Two values of which one at least is `Conditioned`."""
    families = compare_families(a, b)
    if families is not None:
        return families
    value_a, conditions_a = _substantive(a)
    value_b, conditions_b = _substantive(b)
    if not conditions_a and not conditions_b:
        return compare(value_a, value_b)
    if isinstance(value_a, Membership) and isinstance(value_b, Membership):
        own = _own_domain(value_a, conditions_a), _own_domain(value_b, conditions_b)
        if own != ("R", "R"):
            return _compare_domains(value_a, own[0], value_b, own[1], compare)
    if _unnamed(conditions_a) != _unnamed(conditions_b):
        outcome = compare(value_a, value_b)
        return outcome if outcome.relation == "different" else undecided("a condition on one side only")
    if _unnamed(conditions_a):  # words that may be about a variable: it keeps its name
        return compare(value_a, value_b)
    return _compare_parameters(value_a, _domains(conditions_a), value_b, _domains(conditions_b), compare)


def _own_domain(value: Membership, conditions: list[Condition]) -> str:
    """What kind of number the bounded name itself is; real where nothing says so."""
    domains = [condition.domain for condition in conditions if value.name in condition.names]
    return "R" if not domains else domains[0] if len(domains) == len(conditions) == 1 else "?"


def _compare_domains(a: Membership, own_a: str, b: Membership, own_b: str, compare: Compare) -> Outcome:
    """``x > 2, x \\in \\mathbb{Z}``: other bounds may hold the same integers; without the clause it is an interval."""
    same_kind = own_a == own_b or ({own_a, own_b} <= _WHOLE and is_above_zero(a.within))
    outcome = compare(a, b)
    if outcome.relation == "equal" and same_kind and "?" not in (own_a, own_b):
        return outcome
    return undecided("bounds on other kinds of numbers")


def _substantive(value: Value) -> tuple[Value, list[Condition]]:
    """The value without clauses, and the clauses that say something about it."""
    conditions: list[Condition] = []
    while isinstance(value, Conditioned):
        conditions.extend(value.conditions)
        value = value.value
    occurring = variables_of(value)
    if isinstance(value, Membership):
        occurring = occurring | {value.name}  # "n <= 1, n an integer" is no interval
    bound = {name for item in _named(value) for name in _arguments(item.name)}
    return value, [
        condition
        for condition in conditions
        if condition.domain.startswith("?") or set(condition.names) & occurring - bound
    ]


def _named(value: Value) -> list[Named]:
    items = value.items if isinstance(value, Listing) else (value,)
    return [item for item in items if isinstance(item, Named)]


def _arguments(name: str) -> tuple[str, ...]:
    function = function_of(name)
    return function[1] if function else ()


def _unnamed(conditions: list[Condition]) -> set[str]:
    """Conditions that are known only as words."""
    return {condition.domain for condition in conditions if condition.domain.startswith("?")}


def _domains(conditions: list[Condition]) -> dict[str, str]:
    return {name: c.domain for c in conditions if not c.domain.startswith("?") for name in c.names}


def _compare_parameters(
    a: Value, domains_a: dict[str, str], b: Value, domains_b: dict[str, str], compare: Compare
) -> Outcome:
    """Equal under a renaming of parameters that keeps their domains; a domain left out is that of the other side."""
    names_a, names_b = variables_of(a), variables_of(b)
    for renaming in _renamings(names_a, domains_a, names_b, domains_b):
        if compare(a, rename(b, renaming)).relation == "equal":
            return compare(a, rename(b, renaming))
    if not (set(domains_a) & names_a) and not (set(domains_b) & names_b):
        return compare(a, b)
    return undecided("parameters under different conditions")


def _renamings(
    names_a: set[str], domains_a: dict[str, str], names_b: set[str], domains_b: dict[str, str]
) -> Iterator[dict[str, str]]:
    """Bijections from the parameters of b to those of a."""
    declared = set(domains_a) | set(domains_b)
    parameters_a = sorted(name for name in names_a if name in declared or name not in names_b)
    parameters_b = sorted(name for name in names_b if name in declared or name not in names_a)
    if len(parameters_a) != len(parameters_b) or len(parameters_a) > MAX_PARAMETERS:
        return
    for order in permutations(parameters_a):
        renaming = dict(zip(parameters_b, order, strict=True))
        if all(_compatible(domains_a.get(new), domains_b.get(old)) for old, new in renaming.items()):
            yield renaming


def _compatible(a: str | None, b: str | None) -> bool:
    return a == b or (a is None) != (b is None)
