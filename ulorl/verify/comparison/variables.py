"""Variables of parsed expressions and values: which occur, substitution, renaming, linearity.

Constants (pi, e, infinity) are not variables; substitution reaches into the arguments of functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ulorl.verify.exact import algebra, functions
from ulorl.verify.exact.algebra import Expression, Unsupported
from ulorl.verify.grammar.values import (
    Based,
    Clock,
    Date,
    Equation,
    Group,
    Listing,
    Matrix,
    Membership,
    Named,
    NumberSet,
    Ordering,
    Piecewise,
    Ratio,
    Scalar,
    SetOperation,
    Value,
    Word,
)

_CONSTANT_OF_INTEGRATION = ({"c", "C"}, {"c_1", "C_1"}, {"C", "C_1"})
_ARGUMENTS = frozenset("xytun")


def substitute(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """``expression`` with variables replaced, all at once."""
    if not expression.variables() & set(values):
        return expression
    return functions.substitute(expression, dict(values))


def linear(expression: Expression, name: str) -> tuple[Expression, Expression] | None:
    """``(a, b)`` with ``expression = a + b * name`` and ``b`` not zero, or None."""
    zero, one = algebra.number(0), algebra.number(1)
    if name not in expression.variables():
        return None
    try:
        constant = substitute(expression, {name: zero})
        slope = algebra.subtract(substitute(expression, {name: one}), constant)
    except Unsupported:
        return None
    again = algebra.add(constant, algebra.multiply(slope, algebra.atom(name)))
    return (constant, slope) if slope.numerator and algebra.same(again, expression) else None


def map_expressions(value: Value, change: Callable[[Expression], Expression]) -> Value:
    """``value`` with every expression in it changed; raises `Unsupported` for kinds that hold none."""
    match value:
        case Scalar():
            return replace(value, expression=change(value.expression))
        case Group() | Listing() | SetOperation():
            return replace(value, items=tuple(map_expressions(item, change) for item in value.items))
        case Named():
            return replace(value, value=map_expressions(value.value, change))
        case Membership():
            return replace(value, within=map_expressions(value.within, change))
        case Equation():
            return Equation(change(value.left), change(value.right))
        case Ordering():
            return replace(value, items=tuple(change(item) for item in value.items))
        case Matrix():
            return Matrix(tuple(tuple(map_expressions(cell, change) for cell in row) for row in value.rows))
        case Piecewise():
            return Piecewise(tuple((map_expressions(a, change), map_expressions(b, change)) for a, b in value.rows))
        case NumberSet() | Word() | Based() | Clock() | Date():
            return value
        case Ratio():
            return replace(value, parts=tuple(change(part) for part in value.parts))
    raise Unsupported(f"variables of a {type(value).__name__.lower()}")


def variables_of(value: Value) -> set[str]:
    """Names of the variables in the expressions of ``value``."""
    found: set[str] = set()

    def look(expression: Expression) -> Expression:
        found.update(expression.variables())
        return expression

    map_expressions(value, look)
    return found


def rename(value: Value, names: Mapping[str, str]) -> Value:
    """``value`` with its variables renamed, all at once; raises `Unsupported` where two would become one."""
    atoms = {old: algebra.atom(new) for old, new in names.items() if old != new}
    if atoms and {names[old] for old in atoms} & (variables_of(value) - set(atoms)):
        raise Unsupported("a variable that is renamed to one already there")
    return map_expressions(value, lambda expression: substitute(expression, atoms)) if atoms else value


def with_same_constant(a: Scalar, b: Scalar) -> Scalar | None:
    """``b`` with its constant of integration spelt as in ``a``: C e^x and c e^x; None where that is not all."""
    own, other = a.expression.variables(), b.expression.variables()
    spare, lacking = other - own, own - other
    if not (len(spare) == len(lacking) == 1 and spare | lacking in _CONSTANT_OF_INTEGRATION and own & _ARGUMENTS):
        return None
    renaming = {spare.pop(): algebra.atom(lacking.pop())}
    return replace(b, expression=substitute(b.expression, renaming))
