"""Two evaluations of the same problems, paired by problem.

A measure is one number a problem; its difference is after - before, with both intervals. Whether a loss is real is
decided in ``ulorl.evaluate.gate``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ulorl.errors import UserError
from ulorl.evaluate.estimates import bounds
from ulorl.evaluate.estimators import (
    average_variance,
    avg_at_n,
    cautious_variance,
    maj_at_k,
    majority_variance,
    pass_at_k,
    sampling_variance,
)
from ulorl.evaluate.finished import read_estimates
from ulorl.evaluate.gate import decide
from ulorl.evaluate.scores import counts_of, read_scores, tasks_of
from ulorl.evaluate.statistics import LEVEL, paired_difference, these_problems_difference
from ulorl.recipe import EvaluateRecipe

FloatArray = NDArray[np.float64]
SOLVED = 0.5
"""A problem counts as solved when more than this share of its samples is right."""
ALL = slice(None)


@dataclass(frozen=True)
class MeasuredProblems:
    """The measures of one benchmark, each a number a problem, in the order of ``ids``, and the sampling variance of
    those where it is known; ``noise`` is that of avg, never zero, for tests. ``steps``: how much one more right sample
    changes a problem's value at most. ``tasks``: the task of each."""

    ids: tuple[str, ...]
    references: tuple[str, ...]
    tasks: tuple[str, ...]
    values: dict[str, FloatArray]
    variances: dict[str, FloatArray]
    noise: FloatArray
    steps: dict[str, float]


def compare(before: Path, after: Path, settings: EvaluateRecipe | None = None) -> dict[str, Any]:
    """Compare two finished evaluations on the benchmarks they share, paired by problem.

    For each benchmark: ``measures`` (avg, pass@k, maj@k for every k of both, truncated, length), each with
    before, after, difference, interval (for problems like these) and these_problems (the interval for them);
    ``gained`` and ``lost`` problems; ``by_task`` has ``problems`` and that of avg for each task, where there are
    several. ``decision``: see ``ulorl.evaluate.gate.decide``, with the
    population, the significance and the minimum effect of ``settings``. Raises UserError when they share no
    benchmark, or one holds other problems.
    """
    settings = settings or EvaluateRecipe()
    first, second = read_estimates(before), read_estimates(after)
    first_scores, second_scores = read_scores(before), read_scores(after)
    shared = [name for name in first_scores if name in second_scores]
    if not shared:
        raise UserError(
            f"{before} and {after} share no benchmark: the first has {', '.join(first_scores)}, the second "
            f"{', '.join(second_scores)}"
        )
    measured = {}
    for name in shared:
        ks = _shared_ks(first, second, name)
        measured[name] = measure(first_scores[name], ks), measure(second_scores[name], ks)
        _require_same_problems(name, *measured[name])
    changes = {name: two.values["avg"] - one.values["avg"] for name, (one, two) in measured.items()}
    noise = None
    if settings.population == "these problems":
        noise = {name: one.noise + two.noise for name, (one, two) in measured.items()}
    return {
        "before": {"path": str(before), "model": first["model"]},
        "after": {"path": str(after), "model": second["model"]},
        "settings_differ": differing_settings(first["settings"], second["settings"]),
        "population": "problems like these",
        "level": LEVEL,
        "solved_above": SOLVED,
        "benchmarks": {name: _compared(one, two) for name, (one, two) in measured.items()},
        "decision": decide(changes, settings.significance, settings.min_effect, noise),
    }


def measure(scores: pa.Table, ks: Sequence[int]) -> MeasuredProblems:
    """avg, pass@k, maj@k, and the truncated share and mean length where known, of each problem, ordered by id."""
    scores = scores.sort_by("problem_id")
    counts = counts_of(scores)
    samples = np.array([one.samples for one in counts], dtype=np.float64)
    values, variances = {"avg": avg_at_n(counts)}, {"avg": average_variance(counts)}
    for k in ks:
        values[f"pass@{k}"], variances[f"pass@{k}"] = pass_at_k(counts, k), sampling_variance(counts, k)
    for k in ks:
        values[f"maj@{k}"], variances[f"maj@{k}"] = maj_at_k(counts, k), majority_variance(counts, k)
    truncated, length = (scores[name].to_pylist() for name in ("truncated", "mean_length"))
    if None not in truncated:
        values["truncated"] = np.array(truncated, dtype=np.float64) / samples
    if None not in length:
        values["length"] = np.array(length, dtype=np.float64)
    fewest = float(samples.min())
    steps = {f"{kind}@{k}": k / fewest for kind in ("pass", "maj") for k in ks} | {"avg": 1 / fewest}
    ids = tuple(one.problem_id for one in counts)
    references = tuple(scores["reference"].to_pylist())
    return MeasuredProblems(
        ids, references, tuple(tasks_of(scores)), values, variances, cautious_variance(counts), steps
    )


def _require_same_problems(name: str, before: MeasuredProblems, after: MeasuredProblems) -> None:
    if before.ids != after.ids:
        only_before, only_after = set(before.ids) - set(after.ids), set(after.ids) - set(before.ids)
        raise UserError(
            f"{name}: the two evaluations hold different problems ({len(only_before)} only before, "
            f"{len(only_after)} only after, such as {min(only_before | only_after)}); evaluate both alike"
        )
    for identity, was, now in zip(before.ids, before.references, after.references, strict=True):
        if was != now:
            raise UserError(
                f"{name}: problem {identity} has the reference {was[:60]!r} before and {now[:60]!r} after; mend one, "
                "and score its samples again (`ulorl eval DIR --rescore`) or sample them"
            )


def _compared(before: MeasuredProblems, after: MeasuredProblems) -> dict[str, Any]:
    was, now = before.values["avg"] > SOLVED, after.values["avg"] > SOLVED
    return {
        "problems": len(before.ids),
        "measures": {key: _difference(before, after, key) for key in before.values if key in after.values},
        "gained": [before.ids[row] for row in np.flatnonzero(now & ~was)],
        "lost": [before.ids[row] for row in np.flatnonzero(was & ~now)],
        **_by_task(before, after),
    }


def _by_task(before: MeasuredProblems, after: MeasuredProblems) -> dict[str, Any]:
    tasks = sorted(set(after.tasks))
    if len(tasks) < 2:
        return {}
    rows = {task: np.flatnonzero(np.array(after.tasks) == task) for task in tasks}
    return {
        "by_task": {
            task: {"problems": len(of_task), "avg": _difference(before, after, "avg", of_task)}
            for task, of_task in rows.items()
        }
    }


def differing_settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Lines such as "max_tokens: 1024 before, 2048 after" for settings that are not the same."""
    lines = list[str]()
    for key in sorted(before.keys() | after.keys()):
        was, now = before.get(key), after.get(key)
        if isinstance(was, dict) and isinstance(now, dict):
            lines += [f"{key}.{line}" for line in differing_settings(was, now)]
        elif was != now:
            lines.append(f"{key}: {was} before, {now} after")
    return lines


def _difference(
    before: MeasuredProblems, after: MeasuredProblems, key: str, rows: NDArray[np.intp] | slice = ALL
) -> dict[str, Any]:
    """The change of a measure over the problems in ``rows``."""
    before_P, after_P = before.values[key][rows], after.values[key][rows]
    paired = paired_difference(before_P, after_P, step=max(before.steps.get(key, 0.0), after.steps.get(key, 0.0)))
    sampling = None
    if key in before.variances:
        variances_P = (before.variances[key] + after.variances[key])[rows]
        sampling = these_problems_difference(before_P, after_P, variances_P)
    return {
        "before": float(before_P.mean()),
        "after": float(after_P.mean()),
        "difference": paired.mean,
        "interval": bounds(paired.interval),
        "these_problems": bounds(sampling),
    }


def _shared_ks(first: dict[str, Any], second: dict[str, Any], name: str) -> list[int]:
    of_first, of_second = (one["benchmarks"][name]["pass_at_k"] for one in (first, second))
    return sorted(int(k) for k in of_first if k in of_second)
