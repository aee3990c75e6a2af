"""pass@k, maj@k and their variances against brute force over all subsets."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import comb

import numpy as np
import pytest

from ulorl.errors import UserError
from ulorl.evaluate.estimators import (
    MOST_IN_FLOATS,
    MOST_LEFT_OUT,
    ProblemCounts,
    avg_at_n,
    maj_at_k,
    majority_variance,
    pass_at_k,
    pass_curve,
    sampling_variance,
)

RIGHT = "right"
VOTES = [
    [RIGHT],
    ["a"],
    [None],
    [RIGHT, RIGHT, "a", "a"],
    [RIGHT, "a", "b", "c", None],
    [RIGHT, RIGHT, RIGHT, "a", "a", "b", None, None],
    [RIGHT, RIGHT, "a", "a", "b", "b", "c", None],
    ["a", "a", "b", None, None, None],
    [RIGHT] * 6,
    [None] * 3,
    [RIGHT, RIGHT, "a", "a", "a", "b", "c", "d", "d"],
]


def counted(votes: list[str | None]) -> ProblemCounts:
    classes = Counter(vote for vote in votes if vote is not None)
    correct = classes.pop(RIGHT, 0)
    return ProblemCounts("p", len(votes), correct, tuple(classes.values()))


def majority_is_right(votes: tuple[str | None, ...]) -> float:
    """Chance that the most frequent answer is right, ties drawn uniformly."""
    classes = Counter(vote for vote in votes if vote is not None)
    most = max(classes.values(), default=0)
    winners = [vote for vote, count in classes.items() if count == most]
    return winners.count(RIGHT) / len(winners) if winners else 0.0


@pytest.mark.parametrize("votes", VOTES)
def test_pass_and_maj_equal_the_mean_over_all_subsets(votes):
    counts = [counted(votes)]
    for k in range(1, len(votes) + 1):
        subsets = list(combinations(votes, k))
        assert pass_at_k(counts, k)[0] == pytest.approx(np.mean([RIGHT in subset for subset in subsets]), abs=1e-12)
        expected = np.mean([majority_is_right(subset) for subset in subsets])
        assert maj_at_k(counts, k)[0] == pytest.approx(expected, abs=1e-12)


def test_first_k_is_the_average_and_last_is_any():
    counts = [ProblemCounts("a", 8, 3, (5,)), ProblemCounts("b", 4, 0), ProblemCounts("c", 2, 2)]
    np.testing.assert_allclose(avg_at_n(counts), [3 / 8, 0, 1])
    np.testing.assert_allclose(pass_at_k(counts, 1), avg_at_n(counts))
    np.testing.assert_allclose(maj_at_k(counts, 1), avg_at_n(counts))
    assert pass_at_k(counts[:1], 8)[0] == 1.0


@pytest.mark.parametrize(("n", "c", "k"), [(32, 5, 16), (1024, 3, 512), (20000, 10, 10000)])
def test_pass_at_k_is_stable_for_many_samples(n, c, k):
    exact = 1 - comb(n - c, k) / comb(n, k)
    assert pass_at_k([ProblemCounts("p", n, c)], k)[0] == pytest.approx(exact, rel=1e-11)


def test_too_few_samples_are_refused_by_name():
    counts = [ProblemCounts("full", 8, 1), ProblemCounts("short", 7, 7)]
    for estimate, name in ((pass_at_k, "pass"), (maj_at_k, "maj")):
        with pytest.raises(UserError, match=f"{name}@8 needs 8 samples of every problem: problem short has 7"):
            estimate(counts, 8)
        with pytest.raises(UserError, match="k must be at least 1"):
            estimate(counts, 0)


def test_impossible_counts_are_an_error():
    with pytest.raises(ValueError, match="impossible counts"):
        ProblemCounts("p", 4, 3, (2,))


def test_variance_of_the_average_is_the_textbook_one():
    outcomes = np.array([1, 0, 0, 1, 1, 0, 0, 0, 0])
    variance = sampling_variance([ProblemCounts("p", 9, 3)], 1)[0]
    assert variance == pytest.approx(outcomes.var(ddof=1) / 9, rel=1e-12)


def test_variance_of_pass_at_k_equals_leaving_each_sample_out():
    outcomes = [1, 1, 0, 0, 0, 0, 0]
    k = 3
    left_out = [
        np.mean([any(subset) for subset in combinations(outcomes[:i] + outcomes[i + 1 :], k)])
        for i in range(len(outcomes))
    ]
    n = len(outcomes)
    expected = (n - 1) / n * np.sum((left_out - np.mean(left_out)) ** 2)
    assert sampling_variance([ProblemCounts("p", n, 2)], k)[0] == pytest.approx(expected, rel=1e-12)
    assert np.isnan(sampling_variance([ProblemCounts("p", n, 2)], 4)[0])


@pytest.mark.parametrize("votes", [votes for votes in VOTES if len(votes) >= 6])
def test_variance_of_maj_at_k_equals_leaving_each_sample_out(votes):
    k, n = 3, len(votes)
    left_out = [
        np.mean([majority_is_right(part) for part in combinations(votes[:i] + votes[i + 1 :], k)]) for i in range(n)
    ]
    expected = (n - 1) / n * np.sum((left_out - np.mean(left_out)) ** 2)
    assert majority_variance([counted(votes)], k)[0] == pytest.approx(expected, abs=1e-12)


def test_variance_of_maj_at_k_is_unknown_where_it_is_not_computed():
    many = ProblemCounts("p", MOST_LEFT_OUT + 1, 3, (4,))
    assert np.isnan(majority_variance([many], 2)[0])
    assert np.isnan(majority_variance([counted(VOTES[3])], 4)[0])


def test_maj_at_k_for_many_samples_is_the_same_in_floats_and_integers(monkeypatch):
    counts = [ProblemCounts("p", 256, 60, (58, 40, 31, 20, 20, 9, 3, 2, 1, 1, 1))]
    floats = maj_at_k(counts, 128)[0]
    monkeypatch.setattr("ulorl.evaluate.estimators.MOST_IN_FLOATS", 0)
    exact = maj_at_k([ProblemCounts("p", 256, 60, (58, 40, 31, 20, 20, 9, 3, 2, 1, 1, 1, 0))], 128)[0]
    assert floats == pytest.approx(exact, rel=1e-9)
    assert maj_at_k([ProblemCounts("p", MOST_IN_FLOATS + 200, 700, (500,))], 601)[0] == pytest.approx(1.0, abs=1e-6)


def test_the_curve_holds_every_k_up_to_the_fewest_samples():
    counts = [ProblemCounts("a", 6, 2), ProblemCounts("b", 4, 1)]
    curve = pass_curve(counts)
    assert curve == pytest.approx([float(pass_at_k(counts, k).mean()) for k in (1, 2, 3, 4)])
    assert curve == sorted(curve)
