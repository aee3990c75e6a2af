"""Reads ``x \\equiv 3 \\pmod 7`` and ``3 mod 7``."""

from __future__ import annotations

from collections.abc import Sequence

from ulorl.verify.exact.algebra import Unsupported
from ulorl.verify.grammar.expressions import parse_expression
from ulorl.verify.grammar.names import parse_name
from ulorl.verify.grammar.split import commands, is_wrapped, split
from ulorl.verify.grammar.tokens import Token
from ulorl.verify.grammar.values import Congruence

_MOD = frozenset({"mod", "pmod", "bmod", "modulo"})


def parse_congruence(tokens: Sequence[Token]) -> Congruence | None:
    """The congruence that all of ``tokens`` state; None where there is neither \\equiv nor mod."""
    sides, found = split(tokens, commands("equiv"))
    if len(found) > 1:
        raise Unsupported("a chain of congruences")
    residue, modulus = _split_modulus(sides[-1])
    if not found and modulus is None:
        return None
    name = parse_name(sides[0]) if found else ""
    if name is None:
        raise Unsupported("a congruence of something other than a name")
    if not residue:
        raise Unsupported("a congruence without a residue")
    return Congruence(name, parse_expression(residue), None if modulus is None else parse_expression(modulus))


def _split_modulus(tokens: Sequence[Token]) -> tuple[list[Token], list[Token] | None]:
    """What stands before "mod", and the modulus; brackets around ``(mod 7)`` are dropped."""
    for index, token in enumerate(tokens):
        if token.text.lower() not in _MOD or token.kind == "symbol":
            continue
        before, after = list(tokens[:index]), list(tokens[index + 1 :])
        if before and before[-1].text == "(" and after and after[-1].text == ")":
            before, after = before[:-1], after[:-1]
        if is_wrapped(after) and after[0].text == "{":
            after = after[1:-1]
        return before, after
    return list(tokens), None
