"""One segment of rollout: new prompts enter, every unfinished sample grows by at most one segment.

Invariants:
- token ids are carried from segment to segment, never re-tokenised; sampling parameters are built afresh;
- the seed of a segment follows from the run's seed, the group, the member and the segment number alone, so that
  a resumed run draws the same tokens and no two samples share a stream;
- every finished sample has a verdict and a reward; an undecided verdict is counted by the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ulorl.engine.base import Engine, GenerationRequest, Sampling
from ulorl.engine.prompts import Prompter
from ulorl.problem import Problem
from ulorl.recipe import RolloutRecipe
from ulorl.seeds import derive_seed
from ulorl.train.pool import Group, Sample, UnfinishedPool
from ulorl.verify import Item, Verdict, Verifier


@dataclass
class PromptStream:
    """An endless stream of problems: each epoch is a new permutation. ``drawn`` is the data cursor."""

    problems: Sequence[Problem]
    seed: int
    drawn: int = 0

    def take(self, count: int) -> list[Problem]:
        return [self._draw() for _ in range(count)]

    def _draw(self) -> Problem:
        epoch, position = divmod(self.drawn, len(self.problems))
        order = np.random.default_rng(derive_seed(self.seed, "epoch", epoch)).permutation(len(self.problems))
        self.drawn += 1
        return self.problems[int(order[position])]


def new_groups(
    stream: PromptStream, prompter: Prompter, rollout: RolloutRecipe, *, step: int, seed: int
) -> list[Group]:
    """The groups of this step's new prompts."""
    groups = []
    for _ in range(rollout.prompts_per_step):
        number = stream.drawn
        (problem,) = stream.take(1)
        samples = [Sample(index, derive_seed(seed, "rollout", number, index)) for index in range(rollout.group_size)]
        groups.append(Group(number, problem, prompter.encode(problem.problem), samples, step))
    return groups


def decode_segment(pool: UnfinishedPool, engine: Engine, rollout: RolloutRecipe, *, step: int) -> list[Sample]:
    """Grow every unfinished sample by one segment; return the samples that finished."""
    growing = list(pool.unfinished())
    sampling = Sampling(rollout.temperature, rollout.top_p, rollout.top_k)
    segment_tokens = rollout.max_tokens // rollout.segments
    requests = [
        GenerationRequest(
            id=f"{group.number}.{sample.index}.{len(sample.segment_lengths)}",
            prompt_ids=(*group.prompt_ids, *sample.token_ids),
            max_tokens=min(segment_tokens, pool.budget(sample)),
            seed=derive_seed(sample.seed, "segment", len(sample.segment_lengths)),
            sampling=sampling,
        )
        for group, sample in growing
    ]
    for request, (_, sample), segment in zip(requests, growing, engine.generate(requests), strict=True):
        assert segment.id == request.id and len(segment.token_ids) == len(segment.logprobs)
        pool.extend(sample, segment, step)
    return [sample for _, sample in growing if sample.finished]


def score(pool: UnfinishedPool, prompter: Prompter, verifier: Verifier) -> list[Verdict]:
    """Verify every finished sample that has no reward yet. Truncated samples score 0, as in the paper."""
    pending = [
        (group, sample)
        for group in pool.groups.values()
        for sample in group.samples
        if sample.finished and sample.reward is None
    ]
    items = [
        Item(group.problem.answer, prompter.decode(sample.token_ids), group.problem.problem)
        for group, sample in pending
    ]
    verdicts = verifier.verify(items)
    for (_, sample), verdict in zip(pending, verdicts, strict=True):
        sample.verdict = verdict
        sample.reward = 1.0 if verdict.equivalent and sample.finish_reason == "stop" else 0.0
    return verdicts
