"""Segment-rollout reinforcement learning: UloRL's Algorithm 1, step by step.

A step: new prompts enter the unfinished pool; every sample in it grows by one segment; finished samples are
scored; groups that are complete leave as this step's experience; the policy is updated on it; the new weights
go into the engine. A run resumes from its latest checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ulorl.engine.base import Engine
from ulorl.engine.prompts import Prompter
from ulorl.problem import Problem
from ulorl.recipe import Recipe
from ulorl.train.advantage import grpo_advantages, is_uniform
from ulorl.train.batch import Trajectory, group_trajectories
from ulorl.train.pool import Group, Sample, UnfinishedPool
from ulorl.train.rollout import PromptStream, decode_segment, new_groups, score
from ulorl.train.sync import sync_weights
from ulorl.verify import Verdict, Verifier

if TYPE_CHECKING:
    from ulorl.train.learner import Learner
    from ulorl.train.tally import UpdateTally


@dataclass
class StepResult:
    """What one step did."""

    step: int
    grown_tokens: int = 0
    finished: list[Sample] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    experience: list[Group] = field(default_factory=list)
    tally: UpdateTally | None = None
    seconds: dict[str, float] = field(default_factory=dict)


class Trainer:
    """The state of a run between steps and the step itself."""

    def __init__(
        self,
        recipe: Recipe,
        problems: Sequence[Problem],
        *,
        engine: Engine,
        prompter: Prompter,
        verifier: Verifier,
        learner: Learner,
    ) -> None:
        self.recipe, self.rollout = recipe, recipe.train.rollout
        self.engine, self.prompter, self.verifier, self.learner = engine, prompter, verifier, learner
        self.stream = PromptStream(problems, recipe.seed)
        self.pool = UnfinishedPool(self.rollout.max_tokens)
        self.step = 0

    def restore(self, step: int, drawn: int, groups: Sequence[Group]) -> None:
        """Continue after ``step`` with the samples that were in flight then."""
        self.step, self.stream.drawn = step, drawn
        self.pool.add(groups)

    def run_step(self) -> StepResult:
        """One step of Algorithm 1."""
        self.step += 1
        result, clock = StepResult(self.step), _Clock()

        self.pool.add(new_groups(self.stream, self.prompter, self.rollout, step=self.step, seed=self.recipe.seed))
        tokens_before = self._tokens()
        result.finished = decode_segment(self.pool, self.engine, self.rollout, step=self.step)
        result.grown_tokens = self._tokens() - tokens_before
        clock.lap(result.seconds, "rollout")

        result.verdicts = score(self.pool, self.prompter, self.verifier)
        self.pool.check(self.rollout.group_size)
        clock.lap(result.seconds, "verify")

        result.experience = self.pool.take_complete()
        trajectories = self._trajectories(result.experience)
        if trajectories:
            self.engine.sleep()
            result.tally = self.learner.update(trajectories)
            self.engine.wake()
        clock.lap(result.seconds, "train")

        if trajectories:
            sync_weights(self.learner, self.engine)
        clock.lap(result.seconds, "sync")
        return result

    def _trajectories(self, experience: Sequence[Group]) -> list[Trajectory]:
        groups = [group for group in experience if not (self.rollout.drop_uniform and is_uniform(group.rewards))]
        if not groups:
            return []
        advantages_GS = grpo_advantages(np.array([group.rewards for group in groups], dtype=np.float64))
        return [
            trajectory
            for group, advantages_S in zip(groups, advantages_GS, strict=True)
            for trajectory in group_trajectories(group, advantages_S.tolist())
        ]

    def _tokens(self) -> int:
        return sum(len(sample.token_ids) for group in self.pool.groups.values() for sample in group.samples)


class _Clock:
    """Wall-clock laps of a step."""

    def __init__(self) -> None:
        self.last = time.perf_counter()

    def lap(self, seconds: dict[str, float], name: str) -> None:
        now = time.perf_counter()
        seconds[name], self.last = now - self.last, now
