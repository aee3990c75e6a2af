"""Numerical values of expressions at a point.

`Evaluator.value` raises `Undefined` at poles, outside a domain, where a rounding function sits on a jump and
beyond the limits on size and work, all of which are checked before the work is done. Imports mpmath; import this
module inside functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mpmath import libmp

from ulorl.verify.exact.algebra import CONSTANTS, LOG_UNIT, Application, Expression, Terms, number
from ulorl.verify.exact.floats import NEAREST, ONE, ZERO, Undefined, Value, close, is_negative, is_zero, magnitude, pair
from ulorl.verify.exact.function_values import RULES

MAX_WORK = 4000
"""Monomials and functions an evaluation may cost, counted more at high precision."""
MAX_MAGNITUDE = 1 << 40
"""Bits of the exponent of a value."""
MAX_RANGE = 400
ONE_TERM = number(1).denominator


class Evaluator:
    """Values of expressions at one point and precision.

    ``size`` is the largest distance from 1 of any value on the way, in bits, and ``largest`` that of a large value.
    ``branched`` says that a principal value was chosen where a real reading might choose another, ``absorbed`` that a
    number was lost beside one so much larger that it does not show at this precision.
    """

    def __init__(self, bits: int, variables: Mapping[str, Value]) -> None:
        self.bits = bits
        self.variables = dict(variables)
        self.size = 0
        self.largest = 0
        self.branched = False
        self.absorbed = False
        self.work = 0
        self.cost = 1 + bits // 500
        self.known: dict[str, Value] = {}

    def difference(self, a: Expression, b: Expression) -> Value:
        """a - b, where what the last additions absorb does not count."""
        x = self.terms(a.numerator, self.plain_sum)
        if a.denominator != ONE_TERM:
            x = self.quotient(x, self.terms(a.denominator))
        y = self.value(b)
        minus = libmp.mpf_neg(y) if len(y) == 4 else (libmp.mpf_neg(y[0]), libmp.mpf_neg(y[1]))
        return self.plain_sum(x, minus)

    def value(self, expression: Expression) -> Value:
        result = self.terms(expression.numerator)
        if len(expression.denominator) == 1:
            (monomial, coefficient) = next(iter(expression.denominator.items()))
            if monomial == (1, 0, ()) and coefficient == 1:
                return result
        return self.quotient(result, self.terms(expression.denominator))

    def terms(self, terms: Terms, add: Callable[[Value, Value], Value] | None = None) -> Value:
        add = add or self.sum
        bits = self.bits
        total: Value = ZERO
        for (radicand, imaginary_power, atoms), coefficient in terms.items():
            self.spend()
            if coefficient.denominator == 1:
                term: Value = libmp.from_int(coefficient.numerator, bits, NEAREST)
            else:
                term = libmp.from_rational(coefficient.numerator, coefficient.denominator, bits, NEAREST)
            if radicand != 1:
                term = libmp.mpf_mul(term, libmp.mpf_sqrt(libmp.from_int(radicand), bits, NEAREST), bits, NEAREST)
            for name, exponent in atoms:
                factor = self.atom(name)
                if exponent != 1:
                    factor = self.integer_power(factor, exponent)
                term = self.product(term, factor)
            if imaginary_power:
                term = (libmp.mpf_neg(term[1]), term[0]) if len(term) == 2 else (ZERO, term)
            self.measure(term)
            total = add(total, term)
        return total

    def spend(self) -> None:
        self.work += self.cost
        if self.work > MAX_WORK:
            raise Undefined("too much work")

    def measure(self, value: Value) -> None:
        """Keeps track of the size of what was computed."""
        for part in value if len(value) == 2 else (value,):
            if part[1]:
                exponent = part[2] + part[3]
                self.largest = max(self.largest, exponent)
                self.size = max(self.size, abs(exponent))
            elif part[2]:
                raise Undefined("not a finite number")
        if self.size > MAX_MAGNITUDE:
            raise Undefined("too large")

    def atom(self, name: str) -> Value:
        known = self.known.get(name)
        if known is None:
            known = self.known[name] = self.new_atom(name)
        return known

    def new_atom(self, name: str) -> Value:
        if isinstance(name, Application):
            self.spend()
            result = self.application(name)
            self.measure(result)
            return result
        if name in self.variables:
            return self.variables[name]
        if name in CONSTANTS and name != LOG_UNIT:
            return (libmp.mpf_pi if name == "pi" else libmp.mpf_e)(self.bits, NEAREST)
        raise Undefined(f"no value of {name}")

    # Arithmetic of real and complex values.

    def sum(self, a: Value, b: Value) -> Value:
        if self.size > self.bits // 2 and not self.absorbed:
            self.absorbed = _is_lost(a, b, self.bits)
        return self.plain_sum(a, b)

    def plain_sum(self, a: Value, b: Value) -> Value:
        """Without a note of what is absorbed."""
        if len(a) == len(b) == 4:
            return libmp.mpf_add(a, b, self.bits, NEAREST)
        return libmp.mpc_add(pair(a), pair(b), self.bits, NEAREST)

    def product(self, a: Value, b: Value) -> Value:
        if len(a) == len(b) == 4:
            return libmp.mpf_mul(a, b, self.bits, NEAREST)
        return libmp.mpc_mul(pair(a), pair(b), self.bits, NEAREST)

    def quotient(self, a: Value, b: Value) -> Value:
        if is_zero(b):
            raise Undefined("division by zero")
        if len(a) == len(b) == 4:
            return libmp.mpf_div(a, b, self.bits, NEAREST)
        return libmp.mpc_div(pair(a), pair(b), self.bits, NEAREST)

    def integer_power(self, a: Value, n: int) -> Value:
        if n <= 0 and is_zero(a):
            raise Undefined("a power of zero")
        if len(a) == 4:
            if abs((a[2] + a[3]) * n) > MAX_MAGNITUDE:
                raise Undefined("too large")
            return libmp.mpf_pow_int(a, n, self.bits, NEAREST)
        if abs(n) > 1 << 16:
            raise Undefined("too large")
        return libmp.mpc_pow_int(a, n, self.bits, NEAREST)

    # Functions.

    def application(self, application: Application) -> Value:
        name = application.name
        if name in ("sum", "product"):
            return self.range(application)
        arguments = [self.value(argument) for argument in application.arguments]
        if name == "pow" and len(arguments[0]) == 4 and is_negative(arguments[0]):
            exponent = application.arguments[1].rational()
            if exponent is not None and exponent.denominator % 2 and exponent.denominator > 1:
                raise Undefined("an odd root of a negative number can be read in two ways")
        if name in ("floor", "ceil") and not _is_exact(application.arguments[0]):
            self.keep_from_integers(arguments[0])
        if name in ("pow", "cos") and self.size > self.bits // 2:
            self.absorbed |= _is_lost(ONE, arguments[-1], self.bits)
        rule = RULES.get(name)
        if rule is None:
            raise Undefined(f"no rule for {name}")
        try:
            return rule(self, *arguments)
        except (ArithmeticError, ValueError) as error:  # a pole, such as that of atanh at 1
            raise Undefined(f"no value of {name}") from error

    def range(self, application: Application) -> Value:
        """A finite sum or product with integer bounds."""
        body, bound, low, high = application.arguments
        first, last = self.integer(self.value(low)), self.integer(self.value(high))
        if not 0 <= last - first + 1 <= MAX_RANGE:
            raise Undefined("too many terms")
        name = next(iter(bound.top_atoms()))
        is_sum = application.name == "sum"
        total = ZERO if is_sum else ONE
        for k in range(first, last + 1):
            inner = Evaluator(self.bits, self.variables | {name: libmp.from_int(k)})
            inner.work = self.work
            term = inner.value(body)
            self.work = inner.work
            self.size = max(self.size, inner.size)
            self.largest = max(self.largest, inner.largest)
            self.branched |= inner.branched
            self.absorbed |= inner.absorbed
            total = self.sum(total, term) if is_sum else self.product(total, term)
        return total

    def integer(self, a: Value) -> int:
        """The integer that a value is, up to rounding."""
        if len(a) == 2:
            a = self.real(a)
        if a[2] + a[3] > 64:
            raise Undefined("too large")
        nearest = libmp.to_int(libmp.mpf_nint(a))
        if not close(a, libmp.from_int(nearest), self.bits // 2):
            raise Undefined("not an integer")
        return nearest

    def keep_from_integers(self, a: Value) -> None:
        """Raises `Undefined` where rounding errors could carry a value over an integer."""
        for part in a if len(a) == 2 else (a,):
            if part[2] + part[3] > self.bits // 3 or close(part, libmp.mpf_nint(part), self.bits // 3):
                raise Undefined("on the jump of a rounding function")

    def real(self, a: Value) -> Value:
        """A value whose imaginary part is nothing."""
        if len(a) == 4:
            return a
        if a[1][1]:
            raise Undefined("not a real number")
        return a[0]


def _is_exact(expression: Expression) -> bool:
    """Whether integers in place of the variables make an integer without rounding errors, if they make one."""
    atoms = expression.top_atoms()
    radicands = {radicand for terms in (expression.numerator, expression.denominator) for radicand, _, _ in terms}
    return radicands <= {1} and not expression.applications() and not atoms & CONSTANTS


def _is_lost(a: Value, b: Value, bits: int) -> bool:
    """Whether of two numbers other than zero one is too small to be seen beside the other."""
    first, second = magnitude(a), magnitude(b)
    return first is not None and second is not None and abs(first - second) > bits // 2
