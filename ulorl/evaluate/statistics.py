"""Intervals for means over problems x samples, and for differences paired by problem.

Two questions, two intervals, always named:
- "these problems": the same problems sampled again; only the samples vary;
- "problems like these": other problems of the kind; problems vary, so the problem is the unit (clustered),
  with Student's t on problems - 1 degrees of freedom; for shares by Wilson's formula, which keeps within [0, 1].
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
TAIL = 0.5
"""Steps of one problem's value by which an interval is wider on the side of the tail, for each unit of skewness. Found
by simulation (``benchmarks/evaluate.py``)."""
MORE = 0.5
"""Problems more than there are that are taken to have changed by a step, in the error of a difference (the like of
Agresti and Min, Biometrics 61, 2005)."""

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Interval:
    """An interval that covers the true mean in a share ``level`` of repetitions, for ``population``."""

    population: Population
    low: float
    high: float
    level: float = LEVEL


@dataclass(frozen=True)
class PairedDifference:
    """Mean of after - before over problems; the interval is None without a spread over problems."""

    mean: float
    problems: int
    interval: Interval | None


def these_problems(values_P: FloatArray, variances_P: FloatArray, level: float = LEVEL) -> Interval | None:
    """Interval for the mean of ``values_P`` (in [0, 1]) from the sampling variance of each problem's value.

    None where a variance is unknown (nan: too few samples of a problem) or all are zero.
    """
    if np.isnan(variances_P).any() or not variances_P.any():
        return None
    error = math.sqrt(float(np.sum(variances_P))) / len(values_P)
    margin = NormalDist().inv_cdf((1 + level) / 2) * error
    return _share(float(np.mean(values_P)), margin, "these problems", level)


def problems_like_these(values_P: FloatArray, level: float = LEVEL, step: float = 0.0) -> Interval | None:
    """Interval for the mean of problems drawn like those of ``values_P`` (in [0, 1]).

    Wilson's interval (E. B. Wilson, JASA 22, 1927) with as many independent trials as have the variance of this mean
    (Korn and Graubard, Survey Methodology 24, 1998). ``step`` is how much one more right sample changes a problem's
    value at most (k / n for pass@k): where problems crowd at one end, those far from it are few or missing among
    these, and the interval is wider on their side.
    """
    problems = len(values_P)
    if problems < 2 or np.ptp(values_P) < _ROUNDING:
        return None
    mean, quantile = float(np.mean(values_P)), two_sided_quantile(problems, level)
    trials = mean * (1 - mean) * problems / float(np.var(values_P, ddof=1))
    shrunk = 1 + quantile**2 / trials
    middle = (mean + quantile**2 / (2 * trials)) / shrunk
    margin = quantile / shrunk * math.sqrt(mean * (1 - mean) / trials + quantile**2 / (4 * trials**2))
    below, above = _tails(values_P, step)
    return Interval("problems like these", max(0.0, middle - margin - below), min(1.0, middle + margin + above), level)


def paired_difference(
    before_P: FloatArray, after_P: FloatArray, level: float = LEVEL, step: float = 0.0
) -> PairedDifference:
    """Difference of two runs on the same problems, in the same order, for problems like these; ``step`` as in
    ``problems_like_these``."""
    if before_P.shape != after_P.shape or not len(before_P):
        raise ValueError(f"need the same problems in both, got shapes {before_P.shape} and {after_P.shape}")
    difference_P = after_P - before_P
    problems = len(difference_P)
    found = difference_bounds(difference_P, two_sided_quantile(problems, level), step)
    interval = None if found is None else Interval("problems like these", *found, level)
    return PairedDifference(float(np.mean(difference_P)), problems, interval)


def difference_bounds(difference_P: FloatArray, quantile: float, step: float = 0.0) -> tuple[float, float] | None:
    """Bounds for the mean difference at this ``quantile`` of its studentised mean; None without a spread.

    Where ``step`` is large few problems change, and then by as much: their spread says too little without MORE.
    """
    problems = len(difference_P)
    if problems < 2 or np.ptp(difference_P) < _ROUNDING:
        return None
    mean = float(np.mean(difference_P))
    margin = quantile * math.sqrt(float(np.var(difference_P, ddof=1)) / problems + MORE * (step / problems) ** 2)
    below, above = _tails(difference_P, step)
    return mean - margin - below, mean + margin + above


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


def two_sided_quantile(problems: int, level: float = LEVEL) -> float:
    """Student's quantile of a two-sided interval for the mean of this many problems."""
    return t_quantile((1 + level) / 2, max(1, problems - 1))


def _tails(values_P: FloatArray, step: float) -> tuple[float, float]:
    """What is added to an interval below and above, by the skewness of values that have a spread."""
    skewness = float(np.mean((values_P - np.mean(values_P)) ** 3) / np.std(values_P) ** 3)
    wider = TAIL * abs(skewness) * step / len(values_P)
    return (wider, 0.0) if skewness < 0 else (0.0, wider)


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
