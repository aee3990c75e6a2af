"""Where a run stands, as plain data and plain text: what both displays of ``ulorl.report.display`` show.

Invariants: the time left comes from the recent rate, not from the average since the start; every function
copes with metrics that a run does not report. Does not print, and reads no clock.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

BARS = "▁▂▃▄▅▆▇█"
WINDOW = 16

SHOWN = (
    ("reward", "reward/mean", ".3f"),
    ("entropy", "entropy/mean", ".3f"),
    ("target", "entropy/target", ".3g"),
    ("length", "length/mean", ".0f"),
    ("longest", "length/max", ".0f"),
    ("truncated", "length/truncated_share", ".1%"),
    ("unfinished", "pool/unfinished_samples", ".0f"),
    ("waiting", "pool/waiting_samples", ".0f"),
    ("tokens/s", "time/tokens_per_s", ".0f"),
)
"""What a step's line holds: label, metric, format."""


def duration(seconds: float) -> str:
    """``3:05`` or ``1:02:03``; seconds are rounded down."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def sparkline(values: Sequence[float], width: int) -> str:
    """The last ``width`` values as bars between their own least and greatest; a flat series is a low line."""
    shown = [value for value in values if math.isfinite(value)][-width:]
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(BARS[round((value - low) * scale)] for value in shown)


def shown_metrics(metrics: Mapping[str, float]) -> list[tuple[str, str]]:
    """(label, text) of the metrics that are there, in the order of ``SHOWN``."""
    return [(label, format(metrics[name], spec)) for label, name, spec in SHOWN if name in metrics]


class Rate:
    """Units a second over the last ``WINDOW`` reports; reports less than a second apart count as one."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, float]] = deque(maxlen=WINDOW)

    def add(self, now: float, done: float) -> None:
        """Report that ``done`` units are finished; fewer than before means that the count started anew."""
        if self._points and done < self._points[-1][1]:
            self._points.clear()
        if len(self._points) > 1 and now - self._points[-2][0] < 1:
            self._points.pop()
        self._points.append((now, done))

    def left(self, now: float, total: float) -> float | None:
        """Seconds until ``total``, or None while nothing is known."""
        if len(self._points) < 2:
            return None
        (start, first), (last, done) = self._points[0], self._points[-1]
        if done <= first or last <= start:
            return None
        return max(0.0, (total - done) * (last - start) / (done - first) - (now - last))


@dataclass
class Work:
    """A count that moves towards a total (0: unknown): steps, samples, problems."""

    unit: str
    done: int = 0
    total: int = 0
    note: str = ""
    rate: Rate = field(default_factory=Rate)

    def move(self, now: float, done: int, total: int, note: str = "") -> None:
        """Take over a report."""
        self.done, self.total, self.note = done, total, note
        self.rate.add(now, done)

    @property
    def finished(self) -> bool:
        """Whether the total is reached."""
        return 0 < self.total <= self.done

    def text(self, now: float) -> str:
        """``samples 12/100, 0:40 left: note``."""
        count = f"{self.unit} {self.done}" + (f"/{self.total}" if self.total else "")
        left = self.rate.left(now, self.total) if self.total and not self.finished else None
        note = f": {self.note}" if self.note else ""
        return count + ("" if left is None else f", {duration(left)} left") + note


@dataclass
class RunState:
    """Everything a display shows. ``now`` is in seconds of any monotonic clock."""

    stages: tuple[str, ...]
    started: float
    stage: str = ""
    stage_started: float = 0.0
    work: Work | None = None
    steps: Work | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    rewards: list[float] = field(default_factory=list)

    def enter(self, stage: str, now: float) -> None:
        """Begin a stage: counts and metrics of the one before are forgotten."""
        assert stage in self.stages, f"{stage} is not one of {', '.join(self.stages)}"
        self.stage, self.stage_started = stage, now
        self.work, self.steps, self.metrics, self.rewards = None, None, {}, []

    def progress(self, now: float, done: int, total: int, unit: str, note: str) -> bool:
        """Take over a report; True when a piece of work with another unit began."""
        fresh = self.work is None or self.work.unit != unit
        if self.work is None or fresh:
            self.work = Work(unit)
        self.work.move(now, done, total, note)
        return fresh

    def step(self, now: float, step: int, total: int, metrics: Mapping[str, float]) -> None:
        """Take over a finished training step."""
        if self.steps is None:
            self.steps = Work("step")
            self.steps.rate.add(self.stage_started, step - 1)
        self.steps.move(now, step, total)
        self.metrics = dict(metrics)
        if "reward/mean" in metrics:
            self.rewards.append(metrics["reward/mean"])

    def where(self) -> str:
        """``train (2 of 3)``."""
        return f"{self.stage} ({self.stages.index(self.stage) + 1} of {len(self.stages)})" if self.stage else ""
