"""Reads inequalities: as the set they leave to one variable where they are linear in it, else as an `Ordering`.

``2 > x``, ``1 \\le x < 2``, ``-x > -1``, ``|x - 1| \\le 2`` and ``x \\ne 3`` become sets; bounds may hold other
variables where the bounded variable stands alone (``x < a``). ``b < a < c`` stays an ordering.
"""

from __future__ import annotations

from collections.abc import Sequence

from ulorl.verify.comparison.variables import linear
from ulorl.verify.exact import algebra
from ulorl.verify.exact.algebra import Expression, Unsupported
from ulorl.verify.exact.signs import sign
from ulorl.verify.grammar.expressions import parse_expression
from ulorl.verify.grammar.names import parse_name
from ulorl.verify.grammar.scalars import parse_scalar
from ulorl.verify.grammar.split import Separators, commands, symbols
from ulorl.verify.grammar.tokens import Token
from ulorl.verify.grammar.values import Group, Membership, NumberSet, Ordering, Scalar, SetOperation, Value

RELATIONS: Separators = symbols("<>") | commands("le", "ge", "ne", "notin", "leqq", "geqq")
_SPELLED = {("<", "="): "le", (">", "="): "ge", ("!", "="): "ne"}
_MIRROR = {"<": ">", ">": "<", "le": "ge", "ge": "le", "ne": "ne"}
_UNKNOWNS = frozenset("xyztn") | {"theta"}
_BOUNDS = {
    "at least": "ge", "no less than": "ge", "not less than": "ge", "at most": "le", "no more than": "le",
    "not more than": "le", "more than": ">", "greater than": ">", "less than": "<", "fewer than": "<",
}  # fmt: skip
BOUND_WORDS = frozenset(_BOUNDS) | {phrase.split()[0] for phrase in _BOUNDS}
_REALS = NumberSet("R")


def spell_relations(tokens: Sequence[Token]) -> list[Token]:
    """``<=``, ``>=`` and ``!=`` as the commands \\le, \\ge and \\ne."""
    result: list[Token] = []
    for token in tokens:
        pair = (result[-1].text, token.text) if result else ("", "")
        if pair in _SPELLED and token.kind == result[-1].kind == "symbol" and not token.spaced:
            result[-1] = Token("command", _SPELLED[pair], result[-1].spaced)
        else:
            result.append(token)
    return result


def parse_inequality(sides: Sequence[Sequence[Token]], relations: Sequence[str]) -> Value:
    """The set or ordering that ``relations`` between ``sides`` state; raises `Unsupported`."""
    if len(sides) > 12:
        raise Unsupported("too many inequalities")
    position = _bounded(sides)
    if position is not None:
        name = parse_name(sides[position]) or ""
        bounds = [_bound(side) for i, side in enumerate(sides) if i != position]
        if all(name not in bound.expression.variables() for bound in bounds):
            if len(sides) == 2:
                relation = relations[0] if position == 0 else _MIRROR[relations[0]]
                return Membership(name, _half(relation, bounds[0]))
            return Membership(name, _between(bounds, relations))
    absolute = _absolute(sides, relations)
    if absolute is not None:
        return absolute
    items = [parse_expression(side) for side in sides]
    names = {name for item in items for name in item.variables()}
    if len(names) == 1 and len(sides) <= 3 and "ne" not in relations:
        solved = _solved(items, relations, names.pop())
        if solved is not None:
            return solved
    return _ordering(items, relations)


def parse_bound_in_words(tokens: Sequence[Token]) -> Value | None:
    """``at least 3`` as the numbers from 3 on, under no name; None for other tokens."""
    end = next((i for i, token in enumerate(tokens) if token.kind not in ("text", "letters")), len(tokens))
    relation = _BOUNDS.get(" ".join(token.text.lower() for token in tokens[:end]))
    if relation is None or end == len(tokens):
        return None
    return Membership("", _half(relation, _bound(tokens[end:])))


def _bounded(sides: Sequence[Sequence[Token]]) -> int | None:
    """Which side is the variable that the others bound: of several, the one that is named like an unknown."""
    candidates = [i for i, side in enumerate(sides) if _is_variable(side)]
    if len(candidates) > 1:
        candidates = [i for i in candidates if sides[i][0].text in _UNKNOWNS]
    if len(candidates) != 1 or len(sides) > 3 or (len(sides) == 3 and candidates != [1]):
        return None
    return candidates[0]


def _is_variable(side: Sequence[Token]) -> bool:
    name = parse_name(side)
    return name is not None and not name.startswith("(") and "(" not in name


def _bound(side: Sequence[Token]) -> Scalar:
    """A bound with what a scalar keeps beside its value: the digits of a decimal, a unit."""
    try:
        expression = parse_expression(side)
    except Unsupported:
        expression = None
    if expression is not None and not any("." in token.text for token in side):
        return Scalar(expression)
    bound = parse_scalar(side)
    if not isinstance(bound, Scalar):
        raise Unsupported("a bound that is no number")
    return bound


def _half(relation: str, bound: Scalar) -> Value:
    if relation == "ne":
        return SetOperation("difference", (_REALS, Group("{", "}", (bound,))))
    infinity = algebra.atom(algebra.INFINITY)
    if relation in ("<", "le"):
        return Group("(", "]" if relation == "le" else ")", (Scalar(algebra.negate(infinity)), bound))
    return Group("[" if relation == "ge" else "(", ")", (bound, Scalar(infinity)))


def _between(bounds: Sequence[Scalar], relations: Sequence[str]) -> Value:
    low, high = bounds
    first, second = relations
    if "ne" in relations:
        raise Unsupported("a chain with \\ne")
    if first in (">", "ge"):
        low, high, first, second = high, low, _MIRROR[second], _MIRROR[first]
    if first in ("<", "le") and second in ("<", "le"):
        return Group("[" if first == "le" else "(", "]" if second == "le" else ")", (low, high))
    raise Unsupported("two bounds on the same side")


def _absolute(sides: Sequence[Sequence[Token]], relations: Sequence[str]) -> Value | None:
    """``|a x + b| < c`` with constant c > 0 as the set it leaves to x."""
    if len(sides) != 2:
        return None
    position = next((i for i, side in enumerate(sides) if _is_absolute(side)), None)
    if position is None:
        return None
    inner = parse_expression(sides[position][1:-1])
    bound = parse_expression(sides[1 - position])
    relation = relations[0] if position == 0 else _MIRROR[relations[0]]
    names = inner.variables()
    if len(names) != 1 or bound.variables() or relation == "ne" or sign(bound) <= 0:
        return None
    name = names.pop()
    inside = relation in ("<", "le")
    lower = _linear_half(algebra.add(inner, bound), ">" if relation in ("<", ">") else "ge", name)
    upper = _linear_half(algebra.subtract(inner, bound), "<" if relation in ("<", ">") else "le", name)
    if not inside:
        lower = _linear_half(algebra.add(inner, bound), "<" if relation == ">" else "le", name)
        upper = _linear_half(algebra.subtract(inner, bound), relation, name)
    if lower is None or upper is None:
        return None
    return Membership(name, SetOperation("intersection" if inside else "union", (lower, upper)))


def _is_absolute(side: Sequence[Token]) -> bool:
    bars = [i for i, token in enumerate(side) if token.text in ("|", "vert", "lvert", "rvert")]
    return len(bars) == 2 and bars[0] == 0 and bars[1] == len(side) - 1 and len(side) > 2


def _linear_half(difference: Expression, relation: str, name: str) -> Value | None:
    """Where ``difference`` (linear in ``name`` with constant coefficients) has the sign that ``relation`` says."""
    parts = linear(difference, name)
    if parts is None or parts[0].variables() or parts[1].variables():
        return None
    constant, slope = parts
    root = algebra.divide(algebra.negate(constant), slope)
    return _half(relation if sign(slope) > 0 else _MIRROR[relation], Scalar(root))


def _solved(items: Sequence[Expression], relations: Sequence[str], name: str) -> Value | None:
    pieces = [
        _linear_half(algebra.subtract(left, right), relation, name)
        for left, right, relation in zip(items, items[1:], relations, strict=False)
    ]
    found = tuple(piece for piece in pieces if piece is not None)
    if len(found) != len(pieces):
        return None
    return Membership(name, found[0] if len(found) == 1 else SetOperation("intersection", found))


def _ordering(items: Sequence[Expression], relations: Sequence[str]) -> Value:
    """The chain from its smallest end to its largest; raises `Unsupported` where it turns around."""
    if list(relations) == ["ne"]:
        return Ordering(tuple(items), ("!=",))
    if all(relation in (">", "ge") for relation in relations):
        items, relations = list(reversed(items)), [_MIRROR[relation] for relation in reversed(relations)]
    if any(relation not in ("<", "le") for relation in relations):
        raise Unsupported("inequalities in both directions")
    return Ordering(tuple(items), tuple("<=" if relation == "le" else "<" for relation in relations))
