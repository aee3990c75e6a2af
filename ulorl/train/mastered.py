"""DMMPTs: dynamic masking of well-mastered positive tokens (UloRL, section on entropy collapse).

A token is a mastered positive token (MPT) when its response was rewarded and its probability under the policy
is at least tau. MPTs are left out of the loss while entropy is below the target sigma. Entropy is over the full
vocabulary, at the sampling temperature, averaged over response tokens, measured before the update.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

ENTROPY_DEFINITION = "nats, full vocabulary, sampling temperature, mean over response tokens, before the update"
"""What every entropy that is shown means."""


def mastered_tokens(
    logprobs_BT: torch.Tensor, response_BT: torch.Tensor, rewards_B: torch.Tensor, tau: float
) -> torch.Tensor:
    """Boolean (B, T): response tokens of reward-1 samples whose probability is at least ``tau``."""
    rewarded_B1 = (rewards_B >= 1.0).unsqueeze(1)
    return response_BT & rewarded_B1 & (logprobs_BT >= math.log(tau))


def response_entropy(entropy_BT: torch.Tensor, response_BT: torch.Tensor) -> torch.Tensor:
    """H_i of the paper's Eq. 10 (with the minus sign it lost): mean entropy of each response, shape (B,)."""
    lengths_B = response_BT.sum(dim=1).clamp(min=1)
    return (entropy_BT * response_BT).sum(dim=1) / lengths_B


def masked_tokens(mastered_BT: torch.Tensor, entropy_B: torch.Tensor, sigma: float) -> torch.Tensor:
    """Boolean (B, T): the tokens to leave out. ``entropy_B`` is H_i, or the batch's entropy repeated."""
    return mastered_BT & (entropy_B < sigma).unsqueeze(1)
