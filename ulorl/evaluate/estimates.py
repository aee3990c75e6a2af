"""Estimates of one benchmark: every number with both intervals, and what qualifies it beside it.

Pure: tables in, JSON types out. Shares are in [0, 1], lengths in tokens; what cannot be known is null.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ulorl.evaluate.estimators import ProblemCounts, avg_at_n, maj_at_k, pass_at_k, sampling_variance
from ulorl.evaluate.scores import counts_of
from ulorl.evaluate.statistics import Interval, problems_like_these, these_problems

FloatArray = NDArray[np.float64]


def estimate(scores: pa.Table, lengths: Sequence[int], ks: Sequence[int]) -> dict[str, Any]:
    """Estimates from the scores of one benchmark and the token counts of all its samples.

    ``intervals`` has an entry for "avg" and each "pass@k" and "maj@k", by the name of the population;
    there is none of "these problems" for maj@k, and none where k is the number of samples.
    """
    counts = counts_of(scores)
    values = {f"pass@{k}": pass_at_k(counts, k) for k in ks} | {f"maj@{k}": maj_at_k(counts, k) for k in ks}
    average = avg_at_n(counts)
    intervals = {"avg": _intervals(average, sampling_variance(counts, 1))}
    for k in ks:
        intervals[f"pass@{k}"] = _intervals(values[f"pass@{k}"], sampling_variance(counts, k))
        intervals[f"maj@{k}"] = _intervals(values[f"maj@{k}"], None)
    total = sum(one.samples for one in counts)
    length = np.asarray(lengths, dtype=np.float64)
    return {
        "problems": len(counts),
        "samples": _samples_each(counts),
        "avg": float(average.mean()),
        "pass_at_k": {str(k): float(values[f"pass@{k}"].mean()) for k in ks},
        "maj_at_k": {str(k): float(values[f"maj@{k}"].mean()) for k in ks},
        "intervals": intervals,
        "truncated": sum(scores["truncated"].to_pylist()) / total,
        "no_answer": sum(scores["no_answer"].to_pylist()) / total,
        "undecided": sum(scores["undecided"].to_pylist()) / total,
        "length": {
            "mean": float(length.mean()),
            "median": float(np.median(length)),
            "p95": float(np.quantile(length, 0.95)),
            "max": int(length.max()),
        },
    }


def bounds(interval: Interval | None) -> list[float] | None:
    """[low, high] for JSON."""
    return None if interval is None else [interval.low, interval.high]


def _samples_each(counts: Sequence[ProblemCounts]) -> int:
    """Samples of every problem: the least, where they differ."""
    return min(one.samples for one in counts)


def _intervals(values_P: FloatArray, variances_P: FloatArray | None) -> dict[str, list[float] | None]:
    return {
        "these problems": bounds(None if variances_P is None else these_problems(values_P, variances_P)),
        "problems like these": bounds(problems_like_these(values_P)),
    }
