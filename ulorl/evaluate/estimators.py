"""Estimates of one problem from its samples. Pure functions of counts.

Invariants: every estimate divides by the samples there *are*, never by a configured number; an estimate that
the samples cannot carry is refused, naming the problem; avg, pass@k and maj@k are unbiased.

Does not: average over problems or give intervals (see ``ulorl.evaluate.statistics``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulorl.errors import UserError

FloatArray = NDArray[np.float64]
MOST_IN_FLOATS = 1000
"""Samples a problem up to which numbers of subsets fit a float; beyond, integers count them, slowly."""
MOST_LEFT_OUT = 64
"""Samples a problem up to which the variance of maj@k is computed; each distinct class costs one maj@k."""


@dataclass(frozen=True)
class ProblemCounts:
    """The verdicts on one problem's samples.

    ``others`` holds the sizes of the classes of equivalent answers that are not right, ``samples`` counts
    everything: ``correct + sum(others)`` samples gave an answer, the others abstained. A task that gives parts of a
    reward has ``reward``, the mean over the samples, and ``reward_variance``, the unbiased variance of that mean over
    them (nan for one sample); without it the reward is 1 where right and 0 elsewhere.
    """

    problem_id: str
    samples: int
    correct: int
    others: tuple[int, ...] = ()
    reward: float | None = None
    reward_variance: float = float("nan")

    def __post_init__(self) -> None:
        if self.samples < 1 or self.correct < 0 or self.correct + sum(self.others) > self.samples:
            raise ValueError(f"impossible counts: {self}")

    @property
    def average(self) -> float:
        """Mean reward of the samples."""
        return self.correct / self.samples if self.reward is None else self.reward


def avg_at_n(counts: Sequence[ProblemCounts]) -> FloatArray:
    """Mean reward of each problem's samples, shape (problems,): the share of right ones where rewards have no parts."""
    return np.array([one.average for one in counts])


def average_variance(counts: Sequence[ProblemCounts]) -> FloatArray:
    """Variance of each problem's mean reward over its samples, shape (problems,); nan for one sample."""
    own = [_pass_variance(one.samples, one.correct, 1) if one.reward is None else one.reward_variance for one in counts]
    return np.array(own)


def pass_at_k(counts: Sequence[ProblemCounts], k: int) -> FloatArray:
    """Probability that one of k samples is right, of each problem, shape (problems,).

    The unbiased estimator 1 - C(n-c, k) / C(n, k) of Chen et al. 2021 (arXiv:2107.03374, equation 1), as the
    product that neither overflows nor cancels. Raises UserError where a problem has fewer than k samples.
    """
    _require(counts, k, "pass")
    return np.array([_pass_at_k(one.samples, one.correct, k) for one in counts])


def maj_at_k(counts: Sequence[ProblemCounts], k: int) -> FloatArray:
    """Probability that the majority answer of k samples is right, of each problem, shape (problems,).

    The exact expectation over all subsets of k samples. Votes are for classes of equivalent answers; samples
    without an answer do not vote; of t tied classes one is drawn uniformly, so the right one counts 1/t;
    without votes the majority is wrong. Raises UserError as ``pass_at_k``.
    """
    _require(counts, k, "maj")
    return np.array([_maj_at_k(one.samples, one.correct, tuple(sorted(one.others)), k) for one in counts])


def pass_curve(counts: Sequence[ProblemCounts]) -> list[float]:
    """Mean pass@k over problems for every k from 1 to the samples of the problem that has fewest."""
    return [float(pass_at_k(counts, k).mean()) for k in range(1, min(one.samples for one in counts) + 1)]


def sampling_variance(counts: Sequence[ProblemCounts], k: int) -> FloatArray:
    """Variance of each problem's pass@k over its samples, shape (problems,); nan below 2 k samples, where it is
    too rough for an interval (at 24 of 32 samples, 95 % intervals cover as little as 75 %).

    The jackknife over samples; for k = 1 it is c (n-c) / (n^2 (n-1)), the unbiased variance of the mean.
    """
    return np.array([_pass_variance(one.samples, one.correct, k) for one in counts])


def cautious_variance(counts: Sequence[ProblemCounts]) -> FloatArray:
    """Variance of each problem's mean reward, never zero: q (1-q) / n with q = (c+1) / (n+2), c the sum of rewards.

    For tests, where a problem that is always right must not count as certain (Agresti and Coull 1998). For rewards with
    parts it is an upper bound: none from 0 to 1 varies more than one that is right or wrong.
    """
    samples = np.array([one.samples for one in counts], dtype=np.float64)
    share = (avg_at_n(counts) * samples + 1) / (samples + 2)
    return np.asarray(share * (1 - share) / samples)


def majority_variance(counts: Sequence[ProblemCounts], k: int) -> FloatArray:
    """Variance of each problem's maj@k over its samples by the jackknife; nan below 2 k samples or above
    MOST_LEFT_OUT."""
    return np.array([_maj_variance(one.samples, one.correct, tuple(sorted(one.others)), k) for one in counts])


def _require(counts: Sequence[ProblemCounts], k: int, name: str) -> None:
    if k < 1:
        raise UserError(f"{name}@{k}: k must be at least 1")
    short = [one for one in counts if one.samples < k]
    if short:
        raise UserError(
            f"{name}@{k} needs {k} samples of every problem: problem {short[0].problem_id} has "
            f"{short[0].samples} ({len(short)} of {len(counts)} problems have too few)"
        )


def _pass_at_k(n: int, c: int, k: int) -> float:
    if n - c < k:
        return 1.0
    return float(1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1)))


@lru_cache(maxsize=65536)
def _pass_variance(n: int, c: int, k: int) -> float:
    if n < 2 * k:
        return float("nan")
    without_right = _pass_at_k(n - 1, c - 1, k) if c else 0.0
    without_wrong = _pass_at_k(n - 1, c, k) if c < n else 0.0
    return _jackknife([(c, without_right), (n - c, without_wrong)])


def _jackknife(left_out: Sequence[tuple[int, float]]) -> float:
    """Variance of a statistic from (how many samples, its value without one of them), over all samples."""
    n = sum(count for count, _ in left_out)
    mean = sum(count * value for count, value in left_out) / n
    return (n - 1) / n * sum(count * (value - mean) ** 2 for count, value in left_out)


@lru_cache(maxsize=65536)
def _maj_variance(n: int, c: int, others: tuple[int, ...], k: int) -> float:
    if n < 2 * k or n > MOST_LEFT_OUT:
        return float("nan")
    left_out = [(c, _maj_at_k(n - 1, c - 1, others, k))] if c else []
    silent = n - c - sum(others)
    if silent:
        left_out.append((silent, _maj_at_k(n - 1, c, others, k)))
    for size in set(others):
        place = others.index(size)
        fewer = tuple(sorted(one for one in (*others[:place], size - 1, *others[place + 1 :]) if one))
        left_out.append((size * others.count(size), _maj_at_k(n - 1, c, fewer, k)))
    return _jackknife(left_out)


@lru_cache(maxsize=65536)
def _maj_at_k(n: int, c: int, others: tuple[int, ...], k: int) -> float:
    """Sums over how many of the k samples are right; exact up to rounding (all terms are positive)."""
    exact = n > MOST_IN_FLOATS  # numbers of subsets no longer fit a float
    total, weight = comb(n, k), 0.0
    for votes in range(1, min(c, k) + 1):
        rivals = [size for size in others if size >= votes]
        # Classes too small to tie never matter for the vote: their samples are like those without an answer.
        free = n - c - sum(rivals)
        width = k - votes + 1
        # ways[t][m]: choices of m samples that are not right, no class above `votes` and t of them tied with it.
        ways = np.zeros((min(len(rivals), (k - votes) // votes) + 1, width), dtype=object if exact else np.float64)
        ways[0] = [comb(free, m) for m in range(width)]
        for size in rivals:
            ways = _with_class(ways, size, votes)
        for tied, subsets in enumerate(ways[:, -1]):
            weight += comb(c, votes) * subsets / total / (tied + 1)
    return float(weight)


def _with_class(ways: NDArray[Any], size: int, votes: int) -> NDArray[Any]:
    """``ways`` after one more class of ``size`` samples has voted at most ``votes`` times."""
    width = ways.shape[1]
    more = np.zeros_like(ways)
    for chosen in range(min(votes, width)):
        more[:, chosen:] += comb(size, chosen) * ways[:, : width - chosen]
    if votes < width:
        more[1:, votes:] += comb(size, votes) * ways[:-1, : width - votes]
    return more
