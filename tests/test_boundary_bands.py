"""pass@k of two models for every k: against the estimator of one problem, brute force, and simulation for the bands."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ulorl.evaluate.boundary.bands import (
    bounded,
    chosen_ks,
    crossing,
    curves,
    joint_quantile,
    pass_table,
    where,
)
from ulorl.evaluate.estimators import ProblemCounts, pass_at_k
from ulorl.evaluate.statistics import paired_difference, problems_like_these

PROBLEMS, SAMPLES = 40, 32


@pytest.mark.parametrize("n", [1, 2, 9, 256])
def test_the_table_holds_the_estimator_for_every_count_and_k(n):
    table = pass_table(n)
    assert table.shape == (n + 1, n)
    counts = [ProblemCounts(str(c), n, c) for c in range(n + 1)]
    for k in {1, 2, n // 2, n - 1, n} & set(range(1, n + 1)):
        np.testing.assert_allclose(table[:, k - 1], pass_at_k(counts, k), atol=1e-12)


def test_gained_lost_and_base_again_equal_the_mean_over_all_subsets():
    base, trained, n = [0, 1, 3], [2, 0, 5], 6
    found = curves(np.array(base), np.array(trained), n)
    for k in range(1, n + 1):
        subsets = [set(one) for one in combinations(range(n), k)]
        gained = [
            np.mean([not any(i < b for i in one) for one in subsets])
            * np.mean([any(i < t for i in one) for one in subsets])
            for b, t in zip(base, trained, strict=True)
        ]
        assert found["gained"][k - 1] == pytest.approx(np.mean(gained))
        difference = found["trained"][k - 1] - found["base"][k - 1]
        assert found["gained"][k - 1] - found["lost"][k - 1] == pytest.approx(difference)
    assert len(found["base_again"]) == 3
    for k in (1, 2, 3):
        again = []
        for b in base:
            pairs = [
                (one, two) for one in combinations(range(n), k) for two in combinations(set(range(n)) - set(one), k)
            ]
            solved = [all(i >= b for i in one) and any(i < b for i in two) for one, two in pairs]
            again.append(np.mean(solved))
        assert found["base_again"][k - 1] == pytest.approx(np.mean(again))


def test_entries_are_those_of_the_interval_functions():
    rng = np.random.default_rng(0)
    base, trained = (rng.binomial(SAMPLES, rng.beta(0.7, 1.0, PROBLEMS)) for _ in range(2))
    ks = chosen_ks(SAMPLES)
    rows = bounded(base, trained, SAMPLES, ks)
    assert [row["k"] for row in rows] == ks == list(range(1, SAMPLES + 1))
    one = rows[3]
    values = [pass_at_k([ProblemCounts("p", SAMPLES, int(c)) for c in side], 4) for side in (base, trained)]
    like_these = problems_like_these(values[0], step=4 / SAMPLES)
    assert one["base_interval"] == pytest.approx([like_these.low, like_these.high])
    paired = paired_difference(*values, step=4 / SAMPLES)
    assert one["difference"] == pytest.approx(paired.mean)
    assert one["interval"] == pytest.approx([paired.interval.low, paired.interval.high])
    for row in rows:
        assert row["band"][0] <= row["interval"][0] <= row["difference"] <= row["interval"][1] <= row["band"][1]


def test_the_joint_quantile_of_one_column_is_students_and_of_independent_ones_sidaks():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(400, 1))
    assert joint_quantile(values) == pytest.approx(stats.t.ppf(0.975, 399), rel=0.03)
    assert joint_quantile(np.repeat(values, 5, axis=1)) == pytest.approx(stats.t.ppf(0.975, 399), rel=0.03)
    many = rng.normal(size=(2000, 5))
    assert joint_quantile(many) == pytest.approx(stats.norm.ppf((1 + 0.95 ** (1 / 5)) / 2), rel=0.03)
    assert joint_quantile(np.ones((9, 3))) is None
    assert joint_quantile(values) == joint_quantile(values)


def drawn(rng: np.random.Generator, shift: float) -> tuple[np.ndarray, np.ndarray]:
    rate = rng.beta(0.7, 1.0, PROBLEMS)
    odds = np.log(np.clip(rate, 1e-9, 1) / np.clip(1 - rate, 1e-9, 1)) + rng.normal(shift, 0.5 * bool(shift), PROBLEMS)
    return rng.binomial(SAMPLES, rate), rng.binomial(SAMPLES, 1 / (1 + np.exp(-odds)))


def test_the_band_covers_the_whole_curve_and_intervals_do_not():
    rng = np.random.default_rng(2)
    rate = rng.beta(0.7, 1.0, 200_000)
    odds = np.log(np.clip(rate, 1e-9, 1) / np.clip(1 - rate, 1e-9, 1)) + rng.normal(0.5, 0.5, len(rate))
    after = 1 / (1 + np.exp(-odds))
    ks = [1, 2, 3, 4, 6, 8, 12, 16]
    truth = [np.mean((1 - rate) ** k - (1 - after) ** k) for k in ks]
    band = every = 0
    for _ in range(300):
        rows = bounded(*drawn(rng, 0.5), SAMPLES, ks)
        band += all(row["band"][0] <= one <= row["band"][1] for row, one in zip(rows, truth, strict=True))
        every += all(row["interval"][0] <= one <= row["interval"][1] for row, one in zip(rows, truth, strict=True))
    assert 0.89 < band / 300 < 0.99
    assert every < band - 9


def test_no_side_is_called_better_anywhere_where_nothing_changed():
    rng = np.random.default_rng(3)
    wrong = 0
    for _ in range(300):
        rows = bounded(*drawn(rng, 0.0), SAMPLES, [1, 2, 4, 8, 16, 24, 32])
        wrong += bool(where(rows, 1) or where(rows, -1))
    assert wrong / 300 <= 0.07


def test_the_values_of_k_are_few_and_hold_what_is_shown():
    for n in (1, 48, 49, 256, 1024):
        ks = chosen_ks(n, [n // 3 + 1])
        assert ks == sorted(set(ks)) and ks[0] == 1 and ks[-1] == n and len(ks) <= 64
        assert {2**power for power in range(n.bit_length())} <= set(ks)
        assert n // 3 + 1 in ks


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=8))
def test_the_crossing_is_where_the_base_begins_to_stay_above(pairs):
    base, trained = ([float(pair[side]) for pair in pairs] for side in (0, 1))
    found = crossing(base, trained)
    above = [b > t for b, t in pairs]
    expected = next((k for k in range(2, len(pairs) + 1) if all(above[k - 1 :]) and not above[k - 2]), None)
    assert found == expected


def test_ranges_of_k_by_hand():
    bands = [[0.1, 0.2], [0.1, 0.3], [-0.1, 0.1], None, [0.1, 0.2], [-0.3, -0.1]]
    rows = [{"k": k, "band": band} for k, band in enumerate(bands, 1)]
    assert where(rows, 1) == [[1, 2], [5, 5]]
    assert where(rows, -1) == [[6, 6]]


def test_what_cannot_be_known_is_null():
    rows = bounded(np.array([2, 2]), np.array([4, 4]), 4, [1, 4])
    assert all(row[name] is None for row in rows for name in ("base_interval", "interval", "band"))
    assert rows[0]["difference"] == 0.5
    (one,) = bounded(np.array([1]), np.array([2]), 4, [2])
    assert one["interval"] is None and one["band"] is None
