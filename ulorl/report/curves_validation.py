"""The plot of a run's validations, and what is marked on all of its plots. Pure, from metrics rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ulorl.report.metrics import METRICS
from ulorl.report.plot import PALETTE, Curve, Event, Figure

Row = Mapping[str, float]
AVERAGE, ERROR = "validation/avg", "validation/stderr"
_COLOURS = len(PALETTE["light"])


def validation_figure(rows: Sequence[Row]) -> Figure | None:
    """The average with a band of its standard error, and each task's where there are several; None without any."""
    found = [row for row in rows if AVERAGE in row]
    if not any(math.isfinite(row[AVERAGE]) for row in found):
        return None
    names = {name for row in found for name in row if name.startswith("validation/") and name not in METRICS}
    tasks = sorted(names) if len(names) > 1 else []
    dots = len(found) <= 40
    band = [
        (row["step"], row[AVERAGE] - row[ERROR], row[AVERAGE] + row[ERROR])
        for row in found
        if math.isfinite(row.get(ERROR, math.nan)) and math.isfinite(row[AVERAGE])
    ]
    curves = [Curve("all tasks" if tasks else "average", _points(found, AVERAGE), 1, dots=dots, band=band)]
    curves += [
        Curve(name.partition("/")[2], _points(found, name), 2 + index % (_COLOURS - 1), dots=dots)
        for index, name in enumerate(tasks)
    ]
    caption = "Mean reward on problems that are not trained on; the band is one standard error over problems."
    return Figure("train-validation", "Validation", caption, curves, "0 to 1")


def run_events(rows: Sequence[Row]) -> tuple[Event, ...]:
    """Where a phase of the schedule begins, and where the reference was reset."""
    events = []
    phase, resets = 1.0, 0.0
    for row in rows:
        labels = []
        if row.get("run/phase", phase) != phase:
            phase = row["run/phase"]
            labels.append(f"phase {phase:g}")
        if row.get("reference/resets", resets) > resets:
            resets = row["reference/resets"]
            labels.append("reset")
        if labels:
            events.append(Event(row["step"], ", ".join(labels), chief=labels[0] != "reset"))
    return tuple(events)


def event_notes(rows: Sequence[Row], config: Any) -> str:
    """What the marks are, in words; "" without any. ``config``: that of the training run's manifest."""
    events = run_events(rows)
    if not events:
        return ""
    resets = sum("reset" in event.label for event in events)
    said = ["Vertical lines mark phases of the schedule and resets of the reference."]
    said += [f"Phase {number} from step {step}: {what}." for number, step, what in _phases(config)]
    said += [f"Resets of the reference: {resets}."] if resets else []
    return " ".join(said)


def _phases(config: Any) -> list[tuple[int, Any, str]]:
    """(number, first step, what it changes) of a manifest's schedule."""
    train = config.get("train") if isinstance(config, dict) else None
    schedule = train.get("schedule") if isinstance(train, dict) else None
    found = []
    for number, entry in enumerate(schedule if isinstance(schedule, list) else [], 2):
        if isinstance(entry, dict):
            given = {name: value for name, value in entry.items() if name != "from_step" and value not in (None, False)}
            found.append((number, entry.get("from_step"), ", ".join(_said(*item) for item in given.items())))
    return found


def _said(name: str, value: Any) -> str:
    if name == "tasks" and isinstance(value, dict):
        return f"tasks {' '.join(f'{task} {share}' for task, share in value.items()) or 'as in the data'}"
    return name.replace("_", " ") if value is True else f"{name.replace('_', ' ')} {value}"


def _points(rows: Sequence[Row], metric: str) -> list[tuple[float, float]]:
    return [(row["step"], row[metric]) for row in rows if metric in row]
