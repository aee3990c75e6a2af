"""The samples in flight: prompts enter as groups, grow by segments, and leave as whole groups.

Invariants, checked by ``UnfinishedPool.check`` after every segment:
- every sample leaves exactly once, and never with another group's; a group is gone when all its members left;
- token ids, log-probs and the segments' lengths agree for every sample, and no sample exceeds the maximum of its group;
- a sample is finished exactly when the engine said "stop", or when it holds the maximum number of tokens;
- the maximum of a group is that of the step in which it entered, so that its members are compared under one;
- every segment keeps the version of the policy that sampled it.

The pool is the unfinished pool of UloRL's Algorithm 1; what ``ulorl.train.experience`` takes out of it is the
experience pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ulorl.engine.base import FinishReason, Generation
from ulorl.problem import Problem
from ulorl.verify.verdict import Verdict


@dataclass
class Sample:
    """One response, growing. ``finish_reason`` is None while it is unfinished."""

    index: int
    seed: int
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    segment_lengths: list[int] = field(default_factory=list)
    segment_versions: list[int] = field(default_factory=list)
    finish_reason: FinishReason | None = None
    finished_step: int | None = None
    left_step: int | None = None
    verdict: Verdict | None = None
    reward: float | None = None

    @property
    def finished(self) -> bool:
        return self.finish_reason is not None


@dataclass
class Group:
    """One prompt and its samples. ``number`` counts the groups of a run in the order they entered."""

    number: int
    problem: Problem
    prompt_ids: tuple[int, ...]
    samples: list[Sample]
    born_step: int

    @property
    def finished(self) -> bool:
        return all(sample.finished for sample in self.samples)

    @property
    def rewards(self) -> list[float]:
        """Rewards of all members; the group must be finished and scored."""
        return rewards(self.samples)


def rewards(samples: Iterable[Sample]) -> list[float]:
    """Rewards of scored samples."""
    found = []
    for sample in samples:
        assert sample.reward is not None, f"sample {sample.index} has no reward"
        found.append(sample.reward)
    return found


class UnfinishedPool:
    """Groups with at least one unfinished member, and the rule by which samples grow.

    ``max_tokens`` is the longest output; ``later`` holds (step, longest output of groups that enter from it on).
    """

    def __init__(self, max_tokens: int, groups: Iterable[Group] = (), later: Sequence[tuple[int, int]] = ()) -> None:
        self._maxima = ((0, max_tokens), *later)
        self.groups: dict[int, Group] = {}
        self.add(groups)

    def add(self, groups: Iterable[Group]) -> None:
        for group in groups:
            assert group.number not in self.groups, f"group {group.number} entered twice"
            self.groups[group.number] = group

    def unfinished(self) -> Iterator[tuple[Group, Sample]]:
        """Every sample that still grows, in order of entry."""
        for group in self.groups.values():
            for sample in group.samples:
                if not sample.finished:
                    yield group, sample

    def waiting(self) -> Iterator[Sample]:
        """Finished samples that have not left yet."""
        samples = (sample for group in self.groups.values() for sample in group.samples)
        return (sample for sample in samples if sample.finished and sample.left_step is None)

    def oldest(self) -> int | None:
        """Step at which the oldest group with an unfinished sample was born; None where all are finished."""
        return min((group.born_step for group, _ in self.unfinished()), default=None)

    def maximum(self, group: Group) -> int:
        """Longest output of the group's samples, in tokens."""
        return [tokens for step, tokens in self._maxima if step <= group.born_step][-1]

    def budget(self, group: Group, sample: Sample) -> int:
        """Tokens the sample may still grow by: the group's maximum minus what exists."""
        return self.maximum(group) - len(sample.token_ids)

    def extend(self, group: Group, sample: Sample, segment: Generation, step: int) -> None:
        """Append one segment. A segment that ends at the segment length alone leaves the sample unfinished."""
        assert not sample.finished, "a finished sample cannot grow"
        assert 0 < len(segment.token_ids) <= self.budget(group, sample), "a segment is empty or exceeds the budget"
        sample.token_ids += segment.token_ids
        sample.logprobs += segment.logprobs
        sample.segment_lengths.append(len(segment.token_ids))
        sample.segment_versions.append(segment.policy_version)
        if segment.finish_reason == "stop":
            sample.finish_reason = "stop"
        elif self.budget(group, sample) == 0:
            sample.finish_reason = "length"
        sample.finished_step = step if sample.finished else None

    def leave(self, group: Group, samples: Iterable[Sample], step: int) -> None:
        """Take scored samples out; the group goes with its last member."""
        for sample in samples:
            assert sample.reward is not None and sample.left_step is None, "a sample leaves unscored or twice"
            sample.left_step = step
        if all(sample.left_step is not None for sample in group.samples):
            del self.groups[group.number]

    def check(self, group_size: int) -> None:
        """Raise AssertionError when an invariant of this module does not hold."""
        for number, group in self.groups.items():
            assert number == group.number and len(group.samples) == group_size, f"group {number} lost members"
            assert [sample.index for sample in group.samples] == list(range(group_size))
            maximum = self.maximum(group)
            for sample in group.samples:
                tokens = len(sample.token_ids)
                assert tokens == len(sample.logprobs) == sum(sample.segment_lengths) <= maximum
                assert len(sample.segment_lengths) == len(sample.segment_versions)
                assert sample.finished or tokens < maximum
                assert (sample.reward is None) == (sample.verdict is None)
                assert sample.left_step is None or sample.reward is not None
            assert any(sample.left_step is None for sample in group.samples), f"group {number} should be gone"
