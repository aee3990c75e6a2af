"""Real and complex numbers of a stated precision, on mpmath's low-level functions.

A real value is mpmath's 4-tuple, a complex value a pair of them; the precision is an argument everywhere, so there
is no state to share between threads. Imports mpmath; import this module inside functions.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
from mpmath import libmp

Value = Any
"""A real (4-tuple) or complex (pair of 4-tuples) number of mpmath's `libmp`."""

MAX_BITS = 3000
NEAREST = libmp.round_nearest
ZERO, ONE = libmp.fzero, libmp.fone


def warm_up() -> None:
    """Computes mpmath's cached constants beyond any precision used here.

    They are recomputed in place when more digits are wanted, which is not safe while another thread reads them.
    """
    for constant in (libmp.mpf_pi, libmp.mpf_e, libmp.mpf_ln2, libmp.mpf_ln10, libmp.mpf_euler):
        constant(2 * MAX_BITS + 500, NEAREST)


warm_up()


class Undefined(Exception):
    """There is no value, or it would pass a limit."""


def pair(a: Value) -> Value:
    return a if len(a) == 2 else (a, ZERO)


def is_zero(a: Value) -> bool:
    return a == ZERO or (len(a) == 2 and a[0] == ZERO and a[1] == ZERO)


def is_negative(a: Value) -> bool:
    return bool(a[0]) and bool(a[1])


def close(a: Value, b: Value, bits: int) -> bool:
    """Whether two reals differ by less than 2^-bits."""
    difference = libmp.mpf_sub(a, b)
    return not difference[1] or difference[2] + difference[3] < -bits


def magnitude(a: Value) -> int | None:
    """Binary exponent of the larger part, None for zero."""
    return max((part[2] + part[3] for part in (a if len(a) == 2 else (a,)) if part[1]), default=None)


def from_fraction(value: Fraction, bits: int) -> Value:
    return libmp.from_rational(value.numerator, value.denominator, bits, NEAREST)


@cache
def context() -> Any:
    """A context of 100 digits that nothing else changes, for values that leave this package."""
    own = mpmath.mp.clone()
    own.dps = 100
    return own
