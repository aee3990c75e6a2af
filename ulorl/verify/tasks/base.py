"""What a task is: a small object that turns a problem and a response into a reward in [0, 1], with a reason.

Invariants of every task: one reward an attempt, in order; a reward depends on the problem and the response alone, not
on the other attempts, the process or the time; nothing a response contains is executed in this process, or ends it.
What a task raises, and what is no reward, is turned into an error of that attempt by whoever calls it
(`ulorl.verify.tasks.scorer`), so a task need not catch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from ulorl.problem import Problem

if TYPE_CHECKING:
    from ulorl.recipe import VerifyRecipe

NO_ANSWER = "no_answer"
"""Reason of a response in which there is nothing to judge; such responses are counted apart."""


class Attempt(NamedTuple):
    """One response to one problem."""

    problem: Problem
    response: str


@dataclass(frozen=True)
class Reward:
    """``value`` is from 0 (wrong) to 1 (solved); anything below 1 counts as not solved where only that is asked.

    ``answer`` is the part of the response that was judged, for people and for majority votes (equal texts are one
    vote); None: all of it. ``error``: the task failed, not the response; it counts as 0, apart from the wrong ones.
    """

    value: float
    reason: str = ""
    answer: str | None = None
    error: bool = False


class Task(ABC):
    """A task as `ulorl.verify.tasks.registry` finds it; made once a process and kept.

    May be called from several threads at once, and is made anew in another process. Everything heavy is imported and
    started when it is first needed, not in ``__init__``.
    """

    extracts: ClassVar[bool] = True
    """Whether an answer is looked for in a response, so that a bare answer comes in an answer tag. Without, a bare
    answer is the response."""

    def __init__(self, config: VerifyRecipe) -> None:
        self.config = config

    def check(self, problem: Problem) -> str | None:
        """Why nothing can be judged against ``problem`` (a missing test, a broken puzzle); None where it is sound."""
        return None

    def prompt(self, problem: Problem) -> str:
        """The text of the problem that a model is shown; depends on the problem alone."""
        return problem.problem

    @abstractmethod
    def score(self, attempts: Sequence[Attempt]) -> list[Reward]:
        """One reward an attempt, in order. Problems are sound ones (``check``)."""

    def close(self) -> None:  # noqa: B027 - most tasks have nothing to end
        """End worker processes, if there are any; they start again when they are needed."""
