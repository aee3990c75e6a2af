"""The live display of a run, on standard error: a panel on a terminal, plain lines elsewhere.

Invariants:
- standard output is never written to: it is for results;
- without a terminal no more than a line every ``PLAIN_EVERY_S`` seconds for each kind of report, and no
  longer silence than that while reports come; samples, where they are asked for, come at every step;
- no text of a model, of data or of a file name is taken for markup;
- the display that ``open_display`` gives never raises: at its first failure it says so once and falls silent.

Does not: compute metrics, keep them (``ulorl.report.metrics``), or print the final table.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ulorl.report.progress import RunState, duration, shown_metrics, sparkline

PLAIN_EVERY_S = 10.0
Clock = Callable[[], float]


class Display(Protocol):
    """What a stage reports to."""

    def stage(self, name: str) -> None:
        """A stage begins; one of the names the display was opened with."""
        ...

    def progress(self, done: int, total: int, unit: str, note: str = "") -> None:
        """``done`` of ``total`` (0: unknown) of the stage's ``unit`` are finished. Cheap: call it often."""
        ...

    def step(self, step: int, total: int, metrics: Mapping[str, float]) -> None:
        """Training step ``step``, counted from 1, is finished with these metrics (names of ``METRICS``)."""
        ...

    def samples(self, step: int, shown: Sequence[str]) -> None:
        """Lines about samples of a step (``ulorl.train.watch``), shown where the display was opened to ``watch``."""
        ...

    def log(self, line: str) -> None:
        """A line that stays."""
        ...

    def close(self) -> None:
        """Leave the screen in order. Idempotent."""
        ...


class PlainDisplay:
    """Lines for a file or a pipe: what nohup and CI show."""

    def __init__(
        self, stages: list[str], stream: TextIO, clock: Clock = time.monotonic, *, watch: bool = False
    ) -> None:
        self._stream, self._clock, self._watch = stream, clock, watch
        self._state = RunState(tuple(stages), started=clock())
        self._line_at = self._step_at = float("-inf")

    def stage(self, name: str) -> None:
        self._state.enter(name, self._clock())
        self._step_at = float("-inf")
        self._print("begins")

    def progress(self, done: int, total: int, unit: str, note: str = "") -> None:
        now = self._clock()
        was_finished = self._state.work is not None and self._state.work.finished
        fresh = self._state.progress(now, done, total, unit, note)
        work = self._state.work
        assert work is not None
        ended = work.finished and not was_finished and self._state.steps is None
        if fresh or ended or now - self._line_at >= PLAIN_EVERY_S:
            self._print(work.text(now))

    def step(self, step: int, total: int, metrics: Mapping[str, float]) -> None:
        now = self._clock()
        self._state.step(now, step, total, metrics)
        if now - self._step_at >= PLAIN_EVERY_S or step == total:
            self._step_at = now
            steps = self._state.steps
            assert steps is not None
            self._print("  ".join([steps.text(now), *(" ".join(pair) for pair in shown_metrics(metrics))]))

    def samples(self, step: int, shown: Sequence[str]) -> None:
        if self._watch and shown:
            self._print(f"samples of step {step}")
            print(*shown, sep="\n", file=self._stream, flush=True)

    def log(self, line: str) -> None:
        self._print(line)

    def close(self) -> None:
        self._stream.flush()

    def _print(self, text: str) -> None:
        self._line_at = self._clock()
        stage = f" {self._state.where()}" if self._state.stage else ""
        print(f"[{duration(self._line_at - self._state.started)}{stage}] {text}", file=self._stream, flush=True)


class LiveDisplay:
    """A panel that redraws itself four times a second. The lock is held against the thread that draws."""

    def __init__(
        self, stages: list[str], console: Console, clock: Clock = time.monotonic, *, watch: bool = False
    ) -> None:
        self._console, self._clock, self._watch = console, clock, watch
        self._samples = Text()
        self._state = RunState(tuple(stages), started=clock())
        self._lock = threading.Lock()
        self._live = Live(console=console, get_renderable=self.render, refresh_per_second=4, redirect_stdout=False)
        self._live.start()

    def stage(self, name: str) -> None:
        with self._lock:
            self._state.enter(name, self._clock())
            self._samples = Text()

    def progress(self, done: int, total: int, unit: str, note: str = "") -> None:
        with self._lock:
            self._state.progress(self._clock(), done, total, unit, note)

    def step(self, step: int, total: int, metrics: Mapping[str, float]) -> None:
        with self._lock:
            self._state.step(self._clock(), step, total, metrics)

    def samples(self, step: int, shown: Sequence[str]) -> None:
        if self._watch and shown:
            with self._lock:
                self._samples = Text("\n").join([Text(f"samples of step {step}", "dim"), *map(Text, shown)])

    def log(self, line: str) -> None:
        self._console.print(Text(line))

    def close(self) -> None:
        self._live.stop()

    def render(self) -> RenderableType:
        """The panel as it stands now, and under it the samples on show."""
        with self._lock:
            now, state = self._clock(), self._state
            rows = Table.grid(padding=(0, 2))
            for work in (state.steps, state.work):
                if work is not None:
                    bar = ProgressBar(total=work.total or None, completed=work.done, width=24)
                    rows.add_row(bar, Text(work.text(now), overflow="ellipsis", no_wrap=True))
            values = Table.grid(padding=(0, 3))
            shown = shown_metrics(state.metrics)
            cells = [Text.assemble((f"{label} ", "dim"), (value, "bold")) for label, value in shown]
            for start in range(0, len(cells), 3):
                values.add_row(*cells[start : start + 3])
            spark = Text.assemble(("reward ", "dim"), sparkline(state.rewards, 40)) if state.rewards else Text("")
            title = Text(f"{state.where() or 'starting'}  {duration(now - state.started)}")
            samples = self._samples
        width = min(self._console.width, 100)
        panel = Panel(Group(rows, values, spark), title=title, title_align="left", width=width)
        return Group(panel, samples) if samples else panel


class SafeDisplay:
    """Passes reports on, and keeps a display's failure (a closed terminal, a full disk) from the run."""

    def __init__(self, inner: Display | None) -> None:
        self._inner = inner

    def stage(self, name: str) -> None:
        self._try(lambda display: display.stage(name))

    def progress(self, done: int, total: int, unit: str, note: str = "") -> None:
        self._try(lambda display: display.progress(done, total, unit, note))

    def step(self, step: int, total: int, metrics: Mapping[str, float]) -> None:
        self._try(lambda display: display.step(step, total, metrics))

    def samples(self, step: int, shown: Sequence[str]) -> None:
        self._try(lambda display: display.samples(step, shown))

    def log(self, line: str) -> None:
        self._try(lambda display: display.log(line))

    def close(self) -> None:
        self._try(lambda display: display.close())
        self._inner = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _try(self, report: Callable[[Display], None]) -> None:
        if self._inner is None:
            return
        try:
            report(self._inner)
        except Exception as error:
            broken, self._inner = self._inner, None
            with contextlib.suppress(Exception):
                broken.close()
            warnings.warn(f"the display is switched off, the run goes on: {error!r}", RuntimeWarning, stacklevel=3)


def open_display(stages: list[str], silent: bool = False, watch: bool = False) -> SafeDisplay:
    """The display of a run with these stages; use as a context manager.

    A panel where standard error is a terminal that can move its cursor, lines otherwise. ``silent`` shows
    nothing: for the processes of a distributed run that are not the first. ``watch`` shows samples of each step too.
    """
    if silent:
        return SafeDisplay(None)
    console = Console(stderr=True)
    if sys.stderr.isatty() and not console.is_dumb_terminal:
        return SafeDisplay(LiveDisplay(stages, console, watch=watch))
    return SafeDisplay(PlainDisplay(stages, sys.stderr, watch=watch))
