"""Numerical values of functions: the rules behind `evaluation`, by the names of the applications.

Each takes the evaluator (precision, integers, whether a branch was chosen) and the values of the arguments, and
raises `Undefined` outside the domain or beyond a limit. Imports mpmath.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd, lcm
from typing import TYPE_CHECKING

from mpmath import libmp

from ulorl.verify.exact.floats import NEAREST, ONE, ZERO, Undefined, Value, close, is_negative, is_zero, pair

if TYPE_CHECKING:
    from ulorl.verify.exact.evaluation import Evaluator

MAX_FACTORIAL = 1 << 20


def _entire(real: Callable[..., Value], of_complex: Callable[..., Value]) -> Callable[[Evaluator, Value], Value]:
    def rule(evaluator: Evaluator, a: Value) -> Value:
        largest = max(part[2] + part[3] if part[1] else 0 for part in (a if len(a) == 2 else (a,)))
        if largest > 64:
            raise Undefined("too large")
        return real(a, evaluator.bits, NEAREST) if len(a) == 4 else of_complex(a, evaluator.bits, NEAREST)

    return rule


def _exponential(evaluator: Evaluator, a: Value) -> Value:
    real = a if len(a) == 4 else a[0]
    if real[1] and real[2] + real[3] > 40:
        raise Undefined("too large")
    return libmp.mpf_exp(a, evaluator.bits, NEAREST) if len(a) == 4 else libmp.mpc_exp(a, evaluator.bits, NEAREST)


def _logarithm(evaluator: Evaluator, a: Value) -> Value:
    if is_zero(a):
        raise Undefined("logarithm of zero")
    if len(a) == 4 and not is_negative(a):
        return libmp.mpf_log(a, evaluator.bits, NEAREST)
    evaluator.branched = True
    return libmp.mpc_log(pair(a), evaluator.bits, NEAREST)


def _power(evaluator: Evaluator, base: Value, exponent: Value) -> Value:
    if len(exponent) == 4:
        if exponent[2] >= 0 and exponent[2] + exponent[3] <= 40 and (exponent[1] or not exponent[2]):
            n = libmp.to_int(exponent)
            if len(base) == 4 or abs(n) < 1 << 16:
                return evaluator.integer_power(base, n)
        if len(base) == 4 and not is_negative(base):
            if is_zero(base):
                if is_negative(exponent):
                    raise Undefined("division by zero")
                return ZERO
            if exponent == libmp.fhalf:
                return libmp.mpf_sqrt(base, evaluator.bits, NEAREST)
            logarithm = libmp.mpf_log(base, evaluator.bits + 40, NEAREST)
            return _exponential(evaluator, libmp.mpf_mul(exponent, logarithm, evaluator.bits + 40, NEAREST))
    if is_zero(base):
        raise Undefined("a power of zero")
    if len(base) == 2 or is_negative(base):
        evaluator.branched = True
    if exponent == libmp.fhalf:
        return libmp.mpc_sqrt(pair(base), evaluator.bits, NEAREST)
    if len(base) == 4 and not is_negative(base):
        logarithm = (libmp.mpf_log(base, evaluator.bits + 40, NEAREST), ZERO)
    else:
        logarithm = libmp.mpc_log(pair(base), evaluator.bits + 40, NEAREST)
    return _exponential(evaluator, libmp.mpc_mul(pair(exponent), logarithm, evaluator.bits + 40, NEAREST))


def _root(evaluator: Evaluator, index: Value, a: Value) -> Value:
    """The real root of odd index."""
    n = evaluator.integer(index)
    if len(a) == 2:
        raise Undefined("a real root of a complex number")
    if is_zero(a):
        return ZERO
    root = libmp.mpf_nthroot(libmp.mpf_abs(a), n, evaluator.bits, NEAREST) if n < 1000 else None
    if root is None:
        raise Undefined("too large")
    return libmp.mpf_neg(root) if is_negative(a) else root


def _inside(
    real: Callable[..., Value], of_complex: Callable[..., Value], low: int | None, high: int | None
) -> Callable[[Evaluator, Value], Value]:
    """An inverse function that is real on [low, high] and branched outside."""

    def rule(evaluator: Evaluator, a: Value) -> Value:
        if len(a) == 4:
            above = low is None or libmp.mpf_ge(a, libmp.from_int(low))
            if above and (high is None or libmp.mpf_le(a, libmp.from_int(high))):
                return real(a, evaluator.bits, NEAREST)
        evaluator.branched = True
        try:
            return of_complex(pair(a), evaluator.bits, NEAREST)
        except (ValueError, ZeroDivisionError, libmp.ComplexResult) as error:
            raise Undefined("a pole") from error

    return rule


def _absolute(evaluator: Evaluator, a: Value) -> Value:
    return libmp.mpf_abs(a) if len(a) == 4 else libmp.mpc_abs(a, evaluator.bits, NEAREST)


def _conjugate(evaluator: Evaluator, a: Value) -> Value:
    return a if len(a) == 4 else (a[0], libmp.mpf_neg(a[1]))


def _argument(evaluator: Evaluator, a: Value) -> Value:
    if is_zero(a):
        raise Undefined("the argument of zero")
    return libmp.mpc_arg(pair(a), evaluator.bits, NEAREST)


def _rounding(rule: Callable[..., Value]) -> Callable[[Evaluator, Value], Value]:
    def apply(evaluator: Evaluator, a: Value) -> Value:
        a = evaluator.real(a)
        if a[2] + a[3] > evaluator.bits // 3:
            raise Undefined("too large to round")
        nearest = libmp.mpf_nint(a)
        # An integer that was reached exactly has no rounding error (variables at integers).
        if a != nearest and close(a, nearest, evaluator.bits // 3):
            raise Undefined("on the jump of a rounding function")
        return rule(a)

    return apply


def _factorial(evaluator: Evaluator, a: Value) -> Value:
    n = evaluator.integer(a)
    if not 0 <= n <= MAX_FACTORIAL:
        raise Undefined("a factorial outside its domain")
    return libmp.mpf_factorial(libmp.from_int(n), evaluator.bits, NEAREST)


def _double_factorial(evaluator: Evaluator, a: Value) -> Value:
    n = evaluator.integer(a)
    if not 0 <= n <= 1000:
        raise Undefined("a factorial outside its domain")
    result = 1
    for k in range(n, 1, -2):
        result *= k
    return libmp.from_int(result, evaluator.bits, NEAREST)


def _binomial(evaluator: Evaluator, n: Value, k: Value) -> Value:
    # Not 0 for k > n: that would make all binomial coefficients of a large k equal.
    return evaluator.quotient(_permutations(evaluator, n, k), _factorial(evaluator, k))


def _permutations(evaluator: Evaluator, n: Value, k: Value) -> Value:
    top, bottom = evaluator.integer(n), evaluator.integer(k)
    if not 0 <= bottom <= top <= MAX_FACTORIAL:
        raise Undefined("a number of permutations outside its domain")
    return evaluator.quotient(_factorial(evaluator, n), _factorial(evaluator, libmp.from_int(top - bottom)))


def _of_integers(rule: Callable[..., int]) -> Callable[..., Value]:
    return lambda evaluator, *values: libmp.from_int(rule(*(evaluator.integer(value) for value in values)))


def _modulo(evaluator: Evaluator, a: Value, n: Value) -> Value:
    modulus = evaluator.integer(n)
    if modulus <= 0:
        raise Undefined("a modulus that is not positive")
    return libmp.from_int(evaluator.integer(a) % modulus)


def _extreme(largest: bool) -> Callable[..., Value]:
    def rule(evaluator: Evaluator, *values: Value) -> Value:
        best = evaluator.real(values[0])
        for value in values[1:]:
            if libmp.mpf_gt(evaluator.real(value), best) == largest:
                best = value
        return best

    return rule


def _sign(evaluator: Evaluator, a: Value) -> Value:
    value = evaluator.real(a)
    if is_zero(value):
        raise Undefined("the sign of zero")
    return libmp.from_int(-1 if is_negative(value) else 1)


def _inverse_cotangent(evaluator: Evaluator, a: Value) -> Value:
    value = evaluator.real(a)
    if is_zero(value) or is_negative(value):
        raise Undefined("an inverse cotangent with two conventions")
    return libmp.mpf_atan(libmp.mpf_div(ONE, value, evaluator.bits, NEAREST), evaluator.bits, NEAREST)


def _imaginary_part(evaluator: Evaluator, a: Value) -> Value:
    return ZERO if len(a) == 4 else a[1]


def _real_part(evaluator: Evaluator, a: Value) -> Value:
    return a if len(a) == 4 else a[0]


RULES: dict[str, Callable[..., Value]] = {
    "pow": _power,
    "root": _root,
    "ln": _logarithm,
    "sin": _entire(libmp.mpf_sin, libmp.mpc_sin),
    "cos": _entire(libmp.mpf_cos, libmp.mpc_cos),
    "asin": _inside(libmp.mpf_asin, libmp.mpc_asin, -1, 1),
    "acos": _inside(libmp.mpf_acos, libmp.mpc_acos, -1, 1),
    "atan": _inside(libmp.mpf_atan, libmp.mpc_atan, None, None),
    "acot": _inverse_cotangent,
    "asinh": _inside(libmp.mpf_asinh, libmp.mpc_asinh, None, None),
    "acosh": _inside(libmp.mpf_acosh, libmp.mpc_acosh, 1, None),
    "atanh": _inside(libmp.mpf_atanh, libmp.mpc_atanh, None, None),
    "abs": _absolute,
    "re": _real_part,
    "im": _imaginary_part,
    "conj": _conjugate,
    "arg": _argument,
    "sign": _sign,
    "floor": _rounding(libmp.mpf_floor),
    "ceil": _rounding(libmp.mpf_ceil),
    "factorial": _factorial,
    "double_factorial": _double_factorial,
    "binomial": _binomial,
    "permutations": _permutations,
    "mod": _modulo,
    "gcd": _of_integers(gcd),
    "lcm": _of_integers(lcm),
    "max": _extreme(True),
    "min": _extreme(False),
}
