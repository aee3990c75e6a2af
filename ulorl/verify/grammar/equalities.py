"""Reads equalities: a name and its value, equations, chains, approximations.

Invariants: a chain is accepted only if all its numbers are equal (``1 = 2 = 3`` never), and then says its last
value; an approximation is dropped only if it is near the exact value beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ulorl.verify.comparison.expressions import compare_expressions
from ulorl.verify.exact import algebra
from ulorl.verify.exact.algebra import Expression, Unsupported
from ulorl.verify.exact.signs import sign
from ulorl.verify.grammar.expressions import parse_expression
from ulorl.verify.grammar.names import parse_name
from ulorl.verify.grammar.split import Separators, commands, spelling, symbols
from ulorl.verify.grammar.tokens import Token, words
from ulorl.verify.grammar.values import (
    Alternatives,
    Equation,
    Group,
    Listing,
    Matrix,
    Membership,
    Named,
    NumberSet,
    Scalar,
    SetOperation,
    Value,
)
from ulorl.verify.outcome import Relation
from ulorl.verify.policy import DEFAULT

ParseTokens = Callable[[Sequence[Token]], Value]
EQUALITIES: Separators = symbols("=") | commands("approx", "simeq", "doteq")
_ROUGHLY = words("approx simeq doteq")


def parse_equal(sides: Sequence[list[Token]], equalities: Sequence[str], parse_simple: ParseTokens) -> Value:
    """What ``equalities`` (two sides or more) between ``sides`` state; raises `Unsupported`."""
    rough = next((i for i, found in enumerate(equalities) if found in _ROUGHLY), None)
    if rough is not None:
        return _parse_rough(sides, equalities, rough, parse_simple)
    names = [parse_name(side) for side in sides]
    if len(sides) == 2:
        return _parse_equation(sides[0], sides[1], names, parse_simple)
    return _parse_chain(sides, names, parse_simple)


def _parse_rough(
    sides: Sequence[list[Token]], equalities: Sequence[str], rough: int, parse_simple: ParseTokens
) -> Value:
    """``x = \\sqrt{2} \\approx 1.41`` is the exact value, if the rounded one is near it."""
    name = parse_name(sides[0])
    if rough == 0 and name is not None and len(sides) == 2:
        return named(name, parse_simple(sides[1]))
    exact = parse_equal(sides[: rough + 1], equalities[:rough], parse_simple) if rough else parse_simple(sides[0])
    value = exact.value if isinstance(exact, Named) else exact
    for side in sides[rough + 1 :]:
        close = parse_simple(side)
        if not isinstance(close, Scalar) or not isinstance(value, Scalar) or close.unit not in ("", value.unit):
            raise Unsupported("\\approx between other things than numbers")
        if value.expression.variables():
            return named(spelling(sides[0]), close)  # "V - E \\approx 2": an approximate value of something.
        if not near(value.expression, close.expression):
            raise Unsupported("an approximation that is far off")
    return exact


def near(exact: Expression, rounded: Expression) -> bool:
    """Within a hundredth of the rounded value."""
    difference = algebra.subtract(exact, rounded)
    bound = algebra.divide(rounded, algebra.number(100))
    size = bound if sign(bound) >= 0 else algebra.negate(bound)
    return sign(algebra.subtract(size, difference)) >= 0 and sign(algebra.add(size, difference)) >= 0


def _parse_equation(
    left: list[Token], right: list[Token], names: Sequence[str | None], parse_simple: ParseTokens
) -> Value:
    for name, own, other in ((names[0], left, right), (names[1], right, left)):
        if name is not None and (own is left or names[0] is None):
            value = parse_simple(other)
            if not (isinstance(value, Scalar) and name in value.expression.variables()):
                return named(name, value)
    structure = None if names[0] is not None else _structure(right, parse_simple)
    if structure is not None:
        return _stated_twice(left, structure, parse_simple) or named(spelling(left), structure)
    a = _number(left, parse_simple) or parse_expression(left)
    b = parse_expression(right)
    if a.variables() or b.variables():
        return Equation(a, b)
    relation = _relation(a, b)
    if relation == "different" and [token.text for token in left] == ["e"]:
        return Named("e", Scalar(b))  # An eccentricity.
    if relation == "different":
        raise Unsupported("an equation that does not hold")
    return Scalar(b) if relation == "equal" else Named(spelling(left), Scalar(b))


def _stated_twice(left: list[Token], value: Value, parse_simple: ParseTokens) -> Value | None:
    """``\\{1, 2\\} = \\{2, 1\\}``: one set or matrix written twice, None where a mere name stands left of it."""
    # The comparison of whole values reads expressions as well.
    from ulorl.verify.comparison.compare import compare

    other = _structure(left, parse_simple)
    if other is None:
        return None
    if compare(other, value).relation != "equal":
        raise Unsupported("an equation that does not hold")
    return value


def _relation(a: Expression, b: Expression) -> Relation:
    return compare_expressions(a, b, DEFAULT).relation


def _number(tokens: Sequence[Token], parse_simple: ParseTokens) -> Expression | None:
    """The value of a determinant; None for other tokens."""
    if not any(token.kind == "command" and token.text == "begin" for token in tokens):
        return None
    value = parse_simple(tokens)
    return value.expression if isinstance(value, Scalar) and not value.unit else None


def _structure(tokens: Sequence[Token], parse_simple: ParseTokens) -> Value | None:
    """A matrix or set, which whatever stands left of "=" is a name for; None for other tokens."""
    if not any(token.text in ("begin", "{", "mathbb") and token.kind == "command" for token in tokens):
        return None
    value = parse_simple(tokens)
    return value if isinstance(value, Matrix | Group | NumberSet | SetOperation) else None


def _parse_chain(sides: Sequence[list[Token]], names: Sequence[str | None], parse_simple: ParseTokens) -> Value:
    """``x = y = 6/2 = 3``: the last value, if all numbers after the names are equal to it.

    Formulas between a name, or numbers, and the last value are what has this value: ``S = ab/2 = 6``.
    """
    start = next((i for i, name in enumerate(names) if name is None), len(names) - 1)
    values = [parse_simple(side) for side in sides[start:]]
    name = "=".join(name or "" for name in names[:start])
    last = values[-1]
    if not isinstance(last, Scalar):
        if len(values) > 1:
            raise Unsupported("a chain of equalities of several values")
        return Named(name, last)
    for value in values:
        if not isinstance(value, Scalar) or value.unit not in ("", last.unit):
            raise Unsupported("a chain of equalities that is not one number")
        if value.expression.variables() and not last.expression.variables() and (name or len(values) > 2):
            name = name or spelling(sides[start])
        elif _relation(value.expression, last.expression) != "equal":
            raise Unsupported("a chain of equalities that does not hold")
    return Named(name, last) if name else last


def named(name: str, value: Value) -> Value:
    """``value`` under a name; each of several values has it."""
    if isinstance(value, Listing):
        return Listing(tuple(named(name, item) for item in value.items), value.joiner)
    if isinstance(value, Alternatives):
        return Alternatives(tuple(named(name, reading) for reading in value.readings))
    if isinstance(value, NumberSet | SetOperation):
        return Membership(name, value)
    return Named(name, value)
