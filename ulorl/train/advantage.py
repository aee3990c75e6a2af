"""Group-relative advantages (GRPO; Shao et al. 2024, arXiv 2402.03300)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

EPSILON = 1e-6
"""Added to the standard deviation; matters only for groups that are almost uniform."""


def grpo_advantages(rewards_GS: NDArray[np.float64]) -> NDArray[np.float64]:
    """(reward - group mean) / (group standard deviation + EPSILON), shape (groups, samples).

    The standard deviation is the sample's (divided by S - 1), as in the public GRPO trainers; the papers do
    not say which. A uniform group gets zeros.
    """
    centred_GS = rewards_GS - rewards_GS.mean(axis=1, keepdims=True)
    return centred_GS / (rewards_GS.std(axis=1, ddof=1, keepdims=True) + EPSILON)


def is_uniform(rewards: list[float]) -> bool:
    """True when all members of a group have the same reward, so that the group carries no advantage."""
    return min(rewards) == max(rewards)
