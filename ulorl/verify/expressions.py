"""Recursive-descent parser of one arithmetic or algebraic expression into its canonical form.

Accepts the whole token list or raises `Unsupported`: nothing is skipped. Refuses what people read in two ways
(``1/2x``, ``2 3``, ``\\sqrt23``). Functions other than square roots become opaque atoms.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import factorial

from ulorl.verify import algebra
from ulorl.verify.algebra import Expression, Unsupported
from ulorl.verify.tokens import Token, words

MAX_DIGITS = 4000
MAX_DEPTH = 40
MAX_FACTORIAL = 200
_GREEK = words(
    """alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma
    tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega ell hbar"""
)
_FUNCTIONS = words("sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh ln log exp sqrt lg")
_TIMES = words("times cdot ast")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def parse_expression(tokens: Sequence[Token]) -> Expression:
    """Canonical form of the expression that all of ``tokens`` make up; raises `Unsupported`."""
    parser = _Parser(tokens)
    result = parser.sum()
    if parser.position != len(tokens):
        raise Unsupported(f"unexpected {tokens[parser.position].text!r}")
    if len(tokens) > 2 and any(token.text in ("infty", algebra.INFINITY) for token in tokens):
        raise Unsupported("arithmetic with infinity")
    return result


def parse_number(text: str) -> Fraction:
    """A decimal numeral as an exact rational."""
    if len(text) > MAX_DIGITS:
        raise Unsupported("number too large")
    whole, _, decimals = text.partition(".")
    return Fraction(int((whole or "0") + decimals), 10 ** len(decimals))


class _Parser:
    """One pass over the tokens; ``position`` is the next one."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.position = 0
        self.depth = 0

    def peek(self) -> Token | None:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def at(self, kind: str, *texts: str) -> bool:
        token = self.peek()
        return token is not None and token.kind == kind and token.text in texts

    def accept(self, kind: str, *texts: str) -> bool:
        if self.at(kind, *texts):
            self.position += 1
            return True
        return False

    def take(self) -> Token:
        token = self.peek()
        if token is None:
            raise Unsupported("the expression ends early")
        self.position += 1
        return token

    def expect(self, text: str) -> None:
        if self.take().text != text:
            raise Unsupported(f"missing {text!r}")

    def sum(self) -> Expression:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unsupported("nested too deeply")
        result = self.signed_product()
        while self.at("symbol", "+", "-"):
            subtract = self.take().text == "-"
            term = self.signed_product()
            result = algebra.subtract(result, term) if subtract else algebra.add(result, term)
        self.depth -= 1
        return result

    def signed_product(self) -> Expression:
        negative = False
        for _ in range(2):
            if self.accept("symbol", "-"):
                negative = not negative
            elif not self.accept("symbol", "+"):
                break
        result = self.product()
        return algebra.negate(result) if negative else result

    def product(self) -> Expression:
        start = self.position
        result = self.factor()
        result = self.mixed_number(start, result)
        divided = False
        while True:
            token = self.peek()
            if token is None:
                return result
            if (token.kind == "command" and token.text in _TIMES) or (token.kind == "symbol" and token.text == "*"):
                self.position += 1
                result = algebra.multiply(result, self.signed_factor())
            elif (token.kind == "command" and token.text == "div") or (token.kind == "symbol" and token.text == "/"):
                if divided:
                    raise Unsupported("a / b / c can be read in two ways")
                self.position += 1
                result = algebra.divide(result, self.signed_factor())
                divided = True
            elif self.starts_factor(token):
                if divided:
                    raise Unsupported("a / b c can be read in two ways")
                if token.kind == "number":
                    raise Unsupported("two numbers side by side")
                result = algebra.multiply(result, self.factor())
            else:
                return result

    def signed_factor(self) -> Expression:
        if self.accept("symbol", "-"):
            return algebra.negate(self.factor())
        return self.factor()

    def mixed_number(self, start: int, whole: Expression) -> Expression:
        """``3 1/2`` and ``3\\frac{1}{2}``: an integer and a proper fraction of integers is their sum."""
        if self.position != start + 1 or self.tokens[start].kind != "number" or "." in self.tokens[start].text:
            return whole
        after = self.tokens[self.position : self.position + 3]
        if [t.kind for t in after[:1]] == ["command"] and after[0].text == "frac":
            checkpoint = self.position
            fraction = self.factor()
            written = self.tokens[checkpoint : self.position]
            if any(t.kind != "number" and t.text not in ("frac", "{", "}") for t in written):
                self.position = checkpoint
                return whole
        elif len(after) == 3 and [t.text for t in after[1:2]] == ["/"] and after[0].kind == after[2].kind == "number":
            if "." in after[0].text + after[2].text or not after[0].spaced:
                raise Unsupported("two numbers side by side")
            self.position += 3
            fraction = algebra.divide(
                algebra.number(parse_number(after[0].text)), algebra.number(parse_number(after[2].text))
            )
        else:
            return whole
        part = fraction.rational()
        if part is None or not 0 <= part < 1:
            raise Unsupported("a number followed by an improper fraction")
        return algebra.add(whole, fraction)

    def starts_factor(self, token: Token) -> bool:
        if token.kind == "command":
            return token.text in _GREEK | _FUNCTIONS | {"frac", "pi", "infty", "overline", "{", "mathrm"}
        return (
            token.kind in ("number", "letters")
            or (token.kind == "symbol" and token.text in "([{")
            or (token.kind == "text" and len(token.text) == 1)
        )

    def factor(self) -> Expression:
        """A primary with its postfix operators: factorial, degree, power."""
        result = self.primary()
        while True:
            if self.accept("symbol", "!"):
                result = _factorial(result)
            elif self.accept("command", "degree"):
                degree = algebra.divide(algebra.atom("pi"), algebra.number(180))
                result = algebra.multiply(result, degree)
            elif self.accept("symbol", "^") or self.accept_double_star():
                result = algebra.power(result, self.script())
            else:
                return result

    def accept_double_star(self) -> bool:
        pair = self.tokens[self.position : self.position + 2]
        if len(pair) == 2 and all(t.kind == "symbol" and t.text == "*" for t in pair):
            self.position += 2
            return True
        return False

    def script(self) -> Expression:
        """An exponent: braced, parenthesised, a signed number, or one symbol."""
        negative = self.accept("symbol", "-")
        value = self.primary(single_letter=True)
        return algebra.negate(value) if negative else value

    def primary(self, *, single_letter: bool = False) -> Expression:
        token = self.take()
        if token.kind == "number":
            return self.numeral(token)
        if token.kind == "symbol" and token.text in _CLOSING:
            inner = self.sum()
            self.expect(_CLOSING[token.text])
            return inner
        if token.kind == "symbol" and token.text == "|":
            inner = self.sum()
            self.expect("|")
            return _absolute(inner)
        if token.kind == "letters":
            return self.letters(token.text, single_letter)
        if token.kind == "text" and len(token.text) == 1 and token.text.isalpha():
            return self.variable(token.text)
        if token.kind == "command":
            return self.command(token.text)
        raise Unsupported(f"unexpected {token.text!r}")

    def numeral(self, token: Token) -> Expression:
        value = algebra.number(parse_number(token.text))
        if not self.accept("command", "overline"):
            return value
        return algebra.add(value, self.repeating(token.text))

    def repeating(self, prefix: str) -> Expression:
        """The repeating part of a decimal whose other digits are ``prefix``."""
        self.expect("{")
        digits = self.take()
        self.expect("}")
        whole, point, decimals = prefix.partition(".")
        if digits.kind != "number" or not digits.text.isdigit() or not point or not whole:
            raise Unsupported("a bar over something other than repeating decimals")
        if len(digits.text) + len(decimals) > 200:
            raise Unsupported("number too large")
        return algebra.number(Fraction(int(digits.text), 10 ** len(decimals) * (10 ** len(digits.text) - 1)))

    def letters(self, text: str, single_letter: bool) -> Expression:
        if text in _FUNCTIONS or text in ("pi", "oo"):
            return self.command(text)
        if len(text) > 3 or (single_letter and len(text) > 1):
            raise Unsupported(f"the word {text!r} in an expression")
        result = algebra.number(1)
        for letter in text[:-1]:
            result = algebra.multiply(result, self.variable(letter, subscript=False))
        return algebra.multiply(result, self.variable_with_power(text[-1]))

    def variable_with_power(self, letter: str) -> Expression:
        """In ``xy^2`` the exponent belongs to y alone, so it is applied here."""
        result = self.variable(letter)
        if self.accept("symbol", "^"):
            return algebra.power(result, self.script())
        return result

    def variable(self, name: str, *, subscript: bool = True) -> Expression:
        if name == "i":
            return algebra.imaginary()
        if name == "e":
            return algebra.atom("e")
        if subscript and self.accept("symbol", "_"):
            name = f"{name}_{self.subscript()}"
        if subscript and self.at("symbol", "'"):
            raise Unsupported("a prime")
        return algebra.atom(name)

    def subscript(self) -> str:
        token = self.take()
        if token.text != "{":
            return token.text
        parts = []
        while not self.accept("symbol", "}"):
            parts.append(self.take().text)
        return " ".join(parts)

    def command(self, name: str) -> Expression:
        if name in ("frac", "sqrt"):
            return self.fraction() if name == "frac" else self.root()
        if name == "pi":
            return algebra.atom("pi")
        if name in ("infty", "oo"):
            return algebra.atom(algebra.INFINITY)
        if name in _GREEK:
            return self.variable(f"\\{name}")
        if name in _FUNCTIONS:
            return self.function(name)
        raise Unsupported(f"\\{name}")

    def fraction(self) -> Expression:
        numerator, rest = self.argument("")
        denominator, rest = self.argument(rest)
        if rest:
            raise Unsupported("digits after a fraction")
        return algebra.divide(numerator, denominator)

    def argument(self, pending: str) -> tuple[Expression, str]:
        """One LaTeX argument: a group, one digit or one symbol; also what is left of its digits."""
        if pending:
            return algebra.number(int(pending[0])), pending[1:]
        token = self.take()
        if token.kind == "symbol" and token.text == "{":
            inner = self.sum()
            self.expect("}")
            return inner, ""
        if token.kind == "number" and token.text.isdigit():
            return algebra.number(int(token.text[0])), token.text[1:]
        if token.kind == "letters" and len(token.text) == 1:
            return self.variable(token.text, subscript=False), ""
        if token.kind == "command":
            return self.command(token.text), ""
        raise Unsupported(f"unexpected {token.text!r} as an argument")

    def root(self) -> Expression:
        index = algebra.number(2)
        if self.accept("symbol", "["):
            index = self.sum()
            self.expect("]")
        token = self.take()
        if token.kind == "symbol" and token.text in ("{", "("):
            inner = self.sum()
            self.expect(_CLOSING[token.text])
        elif token.kind == "number" and len(token.text) == 1:
            inner = algebra.number(int(token.text))
        elif (token.kind == "letters" and len(token.text) == 1) or (token.kind == "command" and token.text == "pi"):
            inner = algebra.atom(token.text)
        else:
            raise Unsupported("a root of several digits without braces")
        if algebra.same(index, algebra.number(2)):
            return algebra.square_root(inner)
        return algebra.opaque("root", index, inner)

    def function(self, name: str) -> Expression:
        """``f(x)``, ``f x`` and ``f{x}`` as an opaque atom; base or power scripts become part of its name."""
        label = "ln" if name == "log" and self.at("symbol", "e") else name
        scripts: list[Expression] = []
        for mark in ("_", "^"):
            if self.accept("symbol", mark):
                scripts.append(self.script())
                label += mark
        token = self.peek()
        if token is not None and token.kind == "symbol" and token.text in ("(", "{", "["):
            argument = self.primary()
        else:
            argument = self.bare_argument()
        return algebra.opaque(label, *scripts, argument)

    def bare_argument(self) -> Expression:
        """``\\sin 2x``: the factors up to the next sign, operator, bracket or function."""
        token = self.peek()
        if token is None:
            raise Unsupported("a function without an argument")
        result = self.factor()
        while (token := self.peek()) is not None and (
            (token.kind == "letters" and token.text not in _FUNCTIONS)
            or (token.kind == "command" and token.text in _GREEK | {"pi"})
        ):
            result = algebra.multiply(result, self.factor())
        token = self.peek()
        if token is not None and (token.text in ("/", "(") or (token.kind == "command" and token.text == "frac")):
            raise Unsupported("the end of a function's argument is not clear")
        return result


def _absolute(value: Expression) -> Expression:
    rational = value.rational()
    return algebra.opaque("abs", value) if rational is None else algebra.number(abs(rational))


def _factorial(value: Expression) -> Expression:
    n = value.rational()
    if n is None or n.denominator != 1 or not 0 <= n <= MAX_FACTORIAL:
        return algebra.opaque("factorial", value)
    return algebra.number(factorial(n.numerator))
