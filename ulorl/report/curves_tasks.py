"""The plot of rewards by task. Pure, from metrics rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ulorl.report.metrics import METRICS
from ulorl.report.plot import PALETTE, Curve, Figure

Row = Mapping[str, float]
_GROUP = "reward/"
_COLOURS = len(PALETTE["light"])


def reward_names(rows: Sequence[Row]) -> list[str]:
    """The metrics of rewards by task that are in ``rows``."""
    return sorted({name for row in rows for name in row if name.startswith(_GROUP) and name not in METRICS})


def task_figure(rows: Sequence[Row]) -> Figure | None:
    """The reward of each task, where there are several."""
    names = reward_names(rows)
    if len(names) < 2:
        return None
    curves = []
    for index, name in enumerate(names):
        points = [(row["step"], row[name]) for row in rows if math.isfinite(row.get(name, math.nan))]
        curves.append(Curve(name.removeprefix(_GROUP), points, 1 + index % _COLOURS, dots=len(points) <= 40))
    caption = "Mean of the samples of each task that left the pool in a step."
    return Figure("train-tasks", "Reward by task", caption, curves, "0 to 1")
