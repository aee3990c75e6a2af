"""Task ``math``: is the final answer equivalent to the reference? The verifier, as a task."""

from __future__ import annotations

from collections.abc import Sequence

from ulorl.problem import Problem
from ulorl.recipe import VerifyRecipe
from ulorl.verify.tasks.base import Attempt, Reward, Task
from ulorl.verify.verdict import Item
from ulorl.verify.verifier import Verifier


class MathTask(Task):
    """1 where the verifier finds the answers equivalent; an undecided verdict is 0, with its reason."""

    def __init__(self, config: VerifyRecipe) -> None:
        super().__init__(config)
        self.verifier = Verifier(config)

    def check(self, problem: Problem) -> str | None:
        fault = self.verifier.check_reference(problem.answer)
        return None if fault is None else f"the reference {problem.answer[:60]!r} cannot be verified ({fault})"

    def score(self, attempts: Sequence[Attempt]) -> list[Reward]:
        verdicts = self.verifier.verify([Item.of(*attempt) for attempt in attempts])
        return [Reward(verdict.reward, verdict.reason or verdict.rule, verdict.answer) for verdict in verdicts]

    def close(self) -> None:
        self.verifier.close()
