"""pass@k of two models for every k, with bands. Pure: counts of right samples in, JSON types out.

Two kinds of bounds, both for problems like these (clustered by problem), both at LEVEL:
- an *interval* covers the true value at one k;
- a *band* covers the true difference at all k together. Where the whole curve is looked at for a place at which one
  model is better, only the band keeps the chance of a false one at 1 - LEVEL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulorl.evaluate.estimates import bounds
from ulorl.evaluate.statistics import LEVEL, difference_bounds, problems_like_these, two_sided_quantile

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
MOST_K = 48
"""Values of k at which there are bounds; every k where there are fewer samples."""
DRAWS, _SEED, _ROWS = 4000, 20_250_530, 250
"""Draws for the band, their seed, and how many are in memory together."""


def pass_table(samples: int) -> FloatArray:
    """pass@k by right samples c = 0..n (rows) and k = 1..n (columns), shape (n + 1, n).

    1 - C(n-c, k) / C(n, k) (Chen et al. 2021, arXiv:2107.03374, equation 1), whose ratio is a product over c.
    """
    c, k = np.arange(samples)[:, None], np.arange(1, samples + 1)[None, :]
    failed = np.cumprod(np.clip((samples - k - c) / (samples - c), 0.0, None), axis=0)
    return np.concatenate([np.zeros((1, samples)), 1.0 - failed])


def curves(base_P: IntArray, trained_P: IntArray, samples: int) -> dict[str, list[float]]:
    """For every k from 1 to n, unbiased means over problems: pass@k of both; the shares of problems ``gained`` (none of
    k samples of the base is right, one of k of the trained model is) and ``lost``; and, up to half the samples,
    ``base_again``: the share that k samples of the base do not solve and k more do, which is no gain."""
    table = pass_table(samples)
    base_PK, trained_PK = table[base_P], table[trained_P]
    base = base_PK.mean(axis=0)
    again = base[1::2] - base[: samples // 2]  # pass@2k - pass@k
    return {
        "base": base.tolist(),
        "trained": trained_PK.mean(axis=0).tolist(),
        "gained": ((1 - base_PK) * trained_PK).mean(axis=0).tolist(),
        "lost": (base_PK * (1 - trained_PK)).mean(axis=0).tolist(),
        "base_again": again.tolist(),
    }


def bounded(base_P: IntArray, trained_P: IntArray, samples: int, ks: Sequence[int]) -> list[dict[str, Any]]:
    """One entry for each k of ``ks``, ascending: ``base``, ``trained`` and ``difference``, the interval of each, and
    the ``band`` of the difference over all of ``ks``. Bounds are null where the problems have no spread."""
    table = pass_table(samples)[:, np.asarray(ks) - 1]
    base_PK, trained_PK = table[base_P], table[trained_P]
    difference_PK = trained_PK - base_PK
    one_k, all_k = two_sided_quantile(len(base_P)), joint_quantile(difference_PK)
    rows = []
    for column, k in enumerate(ks):
        base, trained, difference = base_PK[:, column], trained_PK[:, column], difference_PK[:, column]
        rows.append(
            {
                "k": k,
                "base": float(base.mean()),
                "base_interval": bounds(problems_like_these(base, step=k / samples)),
                "trained": float(trained.mean()),
                "trained_interval": bounds(problems_like_these(trained, step=k / samples)),
                "difference": float(difference.mean()),
                "interval": _listed(difference_bounds(difference, one_k, k / samples)),
                "band": None if all_k is None else _listed(difference_bounds(difference, all_k, k / samples)),
            }
        )
    return rows


def joint_quantile(values_PK: FloatArray) -> float | None:
    """What takes Student's quantile's place where the means of all columns are to be covered together.

    The quantile at LEVEL of the largest of K correlated t values, with the correlation of the columns: the sup-t band
    of Montiel Olea and Plagborg-Moller, J. Appl. Econometrics 34 (2019). None without a column that has a spread.
    """
    problems = len(values_PK)
    spread_K = values_PK.std(axis=0)
    moved = spread_K > 1e-12
    if problems < 2 or not moved.any():
        return None
    scaled_PK = (values_PK[:, moved] - values_PK[:, moved].mean(axis=0)) / (spread_K[moved] * np.sqrt(problems))
    rng = np.random.default_rng(_SEED)
    largest = np.empty(DRAWS)
    for start in range(0, DRAWS, _ROWS):
        drawn = np.abs(rng.standard_normal((_ROWS, problems)) @ scaled_PK).max(axis=1)
        largest[start : start + _ROWS] = drawn / np.sqrt(rng.chisquare(problems - 1, _ROWS) / (problems - 1))
    # With one column it is the quantile itself, which the draws only come near.
    return max(float(np.quantile(largest, LEVEL)), two_sided_quantile(problems))


def chosen_ks(samples: int, wanted: Sequence[int] = ()) -> list[int]:
    """1 to ``samples``, thinned geometrically above MOST_K values; powers of 2, both ends and those ``wanted`` are
    among them."""
    if samples <= MOST_K:
        return list(range(1, samples + 1))
    thinned = {round(samples ** (place / (MOST_K - 1))) for place in range(MOST_K)}
    powers = {2**power for power in range(samples.bit_length())}
    return sorted(thinned | powers | {samples} | set(wanted))


def where(rows: Sequence[dict[str, Any]], sign: int) -> list[list[int]]:
    """Ranges [first k, last k] in which the band lies above 0 (``sign`` 1) or below (-1)."""
    found: list[list[int]] = []
    before = False
    for row in rows:
        band = row["band"]
        here = band is not None and (band[0] > 0 if sign > 0 else band[1] < 0)
        if here and before:
            found[-1][1] = row["k"]
        elif here:
            found.append([row["k"], row["k"]])
        before = here
    return found


def crossing(base: Sequence[float], trained: Sequence[float]) -> int | None:
    """The k from which on the base's curve lies above the trained model's, which it did not before; None where it ends
    below, or always lies above."""
    not_above = [k for k, (b, t) in enumerate(zip(base, trained, strict=True), 1) if b <= t + 1e-12]
    last = max(not_above, default=0)
    return last + 1 if 0 < last < len(base) else None


def _listed(found: tuple[float, float] | None) -> list[float] | None:
    return None if found is None else [max(-1.0, found[0]), min(1.0, found[1])]
