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

import numpy as np
from numpy.typing import NDArray

from ulorl.errors import UserError

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ProblemCounts:
    """The verdicts on one problem's samples.

    ``others`` holds the sizes of the classes of equivalent answers that are not right, ``samples`` counts
    everything: ``correct + sum(others)`` samples gave an answer, the others abstained.
    """

    problem_id: str
    samples: int
    correct: int
    others: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.samples < 1 or self.correct < 0 or self.correct + sum(self.others) > self.samples:
            raise ValueError(f"impossible counts: {self}")


def avg_at_n(counts: Sequence[ProblemCounts]) -> FloatArray:
    """Share of right samples of each problem, shape (problems,)."""
    return np.array([one.correct / one.samples for one in counts])


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


def sampling_variance(counts: Sequence[ProblemCounts], k: int) -> FloatArray:
    """Variance of each problem's pass@k over its samples, shape (problems,); nan where samples = k.

    The jackknife over samples; for k = 1 it is c (n-c) / (n^2 (n-1)), the unbiased variance of the mean.
    """
    return np.array([_jackknife(one.samples, one.correct, k) for one in counts])


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


def _jackknife(n: int, c: int, k: int) -> float:
    if n <= k:
        return float("nan")
    without_right = _pass_at_k(n - 1, c - 1, k) if c else 0.0
    without_wrong = _pass_at_k(n - 1, c, k) if c < n else 0.0
    mean = (c * without_right + (n - c) * without_wrong) / n
    return (n - 1) / n * (c * (without_right - mean) ** 2 + (n - c) * (without_wrong - mean) ** 2)


@lru_cache(maxsize=65536)
def _maj_at_k(n: int, c: int, others: tuple[int, ...], k: int) -> float:
    """Counts subsets in integers: exact for any n."""
    silent = n - c - sum(others)
    weight = 0.0
    total = comb(n, k)
    for votes in range(1, min(c, k) + 1):
        # ways[t][m]: choices of m samples from the other classes, none above `votes`, t of them tied with it.
        ways = [[comb(silent, m) for m in range(k - votes + 1)]]
        for size in others:
            ways = _with_class(ways, size, votes)
        for tied, row in enumerate(ways):
            weight += comb(c, votes) * row[k - votes] / total / (tied + 1)
    return weight


def _with_class(ways: list[list[int]], size: int, votes: int) -> list[list[int]]:
    """``ways`` after one more class of ``size`` samples has voted at most ``votes`` times."""
    width = len(ways[0])
    more = [[0] * width for _ in range(len(ways) + (size >= votes and votes < width))]
    for tied, row in enumerate(ways):
        for m, count in enumerate(row):
            if count:
                for chosen in range(min(size, votes, width - 1 - m) + 1):
                    more[tied + (chosen == votes)][m + chosen] += count * comb(size, chosen)
    return more
