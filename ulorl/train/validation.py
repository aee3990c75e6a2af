"""Validation while training: problems that are never trained on, sampled with the weights as they are.

Invariants:
- seeds follow from problem and sample alone: two validations of the same weights are equal, and differences between
  validations are differences between policies;
- pools, the data cursor and the seeds of training are not touched;
- every rank has the figures of all of them, so that whatever is decided by a validation is decided alike.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ulorl.engine.base import Engine, Generation, GenerationRequest, Sampling
from ulorl.engine.prompts import Prompter
from ulorl.problem import SAMPLE_SCHEMA, Problem
from ulorl.recipe import Recipe
from ulorl.sampling import generated_columns, verdict_columns
from ulorl.seeds import derive_seed
from ulorl.train.ranks import Ranks
from ulorl.train.rewards import Rewards, is_error
from ulorl.train.rollout import reward_of
from ulorl.verify import Item

VALIDATIONS = "validation"
"""Folder of the samples of each validation, in the directory of a run."""


@dataclass(frozen=True)
class Validation:
    """One validation, of all ranks together. ``table``: this rank's samples, SAMPLE_SCHEMA."""

    step: int
    average: float
    stderr: float | None
    by_task: dict[str, float]
    truncated_share: float
    error_share: float
    length_mean: float
    seconds: float
    table: pa.Table

    @property
    def metrics(self) -> dict[str, float]:
        """Under the names of ``ulorl.report.metrics``."""
        return {
            **{f"validation/{task}": average for task, average in self.by_task.items()},
            "validation/avg": self.average,
            **({} if self.stderr is None else {"validation/stderr": self.stderr}),
            "validation/truncated_share": self.truncated_share,
            "validation/error_share": self.error_share,
            "validation/length_mean": self.length_mean,
            "time/validation_s": self.seconds,
        }

    def __str__(self) -> str:
        error = "" if self.stderr is None else f" ± {self.stderr:.4f}"
        several = self.by_task if len(self.by_task) > 1 else {}
        tasks = "".join(f", {task} {average:.4f}" for task, average in several.items())
        cut = f", {self.truncated_share:.1%} truncated" if self.truncated_share else ""
        failed = f", the verifier failed on {self.error_share:.1%}" if self.error_share else ""
        return f"validation after step {self.step}: {self.average:.4f}{error}{tasks}{cut}{failed}"


@dataclass(frozen=True)
class _Scored:
    """One sample of the problem with this number."""

    problem: int
    reward: float
    length: int
    truncated: bool
    error: bool


class Validator:
    """Samples and scores the validation problems, each rank its part of them."""

    def __init__(
        self, recipe: Recipe, problems: Sequence[Problem], *, engine: Engine, prompter: Prompter, rewards: Rewards
    ) -> None:
        self.problems, self.seed = problems, recipe.seed
        self._engine, self._prompter, self._rewards = engine, prompter, rewards
        settings, train = recipe.train.validation, recipe.train
        self._every, self._samples = settings.every, settings.samples
        # One for all phases: a limit that changes would change the average by itself.
        self.max_tokens = settings.max_tokens or train.longest_trained
        temperature = settings.temperature or train.rollout.temperature
        self._sampling = Sampling(temperature, settings.top_p, settings.top_k)

    def due(self, step: int) -> bool:
        """Whether there is a validation after ``step``; 0 is before the first."""
        return bool(self._every) and step % self._every == 0

    def run(self, step: int, ranks: Ranks) -> Validation:
        """Validate the weights that the engine holds."""
        started = time.perf_counter()
        scored, table = self._sample(ranks)
        everything = [one for part in ranks.gather(scored) for one in part]
        sum_P = np.zeros(len(self.problems))
        for one in everything:
            sum_P[one.problem] += one.reward
        seconds = max(ranks.gather(time.perf_counter() - started))
        return _summary(step, self.problems, sum_P / self._samples, everything, seconds, table)

    def _sample(self, ranks: Ranks) -> tuple[list[_Scored], pa.Table]:
        """This rank's samples, scored."""
        asked = [
            (number, index, derive_seed(self.seed, "validation", self.problems[number].id, index))
            for number in range(len(self.problems))
            if ranks.owns(number)
            for index in range(self._samples)
        ]
        requests = [
            GenerationRequest(
                id=f"validation.{number}.{index}",
                prompt_ids=self._prompter.encode(self.problems[number].problem),
                max_tokens=self.max_tokens,
                seed=seed,
                sampling=self._sampling,
            )
            for number, index, seed in asked
        ]
        numbers = {request.id: number for request, (number, _, _) in zip(requests, asked, strict=True)}

        texts = dict[str, str]()

        def judge(generation: Generation) -> None:
            texts[generation.id] = text = self._prompter.decode(generation.token_ids)
            self._rewards.submit(generation.id, Item.of(self.problems[numbers[generation.id]], text))

        generations = self._engine.generate(requests, judge) if requests else []
        verdicts = self._rewards.collect()
        scored, rows = [], []
        for generation, (number, index, seed) in zip(generations, asked, strict=True):
            verdict = verdicts[generation.id]
            reward = reward_of(verdict, generation.finish_reason)
            cut = generation.finish_reason == "length"
            scored.append(_Scored(number, reward, len(generation.token_ids), cut, is_error(verdict)))
            rows.append(
                {
                    "problem_id": self.problems[number].id,
                    "sample_index": index,
                    "seed": seed,
                    **generated_columns(generation, texts[generation.id]),
                    **verdict_columns(verdict, reward),
                }
            )
        return scored, pa.Table.from_pylist(rows, SAMPLE_SCHEMA)


def _summary(
    step: int,
    problems: Sequence[Problem],
    average_P: NDArray[np.float64],
    scored: Sequence[_Scored],
    seconds: float,
    table: pa.Table,
) -> Validation:
    """Figures of problems' averages; the standard error is over problems, which their samples are no substitute for."""
    tasks = np.array([problem.task for problem in problems])
    count = len(problems)
    return Validation(
        step=step,
        average=float(average_P.mean()),
        stderr=float(average_P.std(ddof=1) / np.sqrt(count)) if count > 1 else None,
        by_task={task: float(average_P[tasks == task].mean()) for task in sorted(set(tasks.tolist()))},
        truncated_share=sum(one.truncated for one in scored) / len(scored),
        error_share=sum(one.error for one in scored) / len(scored),
        length_mean=sum(one.length for one in scored) / len(scored),
        seconds=seconds,
        table=table,
    )
