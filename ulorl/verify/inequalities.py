"""Reads ``x < 3``, ``1 \\le x < 2`` and ``3 > x`` as intervals of a named variable."""

from __future__ import annotations

from collections.abc import Sequence

from ulorl.verify import algebra
from ulorl.verify.algebra import Expression, Unsupported
from ulorl.verify.expressions import parse_expression
from ulorl.verify.tokens import Token
from ulorl.verify.values import Group, Named, Scalar

RELATIONS = frozenset([("symbol", "<"), ("symbol", ">"), ("command", "le"), ("command", "ge")])


def interval(sides: Sequence[Sequence[Token]], relations: Sequence[str]) -> Named:
    """The interval that the ``relations`` between ``sides`` leave to the variable; raises `Unsupported`."""
    position = next((i for i, side in enumerate(sides) if len(side) == 1 and side[0].kind == "letters"), None)
    if position is None or len(sides) > 3 or (len(sides) == 3 and position != 1):
        raise Unsupported("an inequality that does not bound one variable")
    name = sides[position][0].text
    low, high = algebra.negate(algebra.atom(algebra.INFINITY)), algebra.atom(algebra.INFINITY)
    opening, closing = "(", ")"
    seen: set[str] = set()
    for index, relation in enumerate(relations):
        is_right = index == position  # the bound stands to the right of the variable
        bound = _bound(sides[index + 1 if is_right else index], name)
        end = "high" if (relation in ("<", "le")) == is_right else "low"
        if end in seen:
            raise Unsupported("two bounds on the same side")
        seen.add(end)
        inclusive = relation in ("le", "ge")
        if end == "high":
            high, closing = bound, "]" if inclusive else ")"
        else:
            low, opening = bound, "[" if inclusive else "("
    return Named(f"{name} in", Group(opening, closing, (Scalar(low), Scalar(high))))


def _bound(side: Sequence[Token], name: str) -> Expression:
    expression = parse_expression(side)
    if any(name in atom for atom in expression.atoms()):
        raise Unsupported("an inequality that does not bound one variable")
    return expression
