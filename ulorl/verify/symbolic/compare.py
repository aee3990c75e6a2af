"""The comparison that a worker process of the symbolic tier makes.

Both texts are read again here, so that nothing but text crosses the border between processes. What our own
grammar reads is compared as a whole by the same code as in the rules, except that two expressions about which
those are undecided get a second opinion from `prove`. What it cannot read goes through a stricter use of
math-verify's LaTeX parser. Says "equal" or "undecided", never "different": what differs by value has been rejected
by the rules, and a computer algebra system that finds no proof has not found a difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from ulorl.verify.comparison.second_opinion import install
from ulorl.verify.exact.algebra import Expression, Unsupported
from ulorl.verify.grammar.values import Named, Scalar
from ulorl.verify.outcome import Outcome, undecided
from ulorl.verify.policy import Policy
from ulorl.verify.tiers import RULES, Answer, decide, read_answer


def compare_texts(reference: str, answer: str, policy: Mapping[str, Any]) -> tuple[str, str]:
    """Relation and reason; ``policy`` holds fields of `Policy` that JSON can carry."""
    install(_are_equal)
    settings = Policy(**dict(policy) | {"relative_tolerance": Fraction(policy.get("relative_tolerance", 0))})
    a, b = read_answer(reference), read_answer(answer)
    _, outcome = decide(RULES, a, b, settings)
    if outcome.relation == "undecided" and (a.value is None or b.value is None):
        outcome = _compare_latex(a, b)
    return outcome.relation, outcome.reason


def _are_equal(a: Expression, b: Expression) -> bool:
    from ulorl.verify.symbolic.prove import prove
    from ulorl.verify.symbolic.to_sympy import to_sympy

    try:
        return prove(to_sympy(a), to_sympy(b)).relation == "equal"
    except Unsupported:
        return False


def _compare_latex(a: Answer, b: Answer) -> Outcome:
    from ulorl.verify.symbolic.prove import prove

    try:
        return prove(_as_sympy(a), _as_sympy(b))
    except Unsupported as error:
        return undecided(str(error))


def _as_sympy(answer: Answer) -> Any:
    """The expression that an answer states, with or without a name ("S = ...")."""
    from ulorl.verify.symbolic.latex_to_sympy import latex_to_sympy
    from ulorl.verify.symbolic.to_sympy import to_sympy

    value = answer.value.value if isinstance(answer.value, Named) else answer.value
    if isinstance(value, Scalar):
        if value.unit:
            raise Unsupported("a unit on one side only")
        return to_sympy(value.expression)
    if value is not None:
        raise Unsupported("one expression against something else")
    return latex_to_sympy(answer.normal)
