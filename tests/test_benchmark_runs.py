"""What the scripts of docs/evidence.md make of numbers of runs; the runs themselves are theirs."""

from __future__ import annotations

import json
import math
import statistics
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import entropy
import logprob_memory
import reference_reset
import segment_speed
import training_runs


def rows(**metrics: list[float]) -> training_runs.Rows:
    """Steps from 1; a value nan means that the step does not report the metric."""
    names = {name.replace("__", "/"): values for name, values in metrics.items()}
    steps = range(len(next(iter(names.values()))))
    return [
        {"step": step + 1} | {name: values[step] for name, values in names.items() if not math.isnan(values[step])}
        for step in steps
    ]


def test_a_run_is_named_after_its_settings_whatever_their_order() -> None:
    one = {"steps": 60, "objective.mastered": "never", "rollout.segments": 8}
    assert training_runs.run_name(one) == training_runs.run_name(dict(reversed(one.items())))
    assert training_runs.run_name(one) == "objective.mastered=never,rollout.segments=8,steps=60"
    assert training_runs.run_name(one | {"rollout.segments": 4}) != training_runs.run_name(one)
    assert "/" not in training_runs.run_name({"objective.truncated": "a/b ../c"})


def test_settings_of_the_same_last_name_do_not_share_a_run() -> None:
    names = {training_runs.run_name({key: 1}) for key in ("rollout.max_tokens", "learner.max_tokens")}
    assert len(names) == 2


def test_steps_without_the_metric_are_left_out_of_means() -> None:
    seed = rows(entropy__mean=[0.4, math.nan, 0.2, 0.1, 0.3])
    assert training_runs.first_mean(seed, "entropy/mean", 2) == pytest.approx(0.3)
    assert training_runs.last_mean(seed, "entropy/mean", 0.5) == pytest.approx(0.2)
    assert math.isnan(training_runs.last_mean(seed, "reward/mean"))


def test_a_curve_is_the_mean_over_seeds_of_moving_means_with_their_extremes() -> None:
    seeds = [rows(reward__mean=[0.0, 1.0, 1.0]), rows(reward__mean=[1.0, 1.0, 0.0])]
    drawn = training_runs.curve("both", 1, seeds, "reward/mean", width=2)
    assert drawn.points == [(1, 0.5), (2, 0.75), (3, 0.75)]
    assert drawn.band == [(1, 0.0, 1.0), (2, 0.5, 1.0), (3, 0.5, 1.0)]


def test_a_curve_ends_where_the_shortest_run_does() -> None:
    seeds = [rows(reward__mean=[1.0, 1.0]), rows(reward__mean=[1.0])]
    assert [step for step, _ in training_runs.curve("both", 1, seeds, "reward/mean").points] == [1]


def test_speed_is_of_the_steps_after_the_pool_has_filled_and_for_as_many_samples_as_enter() -> None:
    seed = rows(
        time__step_s=[100.0, 2.0, 4.0],
        time__rollout_s=[90.0, 1.0, 2.0],
        objective__samples=[1.0, 30.0, 10.0],
        objective__tokens=[1.0, 700.0, 500.0],
    )
    found = segment_speed.speed(seed, batch=32, left_out=1)
    assert found.step == pytest.approx(6.0 / 40 * 32)
    assert found.tokens_per_s == pytest.approx(200.0)
    assert found.samples == pytest.approx(20.0)
    assert found.rollout_share == pytest.approx(0.5)


def test_gains_are_within_a_seed() -> None:
    one, four = (
        [segment_speed.Speed(step, tokens, 32, 0.5) for step, tokens in runs]
        for runs in (
            [(2.0, 100.0), (4.0, 50.0)],
            [(1.0, 150.0), (1.0, 100.0)],
        )
    )
    assert segment_speed.ratios(one, four) == ([2.0, 4.0], [1.5, 2.0])


def test_one_problem_in_so_many_is_long_and_the_others_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_speed, "ulorl_command", lambda *_: None)
    segment_speed.long_tailed(tmp_path / "tail", 3, 0)
    problems = [json.loads(line)["problem"] for line in (tmp_path / "tail.jsonl").read_text().splitlines()]
    assert len(problems) == segment_speed.PROBLEMS
    lengths = [len(problem) for problem in problems]
    assert min(lengths[0::4]) > 30 and statistics.median(lengths[0::4]) > 1.5 * statistics.median(lengths[1::4])


def test_a_stall_ends_with_as_many_validations_without_a_gain_as_the_patience() -> None:
    rising, flat = [0.2, 0.4, 0.6], [0.6 + reference_reset.LEAST_GAIN / 2] * reference_reset.PATIENCE
    assert reference_reset.stalled(rows(validation__avg=[*rising, *flat[1:]])) == (0, 0.6)
    assert reference_reset.stalled(rows(validation__avg=[*rising, math.nan, *flat, 0.9])) == (
        4 + reference_reset.PATIENCE,
        0.6,
    )


def test_entropy_is_near_sigma_within_a_quarter_of_it() -> None:
    inside, outside = entropy.SIGMA * 1.24, entropy.SIGMA * 0.74
    assert entropy.near([inside, outside, entropy.SIGMA]) == 2


def test_a_peak_that_does_not_fit_is_computed_from_the_largest_that_does() -> None:
    plain = {"seconds": 10.0, "gib": 7.0, "check": 1.0}
    tiled = {"seconds": 8.0, "gib": 0.5, "check": 1.0}
    small = logprob_memory.size(4096, [(plain, tiled), (plain, tiled)], None)
    large = logprob_memory.size(16384, [(None, tiled)], small)
    assert small.ratios == [0.8, 0.8] and small.plain_gib == 7.0
    assert large.plain_gib == pytest.approx(28.0) and large.ratios == []
    assert "28.00 (computed)" in large.row() and "does not fit" in large.row()


def test_contestants_that_disagree_are_an_error() -> None:
    wrong = {"seconds": 8.0, "gib": 0.5, "check": 1.1}
    with pytest.raises(AssertionError, match="disagree"):
        logprob_memory.size(4096, [(wrong | {"check": 1.0}, wrong)], None)


def test_spread_shows_the_mean_and_the_extremes() -> None:
    values = [0.25, 0.5, 0.75]
    assert training_runs.spread(values, ".2f") == f"{statistics.fmean(values):.2f} (0.25 to 0.75)"


def test_a_run_that_is_there_is_not_trained_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(training_runs, "ulorl_command", lambda *words, **_: calls.append(words))
    training_runs.ulorl_train(tmp_path / "new", tmp_path, {"learner.lr": 1e-6}, 3)
    assert calls[0][0] == "train" and "train.learner.lr=1e-06" in calls[0] and "seed=3" in calls[0]
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "manifest.json").write_text(json.dumps({}))
    training_runs.ulorl_train(tmp_path / "old", tmp_path, {}, 3)
    assert len(calls) == 1
