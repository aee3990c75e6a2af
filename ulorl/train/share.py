"""Which rank computes which micro-batch, and how it comes by the samples.

Invariants:
- minibatches, token weights and micro-batches follow from the lengths of *all* ranks' trajectories in order of their
  groups, as one process would have them; only then are they dealt out;
- every rank has the same number of micro-batches in every minibatch, because ZeRO stages 2 and 3 communicate in each
  of them: who has none left computes an empty one, which adds nothing;
- micro-batches that are computed at the same time are of similar size, and a rank that has done less gets the larger;
- ranks that share rows (``ulorl.train.sequence_parallel``) have the same micro-batches.

A rank receives the trajectories it needs and no others; lengths alone go to all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from ulorl.train.batch import Trajectory, held_tokens, micro_batches, split
from ulorl.train.ranks import Ranks

EMPTY = Trajectory(prompt_ids=(0, 0), token_ids=(), logprobs=(), versions=(), reward=0.0, advantage=0.0)
"""The row of a micro-batch with nothing in it."""


@dataclass(frozen=True)
class Head:
    """What every rank knows of a trajectory: its place (rank and position there), its group and its lengths."""

    rank: int
    position: int
    group: int
    length: int
    tokens: int


@dataclass(frozen=True)
class Dealt:
    """One micro-batch: its trajectories and the weight in the loss of each token of each."""

    trajectories: list[Trajectory]
    weights: list[float]


def share(
    own: Sequence[Trajectory],
    ranks: Ranks,
    *,
    minibatches: int,
    micro_batch_tokens: int,
    token_weights: Callable[[list[int]], list[float]],
    packed: bool = False,
    group_size: int = 1,
) -> list[list[Dealt]]:
    """The micro-batches of this rank, by minibatch. ``token_weights``: from the response lengths of a minibatch.

    ``group_size`` consecutive ranks share rows: together they hold as many times ``micro_batch_tokens``.
    """
    parts = split(_heads(own, ranks), minibatches)
    weights = [token_weights([head.tokens for head in part]) for part in parts]
    groups, group_tokens = ranks.world // group_size, micro_batch_tokens * group_size
    by_group = [deal(part, groups, group_tokens, packed=packed) for part in parts]
    dealt = [[of[rank // group_size] for rank in range(ranks.world)] for of in by_group]
    needed = [
        [part[index] for part, by_rank in zip(parts, dealt, strict=True) for batch in by_rank[rank] for index in batch]
        for rank in range(ranks.world)
    ]
    received = ranks.exchange([[own[head.position] for head in of if head.rank == ranks.rank] for of in needed])
    sources = [iter(trajectories) for trajectories in received]
    found = {(head.rank, head.position): next(sources[head.rank]) for head in needed[ranks.rank]}
    return [
        [
            Dealt(
                [found[part[index].rank, part[index].position] for index in batch] or [EMPTY],
                [weight[index] for index in batch] or [0.0],
            )
            for batch in by_rank[ranks.rank]
        ]
        for part, weight, by_rank in zip(parts, weights, dealt, strict=True)
    ]


def deal(heads: Sequence[Head], world: int, micro_batch_tokens: int, *, packed: bool = False) -> list[list[list[int]]]:
    """By rank, its micro-batches as indices into ``heads``; equally many for all, the last ones perhaps empty."""
    even_tokens = -(-held_tokens([head.length for head in heads], packed=packed) // world)
    batches = micro_batches(heads, min(micro_batch_tokens, even_tokens), packed=packed)
    cost = {id(batch): held_tokens([heads[index].length for index in batch], packed=packed) for batch in batches}
    batches.sort(key=lambda batch: cost[id(batch)], reverse=True)
    dealt: list[list[list[int]]] = [[] for _ in range(world)]
    loads = [0] * world
    for start in range(0, len(batches), world):
        by_load = sorted(range(world), key=lambda rank: loads[rank])
        for rank, batch in zip_longest(by_load, batches[start : start + world]):
            dealt[rank].append(batch or [])
            loads[rank] += cost[id(batch)] if batch else 0
    return dealt


def _heads(own: Sequence[Trajectory], ranks: Ranks) -> list[Head]:
    """Every rank's trajectories, in order of their groups; a group is one rank's."""
    lines = ranks.gather([(one.group, one.length, len(one.token_ids)) for one in own])
    heads = [Head(rank, position, *line) for rank, of_rank in enumerate(lines) for position, line in enumerate(of_rank)]
    return sorted(heads, key=lambda head: head.group)
