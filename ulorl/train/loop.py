"""Segment-rollout reinforcement learning: UloRL's Algorithm 1, step by step.

A step: new prompts enter the unfinished pool; every sample in it grows by one segment; finished samples are
scored; groups that are complete leave as this step's experience; the policy is updated on it; the new weights
go into the engine. Where a step is to be refilled (dynamic sampling), its first half is repeated, within a bound. A
run resumes from its latest checkpoint. Of several processes each does so with its own groups, numbered over all of
them, and all update the policy together.
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
from ulorl.train.advantage import advantages, soft_overlong
from ulorl.train.batch import Trajectory, trajectory
from ulorl.train.experience import Experience, Leaving, accepted, take
from ulorl.train.pool import Group, Sample, UnfinishedPool
from ulorl.train.ranks import Ranks
from ulorl.train.rewards import Rewards
from ulorl.train.rollout import PromptStream, decode_segment, new_groups, new_prompts, score
from ulorl.train.sync import sync_weights
from ulorl.verify import Verdict, Verifier

if TYPE_CHECKING:
    from ulorl.train.learner import Learner
    from ulorl.train.tally import UpdateTally


@dataclass
class StepResult:
    """What one step did."""

    step: int
    rounds: int = 0
    new_prompts: int = 0
    grown_tokens: int = 0
    finished: list[Sample] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    experience: Experience = field(default_factory=lambda: Experience([], []))
    exhausted: bool = False
    tally: UpdateTally | None = None
    reference_age: int | None = None
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
        ranks: Ranks | None = None,
    ) -> None:
        self.recipe, self.rollout, self.objective = recipe, recipe.train.rollout, recipe.train.objective
        self.engine, self.prompter, self.learner = engine, prompter, learner
        self.ranks = ranks or Ranks()
        self.rewards = Rewards(verifier, self.rollout.reward_timeout_s)
        self.stream = PromptStream(problems, recipe.seed)
        self.pool = UnfinishedPool(self.rollout.max_tokens)
        self.step = self.reference_step = 0

    def restore(self, step: int, drawn: int, reference_step: int, groups: Sequence[Group]) -> None:
        """Continue after ``step`` with the samples that were in flight then."""
        self.step, self.stream.drawn, self.reference_step = step, drawn, reference_step
        self.pool.add(groups)

    def run_step(self) -> StepResult:
        """One step of Algorithm 1."""
        self.step += 1
        self.ranks.step = self.step
        result, clock = StepResult(self.step), _Clock()

        while self._needs_more(result):
            self._grow(result, clock)
        result.experience = take(self.pool, self.rollout, self.step, self.ranks)

        trajectories = self._trajectories(result.experience.trained)
        learns = self.ranks.total(len(trajectories)) > 0
        if learns:
            self.engine.sleep()
            result.tally = self.learner.update(trajectories)
            self.engine.wake()
        clock.lap(result.seconds, "train")

        if learns:
            sync_weights(self.learner, self.engine, self.ranks)
        clock.lap(result.seconds, "sync")
        result.reference_age = self._reset_reference()
        return result

    def _grow(self, result: StepResult, clock: _Clock) -> None:
        """New prompts enter, every unfinished sample grows by a segment, finished ones are scored."""
        count = new_prompts(self.pool, self.rollout, accepted=self._accepted(), step=self.step, ranks=self.ranks)
        self.pool.add(
            new_groups(
                self.stream,
                self.prompter,
                self.rollout,
                count=count,
                step=self.step,
                seed=self.recipe.seed,
                ranks=self.ranks,
            )
        )
        tokens_before = self._tokens()
        result.finished += decode_segment(
            self.pool, self.engine, self.prompter, self.rewards, self.rollout, step=self.step
        )
        result.grown_tokens += self._tokens() - tokens_before
        result.rounds += 1
        result.new_prompts += count
        clock.lap(result.seconds, "rollout")

        result.verdicts += score(self.pool, self.rewards)
        self.pool.check(self.rollout.group_size)
        clock.lap(result.seconds, "verify")

    def _needs_more(self, result: StepResult) -> bool:
        """One segment a step, or as many as it takes to refill the update, within the bound."""
        if self.rollout.dynamic_sampling != "refill":
            return result.rounds == 0
        enough = self._accepted() >= self.rollout.prompts_per_step
        result.exhausted = not enough and result.rounds >= self.rollout.max_rounds
        return not (enough or result.exhausted)

    def _accepted(self) -> int:
        """Entries that an update could be made of now, on all ranks."""
        return self.ranks.total(accepted(self.pool, self.rollout))

    def _trajectories(self, entries: Sequence[Leaving]) -> list[Trajectory]:
        found = []
        for entry in entries:
            leaving = {sample.index for sample in entry.samples}
            shaped_1S = np.array([[self._shaped(sample) for sample in entry.peers]])
            (advantages_S,) = advantages(shaped_1S, self.objective.advantage)
            for sample, advantage in zip(entry.peers, advantages_S.tolist(), strict=True):
                cut = self.objective.truncated == "masked" and sample.finish_reason == "length"
                if sample.index in leaving and not cut:
                    found.append(trajectory(entry.group, sample, advantage))
        return found

    def _shaped(self, sample: Sample) -> float:
        """The reward that advantages are made of: the verifier's, with the punishment of overlong samples if any."""
        assert sample.reward is not None
        if self.objective.truncated != "soft":
            return sample.reward
        return sample.reward + soft_overlong(len(sample.token_ids), self.rollout.max_tokens, self.objective.soft_buffer)

    def _reset_reference(self) -> int | None:
        """Age of the reference in steps, after resetting it where its time is up; None without one."""
        if self.objective.kl == 0:
            return None
        every = self.objective.reference_reset_every
        if every and self.step - self.reference_step >= every:
            self.learner.reset_reference()
            self.reference_step = self.step
        return self.step - self.reference_step

    def _tokens(self) -> int:
        return sum(len(sample.token_ids) for group in self.pool.groups.values() for sample in group.samples)


class _Clock:
    """Wall-clock laps of a step."""

    def __init__(self) -> None:
        self.last = time.perf_counter()

    def lap(self, seconds: dict[str, float], name: str) -> None:
        now = time.perf_counter()
        seconds[name] = seconds.get(name, 0.0) + now - self.last
        self.last = now
