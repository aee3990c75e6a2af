"""Splits a normalised answer into tokens. Linear time, no meaning attached."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from ulorl.verify.exact.algebra import Unsupported

MAX_TOKENS = 800
_NUMERAL = re.compile(r"\d+(?:\.\d+)?")
Kind = Literal["number", "letters", "text", "command", "symbol", "space"]


class Token(NamedTuple):
    """``spaced`` says that white space came before it; ``text`` of a command has no backslash.

    A numeral in a text command is a number; other text keeps its spaces inside.
    """

    kind: Kind
    text: str
    spaced: bool = False


_TOKEN = re.compile(
    r"\\(?:text|textbf|textit|textrm|textsf|textup|textnormal|mathrm|mathbf|mathit|mathsf|rm|mbox|hbox|operatorname)\*?\s?\{(?P<text>[^{}]*)\}"
    r"|\\(?P<command>[A-Za-z]+|[{}|])"
    r"|(?P<number>\d+(?:\.\d+|\.(?=\\overline))?|\.(?:\d+|(?=\\overline)))"
    r"|(?P<letters>[A-Za-z]+)"
    r"|(?P<space>\s+)"
    r"|(?P<symbol>.)",
    re.DOTALL,
)


def tokenise(text: str) -> list[Token]:
    """Tokens of ``text``; raises `Unsupported` beyond MAX_TOKENS."""
    tokens: list[Token] = []
    spaced = False
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "space":
            spaced = True
            continue
        content = match[kind]  # type: ignore[index]
        if kind == "text":
            content = content.strip()
            if not content:
                spaced = True
                continue
            if _NUMERAL.fullmatch(content):
                kind = "number"
        tokens.append(Token(kind, content, spaced))  # type: ignore[arg-type]
        spaced = False
    if len(tokens) > MAX_TOKENS:
        raise Unsupported("answer too long")
    return tokens


def words(text: str) -> frozenset[str]:
    """The words of ``text``, for tables of names."""
    return frozenset(text.split())
