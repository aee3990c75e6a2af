"""Pairs of rows that are alike in words and numbers, without comparing all pairs.

Two rows whose number sets have Jaccard similarity s or more share one of their floor((1 - s) n) + 1 rarest
numbers (prefix filter: Chaudhuri et al., "A primitive operator for similarity joins", 2006), so MinHash bands
(rensa) over the words are searched only within rows that share such a number. What is found is confirmed with the
true Jaccard similarities, because MinHash is an estimate.

Invariants: pairs come out sorted and depend on nothing but the signatures; one band is in memory at a time; work
grows with rows times bands, and a crowded bucket is cut to neighbours in order of length (``_WINDOW``), so that no
bucket costs a square.

Does not read texts: whether a pair asks the same is ``duplicates``' business.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ulorl.curate.signatures import BANDS, Ragged, Signatures

_WINDOW = 24
_COUNTERS = 1 << 22


@dataclass(frozen=True)
class Pairs:
    """Confirmed candidates: row indices, ``left`` < ``right``, and their similarities, each (pairs,)."""

    left: np.ndarray
    right: np.ndarray
    words: np.ndarray
    numbers: np.ndarray


def candidate_pairs(rows: Signatures, chosen: np.ndarray, least_words: float, least_numbers: float) -> Pairs:
    """Pairs of rows among ``chosen`` (sorted indices) whose words and numbers are at least that similar."""
    assert len(rows) < 1 << 32, "pairs are packed into 64 bits"
    owners, keys = _number_keys(rows.numbers, chosen, least_numbers)
    by_size = np.lexsort((owners, rows.words.sizes_of(owners)))
    owners, keys = owners[by_size], keys[by_size]
    found = np.empty(0, dtype=np.uint64)
    for band in range(BANDS if len(chosen) > 1 else 0):
        pairs = np.setdiff1d(_pairs_of_bucket(rows.band(band)[owners] ^ keys, owners), found, assume_unique=True)
        for ragged, least in ((rows.numbers, least_numbers), (rows.words, least_words)):
            pairs = pairs[ragged.jaccard(*_unpacked(pairs)) >= least]
        found = np.union1d(found, pairs)
    left, right = _unpacked(found)
    return Pairs(left, right, rows.words.jaccard(left, right), rows.numbers.jaccard(left, right))


def _number_keys(numbers: Ragged, chosen: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """(row, key) for every number by which a row must be found; two similar rows share a key."""
    sizes = numbers.sizes_of(chosen)
    owners = np.repeat(chosen, sizes)
    starts = np.repeat(numbers.offsets[chosen] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    values = numbers.values[starts + np.arange(len(starts))]
    # Any order of the numbers will do, rare ones first finds fewest pairs: counts may share a counter.
    frequency = np.bincount(values % _COUNTERS, minlength=_COUNTERS)[values % _COUNTERS]
    order = np.lexsort((values, frequency, owners))
    rank = np.arange(len(owners)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    needed = np.maximum(sizes - np.ceil(least * sizes - 1e-9).astype(np.int64) + 1, 1)
    rarest = order[rank < np.repeat(needed, sizes)]
    without = chosen[sizes == 0]
    keys = np.concatenate([values[rarest].astype(np.uint64) + np.uint64(1), np.zeros(len(without), dtype=np.uint64)])
    return np.concatenate([owners[rarest], without]), keys * np.uint64(0xBF58476D1CE4E5B9)


def _pairs_of_bucket(buckets: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """Packed pairs of owners in the same bucket: each with its next ``_WINDOW`` neighbours, sorted, unique."""
    order = np.argsort(buckets, kind="stable")
    buckets = buckets[order]
    next_same = buckets[:-1] == buckets[1:]
    crowded = np.flatnonzero(np.concatenate([next_same, [False]]) | np.concatenate([[False], next_same]))
    buckets, members = buckets[crowded], owners[order[crowded]].astype(np.uint64)
    found = [np.empty(0, dtype=np.uint64)]
    for step in range(1, _WINDOW + 1):
        same = np.flatnonzero(buckets[:-step] == buckets[step:])
        if not len(same):
            break
        one, other = members[same], members[same + step]
        found.append((np.minimum(one, other) << np.uint64(32) | np.maximum(one, other))[one != other])
    return np.unique(np.concatenate(found))


def _unpacked(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return (pairs >> np.uint64(32)).astype(np.int64), (pairs & np.uint64(0xFFFFFFFF)).astype(np.int64)
