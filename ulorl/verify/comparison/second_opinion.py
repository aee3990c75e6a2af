"""Where worker processes of the symbolic tier add what a computer algebra system finds out about two expressions.

Everywhere else nothing is installed, and comparisons end with what our own algebra and numerics say. A second
opinion is asked only where they are undecided, and can only be "equal".
"""

from __future__ import annotations

from collections.abc import Callable

from ulorl.verify.exact.algebra import Expression
from ulorl.verify.outcome import EQUAL, Outcome

Prover = Callable[[Expression, Expression], bool]
_provers: list[Prover] = []


def install(prover: Prover) -> None:
    """Lets ``prover`` say whether two expressions are equal, in this process from now on."""
    _provers[:] = [prover]


def second_opinion(a: Expression, b: Expression, outcome: Outcome) -> Outcome:
    """``outcome``, or equal where it is undecided and a prover finds the two equal."""
    if outcome.relation == "undecided" and _provers and _provers[0](a, b):
        return EQUAL
    return outcome
