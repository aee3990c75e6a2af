"""The clipped surrogate, averaged over tokens (UloRL's J; DAPO's token-level loss).

Under POIS the old log-probs of *all* tokens are those of the policy at the start of the step, whichever policy
sampled them: at the first update the ratio is exactly 1 and nothing is clipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class PolicyLoss:
    """``loss``: scalar to minimise, this part's share of the whole. ``clipped``: tokens whose ratio was clipped."""

    loss: torch.Tensor
    clipped: torch.Tensor


def policy_loss(
    logprobs_BT: torch.Tensor,
    old_logprobs_BT: torch.Tensor,
    advantages_B: torch.Tensor,
    trained_BT: torch.Tensor,
    *,
    total_tokens: int,
    clip_low: float,
    clip_high: float,
) -> PolicyLoss:
    """-1 / total_tokens * sum of min(r A, clip(r, 1 - clip_low, 1 + clip_high) A) over ``trained_BT``.

    ``total_tokens`` counts the response tokens of the whole update, masked ones included, over all micro-batches,
    so that the sum over micro-batches does not depend on how they were cut.
    """
    import torch

    advantages_B1 = advantages_B.unsqueeze(1)
    ratio_BT = torch.exp(torch.where(trained_BT, logprobs_BT - old_logprobs_BT, 0.0))
    clipped_BT = ratio_BT.clamp(1 - clip_low, 1 + clip_high)
    surrogate_BT = torch.minimum(ratio_BT * advantages_B1, clipped_BT * advantages_B1)
    loss = -torch.where(trained_BT, surrogate_BT, 0.0).sum() / total_tokens
    acted_BT = trained_BT & (clipped_BT * advantages_B1 < ratio_BT * advantages_B1)
    return PolicyLoss(loss, acted_BT.sum().detach())
