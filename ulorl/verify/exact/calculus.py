"""Exact sums, products, derivatives, integrals and limits where they are simple, else applications."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from ulorl.verify.exact import algebra
from ulorl.verify.exact.algebra import BOUND, Application, Expression, Unsupported
from ulorl.verify.exact.angles import cosine, sine
from ulorl.verify.exact.functions import substitute
from ulorl.verify.exact.powers import logarithm, square_root

MAX_TERMS = 60
MAX_HOSPITAL = 4
_CONTINUOUS = frozenset({"pow", "root", "ln", "sin", "cos", "asin", "acos", "atan", "abs"})


def finite(name: str, body: Expression, variable: str, low: Expression, high: Expression) -> Expression:
    """The sum or product (``name``) of ``body`` for ``variable`` from ``low`` to ``high``."""
    first, last = low.integer(), high.integer()
    if first is not None and last is not None and last - first < MAX_TERMS:
        if last < first - 1:
            raise Unsupported("a sum whose bounds are in the wrong order")
        result = algebra.number(0 if name == "sum" else 1)
        for k in range(first, last + 1):
            term = substitute(body, {variable: algebra.number(k)})
            result = algebra.add(result, term) if name == "sum" else algebra.multiply(result, term)
        return result
    return _bind(name, body, variable, low, high)


def _bind(name: str, body: Expression, variable: str, *bounds: Expression) -> Expression:
    level = max((int(atom[1:]) for atom in body.walk() if atom.startswith(BOUND)), default=0) + 1
    bound = algebra.atom(f"{BOUND}{level}")
    return algebra.opaque(name, substitute(body, {variable: bound}), bound, *bounds)


def differentiate(a: Expression, variable: str) -> Expression | None:
    """The derivative, or None where a function of the variable has no rule here."""
    if variable not in a.variables():
        return algebra.number(0)
    top, bottom = (Expression(part, algebra.number(1).denominator) for part in (a.numerator, a.denominator))
    if variable in bottom.variables():
        d_top, d_bottom = differentiate(top, variable), differentiate(bottom, variable)
        if d_top is None or d_bottom is None:
            return None
        numerator = algebra.subtract(algebra.multiply(d_top, bottom), algebra.multiply(top, d_bottom))
        return algebra.divide(numerator, algebra.multiply(bottom, bottom))
    total = algebra.number(0)
    for name in sorted(top.top_atoms()):
        inner = _derivative_of_atom(name, variable)
        if inner is None:
            return None
        if inner.numerator:
            total = algebra.add(total, algebra.multiply(_partial(top, name), inner))
    return algebra.divide(total, bottom)


def _partial(a: Expression, name: str) -> Expression:
    """The derivative of a sum of monomials with respect to one atom."""
    total = algebra.number(0)
    for (radicand, imaginary_power, atoms), coefficient in a.numerator.items():
        powers = dict(atoms)
        exponent = powers.get(name, 0)
        if exponent:
            powers[name] = exponent - 1
            rest = tuple(sorted((atom, n) for atom, n in powers.items() if n))
            term = {(radicand, imaginary_power, rest): coefficient * exponent}
            total = algebra.add(total, Expression(term, algebra.number(1).denominator))
    return total


def _derivative_of_atom(name: str, variable: str) -> Expression | None:
    if not isinstance(name, Application):
        return algebra.number(int(name == variable))
    changing = [argument for argument in name.arguments if variable in argument.variables()]
    if not changing:
        return algebra.number(0)
    if name.name == "pow":
        base, exponent = name.arguments
        d_base, d_exponent = differentiate(base, variable), differentiate(exponent, variable)
        if d_base is None or d_exponent is None:
            return None
        growth = algebra.multiply(d_exponent, logarithm(base)) if d_exponent.numerator else algebra.number(0)
        if d_base.numerator:
            growth = algebra.add(growth, algebra.divide(algebra.multiply(exponent, d_base), base))
        return algebra.multiply(algebra.atom(name), growth)
    rule = _DERIVATIVES.get(name.name)
    inner = differentiate(name.arguments[0], variable)
    return None if rule is None or inner is None else algebra.multiply(rule(name.arguments[0]), inner)


def _one_over(a: Expression) -> Expression:
    return algebra.divide(algebra.number(1), a)


def _one_and_square(a: Expression, sign: int) -> Expression:
    return algebra.add(algebra.number(1), algebra.multiply(algebra.number(sign), algebra.multiply(a, a)))


_DERIVATIVES: dict[str, Callable[[Expression], Expression]] = {
    "sin": cosine,
    "cos": lambda a: algebra.negate(sine(a)),
    "ln": _one_over,
    "atan": lambda a: _one_over(_one_and_square(a, 1)),
    "asin": lambda a: _one_over(square_root(_one_and_square(a, -1))),
}


def integrate(a: Expression, variable: str, low: Expression, high: Expression) -> Expression:
    """The definite integral: exact for sums of powers of the variable and finite bounds."""
    unbounded = algebra.INFINITY in low.atoms() | high.atoms()
    if unbounded or a.denominator != algebra.number(1).denominator:
        return _bind("integral", a, variable, low, high)
    antiderivative = algebra.number(0)
    for (radicand, imaginary_power, atoms), coefficient in a.numerator.items():
        powers = dict(atoms)
        exponent = powers.pop(variable, 0)
        depends = any(isinstance(name, Application) and variable in algebra.atom(name).variables() for name in powers)
        if exponent < 0 or depends:
            return _bind("integral", a, variable, low, high)
        powers[variable] = exponent + 1
        key = (radicand, imaginary_power, tuple(sorted(powers.items())))
        term = Expression({key: coefficient / Fraction(exponent + 1)}, algebra.number(1).denominator)
        antiderivative = algebra.add(antiderivative, term)
    ends = [substitute(antiderivative, {variable: end}) for end in (low, high)]
    return algebra.subtract(ends[1], ends[0])


def limit(a: Expression, variable: str, point: Expression) -> Expression:
    """The limit at a finite point: by continuity, or by l'Hospital's rule for a quotient of two zeros."""
    names = {name.name for name in a.walk() if isinstance(name, Application)}
    if algebra.INFINITY not in point.atoms() and names <= _CONTINUOUS:
        parts = algebra.quotient_of_polynomials(a)
        top: Expression | None = parts[0]
        bottom: Expression | None = parts[1]
        for _ in range(MAX_HOSPITAL):
            if top is None or bottom is None:
                break
            try:
                values = [substitute(part, {variable: point}) for part in (top, bottom)]
            except Unsupported:
                break
            if values[1].numerator:
                if values[1].applications():
                    break  # It may be zero in a way that the canonical form does not show.
                return algebra.divide(*values)
            if values[0].numerator:
                break
            top, bottom = differentiate(top, variable), differentiate(bottom, variable)
    return _bind("limit", a, variable, point)
