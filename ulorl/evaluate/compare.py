"""Two evaluations of the same problems, paired by problem.

Pure: tables in, JSON types out. A measure is one number a problem; its difference is after - before, with the
interval for problems like these and the smallest true difference the pairing could have seen.
Does not: decide whether a difference is good, nor correct for several benchmarks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ulorl.errors import UserError
from ulorl.evaluate.estimates import bounds
from ulorl.evaluate.estimators import avg_at_n, maj_at_k, pass_at_k
from ulorl.evaluate.scores import counts_of
from ulorl.evaluate.statistics import paired_difference

FloatArray = NDArray[np.float64]
SOLVED = 0.5
"""A problem counts as solved when more than this share of its samples is right."""


@dataclass(frozen=True)
class MeasuredProblems:
    """The measures of one benchmark, each a number a problem, in the order of ``ids``."""

    ids: tuple[str, ...]
    values: dict[str, FloatArray]


def measure(scores: pa.Table, ks: Sequence[int]) -> MeasuredProblems:
    """avg, pass@k, maj@k, and the truncated share and mean length, of each problem, ordered by id."""
    scores = scores.sort_by("problem_id")
    counts = counts_of(scores)
    samples = np.array([one.samples for one in counts], dtype=np.float64)
    values = {"avg": avg_at_n(counts)}
    values |= {f"pass@{k}": pass_at_k(counts, k) for k in ks}
    values |= {f"maj@{k}": maj_at_k(counts, k) for k in ks}
    values["truncated"] = np.array(scores["truncated"].to_pylist(), dtype=np.float64) / samples
    values["length"] = np.array(scores["mean_length"].to_pylist(), dtype=np.float64)
    return MeasuredProblems(tuple(one.problem_id for one in counts), values)


def compare_benchmark(name: str, before_scores: pa.Table, after_scores: pa.Table, ks: Sequence[int]) -> dict[str, Any]:
    """Differences of one benchmark. UserError when the two do not hold the same problems."""
    before, after = measure(before_scores, ks), measure(after_scores, ks)
    if before.ids != after.ids:
        only_before, only_after = set(before.ids) - set(after.ids), set(after.ids) - set(before.ids)
        raise UserError(
            f"{name}: the two evaluations hold different problems ({len(only_before)} only before, "
            f"{len(only_after)} only after, such as {min(only_before | only_after)}); evaluate both alike"
        )
    was, now = before.values["avg"] > SOLVED, after.values["avg"] > SOLVED
    return {
        "problems": len(before.ids),
        "measures": {key: _difference(before.values[key], after.values[key]) for key in before.values},
        "gained": [before.ids[row] for row in np.flatnonzero(now & ~was)],
        "lost": [before.ids[row] for row in np.flatnonzero(was & ~now)],
    }


def differing_settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Lines such as "max_tokens: 1024 before, 2048 after" for settings that are not the same."""
    return [
        f"{key}: {before.get(key)} before, {after.get(key)} after"
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


def _difference(before_P: FloatArray, after_P: FloatArray) -> dict[str, Any]:
    paired = paired_difference(before_P, after_P)
    return {
        "before": float(before_P.mean()),
        "after": float(after_P.mean()),
        "difference": paired.mean,
        "interval": bounds(paired.interval),
        "detectable": paired.detectable,
    }
