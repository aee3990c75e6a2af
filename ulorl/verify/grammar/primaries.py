"""The operands of the grammar of expressions: numerals, variables, brackets, roots, fractions and named commands.

`expressions` adds the operators between them. Every method takes exactly the tokens it understands, or raises
`Unsupported`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction

from ulorl.verify.exact import algebra
from ulorl.verify.exact.algebra import Expression, Unsupported
from ulorl.verify.exact.functions import apply
from ulorl.verify.exact.powers import power, root
from ulorl.verify.grammar import operators
from ulorl.verify.grammar.calls import call_function, call_unknown
from ulorl.verify.grammar.cursor import Cursor
from ulorl.verify.grammar.tokens import Token
from ulorl.verify.grammar.vocabulary import (
    ACCENTS,
    BRACKETS,
    DIFFERENTIALS,
    FENCE_SYMBOLS,
    FENCES,
    FUNCTIONS,
    GREEK,
    ONLY_AS_COMMANDS,
    OPERATORS,
)

MAX_DIGITS = 4000
MAX_DEPTH = 60


def parse_number(text: str) -> Fraction:
    """A decimal numeral as an exact rational."""
    if len(text) > MAX_DIGITS:
        raise Unsupported("number too large")
    if text.isdigit():
        return Fraction(int(text))
    whole, _, decimals = text.partition(".")
    return Fraction(int((whole or "0") + decimals), 10 ** len(decimals))


class Primaries(Cursor, ABC):
    """``bound`` are the variables of the sums around; they may be called i or e."""

    def __init__(self, tokens: Sequence[Token], bound: frozenset[str] = frozenset(), depth: int = 0) -> None:
        super().__init__(tokens)
        self.bound = bound
        self.depth = depth
        self.open_bars = [0]
        """Opening bars without their closing ones, for each bracket that is open."""
        self.has_infinity = False
        self.after_number = False
        """Whether a numeral may follow the last factor as the next one: after n! and a closed exponent."""

    @abstractmethod
    def sum_over(self) -> Expression:
        """A sum or a quotient with ``\\over``."""

    @abstractmethod
    def sum(self) -> Expression: ...

    @abstractmethod
    def product(self) -> Expression: ...

    @abstractmethod
    def factor(self) -> Expression:
        """A primary with its postfix operators."""

    @abstractmethod
    def script(self) -> Expression:
        """An exponent or the base of a logarithm."""

    @abstractmethod
    def raised(self, base: Expression) -> tuple[Expression, bool]: ...

    @abstractmethod
    def starts_factor(self, token: Token) -> bool: ...

    @abstractmethod
    def nested(self, tokens: Sequence[Token], bound: str | None = None) -> Expression:
        """A part that is parsed on its own; ``bound`` is a variable that it binds."""

    def group(self, opening: str, *, is_argument: bool = False) -> Expression:
        """What is inside brackets that were just opened, and the closing one."""
        self.open_bars.append(0)
        start = self.position
        inner = self.sum_over()
        if opening == "[" and not is_argument and self.position == start + 1 and self.tokens[start].kind != "number":
            raise Unsupported("square brackets around one symbol")
        self.expect(BRACKETS[opening])
        self.open_bars.pop()
        return inner

    def fenced(self, opening: str) -> Expression:
        """Inside of a floor, ceiling or \\lvert that was just opened."""
        closing, name = FENCES[opening]
        self.open_bars.append(0)
        inner = self.sum()
        token = self.take()
        if FENCE_SYMBOLS.get(token.text, token.text) != closing:
            raise Unsupported(f"missing {closing!r}")
        self.open_bars.pop()
        return apply(name, inner)

    def bars(self) -> Expression:
        """An absolute value whose opening bar was just taken. Bars that could pair up in two ways are refused."""
        self.open_bars[-1] += 1
        inner = self.sum()
        if not (self.accept("symbol", "|") or self.accept("command", "vert", "mid")):
            raise Unsupported("missing '|'")
        self.open_bars[-1] -= 1
        token = self.peek()
        if token is not None:
            later = any(t.text in ("|", "vert", "mid") for t in self.tokens[self.position + 1 :])
            is_bar = token.text in ("|", "vert", "mid")
            joined = self.starts_factor(token) and not is_bar
            if (joined and later) or (is_bar and self.open_bars[-1] and later):
                raise Unsupported("bars that can be paired in two ways")
        return apply("abs", inner)

    def primary(self, *, single_letter: bool = False) -> Expression:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unsupported("nested too deeply")
        value = self.symbol(self.take(), single_letter)
        self.depth -= 1
        return value

    def symbol(self, token: Token, single_letter: bool) -> Expression:
        """The primary that starts with a token that was just taken."""
        text = token.text
        if token.kind == "number":
            return self.numeral(token)
        if token.kind == "symbol" and text in BRACKETS:
            return self.group(text)
        if text == "|" or (token.kind == "command" and text in ("vert", "mid")):
            return self.bars()
        if token.kind == "letters":
            return self.letters(text, single_letter)
        if token.kind == "text":
            if text in FUNCTIONS:
                return call_function(self, text)
            if len(text) == 1 and text.isalpha():
                return self.variable(text)
        if token.kind == "symbol" and text in FENCE_SYMBOLS:
            return self.fenced(FENCE_SYMBOLS[text])
        if token.kind == "command":
            return self.command(text)
        raise Unsupported(f"unexpected {text!r}")

    def numeral(self, token: Token) -> Expression:
        value = algebra.number(parse_number(token.text))
        if "." not in token.text or not self.accept("command", "overline"):
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
        """A name that is known, or a product of at most three variables."""
        if text in FUNCTIONS and (text not in ONLY_AS_COMMANDS or (text in ("Re", "Im") and self.at("symbol", "("))):
            return call_function(self, text)
        if text in ("sqrt", "cbrt"):
            return self.plain_root(3 if text == "cbrt" else 2)
        if text == "pi":
            return algebra.atom("pi")
        if text in ("oo", "infty", "infinity"):
            return self.infinity()
        if text in GREEK and len(text) > 2:
            return self.variable(f"\\{text}")
        if text[:-1] in FUNCTIONS and text[:-1] not in ONLY_AS_COMMANDS:
            self.put_back(text[-1])
            return call_function(self, text[:-1])
        if len(text) == 3 and "pi" in (text[1:], text[:2]):
            first, last = (text[0], "pi") if text.endswith("pi") else ("pi", text[2])
            self.put_back(last)
            return algebra.multiply(self.variable_or_pi(first), self.factor())
        if (text[1:] in FUNCTIONS and text[1:] not in ONLY_AS_COMMANDS) or text[1:] == "sqrt":
            self.put_back(text[1:])
            return algebra.multiply(self.variable(text[0], scripts=False), self.factor())
        if len(text) > 3 or (single_letter and len(text) > 1):
            raise Unsupported(f"the word {text!r} in an expression")
        if text in DIFFERENTIALS:
            raise Unsupported("a differential")
        if single_letter:
            return self.variable(text, scripts=False)
        result = algebra.number(1)
        for letter in text[:-1]:
            result = algebra.multiply(result, self.variable(letter, scripts=False))
        # In ``xy^2`` the exponent belongs to y alone, so it is applied here.
        final = self.variable(text[-1])
        if len(text) > 1 and self.accept("symbol", "^"):
            final, _ = self.raised(final)
        return algebra.multiply(result, final)

    def infinity(self) -> Expression:
        self.has_infinity = True
        return algebra.atom(algebra.INFINITY)

    def variable(self, name: str, *, scripts: bool = True) -> Expression:
        """A variable with its subscript and primes; i and e where no sum binds them."""
        if name in ("i", "e") and name not in self.bound and not self.at("symbol", "_"):
            return algebra.imaginary() if name == "i" else algebra.atom("e")
        exponent: Expression | None = None
        if scripts:
            if self.accept("symbol", "_"):
                name = f"{name}_{self.subscript()}"
            elif self.at("symbol", "^") and self.follows_exponent("_"):
                self.position += 1
                exponent = self.script()
                self.expect("_")
                name = f"{name}_{self.subscript()}"
            while self.accept("symbol", "'"):
                name += "'"
            if self.is_called(name):
                return call_unknown(self, name)
            if name in ("f", "g") and self.at("symbol", "^") and self.follows_exponent("("):
                raise Unsupported("a power of a function")
        variable = algebra.atom(name)
        return variable if exponent is None else power(variable, exponent)

    def is_called(self, name: str) -> bool:
        """Whether brackets after a name hold the argument of a function that the problem defines, not a factor.

        They do after f, g and what has a prime, and where they hold one number or name, as in F(5) or phi(n).
        """
        if not self.at("symbol", "("):
            return name[-1] == "'" and name[0] in "fg"
        if name.rstrip("'") in ("f", "g", "\\zeta", "\\Gamma") or name[-1] == "'":
            return True
        texts = self.texts(3)
        return texts[2:] == [")"] and texts[1][-1].isalnum()

    def follows_exponent(self, text: str) -> bool:
        """Whether ``text`` stands after the exponent whose ``^`` is next, as in ``x^{2}_{1}``."""
        depth = 0
        for index in range(self.position + 1, len(self.tokens)):
            depth += {"{": 1, "}": -1}.get(self.tokens[index].text, 0)
            if depth <= 0:
                return index + 1 < len(self.tokens) and self.tokens[index + 1].text == text
        return False

    def subscript(self) -> str:
        tokens = [self.take()]
        if tokens[0].text == "{":
            tokens = []
            depth = 1
            while True:
                token = self.take()
                depth += {"{": 1, "}": -1}.get(token.text, 0)
                if not depth:
                    break
                tokens.append(token)
        text = " ".join(token.text for token in tokens)
        if not text or any(character in text for character in ";#@*()"):
            raise Unsupported("an unusual subscript")
        return text

    def command(self, name: str) -> Expression:
        if name == "frac":
            return self.fraction()
        if name in ("sqrt", "surd"):
            return self.plain_root(2) if name == "surd" else self.root()
        if name == "pi":
            return algebra.atom("pi")
        if name == "infty":
            return self.infinity()
        if name in GREEK:
            return self.variable(f"\\{name}")
        if name in FUNCTIONS:
            return call_function(self, name)
        if name in ("binom", "dbinom", "tbinom"):
            return apply("binomial", self.argument(), self.argument())
        if name in FENCES:
            return self.fenced(name)
        if name in OPERATORS:
            return operators.operator(self, name)
        if name in ACCENTS:
            return self.variable(f"{name} {self.accented(several='arrow' in name)}")
        if name in ("overline", "bar"):
            return self.conjugate()
        raise Unsupported(f"\\{name}")

    def accented(self, *, several: bool) -> str:
        """The one letter under an accent, or the letters under an arrow."""
        braced = self.accept("symbol", "{")
        token = self.take()
        is_greek = token.kind == "command" and token.text in GREEK
        if not is_greek and not (token.text.isalpha() and (several or len(token.text) == 1)):
            raise Unsupported("an accent over several letters")
        if braced:
            self.expect("}")
        return token.text

    def conjugate(self) -> Expression:
        inside = self.peek(1) if self.at("symbol", "{") else self.peek()
        is_alone = (inside is not None and self.texts(3)[2:] in (["}"], [])) or not self.at("symbol", "{")
        if inside is None or (is_alone and (inside.kind == "number" or len(inside.text) > 1)):
            raise Unsupported("a bar over letters or digits")
        return apply("conj", self.argument())

    def fraction(self) -> Expression:
        derivative = operators.derivative(self)
        if derivative is not None:
            return derivative
        numerator = self.argument()
        return algebra.divide(numerator, self.argument())

    def argument(self) -> Expression:
        """One LaTeX argument: a group, one digit, one letter or one command."""
        token = self.peek()
        if token is None:
            raise Unsupported("the expression ends early")
        if token.kind == "symbol" and token.text == "{":
            self.position += 1
            return self.group("{")
        if token.kind == "letters" or (token.kind == "number" and token.text.isdigit()):
            self.split_next()
            self.position += 1
            if token.kind == "letters":
                return self.variable(token.text[0], scripts=False)
            return algebra.number(int(token.text[0]))
        if token.kind == "command" or (token.kind == "text" and len(token.text) == 1):
            if token.text in FUNCTIONS or token.text in OPERATORS:
                raise Unsupported(f"\\{token.text} as an argument")
            return self.primary(single_letter=True)
        raise Unsupported(f"unexpected {token.text!r} as an argument")

    def root(self) -> Expression:
        """After ``\\sqrt``."""
        index = algebra.number(2)
        if self.accept("symbol", "["):
            index = self.sum()
            self.expect("]")
        token = self.peek()
        if token is not None and token.kind == "symbol" and token.text == "(":
            self.position += 1
            return root(index, self.group("("))
        if token is not None and token.kind in ("number", "letters") and len(token.text) > 1:
            raise Unsupported("a root of several digits without braces")
        return root(index, self.argument())

    def plain_root(self, index: int) -> Expression:
        """After ``sqrt`` or a root sign in plain text: of a bracket, a whole number, or one letter."""
        token = self.take()
        if token.kind == "symbol" and token.text in BRACKETS:
            inner = self.group(token.text)
        elif token.kind == "number" or (token.kind == "letters" and len(token.text) == 1) or token.text == "pi":
            inner = self.numeral(token) if token.kind == "number" else self.variable_or_pi(token.text)
            after = self.peek()
            if after is not None and after.text in ("^", "!", "_"):
                raise Unsupported("the end of a root is not clear")
            if after is not None and not after.spaced and after.text != "i" and self.starts_factor(after):
                raise Unsupported("the end of a root is not clear")
        elif token.kind == "command" and token.text == "frac":
            inner = self.fraction()
        else:
            raise Unsupported("the end of a root is not clear")
        return root(algebra.number(index), inner)

    def variable_or_pi(self, text: str) -> Expression:
        return algebra.atom("pi") if text == "pi" else self.variable(text, scripts=False)
