"""Functions of expressions: exact values where the canonical form can hold them, else applications.

Other trigonometric and hyperbolic functions are written in sin, cos and powers of e. `FUNCTIONS` says what each
application name means and how many arguments it takes; `evaluation` gives their numerical values.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb, factorial, floor, gcd, lcm, perm

from ulorl.verify.exact import algebra
from ulorl.verify.exact.algebra import Application, Expression, Unsupported
from ulorl.verify.exact.angles import cosine, inverse_cosine, inverse_sine, inverse_tangent, sine
from ulorl.verify.exact.powers import exponential, logarithm, power, root, square_root

MAX_FACTORIAL = 200
MAX_EXPANDED_BINOMIAL = 8
MAX_BINOMIAL = 4000
_POSITIVE = frozenset({"pi", "e"})
_ONE = algebra.number(1)


def apply(name: str, *arguments: Expression) -> Expression:
    """The value of a function of `FUNCTIONS`, of "pow" or "root", in canonical form; raises `Unsupported`."""
    rule = FUNCTIONS.get(name)
    return algebra.opaque(name, *arguments) if rule is None else rule(*arguments)


def substitute(expression: Expression, values: dict[str, Expression]) -> Expression:
    """``expression`` with the named variables replaced."""

    def terms(part: algebra.Terms) -> Expression:
        total = algebra.number(0)
        for (radicand, imaginary_power, atoms), coefficient in part.items():
            term = algebra.monomial(coefficient, radicand, imaginary_power)
            for name, exponent in atoms:
                term = algebra.multiply(term, power(replaced(name), algebra.number(exponent)))
            total = algebra.add(total, term)
        return total

    def replaced(name: str) -> Expression:
        if isinstance(name, Application):
            return apply(name.name, *(substitute(argument, values) for argument in name.arguments))
        return values.get(name) or algebra.atom(name)

    numerator = terms(expression.numerator)
    return algebra.divide(numerator, terms(expression.denominator))


def log_of_unknown_base(a: Expression) -> Expression:
    """``log a``: base 10 or e, as the reader likes; a ratio of two does not depend on it."""
    return algebra.multiply(logarithm(a), algebra.atom(algebra.LOG_UNIT))


def logarithm_to(base: Expression, a: Expression) -> Expression:
    return algebra.divide(logarithm(a), logarithm(base))


def _reciprocal(rule: Callable[[Expression], Expression]) -> Callable[[Expression], Expression]:
    return lambda a: algebra.divide(algebra.number(1), rule(a))


def _sinh(a: Expression) -> Expression:
    e = exponential(a)
    return algebra.divide(algebra.subtract(e, algebra.divide(algebra.number(1), e)), algebra.number(2))


def _cosh(a: Expression) -> Expression:
    e = exponential(a)
    return algebra.divide(algebra.add(e, algebra.divide(algebra.number(1), e)), algebra.number(2))


def _tangent(a: Expression) -> Expression:
    return algebra.divide(sine(a), cosine(a))


def _of_reciprocal(rule: Callable[[Expression], Expression]) -> Callable[[Expression], Expression]:
    return lambda a: rule(algebra.divide(algebra.number(1), a))


def _parts(a: Expression) -> tuple[Expression, Expression] | None:
    """Real and imaginary part of an expression whose atoms are pi and e, else None."""
    if a.top_atoms() - _POSITIVE or a.denominator != algebra.number(1).denominator:
        return None
    real = {key: value for key, value in a.numerator.items() if not key[1]}
    imaginary = {(key[0], 0, key[2]): value for key, value in a.numerator.items() if key[1]}
    return Expression(real, a.denominator), Expression(imaginary, a.denominator)


def _absolute(a: Expression) -> Expression:
    single = a.single()
    if single is not None and all(name in _POSITIVE for name, _ in single[0][2]):
        (radicand, _, atoms), coefficient = single
        return Expression({(radicand, 0, atoms): abs(coefficient)}, a.denominator)
    if not a.numerator:
        return a
    parts = _parts(a)
    if parts is not None and parts[1].numerator:
        return square_root(algebra.add(*(algebra.multiply(part, part) for part in parts)))
    if len(a.applications()) == 1 and single is not None and single[1] == 1 and len(single[0][2]) == 1:
        name, exponent = single[0][2][0]
        if isinstance(name, Application) and name.name == "abs" and exponent == 1:
            return a
    return algebra.opaque("abs", algebra.negate(a) if a.leads_negative() else a)


def _part(index: int, name: str) -> Callable[[Expression], Expression]:
    def rule(a: Expression) -> Expression:
        parts = _parts(a)
        return algebra.opaque(name, a) if parts is None else parts[index]

    return rule


def _conjugate(a: Expression) -> Expression:
    parts = _parts(a)
    if parts is None:
        return algebra.opaque("conj", a)
    return algebra.subtract(parts[0], algebra.multiply(algebra.imaginary(), parts[1]))


def _floor(a: Expression) -> Expression:
    value = a.rational()
    if value is not None:
        return algebra.number(floor(value))
    # Whole numbers are moved out, so that floor(x + 1) is floor(x) + 1.
    whole = floor(a.numerator.get(algebra.ONE, 0)) if a.denominator == _ONE.denominator else 0
    if not whole:
        return algebra.opaque("floor", a)
    return algebra.add(algebra.opaque("floor", algebra.subtract(a, algebra.number(whole))), algebra.number(whole))


def _ceiling(a: Expression) -> Expression:
    return algebra.negate(_floor(algebra.negate(a)))


def _factorial(a: Expression) -> Expression:
    n = a.integer()
    if n is None or not 0 <= n <= MAX_FACTORIAL:
        return algebra.opaque("factorial", a)
    return algebra.number(factorial(n))


def _double_factorial(a: Expression) -> Expression:
    n = a.integer()
    if n is None or not 0 <= n <= MAX_FACTORIAL:
        return algebra.opaque("double_factorial", a)
    result = 1
    for k in range(n, 1, -2):
        result *= k
    return algebra.number(result)


def _chosen(name: str, exact: Callable[[int, int], int], divisor: Callable[[int], int]) -> Callable[..., Expression]:
    """A binomial coefficient or number of permutations; a polynomial in n for small k."""

    def rule(n: Expression, k: Expression) -> Expression:
        top, bottom = n.integer(), k.integer()
        if top is not None and bottom is not None:
            if not 0 <= bottom <= top <= MAX_BINOMIAL or bottom * top.bit_length() > algebra.MAX_BITS:
                return algebra.opaque(name, n, k)
            return algebra.number(exact(top, bottom))
        if bottom is None or not 0 <= bottom <= MAX_EXPANDED_BINOMIAL or n.rational() is not None:
            return algebra.opaque(name, n, k)
        result = algebra.number(Fraction(1, divisor(bottom)))
        for step in range(bottom):
            result = algebra.multiply(result, algebra.subtract(n, algebra.number(step)))
        return result

    return rule


def _mod(a: Expression, n: Expression) -> Expression:
    x, y = a.rational(), n.rational()
    if x is None or y is None:
        return algebra.opaque("mod", a, n)
    if y <= 0:
        raise Unsupported("a modulus that is not positive")
    return algebra.number(x % y)


def _of_integers(name: str, rule: Callable[..., int]) -> Callable[..., Expression]:
    def apply_rule(*arguments: Expression) -> Expression:
        values = [argument.integer() for argument in arguments]
        if any(value is None for value in values):
            return algebra.opaque(name, *_sorted(arguments))
        result = algebra.number(rule(*values))
        return result

    return apply_rule


def _extreme(name: str, rule: Callable[..., Fraction]) -> Callable[..., Expression]:
    def apply_rule(*arguments: Expression) -> Expression:
        values = [argument.rational() for argument in arguments]
        if any(value is None for value in values):
            return algebra.opaque(name, *_sorted(arguments))
        return algebra.number(rule(values))

    return apply_rule


def _sorted(arguments: tuple[Expression, ...]) -> list[Expression]:
    return sorted(arguments, key=Expression.key)


FUNCTIONS: dict[str, Callable[..., Expression]] = {
    "pow": power,
    "root": root,
    "exp": exponential,
    "ln": logarithm,
    "sin": sine,
    "cos": cosine,
    "tan": _tangent,
    "cot": lambda a: algebra.divide(cosine(a), sine(a)),
    "sec": _reciprocal(cosine),
    "csc": _reciprocal(sine),
    "asin": inverse_sine,
    "acos": inverse_cosine,
    "atan": inverse_tangent,
    "asec": _of_reciprocal(inverse_cosine),
    "acsc": _of_reciprocal(inverse_sine),
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": lambda a: algebra.divide(_sinh(a), _cosh(a)),
    "coth": lambda a: algebra.divide(_cosh(a), _sinh(a)),
    "sech": _reciprocal(_cosh),
    "csch": _reciprocal(_sinh),
    "cis": lambda a: exponential(algebra.multiply(algebra.imaginary(), a)),
    "abs": _absolute,
    "re": _part(0, "re"),
    "im": _part(1, "im"),
    "conj": _conjugate,
    "floor": _floor,
    "ceil": _ceiling,
    "factorial": _factorial,
    "double_factorial": _double_factorial,
    "binomial": _chosen("binomial", comb, factorial),
    "permutations": _chosen("permutations", perm, lambda _: 1),
    "mod": _mod,
    "gcd": _of_integers("gcd", gcd),
    "lcm": _of_integers("lcm", lcm),
    "max": _extreme("max", max),
    "min": _extreme("min", min),
}
"""Exact rules. Without one: acot, asinh, acosh, atanh, arg, sum, product, integral, derivative, limit."""
