"""Log-prob and entropy of each token from hidden states, without holding the logits of all tokens at once.

Tokens are worked off in tiles; each tile's logits are computed, reduced, dropped, and computed again in the
backward pass. Peak memory is that of one tile's logits instead of (tokens x vocabulary).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

TILE_LOGITS = 32 * 1024 * 1024
"""Logits of one tile: 128 MiB in fp32."""


def _tile(
    hidden_NH: torch.Tensor,
    targets_N: torch.Tensor,
    head: Callable[[torch.Tensor], torch.Tensor],
    temperature: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    import torch

    logprobs_NV = torch.log_softmax(head(hidden_NH).float() / temperature, dim=-1)
    with torch.no_grad():
        entropy_N = -(logprobs_NV.exp() * logprobs_NV).sum(dim=-1)
    return logprobs_NV.gather(1, targets_N.unsqueeze(1)).squeeze(1), entropy_N


def token_logprobs(
    hidden_NH: torch.Tensor,
    targets_N: torch.Tensor,
    head: Callable[[torch.Tensor], torch.Tensor],
    *,
    vocab_size: int,
    temperature: float,
    tile_logits: int = TILE_LOGITS,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probs of ``targets_N`` and entropies, both (N,), fp32, nats, at ``temperature``.

    ``head`` maps (n, H) to logits (n, V). The entropy carries no gradient.
    """
    import torch
    from torch.utils.checkpoint import checkpoint

    rows = max(1, tile_logits // vocab_size)
    logprobs, entropies = [], []
    for start in range(0, hidden_NH.shape[0], rows):
        tile = hidden_NH[start : start + rows], targets_N[start : start + rows], head, temperature
        if torch.is_grad_enabled() and hidden_NH.shape[0] > rows:
            logprob_n, entropy_n = checkpoint(_tile, *tile, use_reentrant=False)
        else:
            logprob_n, entropy_n = _tile(*tile)
        logprobs.append(logprob_n)
        entropies.append(entropy_n)
    if not logprobs:
        return hidden_NH.new_zeros(0), hidden_NH.new_zeros(0)
    return torch.cat(logprobs), torch.cat(entropies)
