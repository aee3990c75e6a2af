"""The sum that ``1 + 2 + \\cdots + 100`` leaves out, where its terms are clearly in arithmetic progression.

Two leading terms fit many patterns: 1 + 4 + ... + 100 may be squares, 1 + 2 + ... + 64 powers of two, 1 + 3 + ... +
91 triangular numbers. The sum is known only where no other usual pattern ends with the same last term; three leading
terms that rise evenly leave no doubt.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt

from ulorl.verify.exact import algebra
from ulorl.verify.exact.algebra import Expression, Unsupported


def arithmetic_series(leading: Sequence[Expression], last: Expression) -> Expression:
    """The sum of the progression that begins with ``leading`` and ends with ``last``; raises `Unsupported`.

    ``last`` is a number or a linear function of one variable, which then counts the terms.
    """
    terms = [term.rational() for term in leading]
    if len(terms) < 2 or any(term is None for term in terms):
        raise Unsupported("a sum with dots whose pattern is not clear")
    numbers = [term for term in terms if term is not None]
    first, step = numbers[0], numbers[1] - numbers[0]
    if not step or any(number != first + index * step for index, number in enumerate(numbers)):
        raise Unsupported("a sum with dots that is no arithmetic progression")
    count = algebra.divide(
        algebra.add(algebra.subtract(last, algebra.number(first)), algebra.number(step)), algebra.number(step)
    )
    end = last.rational()
    if not (_is_linear_count(count) if end is None else _is_count(count.rational(), len(numbers))):
        raise Unsupported("a sum with dots whose last term is not in the progression")
    if len(numbers) == 2 and end is not None and _fits_other_pattern(first, numbers[1], end):
        raise Unsupported("a sum with dots that fits two patterns")
    both_ends = algebra.add(last, algebra.number(first))
    return algebra.divide(algebra.multiply(count, both_ends), algebra.number(2))


def _is_count(count: Fraction | None, leading: int) -> bool:
    return count is not None and count.denominator == 1 and count > leading


def _is_linear_count(count: Expression) -> bool:
    """``k``, ``2n`` or ``n + 1``: an integer for every integer."""
    rising = [
        (atoms, coefficient)
        for (radicand, imaginary, atoms), coefficient in count.numerator.items()
        if not (radicand != 1 or imaginary)
    ]
    variables = [(atoms, coefficient) for atoms, coefficient in rising if atoms]
    if len(rising) != len(count.numerator) or len(variables) != 1 or count.applications():
        return False
    atoms, slope = variables[0]
    is_plain = len(atoms) == 1 and atoms[0][1] == 1 and atoms[0][0] not in algebra.CONSTANTS
    return (
        is_plain
        and slope > 0
        and all(c.denominator == 1 for _, c in rising)
        and count.denominator == {algebra.ONE: Fraction(1)}
    )


def _fits_other_pattern(first: Fraction, second: Fraction, last: Fraction) -> bool:
    return (
        _is_geometric(first, second, last)
        or _is_power(first, second, last)
        or ((first, second) == (1, 3) and _is_square(8 * last + 1))
        or ((first, second) == (2, 3) and _follows_fibonacci(first, second, last))
        or (
            (first, second) in ((2, 3), (3, 5))
            and last in (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97)
        )
    )


def _is_geometric(first: Fraction, second: Fraction, last: Fraction) -> bool:
    if not first or abs(second) <= abs(first):
        return False
    term = second
    while abs(term) < abs(last):
        term = term * second / first
    return term == last


def _is_power(first: Fraction, second: Fraction, last: Fraction) -> bool:
    """Squares or cubes: 1 + 4 + ... and 1 + 8 + ..."""
    if (first, second) in ((1, 4), (4, 9), (0, 1)):
        return _is_square(last)
    root = round(float(last) ** (1 / 3)) if 0 < last < 10**15 else 0
    return (first, second) in ((1, 8), (8, 27)) and root**3 == last


def _is_square(value: Fraction) -> bool:
    return value >= 0 and value.denominator == 1 and isqrt(value.numerator) ** 2 == value


def _follows_fibonacci(a: Fraction, b: Fraction, last: Fraction) -> bool:
    while b < last:
        a, b = b, a + b
    return b == last
