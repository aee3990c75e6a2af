"""Where piecewise functions of an expression change, so that each of its pieces is looked at.

Absolute values, signs, maxima, minima and even roots are other functions on each side of the zeros of what they are
applied to. `points_in_pieces` has a point in every piece along each variable, the others held fixed. Rounding,
remainders and divisors change everywhere: agreement at points says nothing about them (`has_steps`), but integers
do where the two sides are quasi-polynomials, which agree everywhere if they do at one period times their degree
plus one (`agree_on_integers`).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, pairwise
from math import lcm

from ulorl.verify.exact import algebra
from ulorl.verify.exact.algebra import Application, Expression, Unsupported
from ulorl.verify.exact.functions import substitute

MAX_DEGREE = 8
MAX_BREAKS = 12
MAX_INTEGERS = 600
_STEPS = frozenset({"floor", "ceil", "mod", "gcd", "lcm"})
_DIVISORS = frozenset({"mod", "gcd"})
_ONE = {algebra.ONE: Fraction(1)}


def has_steps(expression: Expression) -> bool:
    """Whether something that varies is rounded, or has its remainder or common divisors taken."""
    return any(
        isinstance(name, Application) and name.name in _STEPS and any(_varies(argument) for argument in name.arguments)
        for name in expression.walk()
    )


def _varies(expression: Expression) -> bool:
    return bool(expression.variables()) or any(name.startswith(algebra.BOUND) for name in expression.walk())


def points_in_pieces(a: Expression, b: Expression, fixed: dict[str, Fraction]) -> list[dict[str, Fraction]] | None:
    """Points on both sides of every break along each variable, the others as ``fixed``; None where breaks are unknown.

    [] where nothing breaks.
    """
    switches = [switch for expression in (a, b) for switch in _switches(expression)]
    points: list[dict[str, Fraction]] = []
    for name in sorted(fixed):
        rest = {other: algebra.number(value) for other, value in fixed.items() if other != name}
        breaks: set[Fraction] = set()
        for switch in switches:
            if name in switch.variables():
                found = _real_roots(switch, rest, name)
                if found is None:
                    return None
                breaks |= found
        if len(breaks) > MAX_BREAKS:
            return None
        if breaks:
            rising = sorted(breaks)
            inner = [(x + y) / 2 for x, y in pairwise(rising)]
            outer = [rising[0] - 1 - abs(rising[0]), rising[0] - 1, rising[-1] + 1, rising[-1] + 1 + abs(rising[-1])]
            points += [{**fixed, name: value} for value in (*inner, *outer)]
    return points


def _switches(expression: Expression) -> Iterator[Expression]:
    """What changes its sign where a piecewise function changes."""
    for name in expression.walk():
        if isinstance(name, Application):
            if name.name in ("abs", "sign"):
                yield name.arguments[0]
            elif name.name in ("max", "min"):
                for x, y in combinations(name.arguments, 2):
                    yield algebra.subtract(x, y)
            elif name.name == "pow" and (power := name.arguments[1].rational()) and power.denominator % 2 == 0:
                yield name.arguments[0]


def _real_roots(switch: Expression, rest: dict[str, Expression], name: str) -> set[Fraction] | None:
    """The real zeros, to about 25 digits, of a polynomial in ``name``; none of other functions."""
    if switch.applications():
        return set()
    coefficients = _coefficients(algebra.cleared(substitute(switch, rest)), name)
    if coefficients is None:
        return None
    coefficients = _square_free(coefficients)
    if len(coefficients) == 2:
        return {-coefficients[0] / coefficients[1]}
    if len(coefficients) < 2:
        return set()
    from ulorl.verify.exact import floats

    context = floats.context()
    try:
        roots = context.polyroots([_real(context, c) for c in reversed(coefficients)], maxsteps=100, extraprec=400)
    except (ArithmeticError, context.NoConvergence):
        return None
    return {
        Fraction(context.nstr(context.re(root), 25))
        for root in roots
        if abs(context.im(root)) <= 1e-12 * (1 + abs(root))
    }


def _square_free(polynomial: list[Fraction]) -> list[Fraction]:
    """A polynomial with the same zeros, each once: divided by what it shares with its derivative."""
    common, rest = polynomial, [power * c for power, c in enumerate(polynomial)][1:]
    while any(rest):
        while not rest[-1]:
            rest = rest[:-1]
        common, rest = rest, _divided(common, rest)[1]
    return _divided(polynomial, common)[0] if len(common) > 1 else polynomial


def _divided(a: list[Fraction], b: list[Fraction]) -> tuple[list[Fraction], list[Fraction]]:
    """Quotient and remainder, from the constant up; the last coefficient of ``b`` is not zero."""
    rest, quotient = list(a), [Fraction(0)] * max(1, len(a) - len(b) + 1)
    for shift in range(len(a) - len(b), -1, -1):
        quotient[shift] = rest[shift + len(b) - 1] / b[-1]
        for index, coefficient in enumerate(b):
            rest[shift + index] -= quotient[shift] * coefficient
    return quotient, rest[: len(b) - 1]


def _real(context: object, value: Fraction) -> object:
    return context.mpf(value.numerator) / value.denominator  # type: ignore[attr-defined]


def _coefficients(polynomial: Expression, name: str) -> list[Fraction] | None:
    """From the constant up; None where they are not rational, or the degree is too high."""
    found: dict[int, Fraction] = {}
    for (radicand, imaginary, atoms), coefficient in polynomial.numerator.items():
        if radicand != 1 or imaginary or any(atom != name for atom, _ in atoms):
            return None
        found[atoms[0][1] if atoms else 0] = coefficient
    degree = max(found, default=0)
    if polynomial.denominator != _ONE or degree > MAX_DEGREE or min(found, default=0) < 0:
        return None
    return [found.get(power, Fraction(0)) for power in range(degree + 1)]


def agree_on_integers(a: Expression, b: Expression, name: str) -> bool:
    """Whether two quasi-polynomials of an integer are the same; False where one is none, or its period is long."""
    shapes = [_quasi_polynomial(expression, name) for expression in (a, b)]
    if shapes[0] is None or shapes[1] is None:
        return False
    count = lcm(shapes[0][0], shapes[1][0]) * (max(shapes[0][1], shapes[1][1]) + 1)
    if count > MAX_INTEGERS:
        return False
    try:
        for value in range(1, count + 1):
            at = {name: algebra.number(value)}
            if not algebra.same(substitute(a, at), substitute(b, at)):
                return False
    except Unsupported:
        return False
    return True


def _quasi_polynomial(expression: Expression, name: str) -> tuple[int, int] | None:
    """Period and degree of a polynomial in ``name`` and in steps that repeat; None for anything else."""
    if expression.denominator != _ONE:
        return None
    period, degree = 1, 0
    for _, _, atoms in expression.numerator:
        own = 0
        for atom, exponent in atoms:
            if exponent < 0:
                return None
            if isinstance(atom, Application):
                step = _step_period(atom, name)
                if step is None:
                    return None
                period = lcm(period, step[0])
                own += exponent * step[1]
            elif atom == name:
                own += exponent
            elif atom not in algebra.CONSTANTS:
                return None
        degree = max(degree, own)
    return (period, degree) if period <= MAX_INTEGERS else None


def _step_period(step: Application, name: str) -> tuple[int, int] | None:
    """Period and degree of one step whose only argument that varies is a polynomial."""
    argument = next((one for one in step.arguments if one.variables()), None)
    inner = None if argument is None else _coefficients(argument, name)
    if inner is None or sum(bool(one.variables()) for one in step.arguments) != 1:
        return None
    is_whole = all(c.denominator == 1 for c in inner)
    if step.name in ("floor", "ceil"):
        return lcm(*(c.denominator for c in inner[1:])), len(inner) - 1
    if step.name == "pow":
        return (2, 0) if is_whole and step.arguments[0].integer() == -1 else None
    other = next((one.integer() for one in step.arguments if not one.variables()), None)
    is_first = argument is step.arguments[0] or step.name == "gcd"
    return (abs(other), 0) if step.name in _DIVISORS and other and is_first and is_whole else None
