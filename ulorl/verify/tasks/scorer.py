"""Judges responses to problems of any task: what `Verifier` is to mathematics, with the same interface.

Invariants: one verdict an item, in order, whatever tasks are mixed; a task that raises, or returns what is no reward,
gives an error verdict (its reason begins with `ERROR`) to the attempts concerned and to no other; an unknown task is a
`UserError` that names the row. Rewards of 1 and more are "solved" (``equivalent``), everything else is not.
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ulorl.errors import UserError
from ulorl.problem import MATH, Problem
from ulorl.recipe import VerifyRecipe
from ulorl.verify.tasks.base import NO_ANSWER, Attempt, Reward, Task
from ulorl.verify.tasks.mathematics import MathTask
from ulorl.verify.tasks.registry import load_task, task_names, unknown_task
from ulorl.verify.verdict import ERROR, Item, Verdict
from ulorl.verify.verifier import Verifier

if TYPE_CHECKING:
    from ulorl.verify.judge.tier import JudgeCounts

log = logging.getLogger(__name__)
MAX_REASON = 300
"""Characters of a reason that are kept."""


class Scorer:
    """All tasks behind one ``verify``; each is loaded when its first row comes.

        with Scorer(recipe.verify) as scorer:
            verdicts = scorer.verify([Item.of(problem, response) for problem, response in samples])

    May be called from any thread, and from a forked or spawned process, as `Verifier`.
    """

    def __init__(self, config: VerifyRecipe) -> None:
        self._config = config
        self._math = MathTask(config)
        self._tasks: dict[str, Task] = {MATH: self._math}

    def __reduce__(self) -> tuple[type[Scorer], tuple[Any, ...]]:
        return Scorer, (self._config,)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends what tasks have started."""
        for task in list(self._tasks.values()):
            task.close()

    @property
    def judge_counts(self) -> JudgeCounts | None:
        """As that of `Verifier`."""
        return self._math.verifier.judge_counts

    @property
    def mathematics(self) -> Verifier:
        """What judges the task `math`."""
        return self._math.verifier

    def check(self, problem: Problem) -> str | None:
        """Why nothing can be judged against ``problem``: an unknown task, or what its task finds wrong with it.

        UserError where the task cannot be used at all (a package is missing).
        """
        if problem.task not in self._tasks and problem.task not in task_names():
            return unknown_task(problem.task)
        try:
            return self._task(problem.task).check(problem)
        except UserError:
            raise
        except Exception as error:  # a task of somebody's own
            return f"task {problem.task} cannot check it: {type(error).__name__}: {error}"

    def prompted(self, problems: Sequence[Problem]) -> list[Problem]:
        """The problems with the texts that a model is shown in ``problem``; ids stay. UserError names the row."""
        found = []
        for problem in problems:
            if problem.task not in self._tasks and problem.task not in task_names():
                raise UserError(f"{named(problem)}: {unknown_task(problem.task)}")
            try:
                text = self._task(problem.task).prompt(problem)
            except UserError:
                raise
            except Exception as error:  # a row that `check` finds broken, or a task of somebody's own
                raise UserError(f"{named(problem)}, task {problem.task}: {error or type(error).__name__}") from error
            found.append(problem if text == problem.problem else replace(problem, problem=text))
        return found

    def verify(self, items: Sequence[Item]) -> list[Verdict]:
        """One verdict an item, in the same order."""
        places: dict[str, list[int]] = defaultdict(list)
        for place, item in enumerate(items):
            places[MATH if item.row is None else item.row.task].append(place)
        found: dict[int, Verdict] = {}
        for name, own in places.items():
            chosen = [items[place] for place in own]
            verdicts = self._math.verifier.verify(chosen) if name == MATH else self._judge(name, chosen)
            found.update(zip(own, verdicts, strict=True))
        return [found[place] for place in range(len(items))]

    def _task(self, name: str) -> Task:
        if name not in self._tasks:
            self._tasks.setdefault(name, load_task(name, self._config))
        return self._tasks[name]

    def _judge(self, name: str, items: Sequence[Item]) -> list[Verdict]:
        rows = [item.row for item in items if item.row is not None]
        try:
            task = self._task(name)
        except UserError as error:
            raise UserError(f"{named(rows[0])}: {error}") from error
        attempts = [Attempt(row, _response(item, task)) for row, item in zip(rows, items, strict=True)]
        rewards = _rewards(name, task, attempts)
        return [_verdict(name, reward, one.response) for reward, one in zip(rewards, attempts, strict=True)]


def _response(item: Item, task: Task) -> str:
    """A bare answer is marked as what it is, for a task that looks for one."""
    return f"<answer>{item.response}</answer>" if item.is_answer and task.extracts else item.response


def named(problem: Problem) -> str:
    """A problem as messages name it."""
    place = ", ".join(filter(None, [problem.source, problem.source_id]))
    return f"problem {problem.id}" + (f" ({place})" if place else "")


def _rewards(name: str, task: Task, attempts: Sequence[Attempt]) -> list[Reward]:
    """What the task says; of attempts that it fails on together, those that it fails on alone are errors."""
    try:
        rewards = task.score(attempts)
        assert len(rewards) == len(attempts), f"{len(rewards)} rewards for {len(attempts)} attempts"
        return list(rewards)
    except Exception as error:
        if len(attempts) > 1:
            return [reward for attempt in attempts for reward in _rewards(name, task, [attempt])]
        log.warning("task %s failed on %s: %s", name, named(attempts[0].problem), error)
        return [Reward(0.0, f"{type(error).__name__}: {error}", error=True)]


def _verdict(name: str, reward: Reward, response: str) -> Verdict:
    fault = _fault(reward)
    reason = _printable(str(fault or reward.reason))[:MAX_REASON]
    if fault is None and reward.reason == NO_ANSWER:
        return Verdict(None, None, name, NO_ANSWER, 0.0)
    answer = _printable(response if fault is not None or reward.answer is None else reward.answer)
    if fault is not None or reward.error:
        return Verdict(None, answer, name, f"{ERROR}: {reason}", 0.0)
    return Verdict(reward.value >= 1, answer, name, reason, float(reward.value))


def _fault(reward: object) -> str | None:
    if not isinstance(reward, Reward):
        return f"the task returned a {type(reward).__name__}, not a Reward"
    if not isinstance(reward.value, int | float) or not math.isfinite(reward.value) or not 0 <= reward.value <= 1:
        return f"the task returned {reward.value!r}, not a reward from 0 to 1"
    if reward.answer is not None and not isinstance(reward.answer, str):
        return f"the task returned a {type(reward.answer).__name__} as the answer, not a text"
    return None


def _printable(text: str) -> str:
    """Lone surrogates, which no file here can hold, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()
