"""metrics.jsonl: whole lines, cut on resume, repaired after a crash, valid JSON whatever the numbers."""

import json
import math
import sys
from pathlib import Path

import pytest

from ulorl.errors import UserError
from ulorl.report.metrics import FILE, METRICS, TENSORBOARD, MetricsWriter, read_metrics


@pytest.fixture(autouse=True)
def _no_tensorboard(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing torch takes seconds; only the test of TensorBoard itself needs it."""
    if "tensorboard" not in request.node.name:
        monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)


def write(directory: Path, steps: range, reward: float = 0.5, resume_after: int | None = None) -> None:
    with MetricsWriter(directory, resume_after=resume_after) as writer:
        for step in steps:
            writer.write(step, {"reward/mean": reward, "length/max": 64})


def steps_and_rewards(directory: Path) -> list[tuple[float, float]]:
    return [(row["step"], row["reward/mean"]) for row in read_metrics(directory / FILE)]


def test_lines_are_there_before_the_writer_is_closed(tmp_path: Path) -> None:
    writer = MetricsWriter(tmp_path)
    writer.write(1, {"reward/mean": 0.25})
    assert (tmp_path / FILE).read_text() == '{"step": 1, "reward/mean": 0.25}\n'
    writer.close()
    writer.close()


def test_resume_cuts_the_steps_that_will_be_done_again(tmp_path: Path) -> None:
    write(tmp_path, range(1, 6), reward=0.0)
    write(tmp_path, range(4, 6), reward=1.0, resume_after=3)
    assert steps_and_rewards(tmp_path) == [(1, 0), (2, 0), (3, 0), (4, 1), (5, 1)]
    assert sorted(path.name for path in tmp_path.iterdir()) == [FILE]


def test_without_resume_an_old_file_is_replaced(tmp_path: Path) -> None:
    write(tmp_path, range(0, 3))
    write(tmp_path, range(1, 2), reward=1.0)
    assert steps_and_rewards(tmp_path) == [(1, 1)]


@pytest.mark.parametrize("torn", ['{"step": 3, "rew', "{", '{"step": 3, "reward/mean": 0.5', "\x00\x00", '{"x": 1}'])
def test_a_torn_last_line_is_repaired(tmp_path: Path, torn: str) -> None:
    write(tmp_path, range(1, 3))
    with (tmp_path / FILE).open("a") as file:
        file.write(torn)
    assert steps_and_rewards(tmp_path) == [(1, 0.5), (2, 0.5)]
    write(tmp_path, range(3, 4), resume_after=5)
    assert steps_and_rewards(tmp_path) == [(1, 0.5), (2, 0.5), (3, 0.5)]


def test_a_last_line_without_its_newline_is_kept_whole(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"step": 1, "reward/mean": 0.5}')
    write(tmp_path, range(2, 3), resume_after=1)
    assert steps_and_rewards(tmp_path) == [(1, 0.5), (2, 0.5)]


def test_a_damaged_line_elsewhere_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"step": 1}\n{"st\n{"step": 3}\n')
    with pytest.raises(UserError, match="line 2"):
        read_metrics(tmp_path / FILE)


def test_numbers_that_are_not_finite_stay_valid_json_and_survive_a_resume(tmp_path: Path) -> None:
    with MetricsWriter(tmp_path) as writer:
        values = {"objective/loss": math.nan, "objective/grad_norm": math.inf, "entropy/mean": -math.inf}
        writer.write(1, values)
    write(tmp_path, range(2, 3), resume_after=1)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    for line in (tmp_path / FILE).read_text().splitlines():
        json.loads(line, parse_constant=refuse)
    row = read_metrics(tmp_path / FILE)[0]
    assert math.isnan(row["objective/loss"])
    assert (row["objective/grad_norm"], row["entropy/mean"]) == (math.inf, -math.inf)


def test_numbers_come_back_exactly(tmp_path: Path) -> None:
    values = {
        "reward/mean": 0.1 + 0.2,
        "objective/tokens": 2.0**60,
        "objective/lr": 1e-6,
        "length/max": 131072,
    }
    with MetricsWriter(tmp_path) as writer:
        writer.write(7, values)
    assert read_metrics(tmp_path / FILE) == [{"step": 7, **values}]


def test_an_undocumented_name_or_a_step_back_is_our_own_mistake(tmp_path: Path) -> None:
    with MetricsWriter(tmp_path) as writer:
        with pytest.raises(AssertionError, match="length/median"):
            writer.write(1, {"length/median": 0.0})
        writer.write(2, {})
        with pytest.raises(AssertionError, match="does not follow"):
            writer.write(2, {})
    assert [row["step"] for row in read_metrics(tmp_path / FILE)] == [2]


def test_every_metric_has_a_group_and_a_meaning() -> None:
    groups = {"reward", "entropy", "length", "segment", "pool", "objective", "mismatch", "time", "memory"}
    groups |= {"validation", "reference", "run"}
    assert {name.split("/")[0] for name in METRICS} == groups
    assert all(meaning and "\n" not in meaning for meaning in METRICS.values())


def test_absence_of_the_board_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, range(1, 4))
    assert len(caplog.records) == 1
    assert not (tmp_path / TENSORBOARD).exists()


def test_tensorboard_gets_the_same_numbers_and_hides_what_is_done_again(tmp_path: Path) -> None:
    pytest.importorskip("torch.utils.tensorboard", reason="TensorBoard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    write(tmp_path, range(1, 5), reward=0.25)
    write(tmp_path, range(3, 4), reward=0.75, resume_after=2)
    events = EventAccumulator(str(tmp_path / TENSORBOARD)).Reload()
    assert [(event.step, event.value) for event in events.Scalars("reward/mean")] == [
        (1, 0.25),
        (2, 0.25),
        (3, 0.75),
    ]
