"""Several named values as solutions: ``p=5, q=2; p=7, q=2`` are two rows under the names p and q."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ulorl.verify.grammar.names import tuple_names
from ulorl.verify.grammar.values import Group, Listing, Membership, Named, Value

_SUBSCRIPT = re.compile(r"(\\?[A-Za-z]+)_(\d{1,3})")
_CONSECUTIVE = ("xyz", "abcdefgh", "pqrs", "mn", "uvw", "klmn", "ijk", "rst", "\\alpha\\beta\\gamma")
_ROUND = (("(", ")"), ("[", "]"), ("langle", "rangle"))
_ROOT_NAMES = frozenset({"x", "y", "z", "t", "r", "\\lambda"})


@dataclass(frozen=True)
class Solutions:
    """``rows[i][j]`` is the value of ``names[j]`` in solution i."""

    names: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    def ordered_as(self, names: Sequence[str]) -> Solutions:
        """The same solutions with their columns in the order of ``names``."""
        columns = [self.names.index(name) for name in names]
        return Solutions(tuple(names), tuple(tuple(row[column] for column in columns) for row in self.rows))

    def usual_order(self) -> Solutions | None:
        """Columns in the order of the alphabet, where that is how a tuple of them is written (x, y); else None."""
        usual = sorted(self.names)
        if usual == list(self.names) or not any("".join(usual) in run for run in _CONSECUTIVE):
            return None
        return self.ordered_as(usual)

    def roots_of(self) -> str | None:
        """The unknown whose roots are named x_1, x_2, ..., in one solution; else None."""
        matches = [_SUBSCRIPT.fullmatch(name) for name in self.names]
        bases = {match[1] for match in matches if match}
        if len(self.rows) != 1 or not all(matches) or len(bases) != 1 or len(matches) < 2:
            return None
        numbers = sorted(int(match[2]) for match in matches if match)
        if numbers not in (list(range(1, len(numbers) + 1)), list(range(len(numbers)))):
            return None
        base = bases.pop()
        return base if base in _ROOT_NAMES else None


def solutions(value: Value) -> Solutions | None:
    """The solutions that ``value`` names; None where an item has no name, or names repeat without a pattern."""
    items = value.items if isinstance(value, Listing) else (value,)
    pairs: list[tuple[str, Value]] = []
    for item in items:
        if isinstance(item, Membership):
            pairs.append((item.name, item.within))
        elif isinstance(item, Named):
            found = _pairs(item)
            if found is None:
                return None
            pairs.extend(found)
        else:
            return None
    names = tuple(dict.fromkeys(name for name, _ in pairs))
    width = len(names)
    if not width or len(pairs) % width:
        return None
    rows = [pairs[start : start + width] for start in range(0, len(pairs), width)]
    if any({name for name, _ in row} != set(names) for row in rows):
        return None
    return Solutions(names, tuple(tuple(dict(row)[name] for name in names) for row in rows))


def _pairs(item: Named) -> list[tuple[str, Value]] | None:
    if "=" in item.name:
        return [(name, item.value) for name in item.name.split("=")]
    names = tuple_names(item.name)
    if len(names) == 1:
        return [(names[0], item.value)]
    if (
        isinstance(item.value, Group)
        and (item.value.opening, item.value.closing) in _ROUND
        and len(item.value.items) == len(names)
    ):
        return list(zip(names, item.value.items, strict=True))
    return None
