"""Parses sums, products, integrals, limits and derivatives.

Worked out where that is exact and small (`calculus`), else kept as applications whose bound variable has the
name "#n", n being one more than the number inside, so that the name that was written does not matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ulorl.verify.exact import algebra, calculus
from ulorl.verify.exact.algebra import Expression, Unsupported
from ulorl.verify.grammar.tokens import Token
from ulorl.verify.grammar.vocabulary import GREEK

if TYPE_CHECKING:
    from ulorl.verify.grammar.primaries import Primaries


def operator(parser: Primaries, name: str) -> Expression:
    """The value of the operator that was just taken, with all that it applies to."""
    if name == "lim":
        return _limit(parser)
    if name == "int":
        return _integral(parser)
    variable, low, high = _range(parser)
    body = _rest_of_product(parser, variable)
    return calculus.finite("sum" if name == "sum" else "product", body, variable, low, high)


def derivative(parser: Primaries) -> Expression | None:
    """``\\frac{d}{dx}`` and what it applies to, just after ``\\frac``; None for another fraction.

    Raises `Unsupported` for ``\\frac{dy}{dx}``, which is not a quotient of products.
    """
    texts = parser.texts(8)
    if texts[:3] == ["{", "d", "}"] and texts[3:4] == ["{"]:
        if len(texts) > 5 and texts[5] == "}" and len(texts[4]) == 2 and texts[4][0] == "d":
            parser.position += 6
            variable = texts[4][1]
        elif len(texts) > 6 and texts[4] == "d" and texts[6] == "}":
            parser.position += 7
            variable = texts[5]
        else:
            return None
        body = parser.product()
        result = calculus.differentiate(body, variable)
        if result is None:
            raise Unsupported("a derivative")
        return result
    return None


def _range(parser: Primaries) -> tuple[str, Expression, Expression]:
    """``_{k=1}^{n}``."""
    parser.expect("_")
    lower = _braced(parser)
    names = [token.text for token in lower[:2]]
    if len(lower) < 3 or names[1] != "=" or not _is_variable(lower[0]):
        raise Unsupported("a sum over something other than a range")
    parser.expect("^")
    upper = _braced(parser)
    return _name(lower[0]), parser.nested(lower[2:]), parser.nested(upper)


def _braced(parser: Primaries) -> list[Token]:
    """The tokens of a script: in braces, or one."""
    if not parser.accept("symbol", "{"):
        token = parser.take()
        return [token, parser.take()] if token.text in ("-", "+") else [token]
    tokens: list[Token] = []
    depth = 1
    while True:
        token = parser.take()
        depth += {"{": 1, "}": -1}.get(token.text, 0) if token.kind == "symbol" else 0
        if not depth:
            return tokens
        tokens.append(token)


def _is_variable(token: Token) -> bool:
    return (token.kind in ("letters", "text") and len(token.text) == 1) or (
        token.kind == "command" and token.text in GREEK
    )


def _name(token: Token) -> str:
    return f"\\{token.text}" if token.kind == "command" else token.text


def _rest_of_product(parser: Primaries, variable: str) -> Expression:
    outer = parser.bound
    parser.bound = outer | {variable}
    body = parser.product()
    parser.bound = outer
    return body


def _limit(parser: Primaries) -> Expression:
    parser.expect("_")
    tokens = _braced(parser)
    if len(tokens) < 3 or not _is_variable(tokens[0]) or tokens[1].text not in ("to", "rightarrow", "longrightarrow"):
        raise Unsupported("a limit that is not of one variable")
    if tokens[-1].text in ("+", "-") or tokens[-2].text == "^":
        raise Unsupported("a one-sided limit")
    variable = _name(tokens[0])
    point = parser.nested(tokens[2:])
    return calculus.limit(_rest_of_product(parser, variable), variable, point)


def _integral(parser: Primaries) -> Expression:
    bounds: dict[str, Expression] = {}
    for mark in ("_", "^", "_"):
        if mark not in bounds and parser.accept("symbol", mark):
            bounds[mark] = parser.nested(_braced(parser))
    if len(bounds) != 2:
        raise Unsupported("an integral without bounds")
    body, variable = _integrand(parser)
    value = parser.nested(body, variable) if body else algebra.number(1)
    return calculus.integrate(value, variable, bounds["_"], bounds["^"])


def _integrand(parser: Primaries) -> tuple[list[Token], str]:
    """The tokens up to the differential outside brackets, and its variable."""
    body: list[Token] = []
    depth = 0
    while True:
        token = parser.take()
        depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(token.text, 0)
        if depth < 0:
            break
        if depth == 0 and token.kind in ("letters", "text"):
            following = parser.peek()
            if token.text == "d" and following is not None and _is_variable(following):
                parser.position += 1
                return body, _name(following)
            if token.kind == "letters" and len(token.text) >= 2 and token.text[-2] == "d":
                if len(token.text) > 2:
                    body.append(Token("letters", token.text[:-2], token.spaced))
                return body, token.text[-1]
        body.append(token)
    raise Unsupported("an integral without a differential")
