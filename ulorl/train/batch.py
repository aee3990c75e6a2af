"""Trajectories and how they are laid out in micro-batches.

Sequences are padded on the right, so that causal attention needs no mask; the order and the cut of the
micro-batches change neither loss nor gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ulorl.train.pool import Group, Sample

if TYPE_CHECKING:
    import torch

T = TypeVar("T")
LOSS_PADDING = 8
"""Bound on padded tensors (B, T) of numbers a token, in micro-batches; hidden states are thousands of times larger."""


@dataclass(frozen=True)
class Trajectory:
    """One finished sample as the learner sees it. ``versions``: the policy version of each response token.

    ``reward`` is the verifier's, which decides what counts as mastered; ``advantage`` comes from shaped rewards;
    ``group`` is the group's number, which orders the trajectories of several processes.
    """

    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    versions: tuple[int, ...]
    reward: float
    advantage: float
    group: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """Travels between processes as arrays: a pickled tuple of numbers is several times larger."""
        ids, logprobs = np.array([*self.prompt_ids, *self.token_ids], np.int32), np.array(self.logprobs)
        versions = np.array(self.versions, np.int32)
        return _unpacked, (len(self.prompt_ids), ids, logprobs, versions, self.reward, self.advantage, self.group)

    @property
    def length(self) -> int:
        return len(self.prompt_ids) + len(self.token_ids)


def _unpacked(
    prompt_length: int,
    ids: NDArray[np.int32],
    logprobs: NDArray[np.float64],
    versions: NDArray[np.int32],
    reward: float,
    advantage: float,
    group: int,
) -> Trajectory:
    tokens = ids.tolist()
    return Trajectory(
        prompt_ids=tuple(tokens[:prompt_length]),
        token_ids=tuple(tokens[prompt_length:]),
        logprobs=tuple(logprobs.tolist()),
        versions=tuple(versions.tolist()),
        reward=reward,
        advantage=advantage,
        group=group,
    )


def trajectory(group: Group, sample: Sample, advantage: float) -> Trajectory:
    """A scored sample of ``group`` with its advantage."""
    assert sample.reward is not None
    return Trajectory(
        prompt_ids=group.prompt_ids,
        token_ids=tuple(sample.token_ids),
        logprobs=tuple(sample.logprobs),
        versions=tuple(
            version
            for version, count in zip(sample.segment_versions, sample.segment_lengths, strict=True)
            for _ in range(count)
        ),
        reward=sample.reward,
        advantage=advantage,
        group=group.number,
    )


class HasLength(Protocol):
    """Anything with a length in tokens, prompt and response together."""

    @property
    def length(self) -> int: ...


def held_tokens(lengths: Sequence[int], *, packed: bool) -> int:
    """Tokens of a micro-batch of these lengths: padded ones count, where rows are padded."""
    return sum(lengths) if packed else len(lengths) * max(lengths, default=0)


def micro_batches(trajectories: Sequence[HasLength], max_tokens: int, *, packed: bool = False) -> list[list[int]]:
    """Indices of trajectories by micro-batch, similar lengths together; each holds at most ``max_tokens``.

    A single trajectory longer than ``max_tokens`` gets a micro-batch of its own. What the loss keeps of each token is
    padded in any case, and a packed micro-batch is closed where that would be ``LOSS_PADDING`` times as much.
    """
    order = sorted(range(len(trajectories)), key=lambda index: trajectories[index].length, reverse=True)
    batches: list[list[int]] = []
    held, longest = 0, 0
    for index in order:
        length = trajectories[index].length
        rows = len(batches[-1]) + 1 if batches else 0
        size = held + length if packed else rows * longest
        if rows and size <= max_tokens and rows * longest <= LOSS_PADDING * max_tokens:
            batches[-1].append(index)
            held += length
        else:
            batches.append([index])
            held = longest = length
    return batches


def split(trajectories: Sequence[T], parts: int) -> list[Sequence[T]]:
    """``parts`` consecutive parts of nearly equal count; fewer where there are fewer trajectories."""
    parts = min(parts, len(trajectories))
    bounds = [len(trajectories) * number // parts for number in range(parts + 1)]
    return [trajectories[start:end] for start, end in pairwise(bounds)]


@dataclass(frozen=True)
class Batch:
    """Padded tensors of one micro-batch: B trajectories, L the longest, T = L - 1 predicted positions.

    ``response_BT`` marks the positions whose *target* is a response token; every (B, T) tensor is aligned to
    targets ``tokens_BL[:, 1:]``.
    """

    tokens_BL: torch.Tensor
    response_BT: torch.Tensor
    behaviour_logprobs_BT: torch.Tensor
    versions_BT: torch.Tensor
    rewards_B: torch.Tensor
    advantages_B: torch.Tensor
    weights_BT: torch.Tensor


def collate(trajectories: Sequence[Trajectory], weights: Sequence[float], device: str) -> Batch:
    """Pad ``trajectories`` on the right; ``weights`` is the weight in the loss of each token of each of them."""
    import torch

    rows, longest = len(trajectories), max(trajectory.length for trajectory in trajectories)
    tokens_BL = torch.zeros(rows, longest, dtype=torch.long)
    response_BT = torch.zeros(rows, longest - 1, dtype=torch.bool)
    behaviour_BT = torch.zeros(rows, longest - 1)
    versions_BT = torch.zeros(rows, longest - 1, dtype=torch.long)
    for row, item in enumerate(trajectories):
        tokens_BL[row, : item.length] = torch.tensor(item.prompt_ids + item.token_ids)
        span = slice(len(item.prompt_ids) - 1, item.length - 1)
        response_BT[row, span] = True
        behaviour_BT[row, span] = torch.tensor(item.logprobs)
        versions_BT[row, span] = torch.tensor(item.versions)
    rewards_B = torch.tensor([item.reward for item in trajectories])
    advantages_B = torch.tensor([item.advantage for item in trajectories], dtype=torch.float32)
    weights_BT = torch.tensor(weights, dtype=torch.float32).unsqueeze(1) * response_BT
    tensors = (tokens_BL, response_BT, behaviour_BT, versions_BT, rewards_B, advantages_B, weights_BT)
    return Batch(*(tensor.to(device) for tensor in tensors))
