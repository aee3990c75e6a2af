"""Ulysses sequence parallelism: several processes hold one row of tokens between them (arXiv 2309.14509).

Invariants:
- the members of a group are consecutive ranks, and all have the same micro-batches at the same time;
- member r of n holds the r-th of n equally long pieces of the row. Everything but attention is computed on the piece;
  for attention the pieces are exchanged for heads (DeepSpeed's ``DistributedAttention``), so that each member sees the
  whole row with 1/n of the heads;
- results of the tokens are gathered, so that every member has the loss of the whole row, but its gradient flows through
  its own tokens alone: the sum over all ranks is the gradient, as in data parallelism. DeepSpeed needs to know nothing
  of it, and ZeRO divides over all ranks.

DeepSpeed's hook for transformers (``UlyssesSPAttentionHF.register_with_transformers``) is not used: it replaces the
attention of every model in the process, can be set up once, and drops the mask that keeps packed sequences apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ulorl.errors import UserError

Attention = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""From queries, keys and values (1, N, heads, D) to (1, N, heads, D)."""


class SequenceGroup:
    """The processes that share a row with this one; here none, each row is of one process."""

    size = 1
    rank = 0

    def piece(self, values_P: torch.Tensor) -> torch.Tensor:
        """This member's piece (n,) of a row (P,), P a multiple of ``size``."""
        return values_P

    def whole(self, values_n: torch.Tensor) -> torch.Tensor:
        """The row (P,) of every member's piece; a gradient flows to this member's piece alone."""
        return values_n

    def attend(
        self, attention: Attention, query_1nHD: torch.Tensor, key_1nhD: torch.Tensor, value_1nhD: torch.Tensor
    ) -> torch.Tensor:
        """This member's piece of ``attention`` over the whole row."""
        return attention(query_1nHD, key_1nhD, value_1nhD)


class UlyssesGroup(SequenceGroup):
    """``size`` consecutive ranks. Made by all processes of the run together."""

    def __init__(self, size: int) -> None:
        from torch import distributed

        self._distributed = distributed
        world, own = distributed.get_world_size(), distributed.get_rank()
        self.size, self.rank = size, own % size
        for first in range(0, world, size):
            group = distributed.new_group(range(first, first + size))  # every process has to make every group
            if first <= own < first + size:
                self._group = group

    def piece(self, values_P: torch.Tensor) -> torch.Tensor:
        return values_P.chunk(self.size)[self.rank]

    def whole(self, values_n: torch.Tensor) -> torch.Tensor:
        pieces = [torch.empty_like(values_n) for _ in range(self.size)]
        self._distributed.all_gather(pieces, values_n.detach().contiguous(), group=self._group)
        pieces[self.rank] = values_n
        return torch.cat(pieces)

    def attend(
        self, attention: Attention, query_1nHD: torch.Tensor, key_1nhD: torch.Tensor, value_1nhD: torch.Tensor
    ) -> torch.Tensor:
        from deepspeed.sequence.layer import DistributedAttention

        copies = max(1, self.size // key_1nhD.shape[2])  # of each key and value head, where members outnumber them
        if copies > 1:
            key_1nhD, value_1nhD = (one.repeat_interleave(copies, dim=2) for one in (key_1nhD, value_1nhD))
        exchanged: Any = DistributedAttention(attention, self._group, scatter_idx=2, gather_idx=1)
        result: torch.Tensor = exchanged(query_1nHD, key_1nhD, value_1nhD, 0)
        return result


def open_sequence_group(size: int) -> SequenceGroup:
    """The group of this process; all processes of the run together. UserError: see ``check_group``."""
    if size == 1:
        return SequenceGroup()
    check_group(size, torch.distributed.get_world_size())
    return UlyssesGroup(size)


def check_group(size: int, processes: int) -> None:
    """Raise UserError where the processes of the run cannot be divided into groups of ``size``."""
    if processes % size:
        raise UserError(
            f"train.learner.sequence_parallel_size: {size} does not divide the {processes} "
            f"process{'es' if processes > 1 else ''} of the run; start a multiple of it (--nproc)"
        )


def check_heads(heads: int, kv_heads: int, size: int) -> None:
    """Raise UserError where the heads of a model cannot be divided over ``size`` processes.

    Fewer key and value heads than processes are copied, as often as it takes.
    """
    if heads % size:
        raise UserError(
            f"train.learner.sequence_parallel_size: the model has {heads} attention heads, which {size} processes "
            f"cannot share; it must divide {heads}"
        )
    if kv_heads % size and size % kv_heads:
        raise UserError(
            f"train.learner.sequence_parallel_size: the model has {kv_heads} key and value heads; "
            f"{size} must be a divisor or a multiple of that"
        )
