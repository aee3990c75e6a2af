"""The display: lines at a bearable pace without a terminal, a panel with one, never the end of a run."""

import io
import math
import sys

import pytest
from rich.console import Console

from ulorl.report.display import PLAIN_EVERY_S, LiveDisplay, PlainDisplay, SafeDisplay, open_display
from ulorl.report.metrics import METRICS
from ulorl.report.progress import SHOWN, Rate, Work, duration, shown_metrics, sparkline

METRICS_OF_A_STEP = {
    "reward/mean": 0.4125,
    "entropy/mean": 0.181,
    "entropy/target": 0.2,
    "length/mean": 131.6,
    "length/max": 256.0,
    "length/truncated_share": 0.0625,
    "pool/unfinished_samples": 37.0,
    "pool/waiting_samples": 12.0,
    "time/tokens_per_s": 251.2,
}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def plain() -> tuple[PlainDisplay, io.StringIO, Clock]:
    stream, clock = io.StringIO(), Clock()
    display = PlainDisplay(["curate", "train"], stream, clock)
    return display, stream, clock


def test_duration() -> None:
    assert [duration(seconds) for seconds in (0, 59.9, 61, 3725, -3)] == [
        "0:00",
        "0:59",
        "1:01",
        "1:02:05",
        "0:00",
    ]


def test_sparkline_spans_its_own_range_and_copes_with_anything() -> None:
    assert sparkline([0, 7], 10) == "▁█"
    assert sparkline([float(value) for value in range(100)], 8) == "▁▂▃▄▅▆▇█"
    assert sparkline([0.5, 0.5], 10) == "▁▁"
    assert sparkline([], 10) == sparkline([math.nan], 10) == ""
    assert sparkline([0.0, math.nan, 1.0], 10) == "▁█"


def test_time_left_follows_the_recent_rate() -> None:
    rate = Rate()
    rate.add(0, 0)
    assert rate.left(0, 100) is None
    for second in range(1, 101):
        rate.add(second, second)
    assert rate.left(100, 400) == pytest.approx(300)
    for second in range(101, 151):
        rate.add(second, 100 + 4 * (second - 100))
    assert rate.left(150, 400) == pytest.approx((400 - 300) / 4)
    assert rate.left(160, 400) == pytest.approx((400 - 300) / 4 - 10)
    assert rate.left(10_000, 400) == 0


def test_a_burst_of_reports_does_not_hide_the_rate() -> None:
    rate = Rate()
    for tick in range(10_000):
        rate.add(tick / 1000, tick // 1000)
    left = rate.left(9.999, 19)
    assert left is not None
    assert 8 < left < 13


def test_a_count_that_starts_anew_has_no_rate_yet() -> None:
    work = Work("samples")
    work.move(0, 0, 10)
    work.move(10, 10, 10)
    work.move(11, 0, 10, "step 2")
    assert work.text(11) == "samples 0/10: step 2"
    work.move(13, 1, 10)
    assert work.text(13) == "samples 1/10, 0:18 left"


def test_shown_metrics_are_documented_and_may_be_absent() -> None:
    assert {name for _, name, _ in SHOWN} <= set(METRICS)
    assert shown_metrics({"entropy/mean": math.nan}) == [("entropy", "nan")]
    assert len(shown_metrics(METRICS_OF_A_STEP)) == len(SHOWN)


def test_plain_lines_come_first_and_then_every_ten_seconds() -> None:
    display, stream, clock = plain()
    display.stage("curate")
    for _ in range(100):
        display.progress(int(clock.now - 1000), 1000, "problems", "difficulty")
        clock.now += 1
    lines = stream.getvalue().splitlines()
    assert lines[0] == "[0:00 curate (1 of 2)] begins"
    assert lines[1] == "[0:00 curate (1 of 2)] problems 0/1000: difficulty"
    assert lines[2] == "[0:10 curate (1 of 2)] problems 10/1000, 16:30 left: difficulty"
    assert len(lines) == 2 + 9


def test_plain_says_the_end_of_a_count_once_and_the_begin_of_another() -> None:
    display, stream, _ = plain()
    display.stage("curate")
    for done in (0, 1, 2, 2, 2):
        display.progress(done, 2, "files")
    display.progress(0, 0, "rows")
    assert [line.split("] ")[1] for line in stream.getvalue().splitlines()] == [
        "begins",
        "files 0/2",
        "files 2/2",
        "rows 0",
    ]


def test_plain_steps_tell_everything_but_not_at_every_step() -> None:
    display, stream, clock = plain()
    display.stage("train")
    for step in range(1, 41):
        display.progress(0, 8, "samples")
        clock.now += 1
        display.progress(8, 8, "samples")
        display.step(step, 40, METRICS_OF_A_STEP)
    lines = [line for line in stream.getvalue().splitlines() if "] step" in line]
    assert [line.split("step ")[1].split("/")[0] for line in lines] == ["1", "11", "21", "31", "40"]
    assert lines[1] == (
        "[0:11 train (2 of 2)] step 11/40, 0:29 left  reward 0.412  entropy 0.181  target 0.2  length 132  "
        "longest 256  truncated 6.2%  unfinished 37  waiting 12  tokens/s 251"
    )
    assert len(stream.getvalue().splitlines()) <= 12


def test_plain_is_never_silent_while_a_long_step_runs() -> None:
    display, _, clock = plain()
    display.stage("train")
    longest, last = 0.0, clock.now
    for step in range(1, 5):
        for done in range(300):
            clock.now += 0.7
            before = display._stream.tell()
            display.progress(done, 300, "samples")
            if display._stream.tell() > before:
                longest, last = max(longest, clock.now - last), clock.now
        display.step(step, 4, {})
        last = clock.now
    assert longest <= PLAIN_EVERY_S + 1


def test_the_panel_shows_where_the_run_stands() -> None:
    stream, clock = io.StringIO(), Clock()
    console = Console(file=stream, force_terminal=True, width=90, color_system=None)
    display = LiveDisplay(["curate", "train"], console, clock)
    display.stage("train")
    for step in range(1, 5):
        clock.now += 30
        display.progress(32, 64, "samples", "[oddly] named [/]")
        display.step(step, 20, {**METRICS_OF_A_STEP, "reward/mean": step / 10})
    with console.capture() as capture:
        console.print(display.render())
    display.log("[red]a checkpoint[/nothing]")
    display.close()
    display.close()
    text = capture.get()
    for expected in ("train (2 of 2)  2:00", "step 4/20, 8:00 left", "samples 32/64", "[oddly] named [/]"):
        assert expected in text
    for expected in ("reward 0.400", "entropy 0.181", "target 0.2", "truncated 6.2%", "tokens/s 251", "▁▃▆█"):
        assert expected in text
    assert "[red]a checkpoint[/nothing]" in stream.getvalue()


SAMPLES = ["right: reward 1, 12 tokens, 1 segment, answer [red]4[/] (exact)", "  response  [bold]no markup[/nothing]"]


def test_samples_are_shown_at_every_step_where_they_are_asked_for() -> None:
    for watch in (True, False):
        stream, clock = io.StringIO(), Clock()
        display = PlainDisplay(["train"], stream, clock, watch=watch)
        display.stage("train")
        for step in (1, 2):
            display.step(step, 9, {})
            display.samples(step, SAMPLES)
        display.samples(3, [])
        lines = stream.getvalue().splitlines()
        assert [line for line in lines if line in SAMPLES] == SAMPLES * 2 * watch
        assert sum("samples of step" in line for line in lines) == 2 * watch


def test_samples_lie_under_the_panel_until_the_next_step() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=90, color_system=None)
    display = LiveDisplay(["curate", "train"], console, Clock(), watch=True)
    display.stage("train")
    display.samples(1, ["of step 1"])
    display.samples(2, SAMPLES)
    with console.capture() as capture:
        console.print(display.render())
    display.stage("curate")
    with console.capture() as later:
        console.print(display.render())
    display.close()
    shown = capture.get()
    assert "of step 1" not in shown
    assert (
        shown.index("╰") < shown.index("samples of step 2") < shown.index("[red]4[/]") < shown.index("[bold]no markup")
    )
    assert "samples of step" not in later.get()


def test_without_a_terminal_standard_output_stays_empty(capsys: pytest.CaptureFixture[str]) -> None:
    with open_display(["curate"]) as display:
        display.stage("curate")
        display.progress(1, 2, "problems")
        display.log("kept 3")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 3


def test_silent_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with open_display(["curate"], silent=True) as display:
        display.stage("curate")
        display.step(1, 2, {})
    assert capsys.readouterr() == ("", "")


def test_a_closed_terminal_does_not_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    display = open_display(["train"])
    display.stage("train")
    stream.close()
    with pytest.warns(RuntimeWarning, match="switched off"):
        display.log("lost")
    display.step(1, 2, METRICS_OF_A_STEP)
    display.close()


def test_a_mistake_of_ours_is_seen_beneath_the_shelter_and_warned_of_above_it() -> None:
    inner, _, _ = plain()
    with pytest.raises(AssertionError, match="tarin is not one of"):
        inner.stage("tarin")
    with pytest.warns(RuntimeWarning, match="tarin"):
        SafeDisplay(inner).stage("tarin")


def test_an_interrupt_goes_through() -> None:
    class Interrupted(PlainDisplay):
        def log(self, line: str) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SafeDisplay(Interrupted([], io.StringIO())).log("x")
