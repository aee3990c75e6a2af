"""Evaluations as data for plots: pass@k for every k with its band, and each problem before and after. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ulorl.evaluate.estimators import pass_at_k
from ulorl.evaluate.scores import counts_of
from ulorl.evaluate.statistics import problems_like_these
from ulorl.report.plot import Curve, Figure

MOST_K = 40
"""Values of k at which a curve is computed; every k where there are fewer samples."""


@dataclass(frozen=True)
class ProblemChange:
    """One problem's mean reward before and after (where rewards have no parts, the share of right samples), and how
    many of the samples after are undecided, or truncated (0 where that is not known)."""

    problem_id: str
    problem: str
    reference: str
    before: float
    after: float
    undecided: int = 0
    truncated: int = 0


def pass_figure(benchmark: str, scores: Mapping[str, pa.Table]) -> Figure:
    """pass@k of one benchmark for each evaluation, by its label; bands are for problems like these."""
    curves: list[Curve] = []
    for label, table in scores.items():
        slot = {"before": 5, "after": 1}.get(label, 1 + len(curves) % 4)
        counts = counts_of(table)
        points, band = [], []
        samples = min(one.samples for one in counts)
        for k in chosen_ks(samples):
            values_P = pass_at_k(counts, k)
            points.append((float(k), float(values_P.mean())))
            interval = problems_like_these(values_P, step=k / samples)
            if interval is not None:
                band.append((float(k), interval.low, interval.high))
        curves.append(Curve(label, points, slot, dots=len(points) == 1, band=band))
    return Figure(
        f"pass-{benchmark}",
        f"pass@k, {benchmark}",
        "Unbiased, for every k up to the number of samples. Bands: 95 % intervals for problems like these.",
        curves,
        unit="pass@k",
        x_label="k (samples a problem)",
        share=True,
        limits=(0.0, 1.0),
        log_x=True,
    )


def chosen_ks(samples: int) -> list[int]:
    """1 to ``samples``, thinned geometrically above MOST_K values, both ends and the powers of 2 among them."""
    if samples <= MOST_K:
        return list(range(1, samples + 1))
    ratio = samples ** (1 / (MOST_K - 1))
    powers = {2**power for power in range(samples.bit_length()) if 2**power <= samples}
    return sorted({round(ratio**place) for place in range(MOST_K)} | powers | {1, samples})


def changes(before: pa.Table, after: pa.Table) -> list[ProblemChange]:
    """The problems that both hold, most gained first; ties by id."""
    was = {one.problem_id: one.average for one in counts_of(before)}
    now = {one.problem_id: one.average for one in counts_of(after)}
    columns = (after[name].to_pylist() for name in ("problem_id", "problem", "reference", "undecided", "truncated"))
    found = [
        ProblemChange(problem_id, problem, reference, was[problem_id], now[problem_id], undecided, truncated or 0)
        for problem_id, problem, reference, undecided, truncated in zip(*columns, strict=True)
        if problem_id in was
    ]
    return sorted(found, key=lambda change: (change.before - change.after, change.problem_id))


def change_figure(benchmark: str, changed: Sequence[ProblemChange]) -> Figure:
    """Each problem's mean reward before against after."""
    marks = Counter((change.before, change.after) for change in changed)
    return Figure(
        f"problems-{benchmark}",
        f"Before and after, {benchmark}",
        "Mean reward of each problem (1: all samples right); larger circles are several problems.",
        unit="after",
        x_label="before",
        share=True,
        limits=(0.0, 1.0),
        marks=[(x, y, count) for (x, y), count in sorted(marks.items())],
    )
