"""Group-relative advantages and the rewards they are made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ulorl.recipe_train import Advantage

EPSILON = 1e-6
"""Added to the standard deviation; matters only for groups that are almost uniform."""


def advantages(rewards_GS: NDArray[np.float64], kind: Advantage = "grpo") -> NDArray[np.float64]:
    """Advantages of each sample within its group, shape (groups, samples); a uniform group gets zeros.

    - `grpo`: (reward - group mean) / (group standard deviation + EPSILON) (Shao et al. 2024, arXiv 2402.03300). The
      standard deviation is the sample's (divided by S - 1), as in the public trainers; the papers do not say which.
    - `centred`: reward - group mean, without the deviation, which weighs easy and hard problems up (Liu et al. 2025,
      arXiv 2503.20783).
    - `leave_one_out`: reward - mean of the other members (Ahmadian et al. 2024, arXiv 2402.14740).
    """
    centred_GS = rewards_GS - rewards_GS.mean(axis=1, keepdims=True)
    if kind == "grpo":
        return centred_GS / (rewards_GS.std(axis=1, ddof=1, keepdims=True) + EPSILON)
    size = rewards_GS.shape[1]
    return centred_GS if kind == "centred" else centred_GS * size / (size - 1)


def soft_overlong(length: int, max_tokens: int, buffer: int) -> float:
    """DAPO's soft overlong punishment (Yu et al. 2025, arXiv 2503.14476, Eq. 13): what is added to the reward.

    0 up to ``max_tokens - buffer`` tokens, then linear to -1 at ``max_tokens``.
    """
    return -max(0.0, (length - (max_tokens - buffer)) / buffer)


def is_uniform(rewards: list[float]) -> bool:
    """True when all members of a group have the same reward, so that the group carries no advantage."""
    return min(rewards) == max(rewards)
