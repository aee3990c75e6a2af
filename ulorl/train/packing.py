"""Sequences of a micro-batch one behind the other in a single row, without padding.

Invariants:
- a row holds each sequence up to its last predicted response token, in order; positions start at 0 in each;
- attention never crosses the border of a sequence (``packed_attention``), so that log-probs, loss and gradient are
  those of padded rows;
- the row's length is a multiple of the processes that share it; what is filled in is a sequence of its own.

Attention is computed by flash-attention's kernel for sequences of any length where that package is installed (on a GPU,
in half precision); elsewhere consecutive sequences of similar length are padded for it, and for it alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch

from ulorl.errors import UserError
from ulorl.train.sequence_parallel import SequenceGroup

PACKED = "ulorl_packed"
"""The name under which transformers knows ``packed_attention``."""
_APART = {"full_attention", "sliding_attention"}
_UNSUPPORTED = ("softcap", "s_aux", "position_bias")
"""What some models pass to their attention, and neither kernel here takes into account."""


@dataclass(frozen=True)
class Layout:
    """Where the sequences of a row lie: their lengths, in order, and the processes that share it."""

    lengths: tuple[int, ...]
    group: SequenceGroup


@dataclass(frozen=True)
class Row:
    """P tokens, the positions they have in their sequences, and the places of the padded tensors they come from."""

    tokens_P: torch.Tensor
    targets_P: torch.Tensor
    positions_P: torch.Tensor
    response_P: torch.Tensor
    layout: Layout


def pack(tokens_BL: torch.Tensor, response_BT: torch.Tensor, group: SequenceGroup) -> Row:
    """The row of padded sequences (T = L - 1); ``response_BT`` marks positions whose target is a response token.

    ``response_P`` keeps their order. Nothing after a sequence's last response is in it: no earlier token sees that.
    """
    needed_BT = response_BT.flip(1).cummax(1).values.flip(1)
    lengths = [length for length in needed_BT.sum(1).tolist() if length]
    filled = -sum(lengths) % group.size or (0 if lengths else group.size)
    positions_BT = torch.arange(response_BT.shape[1], device=tokens_BL.device).expand_as(response_BT)

    def row(values_BT: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.pad(values_BT[needed_BT], (0, filled))

    return Row(
        tokens_P=row(tokens_BL[:, :-1]),
        targets_P=row(tokens_BL[:, 1:]),
        positions_P=row(positions_BT),
        response_P=row(response_BT),
        layout=Layout((*lengths, filled) if filled else tuple(lengths), group),
    )


def unpackable(model: Any) -> str | None:
    """Why the sequences of a row could not be kept apart in this Hugging Face model; None where they can."""
    config = model.config.get_text_config()
    if not (model._supports_attention_backend and model._supports_sdpa):
        return "its attention cannot be replaced"
    if model._is_stateful or not set(getattr(config, "layer_types", None) or ()) <= _APART:
        return "it has layers that carry a state along the row"
    if getattr(config, "attn_logit_softcapping", None):
        return "it caps its attention logits"
    return None


def register() -> None:
    """Make ``packed_attention`` known to transformers, once."""
    from transformers import AttentionInterface

    AttentionInterface.register(PACKED, packed_attention)


def packed_attention(
    module: torch.nn.Module,
    query_1HnD: torch.Tensor,
    key_1hnD: torch.Tensor,
    value_1hnD: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    layout: Layout | None = None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    **settings: Any,
) -> tuple[torch.Tensor, None]:
    """Causal attention within each sequence of the row, in the interface of transformers: returns (1, n, H, D)."""
    odd = [name for name in _UNSUPPORTED if settings.get(name) is not None]
    if layout is None or odd or attention_mask is not None:
        what = odd[0] if odd else "a mask of its own" if layout else "layers that are not told where sequences end"
        raise UserError(f'model: its attention has {what}; packed rows need train.learner.packing = "never" here')

    def attention(query_1PHD: torch.Tensor, key_1PhD: torch.Tensor, value_1PhD: torch.Tensor) -> torch.Tensor:
        kernel = _flash if flash_kernel(query_1PHD.device.type, query_1PHD.dtype) else _in_blocks
        return kernel(
            query_1PHD[0], key_1PhD[0], value_1PhD[0], layout.lengths, scaling, dropout, sliding_window
        ).unsqueeze(0)

    query, key, value = (one.transpose(1, 2) for one in (query_1HnD, key_1hnD, value_1hnD))
    return layout.group.attend(attention, query, key, value), None


def flash_kernel(device: str, dtype: torch.dtype) -> bool:
    """Whether attention in packed rows is flash-attention's own."""
    return device == "cuda" and dtype in (torch.bfloat16, torch.float16) and _flash_installed()


@cache
def _flash_installed() -> bool:
    return find_spec("flash_attn") is not None


def _flash(
    query_PHD: torch.Tensor,
    key_PhD: torch.Tensor,
    value_PhD: torch.Tensor,
    lengths: Sequence[int],
    scaling: float | None,
    dropout: float,
    window: int | None,
) -> torch.Tensor:
    from flash_attn import flash_attn_varlen_func

    bounds = torch.tensor([0, *lengths], device=query_PHD.device).cumsum(0).to(torch.int32)
    result: torch.Tensor = flash_attn_varlen_func(
        query_PHD,
        key_PhD,
        value_PhD,
        cu_seqlens_q=bounds,
        cu_seqlens_k=bounds,
        max_seqlen_q=max(lengths),
        max_seqlen_k=max(lengths),
        dropout_p=dropout,
        softmax_scale=scaling,
        causal=True,
        window_size=(-1, -1) if window is None else (window - 1, 0),
    )
    return result


def _in_blocks(
    query_PHD: torch.Tensor,
    key_PhD: torch.Tensor,
    value_PhD: torch.Tensor,
    lengths: Sequence[int],
    scaling: float | None,
    dropout: float,
    window: int | None,
) -> torch.Tensor:
    """Blocks of consecutive sequences of similar length, padded on the right: causal attention needs no mask there."""
    results, start = [], 0
    for block in _blocks(lengths):
        count, longest, size = len(block), max(block), sum(block)
        span = slice(start, start + size)
        start += size
        places_N = _places(block, longest, query_PHD.device)
        query, key, value = (
            _padded(one[span], places_N, count, longest).transpose(1, 2) for one in (query_PHD, key_PhD, value_PhD)
        )
        mask = _band(longest, window, query.device) if window is not None and window < longest else None
        groups = query.shape[1] // key.shape[1]
        if mask is not None and groups > 1:  # with a mask, kernels other than the slowest take no grouped heads
            key, value = (one.repeat_interleave(groups, dim=1) for one in (key, value))
        result_BHLD = torch.nn.functional.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=mask,
            dropout_p=dropout,
            is_causal=mask is None,
            scale=scaling,
            enable_gqa=query.shape[1] != key.shape[1],
        )
        result_MHD = result_BHLD.transpose(1, 2).flatten(0, 1)
        results.append(result_MHD if places_N is None else result_MHD.index_select(0, places_N))
    return torch.cat(results)


def _blocks(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Consecutive lengths, the longest of a block at most twice the shortest."""
    block: list[int] = []
    for length in lengths:
        if block and max(*block, length) > 2 * min(*block, length):
            yield block
            block = []
        block.append(length)
    if block:
        yield block


def _places(block: Sequence[int], longest: int, device: torch.device) -> torch.Tensor | None:
    """Where the tokens of the block lie when it is padded; None where there is nothing to pad."""
    if len(block) * longest == sum(block):
        return None
    lengths_B1 = torch.tensor(block, device=device).unsqueeze(1)
    inside_BL = torch.arange(longest, device=device) < lengths_B1
    return inside_BL.flatten().nonzero().squeeze(1)


def _padded(values_NHD: torch.Tensor, places_N: torch.Tensor | None, count: int, longest: int) -> torch.Tensor:
    if places_N is not None:
        zeros_MHD = values_NHD.new_zeros(count * longest, *values_NHD.shape[1:])
        values_NHD = zeros_MHD.index_copy(0, places_N, values_NHD)
    return values_NHD.unflatten(0, (count, longest))


def _band(length: int, window: int, device: torch.device) -> torch.Tensor:
    """Boolean (L, L): a query sees the ``window`` tokens up to itself."""
    places_L = torch.arange(length, device=device)
    distance_LL = places_L.unsqueeze(1) - places_L
    return (distance_LL >= 0) & (distance_LL < window)
