"""Estimates of one benchmark: every number with both intervals, and what qualifies it beside it.

Pure: tables in, JSON types out. Shares are in [0, 1], lengths in tokens; what cannot be known is null.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ulorl.evaluate.estimators import (
    ProblemCounts,
    average_variance,
    avg_at_n,
    maj_at_k,
    majority_variance,
    pass_at_k,
    pass_curve,
    sampling_variance,
)
from ulorl.evaluate.scores import by_task, counts_of
from ulorl.evaluate.statistics import Interval, problems_like_these, these_problems

FloatArray = NDArray[np.float64]


def estimate(scores: pa.Table, lengths: Sequence[int | None], ks: Sequence[int]) -> dict[str, Any]:
    """Estimates from the scores of one benchmark and the token counts of all its samples.

    ``intervals`` has an entry for "avg" and each "pass@k" and "maj@k", by the name of the population; there is
    none of "these problems" where k is above half the samples. ``pass_curve`` holds pass@k for every k from 1. The
    average is of rewards; pass@k and maj@k count a sample as right where its reward is 1. ``by_task`` is there where
    the problems are of several tasks.
    Raises UserError where a problem has fewer samples than a k of ``ks``.
    """
    counts = counts_of(scores)
    passed, majority = ({k: at_k(counts, k) for k in ks} for at_k in (pass_at_k, maj_at_k))
    average = avg_at_n(counts)
    samples = _samples_each(counts)
    intervals = {"avg": _intervals(average, average_variance(counts), 1 / samples)}
    for k in ks:
        intervals[f"pass@{k}"] = _intervals(passed[k], sampling_variance(counts, k), k / samples)
        intervals[f"maj@{k}"] = _intervals(majority[k], majority_variance(counts, k), k / samples)
    total = sum(one.samples for one in counts)

    def share(column: str) -> float | None:
        values = scores[column].to_pylist()
        return None if None in values else sum(values) / total

    return {
        "problems": len(counts),
        "samples": samples,
        "total_samples": total,
        "avg": float(average.mean()),
        "accepted": sum(one.correct for one in counts) / total,
        "pass_at_k": {str(k): float(passed[k].mean()) for k in ks},
        "maj_at_k": {str(k): float(majority[k].mean()) for k in ks},
        "pass_curve": pass_curve(counts),
        "intervals": intervals,
        **{name: share(name) for name in ("truncated", "no_answer", "undecided", "verifier_errors")},
        "length": _lengths(lengths),
        **_of_tasks(scores, ks, 1 / samples),
    }


def _of_tasks(scores: pa.Table, ks: Sequence[int], step: float) -> dict[str, Any]:
    """``by_task``: problems, average with its interval, and pass@k of each, where there are several."""
    tables = by_task(scores)
    if len(tables) < 2:
        return {}
    found = {}
    for task, table in tables.items():
        counts = counts_of(table)
        passed = {str(k): float(pass_at_k(counts, k).mean()) for k in ks}
        average_P = avg_at_n(counts)
        interval = _intervals(average_P, average_variance(counts), step)
        found[task] = {
            "problems": len(counts),
            "avg": float(average_P.mean()),
            "interval": interval,
            "pass_at_k": passed,
        }
    return {"by_task": found}


def _lengths(lengths: Sequence[int | None]) -> dict[str, Any] | None:
    if None in lengths or not lengths:
        return None
    length = np.asarray(lengths, dtype=np.float64)
    return {
        "mean": float(length.mean()),
        "median": float(np.median(length)),
        "p95": float(np.quantile(length, 0.95)),
        "max": int(length.max()),
    }


def bounds(interval: Interval | None) -> list[float] | None:
    """[low, high] for JSON."""
    return None if interval is None else [interval.low, interval.high]


def _samples_each(counts: Sequence[ProblemCounts]) -> int:
    """Samples of every problem: the least, where they differ."""
    return min(one.samples for one in counts)


def _intervals(values_P: FloatArray, variances_P: FloatArray, step: float) -> dict[str, list[float] | None]:
    return {
        "these problems": bounds(these_problems(values_P, variances_P)),
        "problems like these": bounds(problems_like_these(values_P, step=step)),
    }
