"""Luck: chances against scipy's Fisher test, counts against permutations, the errors of "beyond luck" by simulation."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ulorl.evaluate.boundary.luck import (
    against_chance,
    any_chance,
    by_successes,
    count_tail,
    gain_chances,
    kinds_of,
    rate_at_most,
)


@pytest.mark.parametrize("n", [1, 2, 7, 32, 256])
def test_the_chance_of_a_gain_is_fishers_one_sided_p(n):
    chances = gain_chances(n)
    assert len(chances) == 2 * n + 1 and chances[0] == 0 and not chances[n + 1 :].any()
    for s in range(1, n + 1):
        table = [[0, n], [s, n - s]]
        assert chances[s] == pytest.approx(stats.fisher_exact(table, alternative="less").pvalue, rel=1e-9)
        assert chances[s] == pytest.approx(stats.hypergeom.pmf(0, 2 * n, s, n), rel=1e-9)


def test_the_chance_of_a_gain_by_counting_all_ways_to_label_the_samples():
    n = 4
    for s in range(1, 2 * n + 1):
        ways = list(combinations(range(2 * n), n))  # which of the 2n samples are the base's; the first s are right
        gained = sum(all(one >= s for one in base) for base in ways)
        assert gain_chances(n)[s] == pytest.approx(gained / len(ways))


@given(st.lists(st.floats(0, 1), max_size=10), st.integers(0, 11))
def test_the_tail_equals_the_sum_over_all_outcomes(chances, observed):
    expected = sum(
        np.prod([p if here else 1 - p for p, here in zip(chances, happened, strict=True)])
        for happened in product((0, 1), repeat=len(chances))
        if sum(happened) >= observed
    )
    assert count_tail(np.array(chances), observed) == pytest.approx(expected, abs=1e-12)


def test_the_tail_of_equal_chances_is_binomial_and_keeps_its_digits():
    assert count_tail(np.full(100, 0.01), 30) == pytest.approx(stats.binom.sf(29, 100, 0.01), rel=1e-9)


def test_the_number_gained_by_luck_equals_a_permutation_of_the_labels():
    rng = np.random.default_rng(0)
    n, problems, draws = 8, 40, 20_000
    base, trained = (rng.binomial(n, rng.beta(0.2, 2.0, problems)) for _ in range(2))
    total = base + trained
    shuffled = rng.hypergeometric(total, 2 * n - total, n, size=(draws, problems))
    gained = np.sum((shuffled == 0) & (total > 0) & (total - shuffled > 0), axis=1)
    observed = int(np.sum((base == 0) & (trained > 0)))
    found = against_chance(gain_chances(n)[total], observed)
    assert found["observed"] == observed
    assert found["expected"] == pytest.approx(gained.mean(), abs=0.03)
    assert found["sd"] == pytest.approx(gained.std(), rel=0.03)
    assert found["p"] == pytest.approx(np.mean(gained >= observed), abs=0.01)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_any_chance_is_the_sum_of_the_chances_up_to_the_own_one(chances):
    values = np.array(chances)
    expected = [min(1.0, sum(one for one in chances if one <= own * (1 + 1e-12))) for own in chances]
    np.testing.assert_allclose(any_chance(values), expected, atol=1e-12)


def runs(rng: np.random.Generator, n: int, base_P: np.ndarray, trained_P: np.ndarray):
    base, trained = rng.binomial(n, base_P), rng.binomial(n, trained_P)
    return base, trained, gain_chances(n)[base + trained]


@pytest.mark.parametrize("n", [16, 64])
def test_p_of_the_number_gained_raises_few_false_alarms(n):
    rng = np.random.default_rng(1)
    low = 0
    for _ in range(1500):
        rate = rng.beta(0.2, 2.0, 60)
        base, trained, chances = runs(rng, n, rate, rate)
        low += against_chance(chances, int(np.sum((base == 0) & (trained > 0))))["p"] <= 0.05
    assert low / 1500 <= 0.062


def test_beyond_luck_errs_rarely_whatever_else_has_changed():
    """Half the problems have gained much; on the others nothing has changed, and none of those may be called so."""
    rng = np.random.default_rng(2)
    n, problems, wrong, found, bonferroni = 64, 100, 0, 0, 0
    for _ in range(1500):
        rate = rng.beta(0.2, 2.0, problems)
        after = rate.copy()
        after[: problems // 2] = np.maximum(rate[: problems // 2], 0.12)
        base, trained, chances = runs(rng, n, rate, after)
        gained = (base == 0) & (trained > 0)
        beyond = gained & (any_chance(chances) <= 0.05)
        wrong += bool(beyond[problems // 2 :].any())
        found += int(beyond[: problems // 2].sum())
        bonferroni += int((gained & (chances * problems <= 0.05))[: problems // 2].sum())
    assert wrong / 1500 <= 0.05 + 0.015
    assert found > 1.1 * bonferroni  # no correction by the mere number of problems is as strong


def test_gained_by_successes_by_hand():
    base, trained = np.array([0, 0, 3, 1, 0]), np.array([1, 4, 2, 0, 0])
    chances = gain_chances(4)
    rows = by_successes(base, trained, 4)
    assert [(row["at_least"], row["gained"], row["lost"]) for row in rows] == [(1, 2, 1), (2, 1, 0), (4, 1, 0)]
    assert rows[0]["expected"] == pytest.approx(chances[1] + chances[4] + chances[5] + chances[1])
    assert rows[2]["expected"] == pytest.approx(chances[4] + chances[5])
    assert kinds_of(base, trained) == ["gained", "gained", "both", "lost", "never"]


def test_the_rate_of_an_unsolved_problem_is_bounded_as_by_clopper_and_pearson():
    for n in (1, 16, 256):
        assert rate_at_most(n, 0.95) == pytest.approx(
            stats.binomtest(0, n, alternative="less").proportion_ci(0.95).high
        )
