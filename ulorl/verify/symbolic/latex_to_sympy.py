"""LaTeX that our own grammar does not know (limits, nested integrals, unusual bounds) as sympy objects.

Runs in worker processes only. The grammar is math-verify's LaTeX parser, which is lenient: it stops before a
tail that it cannot read, ignores subscripts of numbers and degree signs, and hands numerals to a string
parser that executes what it reads. So: only texts whose every token is on a short list are given to it; the
whole token stream must be consumed; numerals are converted here; nothing is evaluated while parsing; and
sizes are checked before and after. Raises `Unsupported` for everything else. Never the plain-expression path.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ulorl.verify.exact.algebra import Unsupported
from ulorl.verify.grammar.tokens import Token, tokenise, words

MAX_TOKENS = 120
MAX_DIGITS = 60
MAX_NESTING = 12
_FUNCTIONS = words(
    """sin cos tan cot sec csc sinh cosh tanh arcsin arccos arctan exp ln log sqrt frac binom
    sum prod int lim lfloor rfloor lceil rceil"""
)
_SYMBOLS = words(
    """alpha beta delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau phi chi psi omega
    pi infty cdot times to"""
)
_MARKS = frozenset("+-*/^_(){}|!=")
_BIG = words("sum prod int lim")
_INFINITE = frozenset((before, "}") for before in ("{", "+", "-", "to"))
"""What stands around a sign of infinity that is a whole bound."""


def latex_to_sympy(text: str) -> Any:
    """The sympy object that a normalised LaTeX text denotes, unevaluated; raises `Unsupported`."""
    tokens = check_latex(text)
    converter = _converter_class()()
    try:
        parsed = converter.parse(_spell(tokens))
    except Unsupported:
        raise
    except (MemoryError, RecursionError):
        raise
    except Exception as error:
        raise Unsupported("LaTeX that cannot be read") from error
    return _with_constants(parsed, tokens)


def check_latex(text: str) -> list[Token]:
    """The tokens of a text that `latex_to_sympy` may be given; imports nothing heavy.

    Refuses whatever the lenient parser could drop, or read in another way than people do.
    """
    tokens = tokenise(text)
    if len(tokens) > MAX_TOKENS:
        raise Unsupported("answer too long")
    if not any(token.kind == "command" and token.text in _BIG for token in tokens):
        raise Unsupported("no sum, product, integral or limit")
    open_brackets: list[str] = []
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        known = {
            "number": len(token.text) <= MAX_DIGITS,
            "letters": len(token.text) == 1 or (len(token.text) == 2 and token.text[0] == "d"),
            "command": token.text in _FUNCTIONS | _SYMBOLS,
            "symbol": token.text in _MARKS,
        }
        if not known.get(token.kind, False) or token.text in ("I", "E", "O", "S", "N", "Q"):
            raise Unsupported(f"{token.text[:20]!r} in LaTeX beyond our grammar")
        if token.text in ("{", "("):
            open_brackets.append(token.text)
        elif token.text in ("}", ")") and (not open_brackets or open_brackets.pop() + token.text not in ("{}", "()")):
            raise Unsupported("unbalanced brackets")
        if len(open_brackets) > MAX_NESTING:
            raise Unsupported("nested too deeply")
        preceding, following = before.text if before else "", after.text if after else ""
        if token.kind == "number" and (following in ("_", "frac", "binom") or (after and after.kind == "number")):
            raise Unsupported("a number beside a number")
        if token.text == "/" and not (before and after and before.kind == after.kind == "number"):
            raise Unsupported("a fraction on one line")
        if token.text == "log" and following != "_":
            raise Unsupported("a logarithm of unknown base")
        if token.text in _BIG and following != "_":
            raise Unsupported(f"\\{token.text} without bounds")
        if token.text in ("frac", "binom", "sqrt") and following != "{":
            raise Unsupported(f"\\{token.text} without braces")
        if token.text == "infty" and preceding not in ("^", "_") and (preceding, following) not in _INFINITE:
            raise Unsupported("arithmetic with infinity")
        if token.text in ("^", "_") and after and after.kind == "number" and len(after.text) > 1:
            raise Unsupported("a script of several digits without braces")
        if token.text == following == "!":
            raise Unsupported("two factorial signs")
    if open_brackets:
        raise Unsupported("unbalanced brackets")
    _check_equals_and_differentials(tokens)
    return tokens


def _check_equals_and_differentials(tokens: list[Token]) -> None:
    """One "=" in the subscript of each sum and product, one "->" for each limit, one dx for each integral."""
    texts = [token.text for token in tokens]
    scripts = 0
    for index, text in enumerate(texts):
        if text in ("sum", "prod"):
            head = texts[index + 1 : index + 5]
            if len(head) < 4 or head[1] != "{" or head[3] != "=":
                raise Unsupported("a sum whose bounds are not written under it")
            scripts += 1
    if texts.count("=") != scripts or texts.count("to") != texts.count("lim"):
        raise Unsupported("a relation in LaTeX beyond our grammar")
    differentials = sum(len(text) == 2 and token.kind == "letters" for token, text in zip(tokens, texts, strict=True))
    derivatives = sum(texts[i : i + 3] == ["frac", "{", "d"] for i in range(len(texts)))
    if differentials - derivatives != texts.count("int"):
        raise Unsupported("an integral without its differential")


def _spell(tokens: list[Token]) -> str:
    return " ".join(f"\\{token.text}" if token.kind == "command" else token.text for token in tokens)


def _with_constants(parsed: Any, tokens: list[Token]) -> Any:
    """e and i as constants, where they are not bound variables."""
    import sympy
    from sympy.core.function import AppliedUndef

    if not isinstance(parsed, sympy.Expr):
        raise Unsupported("LaTeX that is not one expression")
    stray = any(len(symbol.name) == 2 and symbol.name[0] == "d" for symbol in parsed.atoms(sympy.Symbol))
    if stray or parsed.atoms(AppliedUndef):
        raise Unsupported("an unknown function, or a differential outside an integral")
    ranges = parsed.atoms(sympy.Sum, sympy.Product, sympy.Integral)
    bound = {symbol for part in ranges for symbol in part.variables}
    constants = {sympy.Symbol("E"): sympy.E, sympy.Symbol("e"): sympy.E, sympy.Symbol("i"): sympy.I}
    if bound & set(constants):
        constants = {symbol: value for symbol, value in constants.items() if symbol not in bound}
        if any(token.text == "i" for token in tokens) and parsed.has(sympy.I):
            raise Unsupported("i as index and as imaginary unit")
    with sympy.evaluate(False):
        return parsed.xreplace({symbol: value for symbol, value in constants.items() if parsed.has(symbol)})


@cache
def _converter_class() -> Any:
    import sympy
    from latex2sympy2_extended.latex2sympy2 import ConversionConfig, _Latex2Sympy

    class Converter(_Latex2Sympy):  # type: ignore[misc]
        """Consumes the whole text; makes numbers without a string parser; evaluates nothing."""

        def __init__(self) -> None:
            super().__init__(None, None, False, ConversionConfig(lowercase_symbols=False))
            self.streams: list[Any] = []

        def create_parser(self, latex_str: str) -> Any:
            parser = super().create_parser(latex_str)
            self.streams.append(parser.getTokenStream())
            return parser

        def parse(self, latex_str: str) -> Any:
            result = super().parse(latex_str)
            if self.streams.pop().LA(1) != -1:  # EOF
                raise Unsupported("LaTeX of which a part cannot be read")
            return result

        def parse_number(self, text: str) -> Any:
            whole, point, decimals = text.partition(".")
            if not (whole + decimals).isdecimal() or not (whole + decimals).isascii():
                raise Unsupported("a numeral that is not decimal")
            return sympy.Rational(int(whole + decimals), 10 ** len(decimals)) if point else sympy.Integer(int(whole))

        def convert_binom(self, binom: Any) -> Any:
            upper, lower = self.convert_expr(binom.upper), self.convert_expr(binom.lower)
            return sympy.binomial(upper, lower, evaluate=False)

        def handle_exp(self, func: Any) -> Any:
            power = func.supexpr()
            if not power:
                return sympy.E
            exponent = self.convert_expr(power.expr()) if power.expr() else self.convert_atom(power.atom())
            return sympy.Pow(sympy.E, exponent, evaluate=False)

        def handle_limit(self, func: Any) -> Any:
            limit = super().handle_limit(func)
            content, variable, point, _ = limit.args
            if func.limit_sub().SUB() or func.limit_sub().ADD():
                raise Unsupported("a one-sided limit")
            return sympy.Limit(content, variable, point, "-" if point is sympy.oo else "+-")

    return Converter
