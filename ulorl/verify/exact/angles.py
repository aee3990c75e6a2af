"""Sine and cosine: exact at multiples of pi/12, else applications ``sin`` and ``cos`` of a canonical sign."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from ulorl.verify.exact import algebra
from ulorl.verify.exact.algebra import Expression

_TWELFTHS = 12


def cosine(a: Expression) -> Expression:
    twelfths = _twelfths(a)
    if twelfths is not None:
        return _cosines()[twelfths % 24]
    return algebra.opaque("cos", algebra.negate(a) if a.leads_negative() else a)


def sine(a: Expression) -> Expression:
    twelfths = _twelfths(a)
    if twelfths is not None:
        return _cosines()[(6 - twelfths) % 24]
    if a.leads_negative():
        return algebra.negate(algebra.opaque("sin", algebra.negate(a)))
    return algebra.opaque("sin", a)


def pi_times(value: Fraction) -> Expression:
    return algebra.multiply(algebra.number(value), algebra.atom("pi"))


def inverse_sine(a: Expression) -> Expression:
    """In [-pi/2, pi/2] for a in [-1, 1]."""
    twelfths = _arcs("sin").get(a.key())
    return algebra.opaque("asin", a) if twelfths is None else pi_times(Fraction(twelfths, _TWELFTHS))


def inverse_cosine(a: Expression) -> Expression:
    """In [0, pi] for a in [-1, 1]."""
    return algebra.subtract(pi_times(Fraction(1, 2)), inverse_sine(a))


def inverse_tangent(a: Expression) -> Expression:
    """In (-pi/2, pi/2) for real a."""
    twelfths = _arcs("tan").get(a.key())
    return algebra.opaque("atan", a) if twelfths is None else pi_times(Fraction(twelfths, _TWELFTHS))


def _twelfths(a: Expression) -> int | None:
    """k where ``a`` is k pi / 12."""
    if not a.numerator:
        return 0
    single = a.single()
    if single is None or single[0] != (1, 0, (("pi", 1),)) or _TWELFTHS % single[1].denominator:
        return None
    return int(single[1] * _TWELFTHS)


@cache
def _cosines() -> list[Expression]:
    """cos(k pi / 12) for k = 0..23."""
    root2, root3, root6 = (algebra.monomial(Fraction(1), r) for r in (2, 3, 6))
    quarter, half = algebra.number(Fraction(1, 4)), algebra.number(Fraction(1, 2))
    first = [
        algebra.number(1),
        algebra.multiply(quarter, algebra.add(root6, root2)),
        algebra.multiply(half, root3),
        algebra.multiply(half, root2),
        half,
        algebra.multiply(quarter, algebra.subtract(root6, root2)),
        algebra.number(0),
    ]
    second = [*first, *(algebra.negate(value) for value in reversed(first[:6]))]
    return [*second, *reversed(second[1:12])]


@cache
def _arcs(name: str) -> dict[str, int]:
    """The key of sin or tan of k pi / 12 to k, for k = -6..6."""
    found = {}
    for k in range(-6, 7):
        cosine_k, sine_k = _cosines()[k % 24], _cosines()[(6 - k) % 24]
        if name == "sin":
            found[sine_k.key()] = k
        elif abs(k) < 6:
            found[algebra.divide(sine_k, cosine_k).key()] = k
    return found
