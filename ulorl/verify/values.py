"""What a parsed answer can be. Values say what was written; `compare` says when two are equivalent."""

from __future__ import annotations

from dataclasses import dataclass

from ulorl.verify.algebra import Expression


@dataclass(frozen=True)
class Scalar:
    """A number or expression; ``unit`` is "" for none, "%" for percent, "$" for money, else its words."""

    expression: Expression
    unit: str = ""


@dataclass(frozen=True)
class Based:
    """An integer written in another base, such as 1011_2."""

    digits: str
    base: int


@dataclass(frozen=True)
class Word:
    """Words with no mathematics, in lower case, or a choice letter in upper case."""

    text: str
    is_choice: bool = False


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
class Union:
    """Union of intervals or sets."""

    items: tuple[Value, ...]


@dataclass(frozen=True)
class Named:
    """``name = value``; ``name`` is a variable, or a function application such as f(x)."""

    name: str
    value: Value


@dataclass(frozen=True)
class Equation:
    """``left = right`` where the left side is more than a name; kept as left - right."""

    difference: Expression


@dataclass(frozen=True)
class Matrix:
    """Rows of expressions."""

    rows: tuple[tuple[Value, ...], ...]


Value = Scalar | Based | Word | Group | Listing | Union | Named | Equation | Matrix
