"""Intervals: quantiles against scipy, coverage by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

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


def test_coverage_of_pass_at_8_whose_values_crowd_near_one():
    rng = np.random.default_rng(5)
    mean = float(np.mean(1 - (1 - rng.beta(0.7, 1.0, 200_000)) ** 8))
    repetitions, student, ours = 600, 0, 0
    for _ in range(repetitions):
        correct_P = rng.binomial(SAMPLES, rng.beta(0.7, 1.0, PROBLEMS))
        values_P = pass_at_k([ProblemCounts(str(i), SAMPLES, int(c)) for i, c in enumerate(correct_P)], 8)
        ours += covered(problems_like_these(values_P), mean)
        low, high = stats.t.interval(0.95, PROBLEMS - 1, loc=values_P.mean(), scale=stats.sem(values_P))
        student += low <= mean <= high
    assert student / repetitions < 0.94
    assert 0.94 < ours / repetitions < 0.99


def test_the_correction_widens_towards_the_tail():
    values_P = np.array([1.0] * 27 + [0.9, 0.5, 0.1])
    interval = problems_like_these(values_P)
    low, high = stats.t.interval(0.95, 29, loc=values_P.mean(), scale=stats.sem(values_P))
    assert interval.low < low < values_P.mean() < interval.high < high


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


def test_a_true_difference_of_the_detectable_size_is_found_in_about_80_percent():
    rng = np.random.default_rng(2)
    spread, problems = 0.2, 50
    error = spread / math.sqrt(problems)
    detectable = (t_quantile(0.975, problems - 1) + t_quantile(0.8, problems - 1)) * error
    found = [
        paired_difference(np.zeros(problems), rng.normal(detectable, spread, problems)).interval.low > 0
        for _ in range(1000)
    ]
    assert abs(np.mean(found) - 0.8) < 0.04
    one = paired_difference(np.zeros(3), np.array([0.1, 0.2, 0.3]))
    assert one.detectable == pytest.approx((t_quantile(0.975, 2) + t_quantile(0.8, 2)) * 0.1 / math.sqrt(3))


def test_interval_equals_scipy_and_is_named():
    values_P = np.array([0.1, 0.5, 0.4, 0.8])
    interval = problems_like_these(values_P)
    low, high = stats.t.interval(0.95, 3, loc=values_P.mean(), scale=stats.sem(values_P))
    assert (interval.low, interval.high) == pytest.approx((max(0.0, low), min(1.0, high)))
    assert interval.population == "problems like these"
    assert these_problems(values_P, np.full(4, 0.01)).population == "these problems"


def test_what_cannot_be_known_is_none():
    assert problems_like_these(np.array([0.5])) is None
    assert these_problems(np.array([0.5, 0.2]), np.array([0.1, np.nan])) is None
    assert problems_like_these(np.ones(30)) is None
    assert these_problems(np.ones(30), np.zeros(30)) is None
    assert paired_difference(np.full(5, 0.1), np.full(5, 0.4)).interval is None
    alone = paired_difference(np.array([0.5]), np.array([0.7]))
    assert (alone.interval, alone.detectable) == (None, None)
    with pytest.raises(ValueError, match="same problems"):
        paired_difference(np.array([0.5]), np.array([0.7, 0.1]))
