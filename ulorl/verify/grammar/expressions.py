"""Recursive-descent parser of one arithmetic or algebraic expression into its canonical form.

Accepts the whole token list or raises `Unsupported`: nothing is skipped. Refuses what people read in two ways
(``1/2x``, ``2 3``, ``\\sqrt23``, ``2^3^2``, ``dy/dx``). ``log`` without a base stays a logarithm of unknown base.
"""

from __future__ import annotations

from collections.abc import Sequence

from ulorl.verify.exact import algebra
from ulorl.verify.exact.algebra import Expression, Unsupported
from ulorl.verify.exact.functions import apply
from ulorl.verify.exact.powers import power
from ulorl.verify.exact.progressions import arithmetic_series
from ulorl.verify.grammar.primaries import MAX_DEPTH, Primaries, parse_number
from ulorl.verify.grammar.tokens import Token
from ulorl.verify.grammar.vocabulary import BRACKETS, FUNCTIONS, GREEK, OPERATORS, PRIMARIES, TIMES

_POSTFIX = frozenset("!^*") | {"degree"}


def parse_expression(tokens: Sequence[Token]) -> Expression:
    """Canonical form of the expression that all of ``tokens`` make up; raises `Unsupported`."""
    if len(tokens) == 1 and tokens[0].kind == "number":
        return algebra.number(parse_number(tokens[0].text))
    if len(tokens) == 1 and tokens[0].kind == "letters" and len(tokens[0].text) > 2:
        name = tokens[0].text
        known = name in GREEK or name in ("infty", "infinity") or name.endswith("pi") or name[:-1] in FUNCTIONS
        if not known:
            raise Unsupported(f"the word {name!r}")
    parser = Parser(tokens)
    result = parser.sum_over()
    if parser.position != len(parser.tokens):
        raise Unsupported(f"unexpected {parser.tokens[parser.position].text!r}")
    _check_infinity(parser, result)
    return result


def _check_infinity(parser: Parser, result: Expression) -> None:
    """Raises `Unsupported` for arithmetic with infinity: it may only stand alone, also as a bound."""
    infinity = algebra.atom(algebra.INFINITY)
    if parser.has_infinity and result not in (infinity, algebra.negate(infinity)):
        raise Unsupported("arithmetic with infinity")


class Parser(Primaries):
    """One pass over the tokens, by precedence: sum, product, factor, primary."""

    def nested(self, tokens: Sequence[Token], bound: str | None = None) -> Expression:
        """A part that is parsed on its own."""
        parser = Parser(tokens, self.bound | ({bound} if bound else set()), self.depth + 1)
        result = parser.sum_over()
        if parser.position != len(parser.tokens):
            raise Unsupported(f"unexpected {parser.tokens[parser.position].text!r}")
        _check_infinity(parser, result)
        return result

    def sum_over(self) -> Expression:
        """A sum, or ``a \\over b`` and ``n \\choose k``, which end with the group they are in."""
        first = self.sum()
        if self.accept("command", "over"):
            return algebra.divide(first, self.sum())
        if self.accept("command", "choose"):
            return apply("binomial", first, self.sum())
        return first

    def sum(self) -> Expression:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unsupported("nested too deeply")
        result = self.signed_product()
        token = self.peek()
        if token is not None and token.text in ("mod", "bmod"):
            self.position += 1
            result = _modulo(result, self.signed_product())
        terms: list[Expression] | None = [result]
        while self.at("symbol", "+", "-"):
            subtract = self.take().text == "-"
            if not subtract and terms is not None and self.accept("command", "dots"):
                self.expect("+")
                return self.series(terms)
            term = self.signed_product()
            terms = None if subtract or terms is None else [*terms, term]
            result = algebra.subtract(result, term) if subtract else algebra.add(result, term)
        self.depth -= 1
        return result

    def series(self, leading: Sequence[Expression]) -> Expression:
        """``1 + 2 + \\cdots + n`` from its last term on, which ends the sum."""
        last = self.signed_product()
        if self.at("symbol", "+", "-"):
            raise Unsupported("a sum that goes on after its last term")
        self.depth -= 1
        return arithmetic_series(leading, last)

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
            if (token.kind == "command" and token.text in TIMES) or (token.kind == "symbol" and token.text == "*"):
                self.position += 1
                result = algebra.multiply(result, self.signed_factor())
            elif (token.kind == "command" and token.text == "div") or (token.kind == "symbol" and token.text == "/"):
                if divided:
                    raise Unsupported("a / b / c can be read in two ways")
                self.position += 1
                result = algebra.divide(result, self.signed_factor())
                divided = True
            elif self.starts_factor(token):
                if divided and not (
                    token.text == "i" and token.spaced and self.tokens[self.position - 1].kind == "number"
                ):
                    raise Unsupported("a / b c can be read in two ways")
                if token.kind == "number" and not self.after_number:
                    raise Unsupported("two numbers side by side")
                if token.text == "frac" and self.after_numeral(start):
                    raise Unsupported("a mixed number inside a product")
                result = algebra.multiply(result, self.factor())
            else:
                return result

    def after_numeral(self, start: int) -> bool:
        """Whether a numeral that is neither the first factor nor an exponent comes just before."""
        before = self.tokens[self.position - 2].text if self.position > start + 1 else "^"
        return self.tokens[self.position - 1].kind == "number" and before != "^"

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
            before = list(self.tokens)
            fraction = self.factor()
            written = self.tokens[checkpoint : self.position]
            if any(t.kind != "number" and t.text not in ("frac", "{", "}") for t in written):
                self.tokens, self.position = before, checkpoint
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
            return token.text in PRIMARIES or (token.text in ("vert", "mid") and not self.open_bars[-1])
        if token.kind == "text":
            return len(token.text) == 1 or token.text in FUNCTIONS
        if token.kind == "letters":
            return token.text != "mod"
        if token.text == "|":
            return not self.open_bars[-1]
        return token.kind == "number" or (token.kind == "symbol" and token.text in "([{⌊⌈")

    def factor(self) -> Expression:
        """A primary with its postfix operators: factorial, degree, power."""
        result = self.primary()
        self.after_number = False
        bare_exponent = False
        while (token := self.peek()) is not None and token.text in _POSTFIX:
            if self.accept("symbol", "!"):
                if bare_exponent:
                    raise Unsupported("a factorial after an exponent without braces")
                doubled = self.at("symbol", "!") and not self.tokens[self.position].spaced
                self.position += doubled
                result = apply("double_factorial" if doubled else "factorial", result)
                self.after_number = True
            elif self.accept("command", "degree"):
                result = algebra.multiply(result, algebra.divide(algebra.atom("pi"), algebra.number(180)))
            elif self.accept("symbol", "^") or self.accept_double_star():
                result, bare_exponent = self.raised(result)
            else:
                break
        return result

    def accept_double_star(self) -> bool:
        pair = self.tokens[self.position : self.position + 2]
        if len(pair) == 2 and all(t.kind == "symbol" and t.text == "*" for t in pair):
            self.position += 2
            return True
        return False

    def raised(self, base: Expression) -> tuple[Expression, bool]:
        """``base`` to the exponent that follows "^", and whether that has no brackets."""
        start = self.position
        exponent = self.script()
        last, after = self.tokens[self.position - 1], self.peek()
        bare = self.tokens[start].text not in BRACKETS
        if after is not None and (after.text == "^" or (after.text == "*" and self.texts(2) == ["*", "*"])):
            raise Unsupported("a power of a power can be read in two ways")
        if bare and after is not None and last.kind == "number":
            if after.text == "/" and last.text == "1":
                raise Unsupported("the end of an exponent is not clear")
            is_e = algebra.same(base, algebra.atom("e"))
            is_joined = after.kind in ("letters", "command") and not after.spaced and self.starts_factor(after)
            if is_joined and (is_e or self.tokens[start].text == "-"):
                raise Unsupported("the end of an exponent is not clear")
        self.after_number = not bare or (after is not None and after.spaced)
        return power(base, exponent), bare

    def script(self) -> Expression:
        """An exponent: braced, parenthesised, a signed number, or one symbol."""
        negative = self.accept("symbol", "-")
        if not negative:
            self.accept("symbol", "+")
        token = self.peek()
        if token is not None and (token.text in FUNCTIONS or token.text in OPERATORS):
            raise Unsupported("a function as an exponent without braces")
        value = self.primary(single_letter=True)
        return algebra.negate(value) if negative else value


def _modulo(a: Expression, n: Expression) -> Expression:
    """``a mod n`` as a number; a value that is already reduced rather names a residue class."""
    x, y = a.rational(), n.rational()
    if x is not None and y is not None and 0 <= x < y:
        raise Unsupported("a residue class")
    return apply("mod", a, n)
