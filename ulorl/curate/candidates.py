"""Pairs of rows that are alike in words and numbers, without comparing all pairs.

MinHash bands (rensa) over the words are searched only within rows that share numbers (``number_keys``). What is found
is confirmed with the true Jaccard similarities, because MinHash is an estimate.

Invariants: pairs come out sorted and depend on nothing but the signatures; two bands are in memory at a time, and the
pairs of a slice of them. Work grows with rows times bands: a bucket (rows of one key and one band) is put in order of
the next band, as in the leaves of an LSH forest (Bawa et al., 2005), and every row is compared with its next
``WINDOW`` neighbours there, so that no bucket costs a square. What lies farther off is counted.

``nearest`` bounds in the same way what is read afterwards: families of one template share numbers and words, and their
pairs grow with the square of the rows.

Does not read texts: whether a pair asks the same is ``duplicates``' business.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ulorl.curate.number_keys import number_keys
from ulorl.curate.signatures import BANDS, Signatures

WINDOW = 8
_SLICE = 1 << 20
_SLICE_PAIRS = 1 << 16


@dataclass(frozen=True)
class Pairs:
    """Confirmed candidates: row indices, ``left`` < ``right``, and their similarities, each (pairs,)."""

    left: np.ndarray
    right: np.ndarray
    words: np.ndarray
    numbers: np.ndarray
    skipped: int
    """Pairs of one bucket too far apart in it, counted anew in every bucket, and those ``nearest`` left out."""


def candidate_pairs(rows: Signatures, chosen: np.ndarray, least_words: float, least_numbers: float) -> Pairs:
    """Pairs of rows among ``chosen`` (sorted indices) whose words and numbers are at least that similar."""
    assert len(rows) < 1 << 32, "pairs are packed into 64 bits"
    owners, keys = number_keys(rows.numbers, chosen, least_numbers)
    found, skipped = np.empty(0, dtype=np.uint64), 0
    following = rows.band(0) if len(owners) else np.empty(0, dtype=np.uint64)
    for band in range(BANDS if len(owners) else 0):
        here, following = following, rows.band((band + 1) % BANDS)
        fresh = [found]
        for start, stop in _slices(keys):
            members = owners[start:stop]
            buckets = here[members] ^ keys[start:stop]
            order = np.lexsort((following[members], buckets))
            buckets, members = buckets[order], members[order]
            for pairs, beyond in _neighbours(buckets, members):
                skipped += beyond
                fresh.append(_confirmed(pairs, found, rows, least_words, least_numbers))
        found = np.unique(np.concatenate(fresh))
    left, right = _unpacked(found)
    return Pairs(left, right, rows.words.jaccard(left, right), rows.numbers.jaccard(left, right), skipped)


def nearest(pairs: Pairs, rank: np.ndarray, most: int) -> Pairs:
    """For every row its pairs with at most ``most`` rows of lower ``rank``: the ones with the likest words."""
    left_first = rank[pairs.left] < rank[pairs.right]
    worse, better = np.where(left_first, (pairs.right, pairs.left), (pairs.left, pairs.right))
    order = np.lexsort((rank[better], -pairs.words, worse))
    sorted_worse = worse[order]
    place = np.arange(len(order)) - np.searchsorted(sorted_worse, sorted_worse)
    kept = np.sort(order[place < most])
    skipped = pairs.skipped + len(order) - len(kept)
    return Pairs(pairs.left[kept], pairs.right[kept], pairs.words[kept], pairs.numbers[kept], skipped)


def _slices(keys: np.ndarray) -> Iterator[tuple[int, int]]:
    """Ranges of about ``_SLICE`` of the sorted keys, none of which is cut in two."""
    start = 0
    while start < len(keys):
        stop = min(start + _SLICE, len(keys))
        stop = int(np.searchsorted(keys, keys[stop - 1], side="right"))
        yield start, stop
        start = stop


def _neighbours(buckets: np.ndarray, members: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    """(packed pairs, pairs left out) of members in the same bucket (sorted): each with its next ``WINDOW``."""
    ends = np.flatnonzero(np.concatenate([buckets[1:] != buckets[:-1], [True]])) + 1
    sizes = np.diff(ends, prepend=0)
    behind = np.repeat(ends, sizes) - np.arange(len(buckets)) - 1
    crowded = np.flatnonzero(behind > 0)
    packed = members.astype(np.uint64)
    for start in range(0, len(crowded), _SLICE_PAIRS):
        active = crowded[start : start + _SLICE_PAIRS]
        pairs = []
        for step in range(1, WINDOW + 1):
            active = active[behind[active] >= step]
            one, other = packed[active], packed[active + step]
            pairs.append((np.minimum(one, other) << np.uint64(32) | np.maximum(one, other))[one != other])
        yield np.unique(np.concatenate(pairs)), int((behind[active] - WINDOW).sum())


def _confirmed(
    pairs: np.ndarray, known: np.ndarray, rows: Signatures, least_words: float, least_numbers: float
) -> np.ndarray:
    """The pairs that are similar and not yet ``known`` (sorted)."""
    if len(known):
        pairs = pairs[known[np.minimum(np.searchsorted(known, pairs), len(known) - 1)] != pairs]
    left, right = map(rows.words.sizes_of, _unpacked(pairs))
    pairs = pairs[np.minimum(left, right) >= least_words * np.maximum(left, right) - 1e-9]
    for ragged, least in ((rows.numbers, least_numbers), (rows.words, least_words)):
        pairs = pairs[ragged.jaccard(*_unpacked(pairs)) >= least]
    return pairs


def _unpacked(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return (pairs >> np.uint64(32)).astype(np.int64), (pairs & np.uint64(0xFFFFFFFF)).astype(np.int64)
