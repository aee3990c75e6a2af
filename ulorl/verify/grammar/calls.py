"""Parses the application of a named function: its scripts and where its argument ends.

``f^{-1}`` is the inverse of a trigonometric or hyperbolic function, ``f^2 x`` is (f x)^2, ``f(x)^2`` is (f(x))^2
but for logarithms, where it is refused. An argument without brackets ends at the next sign, operator, bracket or
function; where readers disagree about the end it is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ulorl.verify.exact import algebra
from ulorl.verify.exact.algebra import Expression, Unsupported
from ulorl.verify.exact.functions import apply, log_of_unknown_base, logarithm_to
from ulorl.verify.exact.powers import logarithm, power
from ulorl.verify.grammar.tokens import Token
from ulorl.verify.grammar.vocabulary import BRACKETS, FUNCTIONS, GREEK, INVERSES, LOGARITHMS, SEVERAL_ARGUMENTS

if TYPE_CHECKING:
    from ulorl.verify.grammar.primaries import Primaries


def call_function(parser: Primaries, spelling: str) -> Expression:
    """The application whose name was just taken."""
    name = FUNCTIONS[spelling]
    if name in SEVERAL_ARGUMENTS:
        return apply(name, *_arguments(parser))
    base: Expression | None = None
    exponent: Expression | None = None
    for _ in range(2):
        if base is None and parser.accept("symbol", "_"):
            if name != "log":
                raise Unsupported("a subscript on a function")
            base = parser.script()
        elif exponent is None and parser.accept("symbol", "^"):
            token = parser.peek()
            if token is not None and token.kind == "number" and len(token.text) > 1:
                raise Unsupported("the end of an exponent is not clear")
            exponent = parser.script()
    if exponent is not None and exponent.integer() == -1:
        if name not in INVERSES:
            raise Unsupported("an inverse function")
        name, exponent = INVERSES[name], None
    argument = _argument(parser, name)
    result = _value(name, base, argument)
    return result if exponent is None else power(result, exponent)


def call_unknown(parser: Primaries, name: str) -> Expression:
    """``f(x)`` of a function that the problem defines; just its name where no argument follows."""
    if not parser.accept("symbol", "("):
        return algebra.atom(name)
    parser.open_bars.append(0)
    arguments = [parser.sum()]
    while parser.accept("symbol", ","):
        arguments.append(parser.sum())
    parser.expect(")")
    parser.open_bars.pop()
    return algebra.opaque(f"call {name}", *arguments)


def _value(name: str, base: Expression | None, argument: Expression) -> Expression:
    if name == "log":
        return log_of_unknown_base(argument) if base is None else logarithm_to(base, argument)
    if name == "lg":
        return logarithm_to(algebra.number(10), argument)
    if name == "ln":
        return logarithm(argument)
    return apply(name, argument)


def _arguments(parser: Primaries) -> list[Expression]:
    """``(a, b, ...)`` or ``\\{a, b, ...\\}``."""
    token = parser.take()
    closing = {"(": ")", "{": "}", "[": "]"}.get(token.text)
    if closing is None:
        raise Unsupported("a function of several arguments without brackets")
    parser.open_bars.append(0)
    values = [parser.sum()]
    while parser.accept("symbol", ","):
        values.append(parser.sum())
    parser.expect(closing)
    parser.open_bars.pop()
    return values


def _argument(parser: Primaries, name: str) -> Expression:
    token = parser.peek()
    if token is None:
        raise Unsupported("a function without an argument")
    if token.text in BRACKETS and token.kind in ("symbol", "command"):
        round_inside = token.text == "(" or parser.texts(2)[1:] == ["("]
        parser.position += 1
        inner = parser.group(token.text, is_argument=True)
        after = parser.peek()
        is_raised = after is not None and (after.text == "^" or parser.texts(2) == ["*", "*"])
        if is_raised and (not round_inside or name in LOGARITHMS):
            raise Unsupported("a power of a function or of its argument")
        return inner
    if token.text in ("|", "vert", "lvert", "lfloor", "lceil"):
        inner = parser.primary()
        if parser.at("symbol", "^"):
            raise Unsupported("a power of a function or of its argument")
        return inner
    return _bare_argument(parser, name)


def _bare_argument(parser: Primaries, name: str) -> Expression:
    """``\\sin 2x``: the factors up to the next sign, operator, bracket or function."""
    negative = parser.accept("symbol", "-")
    start = parser.position
    result = parser.factor()
    is_constant = not result.variables()
    is_fraction = parser.tokens[start].text == "frac"
    while (token := parser.peek()) is not None and _continues(token):
        if token.text in ("i", "e") or (name in LOGARITHMS and is_constant and (token.spaced or is_fraction)):
            raise Unsupported("the end of a function's argument is not clear")
        result = algebra.multiply(result, parser.factor())
    token = parser.peek()
    if token is not None:
        ratio = token.text == "/" and (after := parser.peek(1)) is not None and after.text in FUNCTIONS
        closes = token.text == "|" and parser.open_bars[-1]
        if (token.text in ("/", "(", "|") and not ratio and not closes) or token.text in (
            "frac",
            "sqrt",
            "surd",
            "lvert",
        ):
            raise Unsupported("the end of a function's argument is not clear")
    return algebra.negate(result) if negative else result


def _continues(token: Token) -> bool:
    if token.kind == "letters":
        return token.text not in FUNCTIONS and token.text not in ("sqrt", "mod")
    return token.kind == "command" and (token.text in GREEK or token.text == "pi")
