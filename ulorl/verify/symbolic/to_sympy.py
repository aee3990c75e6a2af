"""Builds sympy objects from expressions, object by object: no string reaches sympy's parsers.

Nothing is evaluated beyond what sympy does on construction, so what that would blow up is refused first
(`symbolic_size`). Imports sympy inside functions; meant for worker processes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ulorl.verify.exact.algebra import INFINITY, LOG_UNIT, Application, Expression, Terms, Unsupported

MAX_SIZE = 400
MAX_POWER_BITS = 4000
MAX_FACTORIAL = 1000


def symbolic_size(expression: Expression) -> int:
    """Number of monomials and atoms at all depths; what `to_sympy` and any later work grow with."""
    total = 0
    for terms in (expression.numerator, expression.denominator):
        for _, _, atoms in terms:
            total += 1 + len(atoms)
            for name, _ in atoms:
                if isinstance(name, Application):
                    total += sum(map(symbolic_size, name.arguments))
    return total


def to_sympy(expression: Expression, *, assumptions: dict[str, bool] | None = None) -> Any:
    """The sympy expression; variables are symbols with the given assumptions, such as ``{"positive": True}``.

    Raises `Unsupported` beyond the limits, and for what sympy has no function for.
    """
    if symbolic_size(expression) > MAX_SIZE:
        raise Unsupported("expression too large")
    return _Builder(assumptions or {}).build(expression)


class _Builder:
    def __init__(self, assumptions: dict[str, bool]) -> None:
        import sympy

        self.sympy = sympy
        self.assumptions = assumptions

    def build(self, expression: Expression) -> Any:
        return self.terms(expression.numerator) / self.terms(expression.denominator)

    def terms(self, terms: Terms) -> Any:
        sympy = self.sympy
        parts = []
        for (radicand, imaginary_power, atoms), coefficient in terms.items():
            part = sympy.Rational(coefficient.numerator, coefficient.denominator)
            if radicand != 1:
                part *= sympy.Pow(sympy.Integer(radicand), sympy.Rational(1, 2), evaluate=False)
            if imaginary_power:
                part *= sympy.I
            for name, exponent in atoms:
                part *= self.atom(name) ** exponent
            parts.append(part)
        return sympy.Add(*parts)

    def atom(self, name: str) -> Any:
        if isinstance(name, Application):
            return self.application(name)
        if name == LOG_UNIT:
            raise Unsupported("a logarithm without a base")
        constants = {"pi": self.sympy.pi, "e": self.sympy.E, INFINITY: self.sympy.oo}
        return constants[name] if name in constants else self.sympy.Symbol(name, **self.assumptions)

    def application(self, application: Application) -> Any:
        sympy = self.sympy
        name = application.name
        self.check(application)
        if name in ("sum", "product", "integral", "limit"):
            body, bound, *ends = map(self.build, application.arguments)
            if name == "limit":
                return sympy.Limit(body, bound, ends[0], "+-")
            kind = {"sum": sympy.Sum, "product": sympy.Product, "integral": sympy.Integral}[name]
            return kind(body, (bound, *ends))
        arguments = [self.build(argument) for argument in application.arguments]
        if name == "pow":
            return sympy.Pow(*arguments)
        if name == "root":
            return sympy.real_root(arguments[1], arguments[0])
        if name == "permutations":
            return sympy.ff(*arguments)
        if name.startswith("call "):
            return sympy.Function(name.removeprefix("call "))(*arguments)
        function: Callable[..., Any] | None = getattr(sympy, _NAMES.get(name, ""), None)
        if function is None:
            raise Unsupported(f"no sympy function for {name}")
        return function(*arguments)

    def check(self, application: Application) -> None:
        """Refuses what sympy would work out to something huge on construction."""
        values = [argument.rational() for argument in application.arguments]
        if application.name == "pow" and values[0] is not None and values[1] is not None:
            size = max(values[0].numerator.bit_length(), values[0].denominator.bit_length())
            if abs(values[1]) * size > MAX_POWER_BITS:
                raise Unsupported("a power too large for sympy")
        if application.name in ("factorial", "double_factorial", "binomial", "permutations") and any(
            value is not None and abs(value) > MAX_FACTORIAL for value in values
        ):
            raise Unsupported("a factorial too large for sympy")


_NAMES = {
    "ln": "log",
    "sin": "sin",
    "cos": "cos",
    "asin": "asin",
    "acos": "acos",
    "atan": "atan",
    "asinh": "asinh",
    "acosh": "acosh",
    "atanh": "atanh",
    "abs": "Abs",
    "re": "re",
    "im": "im",
    "conj": "conjugate",
    "arg": "arg",
    "sign": "sign",
    "floor": "floor",
    "ceil": "ceiling",
    "factorial": "factorial",
    "double_factorial": "factorial2",
    "binomial": "binomial",
    "mod": "Mod",
    "gcd": "gcd",
    "lcm": "lcm",
    "max": "Max",
    "min": "Min",
}
"""Names of applications to those of sympy's functions."""
