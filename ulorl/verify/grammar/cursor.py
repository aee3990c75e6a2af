"""A position in a list of tokens, for recursive-descent parsers."""

from __future__ import annotations

from collections.abc import Sequence

from ulorl.verify.exact.algebra import Unsupported
from ulorl.verify.grammar.tokens import Token


class Cursor:
    """``position`` is the index of the next token."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = list(tokens)
        self.position = 0

    def peek(self, ahead: int = 0) -> Token | None:
        index = self.position + ahead
        return self.tokens[index] if index < len(self.tokens) else None

    def at(self, kind: str, *texts: str) -> bool:
        if self.position >= len(self.tokens):
            return False
        token = self.tokens[self.position]
        return token.text in texts and token.kind == kind

    def accept(self, kind: str, *texts: str) -> bool:
        if self.position >= len(self.tokens):
            return False
        token = self.tokens[self.position]
        if token.text not in texts or token.kind != kind:
            return False
        self.position += 1
        return True

    def take(self) -> Token:
        token = self.peek()
        if token is None:
            raise Unsupported("the expression ends early")
        self.position += 1
        return token

    def expect(self, text: str) -> None:
        if self.take().text != text:
            raise Unsupported(f"missing {text!r}")

    def split_next(self, length: int = 1) -> None:
        """Splits the next token after ``length`` characters, as TeX reads the digits of ``\\frac12``."""
        token = self.tokens[self.position]
        if len(token.text) > length:
            rest = Token(token.kind, token.text[length:])
            self.tokens[self.position : self.position + 1] = [
                Token(token.kind, token.text[:length], token.spaced),
                rest,
            ]

    def texts(self, count: int) -> list[str]:
        """The texts of the next tokens, at most ``count``."""
        return [token.text for token in self.tokens[self.position : self.position + count]]

    def put_back(self, letters: str) -> None:
        """Leaves the last ``letters`` of the token that was just taken to be read next."""
        self.tokens.insert(self.position, Token("letters", letters))
