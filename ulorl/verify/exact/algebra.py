"""Exact canonical forms of constants and expressions.

An expression is a quotient of two sums of monomials ``c * sqrt(r) * i^k * prod(atom^n)`` with rational
``c``, square-free ``r`` and integers ``n``. Square roots of distinct square-free integers are linearly
independent over the rationals, so two quotients are equal exactly when their cross products have the same
terms. A denominator of one term is always 1, and one without atoms is made rational where that is cheap. Atoms
are variables, the constants pi and e, and applications of functions to expressions (`Application`): equal
applications are equal values, different ones decide nothing.

Every operation bounds its result (terms, bits) before computing it and raises `Unsupported` beyond the bound.
No floating point, no simplification of functions (`powers` and `functions` know their exact values).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

MAX_TERMS = 128
MAX_BITS = 14_000
"""Below the 4,300 decimal digits beyond which Python refuses to print an integer."""
MAX_KEY = 20_000
LOG_UNIT = "1/ln(base)"
"""Stands for what turns ln into a logarithm whose base is not written; 1 or 1/ln(10)."""
CONSTANTS = frozenset({"pi", "e", LOG_UNIT})
INFINITY = "oo"
BOUND = "#"
"""First character of the names of the variables that a sum, product or integral binds."""

Monomial = tuple[int, int, tuple[tuple[str, int], ...]]
Terms = dict[Monomial, Fraction]
ONE: Monomial = (1, 0, ())
_UNIT: Terms = {ONE: Fraction(1)}


class Unsupported(Exception):
    """The text is outside the grammar, or evaluating it would pass a size limit."""


class Application(str):
    """A function applied to expressions, as an atom: a string that spells it, so equal means the same form."""

    name: str
    arguments: tuple[Expression, ...]

    def __new__(cls, name: str, arguments: tuple[Expression, ...]) -> Application:
        text = f"@{name}({';'.join(argument.key() for argument in arguments)})"
        if len(text) > MAX_KEY:
            raise Unsupported("expression too large")
        self = super().__new__(cls, text)
        self.name = name
        self.arguments = arguments
        return self

    def __getnewargs__(self) -> tuple[str, tuple[Expression, ...]]:  # type: ignore[override]
        return self.name, self.arguments


@dataclass(frozen=True)
class Expression:
    """``numerator / denominator``; the denominator has at least one term."""

    numerator: Terms
    denominator: Terms

    def top_atoms(self) -> set[str]:
        """The variables, constants and `Application` that occur outside the arguments of functions."""
        return {name for terms in (self.numerator, self.denominator) for _, _, atoms in terms for name, _ in atoms}

    def applications(self) -> set[Application]:
        """The outermost applications."""
        return {name for name in self.top_atoms() if isinstance(name, Application)}

    def walk(self) -> Iterator[str]:
        """Every atom at any depth, with repetitions."""
        for name in self.top_atoms():
            yield name
            if isinstance(name, Application):
                for argument in name.arguments:
                    yield from argument.walk()

    def atoms(self) -> set[str]:
        """Names of the variables and constants at any depth (also infinity)."""
        return {name for name in self.walk() if not isinstance(name, Application) and not name.startswith(BOUND)}

    def variables(self) -> set[str]:
        """Names of the free variables at any depth."""
        return self.atoms() - CONSTANTS - {INFINITY}

    def key(self) -> str:
        """Text that is the same for structurally equal expressions (not for all equal ones)."""
        if self.denominator is _UNIT or self.denominator == _UNIT:
            return _spell(self.numerator, Fraction(1))
        scale = self.denominator[min(self.denominator)]
        return f"({_spell(self.numerator, scale)})/({_spell(self.denominator, scale)})"

    def rational(self) -> Fraction | None:
        """The value where it is a rational number, else None."""
        if not self.numerator:
            return Fraction(0)
        if len(self.numerator) == 1 and (self.denominator is _UNIT or self.denominator == _UNIT):
            return self.numerator.get(ONE)
        return None

    def integer(self) -> int | None:
        """The value where it is an integer, else None."""
        value = self.rational()
        return value.numerator if value is not None and value.denominator == 1 else None

    def single(self) -> tuple[Monomial, Fraction] | None:
        """The monomial and its coefficient where the expression is one term, else None."""
        if len(self.numerator) == 1 and (self.denominator is _UNIT or self.denominator == _UNIT):
            return next(iter(self.numerator.items()))
        return None

    def leads_negative(self) -> bool:
        """Whether the first term is negative, so that exactly one of x and -x is; for choosing between them."""
        return bool(self.numerator) and self.numerator[min(self.numerator)] < 0


def _spell(terms: Terms, scale: Fraction) -> str:
    parts = []
    for (radicand, imaginary_power, atoms), coefficient in sorted(terms.items()):
        value = coefficient / scale
        factors = [f"{value.numerator}/{value.denominator}" if value.denominator != 1 else str(value.numerator)]
        if radicand != 1:
            factors.append(f"sqrt{radicand}")
        if imaginary_power:
            factors.append("i")
        factors += [name if power == 1 else f"{name}^{power}" for name, power in atoms]
        parts.append("*".join(factors))
    return "+".join(parts) or "0"


def number(value: Fraction | int) -> Expression:
    """A rational constant."""
    if type(value) is not Fraction:
        value = Fraction(value)
    _check_bits(value)
    return Expression({ONE: value} if value else {}, _UNIT)


def atom(name: str) -> Expression:
    """A variable, named constant or application."""
    return Expression({(1, 0, ((name, 1),)): Fraction(1)}, _UNIT)


def monomial(coefficient: Fraction, radicand: int = 1, imaginary_power: int = 0) -> Expression:
    """``coefficient * sqrt(radicand) * i^imaginary_power`` with a square-free radicand."""
    sign = -1 if imaginary_power % 4 >= 2 else 1
    return Expression({(radicand, imaginary_power % 2, ()): sign * coefficient} if coefficient else {}, _UNIT)


def imaginary() -> Expression:
    """The imaginary unit."""
    return monomial(Fraction(1), 1, 1)


def opaque(name: str, *arguments: Expression) -> Expression:
    """A function that is not evaluated, as an atom."""
    return atom(Application(name, arguments))


def add(a: Expression, b: Expression) -> Expression:
    if a.denominator is b.denominator or a.denominator == b.denominator:
        return _quotient(_add(a.numerator, b.numerator), a.denominator)
    left = _multiply(a.numerator, b.denominator)
    right = _multiply(b.numerator, a.denominator)
    return _quotient(_add(left, right), _multiply(a.denominator, b.denominator))


def negate(a: Expression) -> Expression:
    return Expression({m: -c for m, c in a.numerator.items()}, a.denominator)


def subtract(a: Expression, b: Expression) -> Expression:
    return add(a, negate(b))


def multiply(a: Expression, b: Expression) -> Expression:
    return _quotient(_multiply(a.numerator, b.numerator), _multiply(a.denominator, b.denominator))


def divide(a: Expression, b: Expression) -> Expression:
    if not b.numerator:
        raise Unsupported("division by zero")
    return _quotient(_multiply(a.numerator, b.denominator), _multiply(a.denominator, b.numerator))


def same(a: Expression, b: Expression) -> bool:
    """Whether the canonical forms agree: then the values do, wherever both are defined."""
    if a.denominator is b.denominator or a.denominator == b.denominator:
        return a.numerator == b.numerator
    return _multiply(a.numerator, b.denominator) == _multiply(b.numerator, a.denominator)


def cleared(a: Expression) -> Expression:
    """The numerator of ``a`` as a polynomial in its atoms: zero exactly where ``a`` is, but for poles."""
    return quotient_of_polynomials(a)[0]


def quotient_of_polynomials(a: Expression) -> tuple[Expression, Expression]:
    """Numerator and denominator without negative powers of atoms."""
    lowest: dict[str, int] = {}
    for _, _, atoms in a.numerator:
        for name, power in atoms:
            lowest[name] = min(lowest.get(name, 0), power)
    factor: Terms = {(1, 0, tuple(sorted((name, -power) for name, power in lowest.items() if power < 0))): Fraction(1)}
    return Expression(_multiply(a.numerator, factor), _UNIT), Expression(_multiply(a.denominator, factor), _UNIT)


def _add(a: Terms, b: Terms) -> Terms:
    result = dict(a)
    for key, coefficient in b.items():
        total = result.get(key)
        total = coefficient if total is None else total + coefficient
        if total:
            _check_bits(total)
            result[key] = total
        else:
            result.pop(key, None)
    if len(result) > MAX_TERMS:
        raise Unsupported("expression too large")
    return result


def _multiply(a: Terms, b: Terms) -> Terms:
    if b is _UNIT:
        return a
    if a is _UNIT:
        return b
    if len(a) * len(b) > 16 * MAX_TERMS:
        raise Unsupported("expression too large")
    result: Terms = {}
    for monomial_a, coefficient_a in a.items():
        for monomial_b, coefficient_b in b.items():
            key, factor = _multiply_monomials(monomial_a, monomial_b)
            product = coefficient_a * coefficient_b
            if factor != 1:
                product *= factor
            if key in result:
                product += result[key]
            _check_bits(product)
            result[key] = product
    if len(result) != len(a) * len(b):
        result = {key: coefficient for key, coefficient in result.items() if coefficient}
    if len(result) > MAX_TERMS:
        raise Unsupported("expression too large")
    return result


def _multiply_monomials(a: Monomial, b: Monomial) -> tuple[Monomial, int]:
    """Their product and the integer that leaves the root."""
    if a is ONE or a == ONE:
        return b, 1
    if b is ONE or b == ONE:
        return a, 1
    common = gcd(a[0], b[0])
    factor = common if a[1] + b[1] < 2 else -common
    if a[2] and b[2]:
        powers = dict(a[2])
        for name, exponent in b[2]:
            powers[name] = powers.get(name, 0) + exponent
        atoms = tuple(sorted((name, exponent) for name, exponent in powers.items() if exponent))
    else:
        atoms = a[2] or b[2]
    radicand = a[0] * b[0] // (common * common)
    if radicand.bit_length() > MAX_BITS:
        raise Unsupported("number too large")
    return (radicand, (a[1] + b[1]) % 2, atoms), factor


def _quotient(numerator: Terms, denominator: Terms) -> Expression:
    """The canonical form: a denominator of one term, or of roots only, becomes 1."""
    if denominator is _UNIT or denominator == _UNIT:
        return Expression(numerator, _UNIT)
    for _ in range(4):
        if len(denominator) == 1:
            return Expression(_multiply(numerator, _inverse(denominator)), _UNIT)
        conjugate = _conjugate(denominator)
        if conjugate is None:
            break
        numerator, denominator = _multiply(numerator, conjugate), _multiply(denominator, conjugate)
    if not denominator:
        raise Unsupported("division by zero")
    if numerator.keys() == denominator.keys():
        ratios = {numerator[key] / denominator[key] for key in numerator}
        if len(ratios) == 1:
            return number(ratios.pop())
    return Expression(numerator, denominator)


def _inverse(terms: Terms) -> Terms:
    """One over a single term."""
    ((radicand, imaginary_power, atoms), coefficient) = next(iter(terms.items()))
    scale = 1 / (coefficient * radicand)
    inverted = tuple((name, -power) for name, power in atoms)
    return {(radicand, imaginary_power, inverted): -scale if imaginary_power else scale}


def _conjugate(terms: Terms) -> Terms | None:
    """Terms whose product with ``terms`` has fewer different roots; None if there are atoms or large primes."""
    if len(terms) > 8 or any(atoms for _, _, atoms in terms):
        return None
    if any(power for _, power, _ in terms):
        return {key: -value if key[1] else value for key, value in terms.items()}
    if len(terms) == 2:
        first, second = terms.items()
        return {first[0]: first[1], second[0]: -second[1]}
    largest = max(radicand for radicand, _, _ in terms)
    prime = next((p for p in range(2, 100) if largest % p == 0), None)
    if prime is None:
        return None
    return {key: -value if key[0] % prime == 0 else value for key, value in terms.items()}


def _check_bits(value: Fraction) -> None:
    if value.numerator.bit_length() > MAX_BITS or value.denominator.bit_length() > MAX_BITS:
        raise Unsupported("number too large")
