"""Signs and order of exact constants.

Invariant: a sign is returned only when it is certain: a rational is exact, and a value that evaluates far
from zero at a known precision is not zero; what is near zero is zero only where the canonical form says so.
"""

from __future__ import annotations

from math import e, pi, sqrt

from ulorl.verify.exact import algebra, numerics
from ulorl.verify.exact.algebra import Expression, Unsupported

_VALUES = {"pi": pi, "e": e}
_NEAR_ZERO = 1e-9
"""Relative to the largest term; doubles lose less than 1e-13 on sums this short."""


def sign(value: Expression) -> int:
    """-1, 0 or 1 of a real constant or infinity; raises `Unsupported` for anything else."""
    rational = value.rational()
    if rational is not None:
        return (rational > 0) - (rational < 0)
    direction = infinite(value)
    if direction:
        return direction
    top, bottom = _float(value.numerator), _float(value.denominator)
    return top * bottom if top is not None and bottom else _evaluated(value)


def infinite(value: Expression) -> int:
    """1 for infinity, -1 for minus infinity, else 0; raises `Unsupported` for arithmetic with infinity."""
    if algebra.INFINITY not in value.atoms():
        return 0
    infinity = algebra.atom(algebra.INFINITY)
    if algebra.same(value, infinity):
        return 1
    if algebra.same(value, algebra.negate(infinity)):
        return -1
    raise Unsupported("arithmetic with infinity")


def order(a: Expression, b: Expression) -> int:
    """-1, 0 or 1 as ``a`` is less than, equal to or greater than ``b``; infinities included."""
    left, right = infinite(a), infinite(b)
    if left or right:
        return (left > right) - (left < right)
    x, y = a.rational(), b.rational()
    if x is not None and y is not None:
        return (x > y) - (x < y)
    return sign(algebra.subtract(a, b))


def _float(terms: algebra.Terms) -> int | None:
    """Sign of a sum of square roots and powers of pi and e; None where doubles cannot tell."""
    total, largest = 0.0, 0.0
    try:
        for (root, imaginary, atoms), coefficient in terms.items():
            if imaginary or any(name not in _VALUES for name, _ in atoms):
                return None
            term = float(coefficient) * sqrt(root)
            for name, exponent in atoms:
                term *= _VALUES[name] ** exponent
            total += term
            largest = max(largest, abs(term))
    except OverflowError:
        return None
    if abs(total) <= _NEAR_ZERO * largest:
        return 0 if not terms else None
    return 1 if total > 0 else -1


def _evaluated(value: Expression) -> int:
    """Sign of a constant with functions; what agrees with zero to forty digits is taken for zero."""
    found = None if value.variables() else numerics.sign(value)
    if found is None:
        raise Unsupported("a bound whose size is not known")
    return found
