"""Intervals for means over problems x samples, and for differences paired by problem.

Two questions, two intervals, always named:
- "these problems": the same problems sampled again; only the samples vary;
- "problems like these": other problems of the kind; problems vary, so the problem is the unit (clustered),
  with Student's t on problems - 1 degrees of freedom, corrected where the values are skew (pass@k near 1).
Taking problems x samples as independent answers neither, and covers far less than it says.

Invariant: an interval that the data cannot give is None, never of width zero (one problem, no spread at all).
Does not: test or correct for several benchmarks (``ulorl.evaluate.significance``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Population = Literal["these problems", "problems like these"]
LEVEL = 0.95
POWER = 0.8
SKEW = 1.0
"""Skewness of the problems' values from which their interval is corrected for it."""
DAMPING = 0.8
"""Share of the skewness that the correction takes."""


@dataclass(frozen=True)
class Interval:
    """An interval that covers the true mean in a share ``level`` of repetitions, for ``population``."""

    population: Population
    low: float
    high: float
    level: float = LEVEL


@dataclass(frozen=True)
class PairedDifference:
    """Mean of after - before over problems. ``detectable`` is the smallest true difference found with
    probability POWER at this spread; both it and the interval are None without a spread over problems."""

    mean: float
    problems: int
    interval: Interval | None
    detectable: float | None


def these_problems(values_P: FloatArray, variances_P: FloatArray, level: float = LEVEL) -> Interval | None:
    """Interval for the mean of ``values_P`` (in [0, 1]) from the sampling variance of each problem's value.

    None where a variance is unknown (nan: too few samples of a problem) or all are zero.
    """
    if np.isnan(variances_P).any() or not variances_P.any():
        return None
    error = math.sqrt(float(np.sum(variances_P))) / len(values_P)
    margin = NormalDist().inv_cdf((1 + level) / 2) * error
    return _share(float(np.mean(values_P)), margin, "these problems", level)


def problems_like_these(values_P: FloatArray, level: float = LEVEL) -> Interval | None:
    """Interval for the mean of problems drawn like those of ``values_P`` (in [0, 1])."""
    bounds = _clustered_bounds(values_P, level)
    if bounds is None:
        return None
    return Interval("problems like these", max(0.0, bounds[0]), min(1.0, bounds[1]), level)


def paired_difference(before_P: FloatArray, after_P: FloatArray, level: float = LEVEL) -> PairedDifference:
    """Difference of two runs on the same problems, in the same order, for problems like these."""
    if before_P.shape != after_P.shape or not len(before_P):
        raise ValueError(f"need the same problems in both, got shapes {before_P.shape} and {after_P.shape}")
    difference_P = after_P - before_P
    mean = float(np.mean(difference_P))
    problems = len(difference_P)
    bounds = _clustered_bounds(difference_P, level)
    if bounds is None:
        return PairedDifference(mean, problems, None, None)
    # Two-sided test at 1 - level, normal approximation of the power.
    df = problems - 1
    error = float(np.std(difference_P, ddof=1)) / math.sqrt(problems)
    detectable = (t_quantile((1 + level) / 2, df) + t_quantile(POWER, df)) * error
    interval = Interval("problems like these", *bounds, level)
    return PairedDifference(mean, problems, interval, detectable)


def these_problems_difference(
    before_P: FloatArray, after_P: FloatArray, variances_P: FloatArray, level: float = LEVEL
) -> Interval | None:
    """Interval for the mean of after - before on these very problems, from the sampling variance of each problem's
    difference (the sum of both runs'). None as ``these_problems``."""
    if np.isnan(variances_P).any() or not variances_P.any():
        return None
    mean = float(np.mean(after_P - before_P))
    margin = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(float(np.sum(variances_P))) / len(variances_P)
    return Interval("these problems", mean - margin, mean + margin, level)


def _clustered_bounds(values_P: FloatArray, level: float) -> tuple[float, float] | None:
    """Student's interval for the mean, with Hall's correction where the values are skewer than SKEW.

    P. Hall, On the removal of skewness by transformation, JRSS B 54 (1992): a monotone cubic of the studentised
    mean, inverted. Without it, the interval of pass@k near 1 covers far less than its level; with all of the skewness
    of so few bounded values it covers more (both by simulation, ``benchmarks/evaluate.py``): hence DAMPING.
    """
    problems = len(values_P)
    if problems < 2 or np.ptp(values_P) == 0:
        return None
    mean, spread = float(np.mean(values_P)), float(np.std(values_P, ddof=1))
    limit = t_quantile((1 + level) / 2, problems - 1) / math.sqrt(problems)
    skewness = float(np.mean((values_P - mean) ** 3) / np.std(values_P) ** 3)
    if abs(skewness) <= SKEW:
        return mean - limit * spread, mean + limit * spread
    skewness *= DAMPING
    slope, offset = skewness / 3, skewness / (6 * problems)

    def inverse(y: float) -> float:
        return (float(np.cbrt(1 + 3 * slope * (y - offset))) - 1) / slope

    return mean - inverse(limit) * spread, mean - inverse(-limit) * spread


def _share(mean: float, margin: float, population: Population, level: float) -> Interval:
    return Interval(population, max(0.0, mean - margin), min(1.0, mean + margin), level)


@lru_cache(maxsize=1024)
def t_quantile(p: float, df: int) -> float:
    """Quantile of Student's t for 0.5 <= p < 1 and an integer df >= 1, to about 1e-12 relative.

    Bisection on the distribution function, whose series are finite for integer df
    (Abramowitz and Stegun, 26.7.3 and 26.7.4).
    """
    if not (0.5 <= p < 1 and df >= 1):
        raise ValueError(f"t_quantile({p}, {df}): needs 0.5 <= p < 1 and df >= 1")
    low, high = 0.0, math.pi / 2  # of theta = atan(t / sqrt(df)); bounded, whatever the quantile
    for _ in range(60):
        middle = (low + high) / 2
        if (1 + _central(middle, df)) / 2 < p:
            low = middle
        else:
            high = middle
    return math.tan((low + high) / 2) * math.sqrt(df)


def _central(theta: float, df: int) -> float:
    """P(|T| < sqrt(df) tan(theta))."""
    cosine2 = math.cos(theta) ** 2
    odd = df % 2
    steps = np.arange(1, (df - 2 - odd) // 2 + 1, dtype=np.float64)
    factors = 2 * steps / (2 * steps + 1) if odd else (2 * steps - 1) / (2 * steps)
    series = 1.0 + float(np.sum(np.cumprod(factors * cosine2)))
    if not odd:
        return math.sin(theta) * series
    if df == 1:
        return 2 * theta / math.pi
    return 2 / math.pi * (theta + math.sin(theta) * math.cos(theta) * series)
