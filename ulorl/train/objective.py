"""The clipped surrogate with its ratio, correction, KL penalty and entropy bonus, and how tokens are averaged.

Ratios (r = exp(log-prob - old log-prob)) differ in the old log-prob:
- `pois` (UloRL): that of the policy at the start of the step, for *all* tokens, whichever policy sampled them; at
  the first update the ratio is exactly 1 and nothing is clipped;
- `tois`: the same, in runs where a sample is one segment, a step one update, and all that trains is of the step, so
  that it is the truth;
- `sais`: that recorded when the token was sampled, segment by segment.

The normaliser is fixed before the update is cut into micro-batches: every token has a weight that depends on the
whole update alone, so the sum over micro-batches and processes does not depend on the cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ulorl.recipe_train import Aggregation, Correction, KLEstimator


@dataclass(frozen=True)
class PolicyLoss:
    """``loss``: scalar to minimise, this part's share of the whole. ``clipped``: tokens whose ratio was clipped.
    ``kl``: sum of the KL estimates over response tokens (0 without a reference)."""

    loss: torch.Tensor
    clipped: torch.Tensor
    kl: torch.Tensor


def token_weights(lengths: Sequence[int], aggregation: Aggregation, constant_length: int) -> list[float]:
    """The weight of each token of each sample in the loss; ``lengths`` are those of all samples of the update.

    `token`: 1 / sum of lengths (UloRL's J, DAPO), masked tokens included in the count. `sequence`: the mean over
    samples of the mean over tokens (GRPO). `constant`: 1 / (samples x ``constant_length``) (Liu et al. 2025, arXiv
    2503.20783).
    """
    count = len(lengths)
    if aggregation == "token":
        return [1.0 / max(1, sum(lengths))] * count
    if aggregation == "sequence":
        return [1.0 / (count * max(1, length)) for length in lengths]
    return [1.0 / (count * constant_length)] * count


def correction_weights(
    old_logprobs_BT: torch.Tensor,
    behaviour_logprobs_BT: torch.Tensor,
    current_BT: torch.Tensor,
    correction: Correction,
    low: float,
    high: float,
) -> torch.Tensor:
    """Weights (B, T) that correct what the trainer's log-probs and the engine's differ by, token by token.

    With w = exp(old - behaviour): `truncated` gives min(w, ``high``) (truncated importance sampling); `two_sided`
    gives w where ``low`` <= w <= ``high`` and 0 elsewhere. Only ``current_BT`` is corrected, the tokens that the
    policy of this very step sampled: POIS takes older ones as if it had sampled them too. Nothing is ever summed
    before the exponential, so no sample is lost for its length.
    """
    ones_BT = torch.ones_like(old_logprobs_BT)
    if correction == "none":
        return ones_BT
    weights_BT = torch.exp(torch.where(current_BT, old_logprobs_BT - behaviour_logprobs_BT, 0.0))
    if correction == "truncated":
        return torch.where(current_BT, weights_BT.clamp(max=high), ones_BT)
    inside_BT = (weights_BT >= low) & (weights_BT <= high)
    return torch.where(current_BT, torch.where(inside_BT, weights_BT, 0.0), ones_BT)


def kl_estimate(logprobs_BT: torch.Tensor, reference_BT: torch.Tensor, estimator: KLEstimator) -> torch.Tensor:
    """KL(policy || reference) from one sample a token (Schulman, "Approximating KL divergence"), shape (B, T).

    With d = log-prob - reference's: `k1` is d, `k2` d^2 / 2, `k3` exp(-d) - 1 + d. As a loss, k1 pulls nowhere on
    average; the gradient of k2 is that of the KL where the policy sampled the token.
    """
    difference_BT = logprobs_BT - reference_BT
    if estimator == "k1":
        return difference_BT
    if estimator == "k2":
        return difference_BT.square() / 2
    return torch.expm1(-difference_BT) + difference_BT


def policy_loss(
    logprobs_BT: torch.Tensor,
    old_logprobs_BT: torch.Tensor,
    advantages_B: torch.Tensor,
    response_BT: torch.Tensor,
    weights_BT: torch.Tensor,
    *,
    clip_low: float,
    clip_high: float,
    masked_BT: torch.Tensor | None = None,
    correction_BT: torch.Tensor | None = None,
    entropy_BT: torch.Tensor | None = None,
    entropy_bonus: float = 0.0,
    reference_BT: torch.Tensor | None = None,
    kl_coefficient: float = 0.0,
    kl_estimator: KLEstimator = "k3",
) -> PolicyLoss:
    """Sum over response tokens of -weight * (c * min(r A, clip(r, 1 - clip_low, 1 + clip_high) A) + ...).

    ``masked_BT`` (DMMPTs) leaves tokens out of the surrogate alone; they still count in ``weights_BT``, and the KL
    penalty and the entropy bonus hold for them too. ``correction_BT`` is c, without gradient.
    """
    advantages_B1 = advantages_B.unsqueeze(1)
    trained_BT = response_BT if masked_BT is None else response_BT & ~masked_BT
    ratio_BT = torch.exp(torch.where(trained_BT, logprobs_BT - old_logprobs_BT, 0.0))
    clipped_BT = ratio_BT.clamp(1 - clip_low, 1 + clip_high)
    surrogate_BT = torch.minimum(ratio_BT * advantages_B1, clipped_BT * advantages_B1)
    acted_BT = trained_BT & (clipped_BT * advantages_B1 < ratio_BT * advantages_B1)
    if correction_BT is not None:
        surrogate_BT = surrogate_BT * correction_BT
    objective_BT = torch.where(trained_BT, surrogate_BT, 0.0)
    kl_BT = torch.zeros_like(logprobs_BT)
    if reference_BT is not None:
        kl_BT = torch.where(
            response_BT,
            kl_estimate(logprobs_BT, torch.where(response_BT, reference_BT, logprobs_BT), kl_estimator),
            0.0,
        )
        objective_BT = objective_BT - kl_coefficient * kl_BT
    if entropy_bonus and entropy_BT is not None:
        objective_BT = objective_BT + entropy_bonus * torch.where(response_BT, entropy_BT, 0.0)
    loss = -(objective_BT * weights_BT).sum()
    return PolicyLoss(loss, acted_BT.sum().detach(), kl_BT.sum().detach())
