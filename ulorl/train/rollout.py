"""One segment of rollout: new prompts enter, every unfinished sample grows by at most one segment.

Invariants:
- token ids are carried from segment to segment, never re-tokenised; sampling parameters are built afresh;
- the seed of a segment follows from the run's seed, the group, the member and the segment number alone, so that
  a resumed run draws the same tokens and no two samples share a stream;
- every finished sample has a verdict and a reward, computed while others are still growing; an undecided verdict is
  counted by the caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from ulorl.engine.base import Engine, FinishReason, Generation, GenerationRequest, Sampling
from ulorl.engine.prompts import Prompter
from ulorl.errors import UserError
from ulorl.problem import Problem
from ulorl.recipe_schedule import Phase
from ulorl.recipe_train import RolloutRecipe
from ulorl.seeds import derive_seed
from ulorl.train.pool import Group, Sample, UnfinishedPool
from ulorl.train.ranks import Ranks
from ulorl.train.rewards import Rewards
from ulorl.verify import Item, Verdict

GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, modulo 1, fill [0, 1) evenly from the first on: any stretch of draws has nearly its shares."""


@dataclass
class PromptStream:
    """An endless stream of problems: each epoch is a new permutation, of all problems or, while ``tasks`` gives the
    tasks shares, of those of the task whose turn it is.

    The data cursor is ``drawn``, all that were drawn, and ``by_task``, those of them that were drawn by shares.
    """

    problems: Sequence[Problem]
    seed: int
    drawn: int = 0
    by_task: dict[str, int] = field(default_factory=dict)
    tasks: Mapping[str, float] = field(default_factory=dict)
    _orders: dict[str, tuple[int, list[Problem]]] = field(default_factory=dict, repr=False)

    def take(self, count: int) -> list[Problem]:
        return [self._draw() for _ in range(count)]

    def _draw(self) -> Problem:
        if not self.tasks:
            number = self.drawn - sum(self.by_task.values())
            self.drawn += 1
            return self._nth("", number)
        task = self._turn()
        number = self.by_task.get(task, 0)
        self.drawn, self.by_task[task] = self.drawn + 1, number + 1
        return self._nth(task, number)

    def _turn(self) -> str:
        """The task of the next draw."""
        place = self.drawn * GOLDEN % 1 * sum(self.tasks.values())
        bounds = zip(self.tasks, accumulate(self.tasks.values()), strict=True)
        return next((task for task, bound in bounds if place < bound), list(self.tasks)[-1])

    def _nth(self, task: str, number: int) -> Problem:
        """The problem drawn after ``number`` others from those of ``task``; "": from all."""
        known, order = self._orders.get(task) or (-1, self._of(task))
        epoch, position = divmod(number, len(order))
        if epoch != known:
            names = ("epoch", epoch, task) if task else ("epoch", epoch)
            of_task = self._of(task)
            permutation = np.random.default_rng(derive_seed(self.seed, *names)).permutation(len(of_task))
            order = [of_task[index] for index in permutation.tolist()]
            self._orders[task] = (epoch, order)
        return order[position]

    def _of(self, task: str) -> list[Problem]:
        return [problem for problem in self.problems if task in ("", problem.task)]


def check_shares(all_phases: Sequence[Phase], problems: Sequence[Problem]) -> None:
    """Raise UserError where a phase draws a task of which there is no problem."""
    known = sorted({problem.task for problem in problems})
    for phase in all_phases:
        if missing := sorted(set(phase.tasks) - set(known)):
            raise UserError(
                f"train.schedule: from step {phase.from_step}: no problem of the training data has the task "
                f"{', '.join(missing)}; there are {', '.join(known)}"
            )


def new_prompts(
    pool: UnfinishedPool, rollout: RolloutRecipe, *, accepted: int, step: int, ranks: Ranks | None = None
) -> int:
    """How many prompts enter before the next segment, on all ranks; ``accepted``: entries, on all of them, that an
    update could be made of already.

    None enter while the oldest unfinished group is at the bound on age: stale samples are waited for, since throwing
    them away would bias training against hard problems.
    """
    ranks = ranks or Ranks()
    oldest = min((born for born in ranks.gather(pool.oldest()) if born is not None), default=None)
    if rollout.max_age and oldest is not None and step - oldest >= rollout.max_age:
        return 0
    if rollout.in_flight:
        missing = rollout.in_flight - ranks.total(sum(1 for _ in pool.unfinished()))
        return max(0, -(-missing // rollout.group_size))
    surplus = accepted if rollout.dynamic_sampling == "refill" else 0
    return max(0, rollout.prompts_per_step - surplus)


def new_groups(
    stream: PromptStream,
    prompter: Prompter,
    rollout: RolloutRecipe,
    *,
    count: int,
    step: int,
    seed: int,
    ranks: Ranks | None = None,
) -> list[Group]:
    """This rank's groups among those of ``count`` new prompts; the stream moves on by all of them on every rank."""
    ranks, groups = ranks or Ranks(), []
    for _ in range(count):
        number = stream.drawn
        (problem,) = stream.take(1)
        if not ranks.owns(number):
            continue
        samples = [Sample(index, derive_seed(seed, "rollout", number, index)) for index in range(rollout.group_size)]
        groups.append(Group(number, problem, prompter.encode(problem.problem), samples, step))
    return groups


def decode_segment(
    pool: UnfinishedPool,
    engine: Engine,
    prompter: Prompter,
    rewards: Rewards,
    rollout: RolloutRecipe,
    *,
    step: int,
) -> list[Sample]:
    """Grow every unfinished sample by one segment; return the samples that finished, on their way to a verdict."""
    growing = list(pool.unfinished())
    if not growing:
        return []
    sampling = Sampling(rollout.temperature, rollout.top_p, rollout.top_k)
    requests = [
        GenerationRequest(
            id=f"{group.number}.{sample.index}.{len(sample.segment_lengths)}",
            prompt_ids=(*group.prompt_ids, *sample.token_ids),
            max_tokens=min(pool.maximum(group) // rollout.segments, pool.budget(group, sample)),
            seed=derive_seed(sample.seed, "segment", len(sample.segment_lengths)),
            sampling=sampling,
        )
        for group, sample in growing
    ]
    by_id = {request.id: entry for request, entry in zip(requests, growing, strict=True)}

    def judge(segment: Generation) -> None:
        group, sample = by_id[segment.id]
        if segment.finish_reason == "stop" or len(segment.token_ids) == pool.budget(group, sample):
            text = prompter.decode((*sample.token_ids, *segment.token_ids))
            rewards.submit((group.number, sample.index), Item.of(group.problem, text))

    segments = engine.generate(requests, judge)
    for request, (group, sample), segment in zip(requests, growing, segments, strict=True):
        assert segment.id == request.id and len(segment.token_ids) == len(segment.logprobs)
        pool.extend(group, sample, segment, step)
    return [sample for _, sample in growing if sample.finished]


def reward_of(verdict: Verdict, finish_reason: FinishReason | None) -> float:
    """The verdict's reward, 0 for a truncated sample whatever it says."""
    return verdict.reward if finish_reason == "stop" else 0.0


def score(pool: UnfinishedPool, rewards: Rewards) -> list[Verdict]:
    """Give every finished sample its verdict and reward. Truncated samples score 0, as in the paper."""
    verdicts = rewards.collect()
    pending = [
        (group, sample)
        for group in pool.groups.values()
        for sample in group.samples
        if sample.finished and sample.reward is None
    ]
    assert len(verdicts) == len(pending), "samples finished and samples judged differ"
    for group, sample in pending:
        sample.verdict = verdict = verdicts[group.number, sample.index]
        sample.reward = reward_of(verdict, sample.finish_reason)
    return list(verdicts.values())
