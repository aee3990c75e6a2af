"""Intervals: quantiles against scipy, coverage by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

from ulorl.evaluate.estimators import ProblemCounts, pass_at_k, sampling_variance
from ulorl.evaluate.statistics import (
    paired_difference,
    problems_like_these,
    t_quantile,
    these_problems,
    these_problems_difference,
)

PROBLEMS, SAMPLES = 30, 32


@pytest.mark.parametrize("df", [1, 2, 3, 4, 5, 10, 29, 30, 99, 1318])
@pytest.mark.parametrize("p", [0.5, 0.8, 0.9, 0.975, 0.9995])
def test_t_quantile_equals_scipy(df, p):
    assert t_quantile(p, df) == pytest.approx(stats.t.ppf(p, df), rel=1e-9, abs=1e-9)


def test_t_quantile_refuses_what_it_cannot_do():
    for p, df in [(0.4, 3), (1.0, 3), (0.9, 0)]:
        with pytest.raises(ValueError, match="t_quantile"):
            t_quantile(p, df)


def covered(interval, truth: float) -> bool:
    return interval.low <= truth <= interval.high


def test_coverage_of_both_intervals_and_of_the_naive_one():
    rng = np.random.default_rng(0)
    repetitions = 2000
    fixed_P = rng.beta(0.7, 1.0, PROBLEMS)
    mean = 0.7 / 1.7
    like_these = naive = these = 0
    for _ in range(repetitions):
        # other problems each time: the truth is the population's mean
        correct_P = rng.binomial(SAMPLES, rng.beta(0.7, 1.0, PROBLEMS))
        rate_P = correct_P / SAMPLES
        like_these += covered(problems_like_these(rate_P), mean)
        pooled = rate_P.mean()
        margin = 1.96 * math.sqrt(pooled * (1 - pooled) / (PROBLEMS * SAMPLES))
        naive += abs(pooled - mean) <= margin
        # the same problems each time: the truth is their mean
        correct_P = rng.binomial(SAMPLES, fixed_P)
        counts = [ProblemCounts(str(i), SAMPLES, int(c)) for i, c in enumerate(correct_P)]
        these += covered(these_problems(correct_P / SAMPLES, sampling_variance(counts, 1)), fixed_P.mean())
    assert abs(like_these / repetitions - 0.95) < 0.02
    assert abs(these / repetitions - 0.95) < 0.02
    assert naive / repetitions < 0.6


@pytest.mark.parametrize(
    ("difficulties", "k"), [((0.7, 1.0), 8), ((0.25, 0.25), 8), ((4.0, 4.0), 4), ((4.0, 4.0), 8), ((0.7, 1.0), 16)]
)
def test_coverage_of_pass_at_k_whose_values_crowd_near_one(difficulties, k):
    rng = np.random.default_rng(5)
    mean = float(np.mean(1 - (1 - rng.beta(*difficulties, 200_000)) ** k))
    by_correct = pass_at_k([ProblemCounts(str(c), SAMPLES, c) for c in range(SAMPLES + 1)], k)
    repetitions, student, ours = 1500, 0, 0
    t = stats.t.ppf(0.975, PROBLEMS - 1)
    for _ in range(repetitions):
        values_P = by_correct[rng.binomial(SAMPLES, rng.beta(*difficulties, PROBLEMS))]
        interval = problems_like_these(values_P, step=k / SAMPLES)
        ours += interval is not None and covered(interval, mean)
        student += abs(values_P.mean() - mean) <= t * stats.sem(values_P)
    assert student < ours
    assert abs(ours / repetitions - 0.95) < 0.02


def test_the_interval_inverts_the_score_test_of_as_many_trials_as_have_its_variance():
    values_P = np.array([0.1, 0.5, 0.4, 0.8, 0.0, 1.0])
    mean, t = values_P.mean(), stats.t.ppf(0.975, 5)
    trials = mean * (1 - mean) / stats.sem(values_P) ** 2

    def score(p: float) -> float:
        return (mean - p) ** 2 - t**2 * p * (1 - p) / trials

    interval = problems_like_these(values_P)
    assert interval.low == pytest.approx(optimize.brentq(score, 1e-9, mean), rel=1e-6)
    assert interval.high == pytest.approx(optimize.brentq(score, mean, 1 - 1e-9), rel=1e-6)
    assert interval.population == "problems like these"
    assert these_problems(values_P, np.full(6, 0.01)).population == "these problems"


def test_intervals_are_wider_towards_the_tail_by_the_step_of_a_value():
    values_P = np.array([1.0] * 27 + [0.9, 0.5, 0.1])
    narrow, wide = problems_like_these(values_P), problems_like_these(values_P, step=0.25)
    skewness = stats.skew(values_P)
    assert skewness < -1 and wide.high == narrow.high
    assert narrow.low - wide.low == pytest.approx(0.5 * -skewness * 0.25 / 30)
    both = [paired_difference(np.zeros(30), values_P, step=step).interval for step in (0.0, 0.25)]
    assert (both[0].low, both[0].high) == pytest.approx(
        stats.t.interval(0.95, 29, loc=values_P.mean(), scale=stats.sem(values_P))
    )
    error = math.sqrt(values_P.var(ddof=1) / 30 + 0.5 * (0.25 / 30) ** 2)  # as if half a problem more had changed
    assert both[1].high == pytest.approx(values_P.mean() + stats.t.ppf(0.975, 29) * error)
    margin = stats.t.ppf(0.975, 29) * error + 0.5 * -skewness * 0.25 / 30
    assert both[1].low == pytest.approx(values_P.mean() - margin)


def test_difference_on_these_very_problems_covers():
    rng = np.random.default_rng(6)
    before_P, after_P = rng.beta(0.7, 1.0, PROBLEMS), rng.beta(0.7, 1.0, PROBLEMS)
    hits = 0
    for _ in range(500):
        counts = [
            [ProblemCounts(str(i), SAMPLES, int(c)) for i, c in enumerate(rng.binomial(SAMPLES, chance_P))]
            for chance_P in (before_P, after_P)
        ]
        variances_P = sampling_variance(counts[0], 1) + sampling_variance(counts[1], 1)
        interval = these_problems_difference(*(pass_at_k(one, 1) for one in counts), variances_P)
        hits += covered(interval, np.mean(after_P - before_P))
    assert abs(hits / 500 - 0.95) < 0.03
    assert interval.population == "these problems"
    assert these_problems_difference(before_P, after_P, np.zeros(PROBLEMS)) is None


def test_paired_difference_covers_finds_and_raises_no_false_alarm():
    rng = np.random.default_rng(1)
    repetitions, gain = 1000, 0.08
    hits = alarms = found = 0
    for _ in range(repetitions):
        rate_P = rng.beta(0.7, 1.0, PROBLEMS) * (1 - gain)
        before_P, same_P, after_P = (rng.binomial(SAMPLES, p) / SAMPLES for p in (rate_P, rate_P, rate_P + gain))
        alarms += not covered(paired_difference(before_P, same_P).interval, 0.0)
        difference = paired_difference(before_P, after_P)
        hits += covered(difference.interval, gain)
        found += difference.interval.low > 0
    assert alarms / repetitions < 0.07
    assert abs(hits / repetitions - 0.95) < 0.02
    assert found / repetitions > 0.9


def test_what_cannot_be_known_is_none():
    assert problems_like_these(np.array([0.5])) is None
    assert these_problems(np.array([0.5, 0.2]), np.array([0.1, np.nan])) is None
    assert problems_like_these(np.ones(30)) is None
    assert these_problems(np.ones(30), np.zeros(30)) is None
    assert paired_difference(np.full(5, 0.1), np.full(5, 0.4)).interval is None
    assert paired_difference(np.array([0.5]), np.array([0.7])).interval is None
    with pytest.raises(ValueError, match="same problems"):
        paired_difference(np.array([0.5]), np.array([0.7, 0.1]))
