"""What goes into the verifier, and into the other tasks, and what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from ulorl.problem import Problem

ERROR = "reward error"
"""How the reason of a verdict begins where whatever judges failed, not the answer."""


@dataclass(frozen=True)
class Item:
    """One thing to judge: is the final answer of ``response`` equivalent to ``reference``?

    ``is_answer`` says that ``response`` is the bare final answer, not a text to extract one from.
    ``policy`` holds settings of `Policy` for this item alone. ``row`` is the whole problem, which tasks other than
    mathematics judge by (`ulorl.verify.tasks.scorer`); without it an item is mathematics.
    """

    reference: str
    response: str
    problem: str | None = None
    is_answer: bool = False
    policy: Mapping[str, Any] | None = None
    row: Problem | None = None

    @classmethod
    def of(cls, problem: Problem, response: str) -> Self:
        """A response to a problem of any task."""
        return cls(problem.answer, response, problem.problem, row=problem)


@dataclass(frozen=True)
class Verdict:
    """``equivalent`` is None when undecided, with the ``reason``; ``rule`` names what decided.

    Callers that need a reward count None apart: it is never silently "wrong". A task that gives parts of a reward has
    ``score``, from 0 to 1; ``equivalent`` is then whether it is 1.
    """

    equivalent: bool | None
    answer: str | None
    rule: str
    reason: str = ""
    score: float | None = None

    @property
    def reward(self) -> float:
        """``score``, or without one 1 where ``equivalent`` and 0 elsewhere."""
        return float(self.equivalent is True) if self.score is None else self.score
