"""Splits tokens at separators that stand outside brackets and environments. Linear time."""

from __future__ import annotations

from collections.abc import Sequence

from ulorl.verify.exact.algebra import Unsupported
from ulorl.verify.grammar.tokens import Token

Separators = frozenset[tuple[str, str]]
OPENERS, CLOSERS = frozenset("([{"), frozenset(")]}")
_OPENING_COMMANDS = frozenset({"langle", "begin", "lfloor", "lceil", "{"})
_CLOSING_COMMANDS = frozenset({"rangle", "end", "rfloor", "rceil", "}"})


_CHANGES = OPENERS | CLOSERS | _OPENING_COMMANDS | _CLOSING_COMMANDS
MAX_NESTING = 40
_BRACKET_KINDS = frozenset({"symbol", "command"})


def depth_change(token: Token) -> int:
    """1 for what opens a bracket or environment, -1 for what closes one."""
    if token.kind == "symbol":
        return (token.text in OPENERS) - (token.text in CLOSERS)
    if token.kind == "command":
        return (token.text in _OPENING_COMMANDS) - (token.text in _CLOSING_COMMANDS)
    return 0


def split(tokens: Sequence[Token], separators: Separators) -> tuple[list[list[Token]], list[str]]:
    """The parts between separators, and the separators in lower case; any closing bracket ends any opening one."""
    part: list[Token] = []
    parts, found = [part], []
    depth = 0
    for token in tokens:
        kind, text, _ = token
        if kind in _BRACKET_KINDS and text in _CHANGES:
            depth += depth_change(token)
            if depth < 0:
                raise Unsupported("unbalanced brackets")
        if depth == 0 and (kind, text.lower()) in separators:
            part = []
            parts.append(part)
            found.append(text.lower())
        else:
            part.append(token)
    if depth:
        raise Unsupported("unbalanced brackets")
    return parts, found


def check_nesting(tokens: Sequence[Token]) -> None:
    """Raises `Unsupported` where brackets and environments are nested more than MAX_NESTING deep."""
    depth = 0
    for token in tokens:
        depth += depth_change(token)
        if depth > MAX_NESTING:
            raise Unsupported("nested too deeply")


def is_wrapped(tokens: Sequence[Token]) -> bool:
    """Whether the first token opens a bracket that the last one closes."""
    if len(tokens) < 2 or depth_change(tokens[0]) != 1:
        return False
    depth = 0
    for position, token in enumerate(tokens):
        depth += depth_change(token)
        if depth == 0:
            return position == len(tokens) - 1
    return False


def commands(*names: str) -> Separators:
    """Commands as separators."""
    return frozenset(("command", name) for name in names)


def symbols(marks: str) -> Separators:
    """Single characters as separators."""
    return frozenset(("symbol", mark) for mark in marks)


def spelling(tokens: Sequence[Token]) -> str:
    """Text that is the same for the same tokens, braces aside."""
    return " ".join(token.text for token in tokens if token.text not in ("{", "}") or token.kind != "symbol")
