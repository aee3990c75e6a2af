"""Compares equations, orderings, and equations with their solutions.

Two equations are equal when their differences are proportional as polynomials (cleared of denominators), and
different when a point is found that satisfies one and not the other: exact for a variable that occurs linearly,
by its square roots for one of second degree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice, product

from ulorl.verify.comparison.variables import linear, substitute
from ulorl.verify.exact import algebra, powers
from ulorl.verify.exact.algebra import Application, Expression, Unsupported
from ulorl.verify.exact.signs import sign
from ulorl.verify.grammar.values import Equation, Listing, Named, Ordering, Scalar
from ulorl.verify.outcome import DIFFERENT, EQUAL, Outcome, undecided

MAX_POINTS = 12
MAX_VARIABLES = 4
MAX_DEGREE = 8
_COORDINATES = frozenset("xyzt")
_SIMPLE_NAME = re.compile(r"\\?[A-Za-z]+(?:_[A-Za-z0-9]+)?")


def as_equation(named: Named) -> Equation | None:
    """``y = 2x`` as an equation; None for functions and values that are not expressions."""
    if not isinstance(named.value, Scalar) or named.value.unit or not _SIMPLE_NAME.fullmatch(named.name):
        return None
    return Equation(algebra.atom(named.name), named.value.expression)


def is_quantity(equation: Equation) -> bool:
    """``m + n = 7``: the value of an expression rather than the equation of a curve."""
    constant = not equation.right.variables() and bool(equation.right.numerator)
    return constant and not equation.left.variables() & _COORDINATES


def compare_equations(a: Equation, b: Equation) -> Outcome:
    """Two equations in the same variables."""
    if algebra.same(a.left, b.left) and algebra.same(a.right, b.right):
        return EQUAL
    left, right = algebra.cleared(a.difference), algebra.cleared(b.difference)
    if not left.numerator or not right.numerator:
        return undecided("an equation that always holds")
    if left.atoms() != right.atoms():
        return undecided("equations in other variables")
    if _proportional(left, right):
        return EQUAL
    if left.applications() or right.applications():
        return undecided("equations with functions")
    for one, other in ((left, right), (right, left)):
        if any(_separates(other, point) for point in islice(_points_on(one), MAX_POINTS)):
            return DIFFERENT
    return undecided("equations written in different ways")


def _proportional(a: Expression, b: Expression) -> bool:
    """Whether one is a constant times the other."""
    first = min(a.numerator)
    candidates = [key for key in b.numerator if key[2] == first[2]]
    if set(key[2] for key in a.numerator) != set(key[2] for key in b.numerator) or not candidates:
        return False
    factor_a = _coefficient(a, first[2])
    factor_b = _coefficient(b, first[2])
    return algebra.same(algebra.multiply(a, factor_b), algebra.multiply(b, factor_a))


def _coefficient(a: Expression, atoms: tuple[tuple[str, int], ...]) -> Expression:
    """The constant before a product of atoms."""
    terms: algebra.Terms = {(r, i, ()): c for (r, i, own), c in a.numerator.items() if own == atoms}
    return Expression(terms, {algebra.ONE: Fraction(1)})


def _points_on(polynomial: Expression) -> Iterator[dict[str, Expression]]:
    """Real points where ``polynomial`` is zero, with small rational values for all variables but one."""
    names = sorted(polynomial.variables())
    if not 1 <= len(names) <= MAX_VARIABLES:
        return
    for name in names:
        others = [other for other in names if other != name]
        for values in islice(product((0, 1, 2, -1, 3, -3), repeat=len(others)), MAX_POINTS):
            point = {other: algebra.number(value) for other, value in zip(others, values, strict=True)}
            try:
                for root in _roots(substitute(polynomial, point), name):
                    yield {**point, name: root}
            except Unsupported:
                continue


def _roots(polynomial: Expression, name: str) -> list[Expression]:
    """Real roots of a polynomial of first or second degree in ``name`` with constant coefficients."""
    parts = linear(polynomial, name)
    if parts is not None:
        return [algebra.divide(algebra.negate(parts[0]), parts[1])]
    values = [substitute(polynomial, {name: algebra.number(n)}) for n in (0, 1, -1)]
    if any(value.rational() is None for value in values):
        return []
    c, up, down = (value.rational() or Fraction(0) for value in values)
    a, b = (up + down) / 2 - c, (up - down) / 2
    rebuilt = [algebra.number(c), algebra.multiply(algebra.number(b), algebra.atom(name))]
    x = algebra.atom(name)
    square = algebra.multiply(algebra.number(a), algebra.multiply(x, x))
    if not a or not algebra.same(algebra.add(algebra.add(rebuilt[0], rebuilt[1]), square), polynomial):
        return []
    discriminant = b * b - 4 * a * c
    if discriminant < 0:
        return []
    root = powers.square_root(algebra.number(discriminant))
    return [
        algebra.divide(algebra.add(algebra.number(-b), signed), algebra.number(2 * a))
        for signed in (root, algebra.negate(root))
    ]


def _separates(polynomial: Expression, point: dict[str, Expression]) -> bool:
    """Whether ``polynomial`` is certainly not zero at ``point``."""
    try:
        return sign(substitute(polynomial, point)) != 0
    except Unsupported:
        return False


def compare_with_roots(equation: Equation, roots: Listing | Named) -> Outcome:
    """``x^2 = 4`` against ``x = 2, x = -2``: equal when each satisfies it and there are as many as its degree."""
    items = roots.items if isinstance(roots, Listing) else (roots,)
    polynomial = algebra.cleared(equation.difference)
    names = polynomial.variables()
    values = [
        item.value.expression
        for item in items
        if isinstance(item, Named) and isinstance(item.value, Scalar) and {item.name} == names
    ]
    if len(names) != 1 or len(values) != len(items):
        return undecided("an equation against values")
    name = names.pop()
    if _is_one_to_one(polynomial, name):
        return _compare_with_root(polynomial, name, values)
    if polynomial.applications():
        return undecided("an equation against values")
    for value in values:
        if value.variables():
            return undecided("an equation against values")
        left = substitute(polynomial, {name: value})
        if left.numerator:
            return DIFFERENT if _separates(polynomial, {name: value}) else undecided("an equation against values")
    degree = max(power for _, _, atoms in polynomial.numerator for atom, power in (*atoms, (name, 0)) if atom == name)
    different = sum(not any(algebra.same(x, y) for y in values[:i]) for i, x in enumerate(values))
    return EQUAL if different == degree <= MAX_DEGREE else undecided("an equation against some of its roots")


def _is_one_to_one(expression: Expression, name: str) -> bool:
    """Whether ``name`` occurs once, linearly, in a logarithm or an exponent: then there is one root at most."""
    holders = [(atom, power) for _, _, atoms in expression.numerator for atom, power in atoms if _mentions(atom, name)]
    if len(holders) != 1 or holders[0][1] != 1 or not isinstance(holders[0][0], Application):
        return False
    *base, argument = holders[0][0].arguments
    is_exponential = holders[0][0].name == "pow" and (base[0].rational() or 0) > 0 and base[0].rational() != 1
    return (holders[0][0].name == "ln" or is_exponential) and linear(argument, name) is not None


def _mentions(atom: str, name: str) -> bool:
    return name in algebra.atom(atom).variables()


def _compare_with_root(equation: Expression, name: str, values: list[Expression]) -> Outcome:
    """``\\log_2 x = 3`` against x = 8, its only root."""
    if len(values) != 1 or values[0].variables():
        return undecided("an equation against values")
    if not substitute(equation, {name: values[0]}).numerator:
        return EQUAL
    return DIFFERENT if _separates(equation, {name: values[0]}) else undecided("an equation against values")


def compare_orderings(a: Ordering, b: Ordering) -> Outcome:
    """Chains item by item; the same strictly ordered items in another order are different."""
    if a.relations == ("!=",) or b.relations == ("!=",):
        if a.relations != b.relations:
            return undecided("\\ne against an inequality")
        return compare_equations(Equation(*a.items), Equation(*b.items))
    if len(a.items) == len(b.items) == 2:
        return _compare_inequalities(a, b)
    if len(a.items) != len(b.items):
        return undecided("chains of different length")
    same = all(algebra.same(x, y) for x, y in zip(a.items, b.items, strict=True))
    if same:
        return EQUAL if a.relations == b.relations else DIFFERENT
    partners = [[algebra.same(x, y) for y in b.items] for x in a.items]
    permuted = all(sum(row) == 1 for row in partners) and all(
        sum(column) == 1 for column in zip(*partners, strict=True)
    )
    strict = set(a.relations) == set(b.relations) == {"<"}
    return DIFFERENT if permuted and strict else undecided("chains of inequalities written in different ways")


def _compare_inequalities(a: Ordering, b: Ordering) -> Outcome:
    """``left < right``: equal when the differences are positive multiples of each other."""
    first, second = (algebra.subtract(pair.items[1], pair.items[0]) for pair in (a, b))
    if all(algebra.same(x, y) for x, y in zip(a.items, b.items, strict=True)):
        return EQUAL if a.relations == b.relations else DIFFERENT
    if not first.variables() or not second.variables():
        return undecided("an inequality without variables")
    ratio = algebra.divide(first, second).rational()
    if ratio is None:
        left, right = algebra.cleared(first), algebra.cleared(second)
        key = min(left.numerator)
        comparable = left.atoms() == right.atoms() and first.denominator == second.denominator
        if comparable and key in right.numerator and _proportional(left, right):
            ratio = left.numerator[key] / right.numerator[key]
    if ratio is None:
        return undecided("inequalities written in different ways")
    if ratio < 0:
        return DIFFERENT
    return EQUAL if a.relations == b.relations else DIFFERENT
