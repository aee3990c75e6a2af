"""Are two sympy expressions the same function? By high-precision values at several points, then by `simplify`.

Runs in worker processes only. Invariants: sizes are bounded before anything is evaluated (`growth`); values are
compared relatively, with more digits than the literals have, so that neither 1/2004! = 1/2006! nor
sqrt(2) + 10^-100 = sqrt(2) can pass; "equal" needs every point to agree, also negative ones. Never "different": see
`symbolic_compare`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ulorl.verify.outcome import EQUAL, Outcome, undecided
from ulorl.verify.symbolic.growth import check_growth, literal_digits

MAX_SYMBOLS = 6
DIGITS = 50
COSTLY_DIGITS = 30
"""Where an integral is evaluated, at fewer points."""
MAX_LITERAL_DIGITS = 600
POSITIVE = ((37, 100), (173, 100), (311, 100), (29, 41))
"""Values of the variables in turn, as fractions: below and above 1, irregular enough to coincide by no accident."""
NEGATIVE = ((-59, 100), (131, 50), (-223, 100))
INTEGERS = (2, 3, 5, 8)


def prove(a: Any, b: Any) -> Outcome:
    """Compares two sympy expressions; undecided where neither way leads to an answer."""
    import sympy

    digits = literal_digits(a) + literal_digits(b)
    if digits > MAX_LITERAL_DIGITS:
        return undecided("numerals too long for the symbolic tier")
    for side in (a, b):
        problem = check_growth(side)
        if problem:
            return undecided(problem)
    symbols = sorted(a.free_symbols | b.free_symbols, key=str)
    if len(symbols) > MAX_SYMBOLS:
        return undecided("too many variables")
    if symbols and (a - b).has(sympy.floor, sympy.ceiling, sympy.Mod):
        return _simplified(a, b)  # points that agree say nothing about what is rounded between them
    costly = (a + b).has(sympy.Integral)
    digits += COSTLY_DIGITS if costly else DIGITS
    if not symbols:
        agreement = _agree(a, b, digits)
        if agreement is None:
            return _simplified(a, b)
        return EQUAL if agreement else undecided("other values as far as can be seen")
    return _at_points(a, b, symbols, digits, 2 if costly else len(POSITIVE))


def _at_points(a: Any, b: Any, symbols: list[Any], digits: int, count: int) -> Outcome:
    whole = _bounds(a) | _bounds(b)
    positive = _agreements(a, b, _points(symbols, whole, POSITIVE[:count]), digits)
    if not positive:
        return _simplified(a, b)
    if not all(positive):
        return undecided("other values as far as can be seen")
    if len(positive) < 2:
        return undecided("too few points where both are defined")
    negative = _agreements(a, b, _points(symbols, whole, NEGATIVE[:count]), digits)
    return EQUAL if all(negative) else undecided("equal for positive values only")


def _bounds(expression: Any) -> set[Any]:
    """Variables in the bounds of sums and products: only integers make sense for them."""
    import sympy

    ranges = expression.atoms(sympy.Sum, sympy.Product)
    return {symbol for r in ranges for limits in r.limits for bound in limits[1:] for symbol in bound.free_symbols}


def _points(symbols: list[Any], whole: set[Any], values: Sequence[tuple[int, int]]) -> Iterator[dict[Any, Any]]:
    """Values for all variables, no two alike; those in ``whole`` are positive integers."""
    import sympy

    for shift in range(len(values)):
        point = {}
        for index, symbol in enumerate(symbols):
            turn = (index + shift) % len(values)
            numerator, denominator = values[turn]
            fraction = sympy.Rational(numerator, denominator) + (index if numerator > 0 else -index)
            point[symbol] = sympy.Integer(INTEGERS[turn] + index) if symbol in whole else fraction
        yield point


def _agreements(a: Any, b: Any, points: Iterable[dict[Any, Any]], digits: int) -> list[bool]:
    """Whether the values agree, at those points where both have one, up to the first where they do not."""
    seen = []
    for point in points:
        agreement = _agree(a.xreplace(point), b.xreplace(point), digits)
        if agreement is not None:
            seen.append(agreement)
        if agreement is False:
            break
    return seen


def _agree(a: Any, b: Any, digits: int) -> bool | None:
    """Whether two constants have the same value; None where one has no value that can be computed."""
    x, y = _value(a, digits), _value(b, digits)
    if x is None or y is None:
        return None
    import mpmath

    with mpmath.workdps(digits + 10):
        size = max(abs(x), abs(y))
        if min(abs(x), abs(y)) < mpmath.mpf(10) ** (10 - digits):
            # Either a tiny number or what cancellation leaves of zero: that shrinks with more digits.
            x, y = _without_noise(a, x, digits), _without_noise(b, y, digits)
            if x is None or y is None:
                return None
            size = max(abs(x), abs(y))
        difference = abs(x - y)
        if difference <= size * mpmath.mpf(10) ** (15 - digits):
            return True
        return False if difference > size * mpmath.mpf(10) ** (-digits // 2) else None


def _without_noise(constant: Any, value: Any, digits: int) -> Any:
    import mpmath

    again = _value(constant, 2 * digits)
    if again is None:
        return None
    return mpmath.mpc(0) if abs(again) < abs(value) * mpmath.mpf(10) ** (-digits // 3) else again


def _value(constant: Any, digits: int) -> Any:
    """Complex value of a constant to ``digits`` digits, or None."""
    import mpmath
    import sympy

    try:
        work_out = constant.has(sympy.Limit, sympy.Product) or _is_infinite_sum(constant)
        number = constant.doit() if work_out else constant
        if check_growth(number):
            return None
        number = number.evalf(digits, maxn=2 * digits + 50)
        if number.has(sympy.Sum):
            number = constant.doit().evalf(digits, maxn=2 * digits + 50)
        real, imaginary = number.as_real_imag()
    except (ValueError, TypeError, NotImplementedError, ArithmeticError, AttributeError, RecursionError):
        return None
    if not all(isinstance(part, sympy.Float | sympy.Integer | sympy.Rational) for part in (real, imaginary)):
        return None
    if not (real.is_finite and imaginary.is_finite):
        return None
    with mpmath.workdps(digits):
        return mpmath.mpc(*(mpmath.mpf(part._to_mpmath(int(digits * 3.33) + 8)) for part in (real, imaginary)))


def _is_infinite_sum(constant: Any) -> bool:
    """Closed forms of these are quick where there are any; adding up may converge slowly."""
    import sympy

    return any(
        bound.is_infinite for part in constant.atoms(sympy.Sum) for limits in part.limits for bound in limits[1:]
    )


def _simplified(a: Any, b: Any) -> Outcome:
    import sympy

    if sympy.simplify((a - b).doit()) == 0:
        return EQUAL
    return undecided("not decided by the computer algebra system")
