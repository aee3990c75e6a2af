"""What a parsed answer can be. Values say what was written; `compare` says when two are equivalent.

Invariant: a value accounts for every token of its answer. Nothing is evaluated beyond the leaves, so that
`(1, 2)` is still a point or an interval, and a list still has its order and its names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from ulorl.verify.exact import algebra
from ulorl.verify.exact.algebra import Expression


@dataclass(frozen=True)
class Scalar:
    """A number or expression; ``unit`` is "" for none, "%" for percent, "$" for money, else its words.

    ``step`` is the place value of the last digit of a decimal numeral such as 3.14 or 2.50e-7, else None;
    ``other`` is the second reading of a text such as "3m", which is three metres or three times m.
    """

    expression: Expression
    unit: str = ""
    step: Fraction | None = field(default=None, compare=False)
    other: Scalar | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Ratio:
    """``a : b : c``; ``seconds`` of the day where it may also be a time of day such as 5:30."""

    parts: tuple[Expression, ...]
    seconds: int | None = None


@dataclass(frozen=True)
class Clock:
    """A time of day in seconds after midnight; not ``certain`` where am or pm is left open."""

    seconds: int
    certain: bool = True


@dataclass(frozen=True)
class Date:
    """Readings (year or 0, month, day) of a date: two for 7/4/2020."""

    readings: frozenset[tuple[int, int, int]]


@dataclass(frozen=True)
class Based:
    """A number written in another base, such as 1011_2 or 0.1_2; no zeros that could be left out."""

    digits: str
    base: int


@dataclass(frozen=True)
class Word:
    """Words with no mathematics, in lower case, or a choice letter in upper case."""

    text: str
    is_choice: bool = False


@dataclass(frozen=True)
class Choice:
    """A choice letter together with what it stands for: ``(B) 12``."""

    letter: str
    content: Value


@dataclass(frozen=True)
class Group:
    """Comma-separated values in brackets: a tuple, an interval, a set or a vector, as the brackets say."""

    opening: str
    closing: str
    items: tuple[Value, ...]


@dataclass(frozen=True)
class Listing:
    """Several values without brackets; ``joiner`` is "," or "and" or "or"."""

    items: tuple[Value, ...]
    joiner: str = ","


@dataclass(frozen=True)
class Alternatives:
    """Readings of a text that means one of two things, the usual one first: ``(\\pm 1, \\pm 2)``."""

    readings: tuple[Value, ...]


@dataclass(frozen=True)
class NumberSet:
    """R, Q, Z, N or C, with a suffix: "+" positive, "-" negative, "0+" non-negative, "0-", "*" without zero."""

    name: str


@dataclass(frozen=True)
class SetOperation:
    """Union and intersection of two or more sets, or the difference of two."""

    operator: Literal["union", "intersection", "difference"]
    items: tuple[Value, ...]


@dataclass(frozen=True)
class Named:
    """``name = value``; ``name`` is a variable, a function application such as f(x), or a tuple of names."""

    name: str
    value: Value


@dataclass(frozen=True)
class Membership:
    """``name`` lies in the set ``within``: ``x \\in [1, 2]``, or ``x < 3`` as the interval it leaves."""

    name: str
    within: Value


@dataclass(frozen=True)
class Equation:
    """``left = right`` where neither side is a mere name."""

    left: Expression
    right: Expression

    @property
    def difference(self) -> Expression:
        """``left - right``, which the equation sets to zero."""
        return algebra.subtract(self.left, self.right)


@dataclass(frozen=True)
class Ordering:
    """A chain of inequalities that does not bound one variable: items rise along "<" and "<="; or two under "!="."""

    items: tuple[Expression, ...]
    relations: tuple[str, ...]


@dataclass(frozen=True)
class Congruence:
    """``residue`` modulo ``modulus``; ``name`` is what is congruent to it, "" for none."""

    name: str
    residue: Expression
    modulus: Expression | None


@dataclass(frozen=True)
class Condition:
    """What a trailing clause says of ``names``: the number set ``domain``, or "?" and its words."""

    names: tuple[str, ...]
    domain: str


@dataclass(frozen=True)
class Conditioned:
    """A value with its trailing clauses: ``2k + 1, k \\in \\mathbb{Z}``."""

    value: Value
    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Piecewise:
    """A function by cases: values and their conditions in the order of the rows."""

    rows: tuple[tuple[Value, Value], ...]


@dataclass(frozen=True)
class Matrix:
    """Rows of values, all of the same length."""

    rows: tuple[tuple[Value, ...], ...]


Value = (
    Scalar
    | Ratio
    | Clock
    | Date
    | Based
    | Word
    | Choice
    | Group
    | Listing
    | Alternatives
    | NumberSet
    | SetOperation
    | Named
    | Membership
    | Equation
    | Ordering
    | Congruence
    | Conditioned
    | Piecewise
    | Matrix
)
