"""Segment-rollout reinforcement learning: UloRL's Algorithm 1, step by step.

A step: new prompts enter the unfinished pool; every sample in it grows by one segment; finished samples are
scored; groups that are complete leave as this step's experience; the policy is updated on it; the new weights
go into the engine, and are validated where it is time to. Where a step is to be refilled (dynamic sampling), its
first half is repeated, within a bound. A run resumes from its latest checkpoint. Of several processes each does so
with its own groups, numbered over all of them, and all update the policy together.
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
from ulorl.recipe_schedule import changes, phase_at, phases, settings_in
from ulorl.train.advantage import advantages, soft_overlong
from ulorl.train.batch import Trajectory, trajectory
from ulorl.train.experience import Experience, Leaving, accepted, take
from ulorl.train.pool import Group, Sample, UnfinishedPool
from ulorl.train.ranks import Ranks
from ulorl.train.rewards import Rewards
from ulorl.train.rollout import PromptStream, decode_segment, new_groups, new_prompts, score
from ulorl.train.stall import Progress, reset_reason
from ulorl.train.state import TrainerState
from ulorl.train.sync import sync_weights
from ulorl.train.validation import Validation, Validator
from ulorl.verify import Verdict
from ulorl.verify.tasks.scorer import Scorer

if TYPE_CHECKING:
    from ulorl.train.learner import Learner
    from ulorl.train.tally import UpdateTally


@dataclass
class StepResult:
    """What one step did. ``notes`` are lines for people."""

    step: int
    phase: int = 1
    rounds: int = 0
    new_prompts: int = 0
    grown_tokens: int = 0
    finished: list[Sample] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    experience: Experience = field(default_factory=lambda: Experience([], []))
    exhausted: bool = False
    tally: UpdateTally | None = None
    validation: Validation | None = None
    new_best: bool = False
    progress: Progress = field(default_factory=Progress)
    reference_age: int | None = None
    reference_resets: int = 0
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


class Trainer:
    """The state of a run between steps and the step itself. ``validation`` are the problems to validate on."""

    def __init__(
        self,
        recipe: Recipe,
        problems: Sequence[Problem],
        *,
        engine: Engine,
        prompter: Prompter,
        verifier: Scorer,
        learner: Learner,
        ranks: Ranks | None = None,
        validation: Sequence[Problem] = (),
    ) -> None:
        self.recipe, self.rollout, self.objective = recipe, recipe.train.rollout, recipe.train.objective
        self.engine, self.prompter, self.learner = engine, prompter, learner
        self.ranks = ranks or Ranks()
        self.rewards = Rewards(verifier, self.rollout.reward_timeout_s)
        self.stream = PromptStream(problems, recipe.seed)
        self.phases = phases(recipe.train)
        self.phase = self.phases[0]
        later = [(phase.from_step, phase.max_tokens) for phase in self.phases[1:]]
        self.pool = UnfinishedPool(self.rollout.max_tokens, later=later)
        self.validator = Validator(recipe, validation, engine=engine, prompter=prompter, rewards=self.rewards)
        self.step = self.reference_step = self.resets = 0
        self.progress = Progress()

    @property
    def state(self) -> TrainerState:
        """What a checkpoint remembers beside the groups in the pool."""
        stream, version = self.stream, self.learner.version
        return TrainerState(
            step=self.step,
            version=version,
            drawn=stream.drawn,
            reference_step=self.reference_step,
            resets=self.resets,
            phase=self.phase.number,
            validation_tokens=self.validator.max_tokens,
            by_task=dict(stream.by_task),
            progress=self.progress,
        )

    def restore(self, state: TrainerState, groups: Sequence[Group]) -> None:
        """Continue from a checkpoint with the samples that were in flight then."""
        self.step, self.reference_step, self.resets = state.step, state.reference_step, state.resets
        self.stream.drawn, self.stream.by_task = state.drawn, dict(state.by_task)
        self.progress = state.progress
        self.validator.max_tokens = state.validation_tokens or self.validator.max_tokens
        self.pool.add(groups)

    def validate_start(self) -> Validation | None:
        """The validation before the first step; None where there is none."""
        if self.step or not self.validator.due(0):
            return None
        return self._validated()

    def run_step(self) -> StepResult:
        """One step of Algorithm 1."""
        self.step += 1
        self.ranks.step = self.step
        result, clock = StepResult(self.step), Clock()
        self.enter_phase(result)
        self.roll_out(result, clock)
        self.learn(result, clock)
        self.conclude(result, clock)
        return result

    def enter_phase(self, result: StepResult) -> None:
        """The settings of the schedule that hold in this step."""
        phase, before = phase_at(self.phases, self.step), phase_at(self.phases, self.step - 1)
        if phase != self.phase:
            self.phase, self.stream.tasks = phase, phase.tasks
            settings = settings_in(phase, self.recipe.train)
            self.learner.adopt(settings.objective, settings.learner, settings.rollout.max_tokens)
        result.phase = phase.number
        if phase != before:
            result.notes.append(f"step {self.step}: phase {phase.number} begins: {changes(before, phase)}")
            if phase.reset_reference:
                self._reset_reference(result, f"phase {phase.number} begins", self.step - 1)

    def roll_out(self, result: StepResult, clock: Clock) -> None:
        """Samples grow and are scored; those that are complete leave the pool as this step's experience."""
        while self._needs_more(result):
            self._grow(result, clock)
        result.experience = take(self.pool, self.rollout, self.step, self.ranks)

    def learn(self, result: StepResult, clock: Clock) -> None:
        """The update on this step's experience; the new weights go into the engine."""
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

    def conclude(self, result: StepResult, clock: Clock) -> None:
        """Validation of the new weights, and a reset of the reference, where it is time for them."""
        if self.validator.due(self.step):
            result.validation = self._validated()
            result.new_best = self.progress.best_step == self.step
            result.notes.append(f"{result.validation}; {self.progress}")
            clock.lap(result.seconds, "validation")
        result.progress = self.progress
        if self.objective.kl:
            age = self.step - self.reference_step
            reason = reset_reason(self.objective, age, self.progress) if self.phase.kl else None
            if reason is not None:
                self._reset_reference(result, reason, self.step)
            result.reference_age, result.reference_resets = self.step - self.reference_step, self.resets

    def _grow(self, result: StepResult, clock: Clock) -> None:
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
            shaped_1S = np.array([[self._shaped(entry.group, sample) for sample in entry.peers]])
            (advantages_S,) = advantages(shaped_1S, self.objective.advantage)
            for sample, advantage in zip(entry.peers, advantages_S.tolist(), strict=True):
                cut = self.objective.truncated == "masked" and sample.finish_reason == "length"
                if sample.index in leaving and not cut:
                    found.append(trajectory(entry.group, sample, advantage))
        return found

    def _shaped(self, group: Group, sample: Sample) -> float:
        """The reward that advantages are made of: the verifier's, with the punishment of overlong samples if any."""
        assert sample.reward is not None
        if self.objective.truncated != "soft":
            return sample.reward
        maximum, buffer = self.pool.maximum(group), self.objective.soft_buffer
        return sample.reward + soft_overlong(len(sample.token_ids), maximum, buffer)

    def _validated(self) -> Validation:
        validation = self.validator.run(self.step, self.ranks)
        self.progress = self.progress.seen(self.step, validation.average, self.objective.reference_reset_min_delta)
        return validation

    def _reset_reference(self, result: StepResult, reason: str, step: int) -> None:
        """The reference becomes the policy as it is after ``step``; the optimizer starts anew."""
        self.learner.reset_reference()
        self.reference_step, self.resets = step, self.resets + 1
        self.progress = self.progress.restarted()
        result.notes.append(f"step {self.step}: the reference is reset and the optimizer emptied ({reason})")

    def _tokens(self) -> int:
        return sum(len(sample.token_ids) for group in self.pool.groups.values() for sample in group.samples)


class Clock:
    """Wall-clock laps of a step."""

    def __init__(self) -> None:
        self.last = time.perf_counter()

    def lap(self, seconds: dict[str, float], name: str) -> None:
        now = time.perf_counter()
        seconds[name] = seconds.get(name, 0.0) + now - self.last
        self.last = now
