"""Powers, roots and logarithms of expressions: exact where the canonical form can hold them, else applications.

Names of the applications: ``pow(base, exponent)`` is the principal power, ``root(n, x)`` the real root of odd
index where x is real, ``ln(x)`` the principal logarithm. Exponents never start with a minus sign, and a rational
base is neither a perfect power nor below 1, so that 4^n, 2^(2n) and (1/2)^(-2n) are one atom.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd, isqrt

from ulorl.verify.exact import algebra
from ulorl.verify.exact.algebra import Expression, Unsupported
from ulorl.verify.exact.angles import cosine, sine

MAX_POWER_OF_SUM = 16
MAX_FACTORED = 10**12
MAX_LOG_BITS = 256
_PRIMES = [p for p in range(2, 1000) if all(p % q for q in range(2, isqrt(p) + 1))]
_HALF = Fraction(1, 2)


def power(base: Expression, exponent: Expression) -> Expression:
    """``base ** exponent``."""
    value = exponent.rational()
    if value is None:
        return _general_power(base, exponent)
    if value.denominator == 1:
        return integer_power(base, value.numerator)
    rational = base.rational()
    if rational is not None and (rational >= 0 or value.denominator == 2):
        return _rational_root(rational, value)
    return _opaque_power(base, exponent)


def integer_power(base: Expression, n: int) -> Expression:
    """``base ** n``, expanded where that is small."""
    if n == 0:
        if not base.numerator:
            raise Unsupported("zero to the power zero")
        return algebra.number(1)
    single = base.single()
    if single is not None:
        (radicand, imaginary_power, atoms), coefficient = single
        bits = max(coefficient.numerator.bit_length(), coefficient.denominator.bit_length(), radicand.bit_length())
        if abs(coefficient) == 1 and radicand == 1:
            bits = 0
        if abs(n) * bits <= algebra.MAX_BITS:
            factor = coefficient**n * Fraction(radicand) ** (n // 2)
            root = algebra.monomial(factor, radicand if n % 2 else 1, (imaginary_power * n) % 4)
            powers = tuple((name, k * n) for name, k in atoms)
            return algebra.multiply(root, Expression({(1, 0, powers): Fraction(1)}, algebra.number(1).denominator))
        rational = base.rational()
        if rational is not None and rational > 0:
            primitive, times = _primitive(rational)
            return _opaque_power(algebra.number(primitive), algebra.number(n * times))
        return _opaque_power(base, algebra.number(n))
    if not base.numerator:
        if n < 0:
            raise Unsupported("division by zero")
        return base
    if abs(n) > MAX_POWER_OF_SUM:
        return _opaque_power(base, algebra.number(n))
    try:
        result = base
        for _ in range(abs(n) - 1):
            result = algebra.multiply(result, base)
    except Unsupported:
        return _opaque_power(base, algebra.number(n))
    return result if n > 0 else algebra.divide(algebra.number(1), result)


def square_root(a: Expression) -> Expression:
    """Principal square root."""
    return power(a, algebra.number(_HALF))


def root(index: Expression, a: Expression) -> Expression:
    """The root that ``\\sqrt[n]{a}`` means: real for a negative number and odd n, else principal."""
    n = index.integer()
    if n is None:
        return power(a, algebra.divide(algebra.number(1), index))
    if n < 2:
        raise Unsupported("a root of index below 2")
    value = a.rational()
    if n % 2 and value is not None and value < 0:
        return algebra.negate(_rational_root(-value, Fraction(1, n)))
    if n % 2 and value is None:
        return algebra.opaque("root", index, a)
    return power(a, algebra.number(Fraction(1, n)))


def exponential(a: Expression) -> Expression:
    """``e ** a``."""
    return power(algebra.atom("e"), a)


def logarithm(a: Expression) -> Expression:
    """Natural logarithm, of a rational as a sum over primes."""
    single = a.single()
    if single is None:
        if not a.numerator:
            raise Unsupported("logarithm of zero")
        return algebra.opaque("ln", a)
    (radicand, imaginary_power, atoms), coefficient = single
    if imaginary_power or coefficient <= 0 or any(name != "e" for name, _ in atoms):
        return algebra.opaque("ln", a)
    if max(coefficient.numerator.bit_length(), coefficient.denominator.bit_length()) > MAX_LOG_BITS:
        return algebra.opaque("ln", a)
    result = algebra.number(sum(n for _, n in atoms))
    for part, scale in (
        (coefficient.numerator, Fraction(1)),
        (coefficient.denominator, Fraction(-1)),
        (radicand, _HALF),
    ):
        for prime, exponent in _factors(part):
            term = algebra.opaque("ln", algebra.number(prime))
            result = algebra.add(result, algebra.multiply(algebra.number(scale * exponent), term))
    return result


def _factors(n: int) -> list[tuple[int, int]]:
    """``n`` as a product of powers of small primes and at most one number without small primes."""
    found = []
    for prime in _PRIMES:
        if prime * prime > n:
            break
        exponent = 0
        while n % prime == 0:
            n //= prime
            exponent += 1
        if exponent:
            found.append((prime, exponent))
    if n > 1:
        found.append((n, 1))
    return found


def _opaque_power(base: Expression, exponent: Expression) -> Expression:
    if exponent.leads_negative():
        return algebra.divide(algebra.number(1), algebra.opaque("pow", base, algebra.negate(exponent)))
    return algebra.opaque("pow", base, exponent)


def _general_power(base: Expression, exponent: Expression) -> Expression:
    rational = base.rational()
    if rational is None or rational < 0:
        turn = _turn_of(exponent) if base.top_atoms() == {"e"} and algebra.same(base, algebra.atom("e")) else None
        return _opaque_power(base, exponent) if turn is None else turn
    if rational == 0:
        raise Unsupported("a power of zero")
    if rational == 1:
        return base
    whole, exponent = _split_integer(exponent)
    if exponent.numerator:
        primitive, times = _primitive(rational)
        rest = _opaque_power(algebra.number(primitive), algebra.multiply(exponent, algebra.number(times)))
    else:
        rest = algebra.number(1)
    return algebra.multiply(integer_power(base, whole), rest)


def _turn_of(exponent: Expression) -> Expression | None:
    """``e ** (q pi i)`` for q a multiple of 1/12, else None."""
    single = exponent.single()
    if single is None or single[0] != (1, 1, (("pi", 1),)) or 12 % single[1].denominator:
        return None
    angle = algebra.multiply(algebra.number(single[1]), algebra.atom("pi"))
    return algebra.add(cosine(angle), algebra.multiply(algebra.imaginary(), sine(angle)))


def _split_integer(exponent: Expression) -> tuple[int, Expression]:
    """The integer part of the constant term, and the rest."""
    constant = exponent.numerator.get(algebra.ONE) if exponent.denominator == algebra.number(1).denominator else None
    whole = constant.numerator // constant.denominator if constant is not None else 0
    if not whole or abs(whole) > 64:
        return 0, exponent
    return whole, algebra.subtract(exponent, algebra.number(whole))


def _primitive(value: Fraction) -> tuple[Fraction, int]:
    """``(b, k)`` with value = b**k, b > 1 not a perfect power (as far as small primes tell)."""
    sign = 1
    if value < 1:
        value, sign = 1 / value, -1
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_LOG_BITS:
        return value, sign
    parts = [(p, e) for p, e in _factors(value.numerator)], [(p, e) for p, e in _factors(value.denominator)]
    common = gcd(*(e for part in parts for _, e in part))
    base = Fraction(1)
    for part, direction in zip(parts, (1, -1), strict=True):
        for prime, exponent in part:
            base *= Fraction(prime) ** (direction * exponent // common)
    return base, sign * common


def _rational_root(value: Fraction, exponent: Fraction) -> Expression:
    """``value ** exponent`` for a rational value and a fractional exponent; value >= 0 unless a square root."""
    n = exponent.denominator
    bits = max(value.numerator.bit_length(), value.denominator.bit_length())
    if not value:
        if exponent < 0:
            raise Unsupported("division by zero")
        return algebra.number(0)
    if bits * abs(exponent.numerator) > algebra.MAX_BITS:
        return _opaque_power(algebra.number(value), algebra.number(exponent))
    raised = abs(value) ** exponent.numerator
    # The n-th root of p/q is the n-th root of p * q^(n-1), over q.
    if raised.denominator.bit_length() * n > algebra.MAX_BITS:
        return _opaque_power(algebra.number(value), algebra.number(exponent))
    radicand = raised.numerator * raised.denominator ** (n - 1)
    outside, inside, index = _extract(radicand, n)
    if index == 2 and inside <= MAX_FACTORED < radicand:
        more, inside, index = _extract(inside, 2)
        outside *= more
    coefficient = Fraction(outside, raised.denominator)
    turned = exponent.numerator if value < 0 else 0
    if index == 2 and inside <= MAX_FACTORED:
        return algebra.monomial(coefficient, inside, turned % 4)
    rest = (
        algebra.number(1)
        if inside == 1
        else algebra.opaque("pow", algebra.number(inside), algebra.number(Fraction(1, index)))
    )
    return algebra.multiply(algebra.monomial(coefficient, 1, turned % 4), rest)


def _extract(value: int, n: int) -> tuple[int, int, int]:
    """``(s, r, m)``: the n-th root of ``value`` is s times the m-th root of r; r = 1 where it is exact.

    For n = 2 and up to `MAX_FACTORED`, r is square-free.
    """
    exact = integer_root(value, n)
    if exact**n == value:
        return exact, 1, n
    outside, rest, factors = 1, value, []
    for prime in range(2, 10_000) if value <= MAX_FACTORED else _PRIMES:
        if prime * prime * prime > rest and value <= MAX_FACTORED:
            break
        exponent = 0
        while rest % prime == 0:
            rest //= prime
            exponent += 1
        if exponent:
            outside *= prime ** (exponent // n)
            factors.append((prime, exponent % n))
    if rest > 1:
        # Up to MAX_FACTORED what is left has at most two prime factors, so it is a square or square-free.
        square = isqrt(rest)
        factors.append((square, 2) if square * square == rest else (rest, 1))
        if n == 2 and factors[-1][1] == 2:
            outside *= factors.pop()[0]
    common = gcd(n, *(exponent for _, exponent in factors))
    inside = 1
    for prime, exponent in factors:
        inside *= prime ** (exponent // common)
    return outside, inside, n // common


def integer_root(value: int, n: int) -> int:
    """Floor of the n-th root of a non-negative integer."""
    if n == 2:
        return isqrt(value)
    if value < 2 or n >= value.bit_length():
        return min(value, 1)
    estimate = 1 << -(-value.bit_length() // n)
    while True:
        better = ((n - 1) * estimate + value // estimate ** (n - 1)) // n
        if better >= estimate:
            return estimate
        estimate = better
