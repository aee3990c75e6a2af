"""How many problems are gained by luck alone? Pure functions of counts.

Base and trained model have n samples each of every problem, s of the 2 n are right. Where training changed nothing,
it makes no difference which n of them are called the trained model's: the base's right ones are hypergeometric given s
(R. A. Fisher, The Design of Experiments, 1935), and a problem is *gained* (none of the base's samples is right, one of
the trained model's is) with probability C(n, s) / C(2n, s): Fisher's exact test, one-sided. Lost is the same with the
sides exchanged, so that both have the same distribution. Problems are independent, so that the number gained is
Poisson-binomial given all s: exact, whatever the distribution of difficulties.

Does not: say how probable luck is after the fact, which needs a prior. A small value says that luck hardly does this.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
_ROUNDING = 1e-12


def gain_chances(samples: int) -> FloatArray:
    """Probability that luck alone gains a problem, by its right samples of both models together; shape (2 n + 1,).

    C(n, s) / C(2n, s), and 0 for s = 0 (never solved, not gained) and for s above n (both must have one).
    """
    s = np.arange(samples)
    factors = (samples - s) / (2 * samples - s)
    return np.concatenate([[0.0], np.cumprod(factors), np.zeros(samples)])


def count_tail(chances_P: FloatArray, observed: int) -> float:
    """Probability that at least ``observed`` of independent events happen (Poisson-binomial, by convolution).

    A sum of positive terms, so that small values keep their digits.
    """
    if observed <= 0:
        return 1.0
    if observed > int(np.count_nonzero(chances_P)):
        return 0.0
    ways = np.zeros(observed + 1)  # ways[-1]: at least `observed`
    ways[0] = 1.0
    for chance in chances_P[chances_P > 0]:
        arrived = ways[-1] + ways[-2] * chance
        ways[1:] = ways[1:] * (1 - chance) + ways[:-1] * chance
        ways[0] *= 1 - chance
        ways[-1] = arrived
    return float(min(1.0, ways[-1]))


def against_chance(chances_P: FloatArray, observed: int) -> dict[str, float | int]:
    """The number observed, the number expected by luck with its standard deviation, and the probability that luck
    gives as many or more."""
    return {
        "observed": observed,
        "expected": float(chances_P.sum()),
        "sd": float(np.sqrt(np.sum(chances_P * (1 - chances_P)))),
        "p": count_tail(chances_P, observed),
    }


def any_chance(chances_P: FloatArray) -> FloatArray:
    """For every problem, the expected number of problems, among all, that luck gains as strikingly as this one.

    The sum of all chances up to the problem's own. It bounds the probability that there is one at all, so that calling
    gained those at which it is at most alpha errs anywhere with probability at most alpha, whichever of the other
    problems have changed: chances are known from the totals s alone. Problems that both models solve
    often cost next to nothing, unlike in Holm's or Bonferroni's correction over all problems.
    """
    sums = np.cumsum(np.sort(chances_P))
    # The largest of equal chances: all of them are as striking.
    place = np.searchsorted(np.sort(chances_P), chances_P * (1 + _ROUNDING), side="right") - 1
    return np.asarray(np.minimum(1.0, sums[place]))


def by_successes(base_P: IntArray, trained_P: IntArray, samples: int) -> list[dict[str, float | int]]:
    """Gained, lost, and either expected by luck, among problems with at least 1, 2, 4, ... right samples in all.

    Few right samples are easily luck; whatever is gained with many is not.
    """
    total_P = base_P + trained_P
    chances_P = gain_chances(samples)[total_P]
    rows = list[dict[str, float | int]]()
    for least in (2**power for power in range((2 * samples).bit_length())):
        there_P = total_P >= least
        gained = int(np.sum(there_P & (base_P == 0)))
        lost = int(np.sum(there_P & (trained_P == 0)))
        if rows and not gained and not lost:
            break
        expected = float(chances_P[there_P].sum())
        rows.append({"at_least": least, "gained": gained, "lost": lost, "expected": expected})
    return rows


def rate_at_most(samples: int, level: float) -> float:
    """Upper bound of the rate of success after none in ``samples``, at this level (Clopper and Pearson 1934)."""
    return float(1 - (1 - level) ** (1 / samples))


def kinds_of(base_P: IntArray, trained_P: IntArray) -> list[str]:
    """both, gained, lost or never: by which model has a right sample."""
    names = {(True, True): "both", (False, True): "gained", (True, False): "lost", (False, False): "never"}
    return [names[base, trained] for base, trained in zip((base_P > 0).tolist(), (trained_P > 0).tolist(), strict=True)]
