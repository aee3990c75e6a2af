"""Is a loss real? Tests paired by problem, and Holm's correction over benchmarks. Pure.

For problems like these, the null hypothesis is that it makes no difference which of the two runs a problem's samples
came from, so that each problem's difference could as well have the other sign. Under it the p-value is exact (R. A.
Fisher, The Design of Experiments, 1935, section 21) whatever the distribution of difficulties, and however many
samples there are. A loss on few problems is seen by ``noise_p_value`` alone: certain on them, it says little about
others.

Invariant: the same differences give the same p-value, on every machine: the random flips have a fixed seed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ulorl.evaluate.statistics import t_quantile

FloatArray = NDArray[np.float64]
EXACT_PROBLEMS = 14
"""Problems with a difference up to which all sign patterns are counted."""
FLIPS = 19_999
_SEED = 20_250_729
_ROWS = 1000
"""Patterns drawn together; bounds memory."""
_ROUNDING = 1e-9


def loss_p_value(difference_P: FloatArray) -> float:
    """One-sided p-value of a loss: the share of sign patterns whose mean is at most the observed one.

    ``difference_P`` is after - before of each problem. Problems without a difference change nothing. Exact up to
    EXACT_PROBLEMS others; beyond, from FLIPS random patterns and the observed one.
    """
    moved = difference_P[np.abs(difference_P) > _ROUNDING]
    if not len(moved):
        return 1.0
    observed = float(moved.sum()) + _ROUNDING
    if len(moved) <= EXACT_PROBLEMS:
        patterns = np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved))
        return float(np.mean((1 - 2 * (patterns & 1)) @ moved <= observed))
    rng, as_low = np.random.default_rng(_SEED), 0
    for start in range(0, FLIPS, _ROWS):
        size = (min(_ROWS, FLIPS - start), len(moved))
        as_low += int(np.sum((1 - 2 * rng.integers(0, 2, size=size, dtype=np.int8)) @ moved <= observed))
    return (1 + as_low) / (1 + FLIPS)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Adjusted p-values (Holm 1979): rejecting those up to alpha keeps the chance of any false alarm below alpha."""
    adjusted, largest = {}, 0.0
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p))
        adjusted[name] = largest
    return {name: adjusted[name] for name in p_values}


def noise_p_value(difference_P: FloatArray, variances_P: FloatArray) -> float:
    """One-sided p-value of a loss on these very problems: that no chance of success fell, and samples alone differ.

    Normal approximation with the sampling variance of each problem's difference.
    """
    return NormalDist().cdf(float(np.sum(difference_P)) / math.sqrt(float(np.sum(variances_P))))


def smallest_noise_loss(variances_P: FloatArray, alpha: float, power: float) -> float:
    """The smallest true mean loss on these very problems that ``noise_p_value`` finds with probability ``power``."""
    normal = NormalDist()
    error = math.sqrt(float(np.sum(variances_P))) / len(variances_P)
    return (normal.inv_cdf(1 - alpha) + normal.inv_cdf(power)) * error


def smallest_loss(difference_P: FloatArray, alpha: float, power: float) -> float | None:
    """The smallest true mean loss that a one-sided test at ``alpha`` finds with probability ``power`` at this spread;
    None without a spread, or with so few problems that no loss whatever could be found."""
    problems = len(difference_P)
    if problems < 2 or 0.5**problems > alpha or np.ptp(difference_P) == 0:
        return None
    error = float(np.std(difference_P, ddof=1)) / math.sqrt(problems)
    return (t_quantile(1 - alpha, problems - 1) + t_quantile(power, problems - 1)) * error
