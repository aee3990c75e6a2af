"""Gains by the base's pass rate: halves by brute force, no regression to the mean, and coverage of the intervals."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from ulorl.evaluate.boundary.by_rate import EDGES, _halves, by_base_rate


@pytest.mark.parametrize(("n", "m"), [(2, 1), (9, 4), (256, 128)])
def test_halves_are_hypergeometric(n, m):
    c, a = np.arange(n + 1)[:, None], np.arange(m + 1)[None, :]
    np.testing.assert_allclose(_halves(n, m), stats.hypergeom.pmf(a, n, c, m), atol=1e-10)


def test_the_table_is_the_mean_over_all_ways_of_halving():
    base, trained, n = [0, 1, 2, 4, 5], [1, 3, 0, 5, 2], 5
    half, rest = 2, 3
    sums: dict[int, np.ndarray] = {}
    halves = list(combinations(range(n), half))
    for b, t in zip(base, trained, strict=True):
        solves = np.mean([any(i < t for i in one) for one in combinations(range(n), rest)])
        for one in halves:
            found = sum(i < b for i in one)
            left = b - found
            place = next(at for at, edge in enumerate(EDGES) if found / half <= edge)
            row = np.array([1, left / rest, t / n, left > 0, solves])
            sums[place] = sums.get(place, np.zeros(5)) + row / len(halves)
    table = by_base_rate(np.array(base), np.array(trained), n)
    assert table["samples"] == half
    assert [row["up_to"] for row in table["bins"]] == [EDGES[place] for place in sorted(sums)]
    for row, place in zip(table["bins"], sorted(sums), strict=True):
        weight, *values = sums[place]
        assert row["problems"] == pytest.approx(weight)
        names = ("base", "trained", "base_solves", "trained_solves")
        assert [row[name] for name in names] == pytest.approx([value / weight for value in values])
    assert sum(row["problems"] for row in table["bins"]) == pytest.approx(5)


def test_where_nothing_changed_no_bin_gains_and_binning_with_the_same_samples_does():
    rng = np.random.default_rng(0)
    n, problems = 16, 4000
    rate = rng.beta(0.5, 1.5, problems)
    base, trained = rng.binomial(n, rate), rng.binomial(n, rate)
    for row in by_base_rate(base, trained, n)["bins"]:
        if row["problems"] > 50:
            assert abs(row["difference"]) < 0.01
    naive = base == 0
    assert np.mean(trained[naive] / n) > 0.02  # a gain that is none


def test_intervals_cover_and_raise_few_false_alarms():
    rng = np.random.default_rng(1)
    n, problems, repetitions = 32, 60, 500
    hits: dict[float, list[bool]] = {}
    for _ in range(repetitions):
        rate = rng.beta(0.5, 1.0, problems)
        moved = np.clip(rate + rng.normal(0.0, 0.1, problems), 0, 1)
        shift = rng.permutation([0, 1] * (problems // 2)).astype(bool)
        before, after = np.where(shift, moved, rate), np.where(shift, rate, moved)  # exchangeable: no bin gains
        for row in by_base_rate(rng.binomial(n, before), rng.binomial(n, before), n)["bins"]:
            if row["interval"] is not None:
                hits.setdefault(row["up_to"], []).append(row["interval"][0] <= 0 <= row["interval"][1])
        assert len(after) == problems
    for up_to, covered in hits.items():
        if len(covered) > 200:
            assert np.mean(covered) > 0.9, up_to


def test_one_sample_has_no_halves_and_two_have():
    assert by_base_rate(np.array([0, 1]), np.array([1, 1]), 1) is None
    table = by_base_rate(np.array([0, 1]), np.array([1, 2]), 2)
    assert table["samples"] == 1
    assert all(row["interval"] is None for row in table["bins"])  # too few problems
