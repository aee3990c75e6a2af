"""A run in short: an object for programs (``--json``) and Markdown for a pull request (``--markdown``).

Invariant: texts from data and file names are written so that Markdown and HTML mean nothing in them.
"""

from __future__ import annotations

from typing import Any

from ulorl.report.curves_training import metric_summaries
from ulorl.report.metrics import documented
from ulorl.report.run_data import RunData
from ulorl.report.scale import compact

NOTHING = "–"
_SHOWN_METRICS = (
    ("reward", "reward/mean", ""),
    ("validation", "validation/avg", ""),
    ("entropy", "entropy/mean", " nats"),
    ("length", "length/mean", " tokens"),
    ("truncated share", "length/truncated_share", ""),
    ("masked share", "objective/masked_share", ""),
    ("mismatch", "mismatch/mean", " nats"),
    ("step", "time/step_s", " s"),
)


def stage_states(data: RunData) -> dict[str, str]:
    """finished, unfinished or missing, of each stage that a run has (of the one there is, for a single stage)."""
    found = {stage.name: "finished" if stage.finished else "unfinished" for stage in data.files.stages}
    if data.files.single:
        return found
    kinds = {"curate": data.files.curate, "train": data.files.train}
    states = {kind: "missing" for kind, stage in kinds.items() if stage is None}
    if not data.files.evaluations:
        states["evaluation"] = "missing"
    elif data.pair is None and len(data.files.evaluations) == 1:
        states["second evaluation"] = "missing"
    return found | states


def benchmark_changes(data: RunData) -> dict[str, dict[str, Any]]:
    """avg before and after by benchmark, with the difference and its interval; {} without a comparison."""
    if data.comparison is None or data.pair is None:
        return {}
    found = {}
    for name, one in data.comparison["benchmarks"].items():
        measure = one["measures"]["avg"]
        found[name] = {
            "problems": one["problems"],
            "samples": data.pair[1].estimates["benchmarks"][name]["samples"],
            "before": measure["before"],
            "after": measure["after"],
            "difference": measure["difference"],
            "interval": measure["interval"],
            "gained": len(one["gained"]),
            "lost": len(one["lost"]),
        }
    return found


def summary(data: RunData) -> dict[str, Any]:
    """The run as JSON types: what the page says in numbers, without texts."""
    funnel = data.funnel
    rows = data.metrics
    return {
        "name": data.files.name,
        "directory": str(data.files.root),
        "stages": stage_states(data),
        "curation": None
        if funnel is None
        else {
            "rows_in": funnel["rows_in"],
            "rows_out": funnel["rows_out"],
            "dropped": {entry["step"]: entry["dropped"] for entry in funnel["steps"] if entry["dropped"]},
        },
        "training": None
        if not rows
        else {
            "steps": int(rows[-1]["step"]),
            "planned": data.steps_planned,
            "metrics": {
                one.metric: {
                    "first": one.first,
                    "last": one.last,
                    "least": one.least,
                    "greatest": one.greatest,
                    "not_finite": one.not_finite,
                }
                for one in metric_summaries(rows, documented(rows))
            },
        },
        "evaluations": {one.label: one.estimates["benchmarks"] for one in data.evaluations},
        "comparison": data.comparison,
        "boundaries": {one.name: one.found for one in data.boundaries},
        "troubles": data.troubles,
    }


def markdown(data: RunData) -> str:
    """A comment for a pull request: before and after, training, curation, what is missing."""
    lines = [f"### {plain(data.files.name)}", ""]
    changes = benchmark_changes(data)
    if changes:
        lines += ["| benchmark | before | after | difference | 95 % interval | gained | lost |"]
        lines += ["|---|--:|--:|--:|--:|--:|--:|"]
        for name, one in changes.items():
            interval = one["interval"]
            shown = NOTHING if interval is None else f"{100 * interval[0]:+.1f} to {100 * interval[1]:+.1f}"
            cells = [f"{plain(name)}, avg@{one['samples']}", _hundredths(one["before"]), _hundredths(one["after"])]
            cells += [f"**{100 * one['difference']:+.1f}**", shown, str(one["gained"]), str(one["lost"])]
            lines.append(f"| {' | '.join(cells)} |")
        assert data.comparison is not None
        lines += ["", f"Paired by problem, in points; intervals for {data.comparison['population']}.", ""]
    elif data.evaluations:
        lines += ["| evaluation | benchmark | avg | truncated | no answer |", "|---|---|--:|--:|--:|"]
        for evaluation in data.evaluations:
            for name, found in evaluation.estimates["benchmarks"].items():
                shares = [_hundredths(found.get(key)) for key in ("avg", "truncated", "no_answer")]
                lines.append(f"| {plain(evaluation.label)} | {plain(name)} | {' | '.join(shares)} |")
        lines.append("")
    if data.metrics:
        lines += _training(data)
    if data.funnel is not None:
        rows_in, rows_out = data.funnel["rows_in"], data.funnel["rows_out"]
        lines += [f"Curation: {rows_in:,} rows in, {rows_out:,} out.", ""]
    states = [f"{plain(name)} {state}" for name, state in stage_states(data).items() if state != "finished"]
    if states:
        lines += [f"Not complete: {', '.join(states)}.", ""]
    lines += [f"- {plain(trouble)}" for trouble in data.troubles]
    return "\n".join(lines).rstrip() + "\n"


def plain(text: str) -> str:
    """Text on one line in which Markdown and HTML mean nothing."""
    line = " ".join(text.split())
    return "".join("\\" + letter if letter in "\\`*_[]<>#|$~@" else letter for letter in line)


def _training(data: RunData) -> list[str]:
    done, planned = int(data.metrics[-1]["step"]), data.steps_planned
    steps = f"{done:,} of {planned:,} steps" if planned else f"{done:,} steps"
    by_name = {one.metric: one for one in metric_summaries(data.metrics, [name for _, name, _ in _SHOWN_METRICS])}
    shown = [
        f"{label} {compact(one.first)} → {compact(one.last)}{unit}"
        for label, name, unit in _SHOWN_METRICS
        if (one := by_name.get(name)) is not None
    ]
    return [f"Training, {steps}: {', '.join(shown)}.", ""]


def _hundredths(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.1f}"
