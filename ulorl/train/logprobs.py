"""Log-prob and entropy of each token from hidden states, without ever holding the logits of all tokens.

Logits are computed in tiles of tokens x vocabulary, reduced as they come (a running maximum, sum of exponentials
and weighted sum, as in online softmax), dropped, and computed again in the backward pass. Peak memory is that of
one tile. The gradient of both results is exact: with p the softmax, l the log-prob of token t and H the entropy,
dl/dz_v = [v = t] - p_v and dH/dz_v = -p_v (log p_v + H).

What some models do to their logits is part of it (``LogitTransform``): a scale (Granite, Cohere), a soft cap (Gemma).

Does not: divide the vocabulary over processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

CPU_TILE = (1024, 4096)
"""Tokens x vocabulary of one tile: 16 MiB in fp32, near the caches."""
GPU_TILE = (4096, 16384)
"""256 MiB in fp32: few and large kernels."""


@dataclass(frozen=True)
class LogitTransform:
    """From the output layer to what softmax gets: z -> cap(``scale`` z) / ``temperature``; cap(x) = c tanh(x / c), with
    the ``softcap`` c if there is one."""

    temperature: float
    scale: float = 1.0
    softcap: float | None = None

    def apply_(self, logits_nv: torch.Tensor) -> torch.Tensor:
        """In place."""
        if self.softcap is None:
            return logits_nv.mul_(self.scale / self.temperature)
        return logits_nv.mul_(self.scale / self.softcap).tanh_().mul_(self.softcap / self.temperature)

    def slope(self, transformed_nv: torch.Tensor) -> torch.Tensor | float:
        """The derivative, from the result: tanh' = 1 - tanh^2."""
        if self.softcap is None:
            return self.scale / self.temperature
        capped_nv = transformed_nv * (self.temperature / self.softcap)
        return (1 - capped_nv.square_()).mul_(self.scale / self.temperature)


def token_logprobs(
    hidden_NH: torch.Tensor,
    targets_N: torch.Tensor,
    weight_VH: torch.Tensor,
    bias_V: torch.Tensor | None = None,
    *,
    temperature: float,
    scale: float = 1.0,
    softcap: float | None = None,
    tile: tuple[int, int] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probs of ``targets_N`` and entropies, both (N,), fp32, nats, of the softmax of the
    logits W h + b, after ``scale``, ``softcap`` and ``temperature`` (``LogitTransform``).

    Gradients flow from both into hidden states, weight and bias. ``tile``: tokens and vocabulary entries of a tile.
    """
    rows, columns = tile or (GPU_TILE if hidden_NH.is_cuda else CPU_TILE)
    result: tuple[torch.Tensor, torch.Tensor] = _TokenLogprobs.apply(
        hidden_NH, targets_N, weight_VH, bias_V, LogitTransform(temperature, scale, softcap), rows, columns
    )
    return result


class _TokenLogprobs(torch.autograd.Function):
    """One row block at a time; within it, one column block of the vocabulary at a time."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden_NH: torch.Tensor,
        targets_N: torch.Tensor,
        weight_VH: torch.Tensor,
        bias_V: torch.Tensor | None,
        transform: LogitTransform,
        rows: int,
        columns: int,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        count, vocabulary = hidden_NH.shape[0], weight_VH.shape[0]
        chosen_N = _accumulator(hidden_NH, count)
        lse_N, entropy_N = torch.empty_like(chosen_N), torch.empty_like(chosen_N)
        for row in _blocks(count, rows):
            hidden_nH, targets_n = hidden_NH[row], targets_N[row]
            top_n = chosen_N.new_full((hidden_nH.shape[0],), -torch.inf)
            total_n, weighted_n = torch.zeros_like(top_n), torch.zeros_like(top_n)
            for column in _blocks(vocabulary, columns):
                logits_nv = transform.apply_(_logits(hidden_nH, weight_VH, bias_V, column))
                _pick(chosen_N[row], logits_nv, targets_n, column)
                new_top_n = torch.maximum(top_n, logits_nv.amax(dim=1))
                scale_n = torch.exp(top_n - new_top_n)
                shifted_nv = logits_nv.sub_(new_top_n.unsqueeze(1))
                exponentials_nv = shifted_nv.exp()
                # The weighted sum is of logits relative to the running maximum, which moves by new_top - top.
                moved_n = torch.where(total_n > 0, total_n * (top_n - new_top_n), 0.0)
                weighted_n = scale_n * (weighted_n + moved_n) + (exponentials_nv * shifted_nv).sum(dim=1)
                total_n = scale_n * total_n + exponentials_nv.sum(dim=1)
                top_n = new_top_n
            lse_N[row] = top_n + total_n.log()
            entropy_N[row] = total_n.log() - weighted_n / total_n
        ctx.save_for_backward(hidden_NH, targets_N, weight_VH, bias_V, lse_N, entropy_N)
        ctx.settings = transform, rows, columns
        return chosen_N - lse_N, entropy_N.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        gradient_N, entropy_gradient_N = gradients
        hidden_NH, targets_N, weight_VH, bias_V, lse_N, entropy_N = ctx.saved_tensors
        transform, rows, columns = ctx.settings
        with_entropy = bool(entropy_gradient_N.any())
        hidden_gradient_NH = torch.zeros_like(hidden_NH, dtype=lse_N.dtype)
        weight_gradient_VH = torch.zeros_like(weight_VH, dtype=lse_N.dtype)
        bias_gradient_V = None if bias_V is None else torch.zeros_like(bias_V, dtype=lse_N.dtype)
        for row in _blocks(hidden_NH.shape[0], rows):
            hidden_nH, targets_n, lse_n1 = hidden_NH[row], targets_N[row], lse_N[row].unsqueeze(1)
            for column in _blocks(weight_VH.shape[0], columns):
                logprobs_nv = transform.apply_(_logits(hidden_nH, weight_VH, bias_V, column))
                transform_slope = transform.slope(logprobs_nv)
                logprobs_nv.sub_(lse_n1)
                slope_n1 = -gradient_N[row].unsqueeze(1)
                if with_entropy:
                    pull_nv = (logprobs_nv + entropy_N[row].unsqueeze(1)) * entropy_gradient_N[row].unsqueeze(1)
                    gradient_nv = logprobs_nv.exp_().mul_(slope_n1 - pull_nv)
                else:
                    gradient_nv = logprobs_nv.exp_().mul_(slope_n1)
                _add_at_targets(gradient_nv, gradient_N[row], targets_n, column)
                gradient_nv = gradient_nv.mul_(transform_slope).to(hidden_NH.dtype)
                hidden_gradient_NH[row] += gradient_nv @ weight_VH[column]
                weight_gradient_VH[column] += gradient_nv.T @ hidden_nH
                if bias_gradient_V is not None:
                    bias_gradient_V[column] += gradient_nv.sum(dim=0)
        return (
            hidden_gradient_NH.to(hidden_NH.dtype),
            None,
            weight_gradient_VH.to(weight_VH.dtype),
            None if bias_gradient_V is None or bias_V is None else bias_gradient_V.to(bias_V.dtype),
            None,
            None,
            None,
        )


def _blocks(length: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, length)) for start in range(0, length, size))


def _accumulator(like: torch.Tensor, count: int) -> torch.Tensor:
    """fp32, or float64 where the input is, so that the formulas can be checked in float64."""
    return torch.zeros(count, dtype=torch.promote_types(like.dtype, torch.float32), device=like.device)


def _logits(
    hidden_nH: torch.Tensor, weight_VH: torch.Tensor, bias_V: torch.Tensor | None, column: slice
) -> torch.Tensor:
    logits_nv = torch.nn.functional.linear(hidden_nH, weight_VH[column], None if bias_V is None else bias_V[column])
    return logits_nv.to(torch.promote_types(logits_nv.dtype, torch.float32))


def _inside(targets_n: torch.Tensor, column: slice) -> tuple[torch.Tensor, torch.Tensor]:
    """Which targets lie in the column block, and their places in it."""
    rows_k = ((targets_n >= column.start) & (targets_n < column.stop)).nonzero().squeeze(1)
    return rows_k, targets_n[rows_k] - column.start


def _pick(chosen_n: torch.Tensor, logits_nv: torch.Tensor, targets_n: torch.Tensor, column: slice) -> None:
    rows_k, places_k = _inside(targets_n, column)
    chosen_n[rows_k] = logits_nv[rows_k, places_k]


def _add_at_targets(
    gradient_nv: torch.Tensor, gradient_n: torch.Tensor, targets_n: torch.Tensor, column: slice
) -> None:
    rows_k, places_k = _inside(targets_n, column)
    gradient_nv[rows_k, places_k] += gradient_n[rows_k]
