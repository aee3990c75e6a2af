"""Task ``logic``: puzzles of reasoning-gym, scored by its own rules, from 0 to 1.

A row has the columns ``problem``, ``answer`` and ``metadata`` (as `ulorl tasks make` writes them, or as reasoning-gym
gives them), and ``settings`` where the puzzle was made with other than the data set's defaults. The data set is the
metadata's ``source_dataset``. ``answer`` is empty where the data set knows no answer, but scores any.

Invariants: an answer is scored in a worker process with limits on time and memory, which executes none of it;
what kills a worker is an error of that answer alone. Each task of the process has workers of its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ulorl.problem import Problem
from ulorl.recipe import VerifyRecipe
from ulorl.verify.symbolic.pool import Failure, Reply, WorkerPool
from ulorl.verify.symbolic.process import Limits, worker_command
from ulorl.verify.tasks.answers import stated
from ulorl.verify.tasks.base import NO_ANSWER, Attempt, Reward, Task

MAX_WORKERS = 2
MAX_ANSWER = 20_000
"""Characters of an answer; a longer one is wrong."""
WORKER = "ulorl.verify.tasks.puzzles.worker"


class RowError(ValueError):
    """What a row lacks to be a puzzle."""


class LogicTask(Task):
    """See the module."""

    def __init__(self, config: VerifyRecipe) -> None:
        super().__init__(config)
        chosen = config.tasks.logic
        workers = chosen.workers or min(MAX_WORKERS, len(os.sched_getaffinity(0)))
        self._limits = Limits(workers, chosen.seconds, chosen.memory_mib)
        self._pool: WorkerPool | None = None

    def check(self, problem: Problem) -> str | None:
        """A puzzle is broken where its own answer does not score 1, or where its scorer fails."""
        try:
            request = puzzle(problem)
        except RowError as error:
            return str(error)
        from ulorl.verify.tasks.puzzles.library import SettingError, settings_of

        try:
            settings_of(request["dataset"])
        except SettingError as error:
            return str(error)
        (reply,) = self._workers().run([request | {"answer": request["reference"]}])
        if isinstance(reply, Failure):
            return f"the puzzle cannot be scored ({reply.reason})"
        if "value" not in reply:
            return f"the puzzle cannot be scored ({reply.get('fault') or reply.get('raised')})"
        if request["reference"] is not None and reply["value"] < 1:
            return f"its own answer {request['reference'][:60]!r} scores {reply['value']:g}, not 1"
        return None

    def score(self, attempts: Sequence[Attempt]) -> list[Reward]:
        answers = [stated(attempt.response) for attempt in attempts]
        judged = [place for place, answer in enumerate(answers) if answer is not None and len(answer) <= MAX_ANSWER]
        requests = [puzzle(attempts[place].problem) | {"answer": answers[place]} for place in judged]
        replies = dict(zip(judged, self._workers().run(requests) if requests else [], strict=True))
        return [_reward(answer, replies.get(place)) for place, answer in enumerate(answers)]

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _workers(self) -> WorkerPool:
        if self._pool is None:
            from ulorl.verify.tasks.puzzles.library import names

            names()  # a missing package is one message here, not a worker that does not start
            self._pool = WorkerPool(worker_command(WORKER, self._limits), self._limits)
        return self._pool


def puzzle(problem: Problem) -> dict[str, Any]:
    """What the scorer needs of a row. RowError says what is missing."""
    extra = problem.extra
    metadata, settings = _object(extra, "metadata"), _object(extra, "settings")
    name = extra.get("dataset") or metadata.get("source_dataset")
    if not isinstance(name, str):
        raise RowError(
            "no puzzle: the column metadata, with the source_dataset of reasoning-gym, is missing; `ulorl tasks make` "
            "writes such rows"
        )
    return {
        "dataset": name,
        "settings": settings,
        "question": problem.original_problem or problem.problem,
        "reference": problem.answer or None,
        "metadata": metadata,
    }


def _object(extra: Mapping[str, Any], column: str) -> dict[str, Any]:
    """A column that holds an object, also as JSON text."""
    value = extra.get(column)
    if isinstance(value, str) and value.strip():
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise RowError(f"the column {column} is no JSON object ({error})") from error
    if value is None or value == "":
        return {}
    if not isinstance(value, dict):
        raise RowError(f"the column {column} is a {type(value).__name__}, not an object")
    return value


def _reward(answer: str | None, reply: Reply | None) -> Reward:
    if answer is None:
        return Reward(0.0, NO_ANSWER)
    if reply is None:
        return Reward(0.0, "the answer is too long", answer[:MAX_ANSWER])
    if isinstance(reply, Failure):
        return Reward(0.0, reply.reason, answer, error=True)
    if "fault" in reply:
        return Reward(0.0, reply["fault"], answer, error=True)
    if "raised" in reply:
        return Reward(0.0, f"the scorer cannot read it ({reply['raised']})", answer)
    return Reward(reply["value"], f"scored {reply['value']:g}", answer)
