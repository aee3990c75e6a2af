"""How gains relate to the base's pass rate, without regression to the mean. Pure.

Problems that the base solved rarely in a set of samples were partly unlucky: in other samples it solves them more
often, training or not. So a problem's bin is found with one half of the base's samples, and what it gains is measured
against the other half. Every way of halving the samples is as good: the table is the exact mean over all of them (of a
problem with c of n right, the half has a right with hypergeometric probability), and a problem counts in several bins,
with weights that add up to 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulorl.evaluate.boundary.bands import pass_table
from ulorl.evaluate.statistics import two_sided_quantile

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
EDGES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
"""Bins of the base's rate: exactly 0, then above one edge up to the next."""
FEWEST = 5.0
"""Problems in a bin, by weight, below which it has no interval."""
_ROUNDING = 1e-9


def by_base_rate(base_P: IntArray, trained_P: IntArray, samples: int) -> dict[str, Any] | None:
    """The table: ``samples`` of a half, and for each bin that has problems ``above`` and ``up_to`` (the base's rate in
    the first half), ``problems`` (by weight), ``base`` (its rate in the second half), ``trained``, their
    ``difference`` with its interval for problems like these; and the same of ``base_solves`` and ``trained_solves``:
    the shares of problems that as many samples as the second half has solve. None with a single sample.
    """
    half = samples // 2
    if not half:
        return None
    rest = samples - half
    ways_CA = _halves(samples, half)
    left_CA = np.arange(samples + 1)[:, None] - np.arange(half + 1)[None, :]
    solves_P = pass_table(samples)[trained_P, rest - 1]
    rate_A = np.arange(half + 1) / half
    rows = []
    for above, up_to in zip((-1.0, *EDGES[:-1]), EDGES, strict=True):
        bin_CA = ways_CA[:, (rate_A > above) & (rate_A <= up_to)]
        rest_CA = left_CA[:, (rate_A > above) & (rate_A <= up_to)]
        weight_P = bin_CA.sum(axis=1)[base_P]
        if weight_P.sum() < 1e-9:
            continue
        base_rate_P = (bin_CA * rest_CA / rest).sum(axis=1)[base_P]
        base_solves_P = (bin_CA * (rest_CA > 0)).sum(axis=1)[base_P]
        rows.append(
            {
                "above": None if above < 0 else above,
                "up_to": up_to,
                "problems": float(weight_P.sum()),
                **_change(weight_P, base_rate_P, weight_P * trained_P / samples, ("base", "trained", "")),
                **_change(weight_P, base_solves_P, weight_P * solves_P, ("base_solves", "trained_solves", "solves_")),
            }
        )
    return {"samples": half, "bins": rows}


def _change(weight_P: FloatArray, base_P: FloatArray, trained_P: FloatArray, names: tuple[str, str, str]) -> Any:
    """Weighted means and their difference. Its error is that of a ratio, linearised, with problems as units; Student's
    t with as many problems as equal weights would have."""
    total = float(weight_P.sum())
    base, trained = float(base_P.sum()) / total, float(trained_P.sum()) / total
    difference = trained - base
    problems = total**2 / float(np.sum(weight_P**2))
    residual_P = trained_P - base_P - difference * weight_P
    interval = None
    if problems >= FEWEST and np.abs(residual_P).max() > _ROUNDING:
        error = math.sqrt(float(np.sum(residual_P**2)) * problems / (problems - 1)) / total
        margin = two_sided_quantile(int(problems)) * error
        interval = [max(-1.0, difference - margin), min(1.0, difference + margin)]
    first, second, prefix = names
    return {first: base, second: trained, f"{prefix}difference": difference, f"{prefix}interval": interval}


def _halves(samples: int, half: int) -> FloatArray:
    """Probability that ``half`` of the samples hold a right ones if all hold c; shape (samples + 1, half + 1)."""
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, samples + 1)))])

    def log_ways(n: NDArray[np.int64], k: NDArray[np.int64]) -> FloatArray:
        possible = (k >= 0) & (k <= n)
        n, k = np.maximum(n, 0), np.clip(k, 0, np.maximum(n, 0))
        return np.where(possible, logs[n] - logs[k] - logs[n - k], -np.inf)

    c, a = np.arange(samples + 1)[:, None], np.arange(half + 1)[None, :]
    whole = logs[samples] - logs[half] - logs[samples - half]
    return np.asarray(np.exp(log_ways(c, a) + log_ways(samples - c, half - a) - whole))
