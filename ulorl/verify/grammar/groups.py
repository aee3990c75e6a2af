"""Reads brackets around several values: tuples, intervals, lists, vectors, and sets by elements or by condition."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ulorl.verify.exact.algebra import Unsupported
from ulorl.verify.grammar.conditions import parse_condition
from ulorl.verify.grammar.names import parse_name
from ulorl.verify.grammar.split import CLOSERS, OPENERS, commands, is_wrapped, split, symbols
from ulorl.verify.grammar.tokens import Token
from ulorl.verify.grammar.values import (
    Alternatives,
    Conditioned,
    Equation,
    Group,
    Listing,
    Membership,
    Named,
    NumberSet,
    SetOperation,
    Value,
)

ParseTokens = Callable[[Sequence[Token]], Value]
_BARS = symbols("|:") | commands("mid", "vert")


def parse_group(tokens: Sequence[Token], parse_item: ParseTokens) -> Value | None:
    """Brackets around the whole that hold a comma, or braces of a set; None for mere parentheses."""
    if len(tokens) > 3 and tokens[0].text == "Matrix" and is_wrapped(tokens[1:]) and tokens[1].text == "(":
        return parse_group(tokens[2:-1], parse_item)
    if not is_wrapped(tokens):
        return None
    first, last = tokens[0], tokens[-1]
    if first.text not in OPENERS | {"langle"} or last.text not in CLOSERS | {"rangle"}:
        return None
    inner = tokens[1:-1]
    is_set = first.kind == "command" and first.text == "{"
    if is_set and not inner:
        return Group("{", "}", ())
    parts, found = split(inner, symbols(",;"))
    if is_set or (first.text == "{" and len(split(inner, commands("mid") | symbols("|"))[1]) == 1):
        built = _set_builder(inner, parse_item)
        if built is not None:
            return built
    if not found and not is_set and first.text not in ("langle", "["):
        return None
    if any(not part for part in parts):
        raise Unsupported("an empty item in brackets")
    if not found and not is_set and not (first.text == "langle" or (inner[0].text == "[" and is_wrapped(inner))):
        return None
    if any(len(part) == 1 and _may_be_thousands(part[0]) for part in parts[1:]):
        raise Unsupported("a thousands separator or a list")
    items = tuple(item for part in parts for item in _flat(parse_item(part)))
    return Group(first.text, last.text, items)


def _may_be_thousands(token: Token) -> bool:
    """``(1,000)`` may be a thousand in brackets."""
    return len(token.text) == 3 and token.text.isdigit() and token.text.startswith("0") and not token.spaced


def _flat(value: Value) -> tuple[Value, ...]:
    """The values of a plus-minus, or the value itself."""
    if isinstance(value, Alternatives):
        return _flat(value.readings[0])
    return value.items if isinstance(value, Listing) else (value,)


def _set_builder(inner: Sequence[Token], parse_item: ParseTokens) -> Value | None:
    """``x | 1 < x < 2`` and ``x \\in \\mathbb{R} : x > 1`` as the set; None where there is no single bar."""
    # The two modules call each other: a condition may be a list, whose items may be groups.
    from ulorl.verify.grammar.lists import parse_list

    sides, bars = split(inner, _BARS)
    if len(bars) != 1 or not sides[0] or not sides[1]:
        return None
    members, found = split(sides[0], commands("in"))
    name = parse_name(members[0])
    base = parse_item([Token("text", "x"), Token("command", "in"), *members[1]]) if len(found) == 1 else None
    condition = parse_condition(sides[1])
    if condition is not None and not found and condition.names != (name,):
        return Conditioned(Group("{", "}", _flat(parse_item(sides[0]))), (condition,))
    if name is None:
        raise Unsupported("a set given by a condition")
    within = _within(parse_list(sides[1]), name)
    if isinstance(base, Membership) and base.within != NumberSet("R"):
        return SetOperation("intersection", (base.within, within))
    return within


def _within(condition: Value, name: str) -> Value:
    if isinstance(condition, Conditioned):
        return Conditioned(_within(condition.value, name), condition.conditions)
    if isinstance(condition, Membership) and condition.name == name:
        return condition.within
    if isinstance(condition, Equation) and condition.difference.variables() == {name}:
        return condition
    items = condition.items if isinstance(condition, Listing) and condition.joiner != "and" else (condition,)
    values = tuple(item.value for item in items if isinstance(item, Named) and item.name == name)
    if len(values) != len(items):
        raise Unsupported("a set given by a condition")
    return Group("{", "}", values)
