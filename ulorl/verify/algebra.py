"""Exact canonical forms of constants and expressions.

An expression is a quotient of two sums of monomials ``c * sqrt(r) * i^k * prod(atom^n)`` with rational
``c`` and square-free ``r``. Square roots of distinct square-free integers are linearly independent over the
rationals, so two quotients are equal exactly when their cross products have the same terms. Atoms are
variables, the constants pi and e, and *opaque* applications (``@sin(...)``): equal opaque atoms are equal
values, different ones decide nothing.

Every operation bounds its result (terms, bits) before computing it and raises `Unsupported` beyond the bound.
No floating point, no simplification of functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import gcd, isqrt

MAX_TERMS = 128
MAX_BITS = 14_000
"""Below the 4,300 decimal digits beyond which Python refuses to print an integer."""
MAX_POWER_OF_SUM = 16
CONSTANTS = frozenset({"pi", "e"})
INFINITY = "oo"

Monomial = tuple[int, int, tuple[tuple[str, int], ...]]
Terms = dict[Monomial, Fraction]
ONE: Monomial = (1, 0, ())


class Unsupported(Exception):
    """The text is outside the grammar, or evaluating it would pass a size limit."""


@dataclass(frozen=True)
class Expression:
    """``numerator / denominator``; the denominator has at least one term."""

    numerator: Terms
    denominator: Terms

    def atoms(self) -> set[str]:
        """Names of the variables, constants and opaque applications that occur."""
        return {name for terms in (self.numerator, self.denominator) for _, _, atoms in terms for name, _ in atoms}

    def key(self) -> str:
        """Text that is the same for structurally equal expressions (not for all equal ones)."""
        scale = self.denominator[min(self.denominator)]
        parts = [sorted((m, c / scale) for m, c in t.items()) for t in (self.numerator, self.denominator)]
        text = repr([[(m, f"{c.numerator}/{c.denominator}") for m, c in part] for part in parts])
        if len(text) > 20_000:
            raise Unsupported("expression too large")
        return text

    def rational(self) -> Fraction | None:
        """The value where it is a rational number, else None."""
        if not self.numerator:
            return Fraction(0)
        if set(self.numerator) == {ONE} and set(self.denominator) == {ONE}:
            return self.numerator[ONE] / self.denominator[ONE]
        return None


def number(value: Fraction | int) -> Expression:
    """A rational constant."""
    value = Fraction(value)
    _check_bits(value)
    return Expression({ONE: value} if value else {}, {ONE: Fraction(1)})


def atom(name: str) -> Expression:
    """A variable, named constant or opaque application."""
    return Expression({(1, 0, ((name, 1),)): Fraction(1)}, {ONE: Fraction(1)})


def imaginary() -> Expression:
    """The imaginary unit."""
    return Expression({(1, 1, ()): Fraction(1)}, {ONE: Fraction(1)})


def opaque(name: str, *arguments: Expression) -> Expression:
    """A function that is not evaluated, as an atom named after its arguments."""
    return atom(f"@{name}({';'.join(argument.key() for argument in arguments)})")


def add(a: Expression, b: Expression) -> Expression:
    if a.denominator == b.denominator:
        return _reduced(_add(a.numerator, b.numerator), a.denominator)
    left = _multiply(a.numerator, b.denominator)
    right = _multiply(b.numerator, a.denominator)
    return _reduced(_add(left, right), _multiply(a.denominator, b.denominator))


def negate(a: Expression) -> Expression:
    return Expression({m: -c for m, c in a.numerator.items()}, a.denominator)


def subtract(a: Expression, b: Expression) -> Expression:
    return add(a, negate(b))


def multiply(a: Expression, b: Expression) -> Expression:
    return _reduced(_multiply(a.numerator, b.numerator), _multiply(a.denominator, b.denominator))


def divide(a: Expression, b: Expression) -> Expression:
    if not b.numerator:
        raise Unsupported("division by zero")
    return multiply(a, Expression(b.denominator, b.numerator))


def power(base: Expression, exponent: Expression) -> Expression:
    """``base ** exponent``: evaluated for small integers and square roots, opaque otherwise."""
    value = exponent.rational()
    if value is None:
        return opaque("pow", base, exponent)
    if value.denominator == 2 and base.rational() is not None:
        return power(square_root(base), number(value.numerator))
    if value.denominator != 1:
        return opaque("pow", base, exponent)
    n = value.numerator
    if n < 0:
        return power(divide(number(1), base), number(-n))
    if n == 0:
        if not base.numerator:
            raise Unsupported("zero to the power zero")
        return number(1)
    rational = base.rational()
    if rational is not None:
        if rational in (0, 1):
            return number(rational)
        if rational == -1:
            return number(-1 if n % 2 else 1)
        if n * max(rational.numerator.bit_length(), rational.denominator.bit_length()) > MAX_BITS:
            return opaque("pow", base, exponent)
        return number(rational**n)
    if n > MAX_POWER_OF_SUM:
        return opaque("pow", base, exponent)
    result = base
    for _ in range(n - 1):
        result = multiply(result, base)
    return result


def square_root(a: Expression) -> Expression:
    """Principal square root; of a rational in canonical form, opaque otherwise."""
    value = a.rational()
    if value is None:
        return opaque("root", number(2), a)
    outside, inside = square_free(abs(value.numerator) * value.denominator)
    if inside is None:
        return opaque("root", number(2), a)
    coefficient = Fraction(outside, value.denominator)
    if not value:
        return number(0)
    return Expression({(inside, int(value < 0), ()): coefficient}, {ONE: Fraction(1)})


def square_free(n: int) -> tuple[int, int | None]:
    """``(s, r)`` with ``n = s*s*r`` and ``r`` square-free; ``r`` is None where ``n`` is too large."""
    root = isqrt(n)
    if root * root == n:
        return root, 1
    if n > 10**12:
        return 1, None
    outside, inside, prime = 1, 1, 2
    while prime * prime * prime <= n:
        while n % (prime * prime) == 0:
            n //= prime * prime
            outside *= prime
        if n % prime == 0:
            n //= prime
            inside *= prime
        prime += 1
    # What is left has at most two prime factors, so it is a square or square-free.
    root = isqrt(n)
    return (outside * root, inside) if root * root == n else (outside, inside * n)


def same(a: Expression, b: Expression) -> bool:
    """Whether the canonical forms agree: then the values do, wherever both are defined."""
    return _multiply(a.numerator, b.denominator) == _multiply(b.numerator, a.denominator)


def _add(a: Terms, b: Terms) -> Terms:
    result = dict(a)
    for monomial, coefficient in b.items():
        total = result.get(monomial, Fraction(0)) + coefficient
        if total:
            _check_bits(total)
            result[monomial] = total
        else:
            result.pop(monomial, None)
    if len(result) > MAX_TERMS:
        raise Unsupported("expression too large")
    return result


def _multiply(a: Terms, b: Terms) -> Terms:
    if len(a) * len(b) > 16 * MAX_TERMS:
        raise Unsupported("expression too large")
    result: Terms = {}
    for monomial_a, coefficient_a in a.items():
        for monomial_b, coefficient_b in b.items():
            monomial, factor = _multiply_monomials(monomial_a, monomial_b)
            total = result.get(monomial, Fraction(0)) + coefficient_a * coefficient_b * factor
            _check_bits(total)
            result[monomial] = total
    result = {monomial: coefficient for monomial, coefficient in result.items() if coefficient}
    if len(result) > MAX_TERMS:
        raise Unsupported("expression too large")
    return result


def _multiply_monomials(a: Monomial, b: Monomial) -> tuple[Monomial, int]:
    common = gcd(a[0], b[0])
    factor = common if a[1] + b[1] < 2 else -common
    powers = dict(a[2])
    for name, exponent in b[2]:
        powers[name] = powers.get(name, 0) + exponent
    radicand = a[0] * b[0] // (common * common)
    if radicand.bit_length() > MAX_BITS:
        raise Unsupported("number too large")
    return (radicand, (a[1] + b[1]) % 2, tuple(sorted(powers.items()))), factor


def _reduced(numerator: Terms, denominator: Terms) -> Expression:
    """Divides by a rational denominator, so that numbers are kept small and recognisable."""
    if not denominator:
        raise Unsupported("division by zero")
    if set(denominator) == {ONE}:
        scale = denominator[ONE]
        return Expression({m: c / scale for m, c in numerator.items()}, {ONE: Fraction(1)})
    return Expression(numerator, denominator)


def _check_bits(value: Fraction) -> None:
    if value.numerator.bit_length() > MAX_BITS or value.denominator.bit_length() > MAX_BITS:
        raise Unsupported("number too large")
