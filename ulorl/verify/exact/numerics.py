"""High-precision values of expressions, and what they say about two expressions.

Two values are "apart" when their difference is the same at two precisions, and "same" when it vanishes as the
precision grows, at a precision that exceeds the size of every number on the way several times over (so neither
absorption, as in 2^300 + 1, nor tiny values, as in 1/2004!, decide anything). Everything is relative: no absolute
tolerance. No state but constants, safe from any thread; the work of a call is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal
from zlib import crc32

from ulorl.verify.exact.algebra import LOG_UNIT, Application, Expression, number, subtract

if TYPE_CHECKING:
    from ulorl.verify.exact.floats import Value

Relation = Literal["same", "apart", "unclear"]
Point = Mapping[str, "Fraction | tuple[Fraction, Fraction]"]
"""Values of the variables; a pair is a complex number."""

START_BITS = 170
MORE_BITS = 90
MANY_PIECES = 16
SMALL = 15
"""Size in bits of the values on the way up to which `START_BITS` are enough."""
INTEGRAL = frozenset(
    {"factorial", "double_factorial", "binomial", "permutations", "mod", "gcd", "lcm", "sum", "product"}
)

_INTEGER_NAMES = frozenset("nmkjlpqrNMK")
_INTEGERS = (1, 2, 3, 4, 5, 6, 7, 9, 10, 12, 16, 21, 25, 32, 60, 97, 1024)
_REAL_FUNCTIONS = frozenset({"abs", "floor", "ceil", "max", "min", "sign"})


def evaluate(expression: Expression, digits: int = 30) -> Any | None:
    """The value of a constant as an mpmath number (mpf or mpc) of about ``digits`` significant digits.

    None where it has variables, no value, or one that would take too long. It belongs to a context of its own, of
    100 digits, whatever ``mpmath.mp`` is set to.
    """
    from ulorl.verify.exact import evaluation, floats

    try:
        value = evaluation.Evaluator(int(digits * 3.33) + 40, {}).value(expression)
    except floats.Undefined:
        return None
    context = floats.context()
    return context.make_mpf(value) if len(value) == 4 else context.make_mpc(value)


def approximate(expression: Expression, digits: int = 30) -> Fraction | None:
    """A rational number within a relative 10^-digits of a real constant, confirmed at two precisions, else None."""
    exact = expression.rational()
    if exact is not None:
        return exact
    from mpmath import libmp

    from ulorl.verify.exact import evaluation, floats

    bits = int(digits * 3.33) + 40
    try:
        values = []
        for precision in (bits, bits + MORE_BITS):
            value = evaluation.Evaluator(precision, {}).value(expression)
            if len(value) == 2:
                return None
            if abs(value[2]) > 20_000:
                return None
            values.append(Fraction(*libmp.to_rational(value)))
    except floats.Undefined:
        return None
    if abs(values[0] - values[1]) > abs(values[1]) / 10**digits:
        return None
    return values[1]


def sign(expression: Expression) -> int | None:
    """-1, 0 or 1 of a real constant, where 0 is "same as zero" in the sense above; None where that is not clear."""
    exact = expression.rational()
    if exact is not None:
        return (exact > 0) - (exact < 0)
    relation, branched = relation_at(expression, number(0), {})
    if relation == "same":
        return 0
    value = approximate(expression) if relation == "apart" and not branched else None
    return None if value is None else (value > 0) - (value < 0)


def relation_at(a: Expression, b: Expression, point: Point, log_base: int = 0) -> tuple[Relation, bool]:
    """How the values of two expressions compare at a point, and whether a branch was chosen on the way.

    ``log_base`` 10 reads a logarithm without base as decimal, 0 as natural.
    """
    from ulorl.verify.exact import floats

    try:
        return _Comparison(a, b, point, log_base).decide()
    except floats.Undefined:
        return "unclear", True


def within(a: Expression, b: Expression, tolerance: Fraction) -> bool | None:
    """Whether two constants differ by at most ``tolerance`` relative to the larger; None without values."""
    from mpmath import libmp

    from ulorl.verify.exact import evaluation, floats

    bits = START_BITS + MORE_BITS
    try:
        evaluator = evaluation.Evaluator(bits, {})
        values = [evaluator.value(expression) for expression in (a, b, subtract(a, b))]
    except floats.Undefined:
        return None
    sizes = [libmp.mpf_abs(v) if len(v) == 4 else libmp.mpc_abs(v, bits) for v in values]
    largest = sizes[0] if libmp.mpf_gt(sizes[0], sizes[1]) else sizes[1]
    return bool(libmp.mpf_le(sizes[2], libmp.mpf_mul(floats.from_fraction(tolerance, bits), largest, bits)))


class _Comparison:
    def __init__(self, a: Expression, b: Expression, point: Point, log_base: int) -> None:
        self.a, self.b, self.point, self.log_base = a, b, point, log_base
        self.branched = False
        self.absorbed = False

    def decide(self) -> tuple[Relation, bool]:
        from ulorl.verify.exact.floats import MAX_BITS

        bits = START_BITS
        first = self.values(bits)
        needed = bits if first[1] <= SMALL else 180 + 4 * first[1]
        if needed == bits and self.point and self.vanishes(first, bits):
            return "same", self.branched
        if first[1] > 4 * SMALL and needed <= MAX_BITS:
            bits, first = needed, self.values(needed)
        second = self.values(bits + MORE_BITS)
        if self.is_stable(first, second) and not self.absorbed:
            return "apart", self.branched
        if bits < needed <= MAX_BITS:
            bits, first, second = needed, self.values(needed), self.values(needed + MORE_BITS)
            if self.is_stable(first, second) and not self.absorbed:
                return "apart", self.branched
        if self.is_stable(first, second):
            return "unclear", self.branched
        if bits >= needed and self.vanishes(first, bits) and self.vanishes(second, bits + MORE_BITS):
            return "same", self.branched
        return "unclear", self.branched

    def values(self, bits: int) -> tuple[Value, int, int]:
        """The difference of the two values, and `Evaluator.size` and `Evaluator.largest` of the numbers on the way."""
        from mpmath import libmp

        from ulorl.verify.exact import evaluation, floats

        variables: dict[str, Value] = {}
        for name, value in self.point.items():
            if isinstance(value, tuple):
                variables[name] = tuple(floats.from_fraction(part, bits) for part in value)
            else:
                variables[name] = floats.from_fraction(value, bits)
        unit = libmp.fone if not self.log_base else libmp.mpf_div(libmp.fone, libmp.mpf_ln10(bits), bits)
        evaluator = evaluation.Evaluator(bits, variables | {LOG_UNIT: unit})
        difference = evaluator.difference(self.a, self.b)
        self.branched |= evaluator.branched
        self.absorbed = evaluator.absorbed
        return difference, evaluator.size, evaluator.largest

    def vanishes(self, values: tuple[Value, int, int], bits: int) -> bool:
        """Whether the difference is no more than rounding errors of the largest number: its last 40 bits."""
        from ulorl.verify.exact.floats import magnitude

        size = magnitude(values[0])
        return size is None or size < values[2] - bits + 40

    def is_stable(self, first: tuple[Value, int, int], second: tuple[Value, int, int]) -> bool:
        """Whether the difference is there, and the same at both precisions."""
        from mpmath import libmp

        from ulorl.verify.exact.floats import magnitude

        size = magnitude(second[0])
        if size is None:
            return False
        pairs = [v if len(v) == 2 else (v, libmp.fzero) for v in (first[0], second[0])]
        change = magnitude(libmp.mpc_sub(*pairs, 60))
        return change is None or change < size - 20


def integer_variables(expression: Expression) -> set[str]:
    """The variables that can only be integers: in factorials, bounds, and exponents of negative numbers."""
    found: set[str] = set()
    for name in expression.walk():
        if isinstance(name, Application):
            is_turn = name.name == "pow" and (base := name.arguments[0].rational()) is not None and base < 0
            if name.name in ("sum", "product"):
                found |= name.arguments[2].variables() | name.arguments[3].variables()
            elif name.name in ("floor", "ceil"):
                found |= name.arguments[0].variables() & _INTEGER_NAMES
            elif name.name in INTEGRAL or is_turn:
                found.update(*(argument.variables() for argument in name.arguments))
    return found


def positive_points(names: set[str], integers: set[str], count: int) -> Iterator[Point]:
    """Points with positive coordinates, integers where asked for."""
    for index in range(count):
        yield {name: _integer(name, index) if name in integers else _real(name, index) for name in names}


def pieces(expression: Expression) -> int:
    """How many points it takes to see an expression that may be other functions in other places, else 0.

    Absolute values and rounding are, and so may be even roots, as of a square.
    """
    needed = 0
    for name in expression.walk():
        if isinstance(name, Application) and any(argument.variables() for argument in name.arguments):
            if name.name in _REAL_FUNCTIONS:
                return MANY_PIECES
            if name.name == "pow" and _is_even_root(name):
                needed = 8
    return needed


def _is_even_root(name: Application) -> bool:
    """Of more than one factor to the first power, which cannot be a square."""
    base, exponent = name.arguments
    value = exponent.rational()
    single = base.single()
    is_plain = single is not None and all(
        power == 1 and not isinstance(atom, Application) for atom, power in single[0][2]
    )
    return value is not None and value.denominator % 2 == 0 and not is_plain


def is_real_function(expression: Expression) -> bool:
    """Whether a function of real numbers is applied to variables, so that they are real."""
    return any(
        isinstance(name, Application)
        and (name.name in _REAL_FUNCTIONS or name.name == "root")
        and any(argument.variables() for argument in name.arguments)
        for name in expression.walk()
    )


def other_points(names: set[str], count: int, *, only_real: bool) -> Iterator[Point]:
    """Points with negative and with complex coordinates, by turns, or only the former."""
    for index in range(count):
        point: dict[str, Fraction | tuple[Fraction, Fraction]] = {}
        for name in names:
            value = _real(name, index + 24)
            sign = -1 if len(names) == 1 or crc32(f"{name} sign {index}".encode()) % 3 else 1
            other = _real(name, index + 48) * (1 if index % 4 == 1 else -1)
            point[name] = (sign * value, other) if index % 2 and not only_real else sign * value
        yield point


def _real(name: str, index: int) -> Fraction:
    """By turns in (0, 1), (1, 3), (1/2, 5/2), (3, 7), (7, 60) and (60, 5000)."""
    low, high = ((0, 1), (1, 3), (Fraction(1, 2), Fraction(5, 2)), (3, 7), (7, 60), (60, 5000))[index % 6]
    share = Fraction(1 + crc32(f"{name} {index}".encode()) % 99_991, 99_993)
    return low + (high - low) * share


def _integer(name: str, index: int) -> Fraction:
    """All of `_INTEGERS` in an order that depends on the name."""
    return Fraction(_INTEGERS[(crc32(name.encode()) + index * 5) % len(_INTEGERS)])
