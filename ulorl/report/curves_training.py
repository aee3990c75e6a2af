"""Which numbers of a training run are plotted together, and the run's numbers as data. Pure, from metrics rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ulorl.report.curves_tasks import task_figure
from ulorl.report.curves_validation import run_events, validation_figure
from ulorl.report.plot import MOST_POINTS, Curve, Figure, smoothing
from ulorl.report.scale import Point

Row = Mapping[str, float]


@dataclass(frozen=True)
class _Spec:
    """A plot of metrics. ``curves``: metric, label, number of the colour; a name ending in ``*`` is dashed."""

    name: str
    title: str
    curves: tuple[tuple[str, str, int], ...]
    caption: str
    unit: str = ""
    share: bool = False
    log: bool = False
    limits: tuple[float, float] | None = None


_SPECS = (
    _Spec("reward", "Reward", (("reward/mean", "reward", 1),), "Mean of the samples finished in a step.", "0 to 1"),
    _Spec(
        "groups",
        "Groups that teach nothing",
        (("reward/groups_all_right", "all right", 3), ("reward/groups_all_wrong", "all wrong", 2)),
        "Share of finished groups whose samples all have the same reward.",
        share=True,
    ),
    _Spec(
        "entropy",
        "Entropy and its target",
        (("entropy/mean", "entropy", 1), ("entropy/target*", "target", 5)),
        "Full vocabulary, sampling temperature, mean over response tokens. Below the target, mastered tokens are "
        "masked.",
        "nats",
    ),
    _Spec(
        "masked",
        "Mastered and masked tokens",
        (("objective/mastered_share", "mastered", 4), ("objective/masked_share", "masked", 1)),
        "Shares of the response tokens in the update.",
        share=True,
    ),
    _Spec(
        "length",
        "Length",
        (("length/max", "longest", 5), ("length/mean", "mean", 1)),
        "Of the samples finished in a step, on a logarithmic scale.",
        "tokens",
        log=True,
    ),
    _Spec(
        "unscored",
        "Truncated and unscored",
        (
            ("length/truncated_share", "truncated", 2),
            ("reward/no_answer_share", "no answer", 5),
            ("reward/undecided_share", "undecided", 4),
            ("reward/error_share", "verifier error", 6),
        ),
        "Shares of finished samples; all of them get reward 0.",
        share=True,
    ),
    _Spec(
        "pools",
        "Pools",
        (
            ("pool/unfinished_samples", "unfinished", 1),
            ("pool/waiting_samples", "waiting", 2),
            ("pool/straggler_groups", "straggler groups", 5),
        ),
        "Samples that go on in the next step, and finished ones that wait for their group.",
        "count",
    ),
    _Spec(
        "ages",
        "Trained tokens by policy age",
        (
            ("segment/age_0_share", "this step", 1),
            ("segment/age_1_share", "1 update old", 3),
            ("segment/age_2_share", "2 updates old", 6),
            ("segment/age_3_or_more_share", "3 or more", 2),
        ),
        "Which policy sampled the tokens of an update.",
        share=True,
        limits=(0.0, 1.0),
    ),
    _Spec(
        "mismatch",
        "Trainer against engine",
        (("mismatch/max", "largest", 2), ("mismatch/mean", "mean", 1)),
        "Absolute difference of log-probs of the same tokens, before any mask, on a logarithmic scale.",
        "nats",
        log=True,
    ),
    _Spec(
        "clipped",
        "Clipped ratios",
        (("objective/clipped_share", "clipped", 2),),
        "Share of response tokens whose ratio was clipped.",
        share=True,
    ),
    _Spec("grad_norm", "Gradient norm", (("objective/grad_norm", "norm", 1),), "Global, before clipping."),
    _Spec(
        "kl",
        "KL to the reference",
        (("objective/kl", "KL", 1),),
        "By the recipe's estimator.",
        "nats a token",
    ),
    _Spec(
        "time",
        "Time of a step",
        (
            ("time/step_s", "whole step", 5),
            ("time/rollout_s", "rollout", 1),
            ("time/train_s", "update", 2),
            ("time/verify_s", "verifying", 3),
            ("time/sync_s", "weight sync", 4),
        ),
        "Parts of each step.",
        "seconds",
    ),
    _Spec("speed", "Decoding speed", (("time/tokens_per_s", "tokens/s", 1),), "All samples together.", "tokens/s"),
)


def training_figures(rows: Sequence[Row]) -> list[Figure]:
    """The plots of a run for which there are numbers; a metric that is 0 all the time is named instead of drawn."""
    found = [figure for spec in _SPECS if (figure := _figure(spec, rows)) is not None]
    more = [figure for figure in (validation_figure(rows), task_figure(rows)) if figure is not None]
    place = 1 if found and found[0].name == "train-reward" else 0
    found[place:place] = more
    events = run_events(rows)
    return [replace(figure, events=events) for figure in found]


def always_zero(rows: Sequence[Row]) -> list[str]:
    """Titles of the plots that are left out because all there is to see is 0."""
    return [
        spec.title
        for spec in _SPECS
        if _figure(spec, rows) is None and any(series(rows, metric) for metric, _, _ in spec.curves)
    ]


def _figure(spec: _Spec, rows: Sequence[Row]) -> Figure | None:
    curves, notes, zeros = [], [], []
    for metric, label, slot in spec.curves:
        name, dashed = metric.removesuffix("*"), metric.endswith("*")
        points = series(rows, name)
        finite = [value for _, value in points if math.isfinite(value)]
        if not finite:
            continue
        if not any(finite) and spec.name != "reward":
            zeros.append(label)
            continue
        lost = len(points) - len(finite)
        if lost:
            first = next(step for step, value in points if not math.isfinite(value))
            steps = "1 step" if lost == 1 else f"{lost:,} steps"
            notes.append(f"{label} is not a finite number in {steps}, first in step {first:.0f}.")
        curves.append(Curve(label, points, slot, dashed=dashed, dots=len(points) <= 40 and not dashed))
    if not curves or (all(curve.dashed for curve in curves)):
        return None
    if zeros:
        notes.append(f"Always 0: {', '.join(zeros)}.")
    positive = all(value > 0 for curve in curves for _, value in curve.points if math.isfinite(value))
    if spec.log and not positive:
        notes.append("What is 0 lies at the bottom edge.")
    return Figure(
        f"train-{spec.name}",
        spec.title,
        spec.caption,
        curves,
        spec.unit,
        share=spec.share,
        log_y=spec.log,
        limits=spec.limits,
        notes=tuple(notes),
    )


def drawing_notes(rows: Sequence[Row]) -> str:
    """How long runs are drawn; "" for short ones."""
    width = smoothing(len(rows))
    text = f"Bold lines are moving means over {width} steps. " if width > 1 else ""
    if len(rows) > MOST_POINTS:
        text += "Faint ones hold the least and greatest value of each stretch of steps: no spike is left out."
    return text.strip()


def series(rows: Sequence[Row], metric: str) -> list[Point]:
    """(step, value) of the steps that report the metric, what is not finite included."""
    return [(row["step"], row[metric]) for row in rows if metric in row]


@dataclass(frozen=True)
class MetricSummary:
    """One metric over a run; steps are where the extremes are. What is not finite is left out and counted."""

    metric: str
    first: float
    last: float
    least: float
    least_step: int
    greatest: float
    greatest_step: int
    not_finite: int


def metric_summaries(rows: Sequence[Row], metrics: Sequence[str]) -> list[MetricSummary]:
    """Of the metrics that have a finite value."""
    found = []
    for metric in metrics:
        points = series(rows, metric)
        finite = [(step, value) for step, value in points if math.isfinite(value)]
        if finite:
            low, high = min(finite, key=lambda point: point[1]), max(finite, key=lambda point: point[1])
            found.append(
                MetricSummary(
                    metric,
                    finite[0][1],
                    finite[-1][1],
                    low[1],
                    int(low[0]),
                    high[1],
                    int(high[0]),
                    len(points) - len(finite),
                )
            )
    return found
