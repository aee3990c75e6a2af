"""Pairs of rows that may be near-duplicates, without comparing all pairs.

Two rows whose number sets have Jaccard similarity s or more share one of their floor((1 - s) n) + 1 rarest
numbers (prefix filter: Chaudhuri et al., "A primitive operator for similarity joins", 2006), so MinHash bands
(rensa) over the words are searched only within rows that share such a number.

Invariants: pairs come out sorted and depend on nothing but the features; work grows with rows times bands,
and a crowded bucket is cut to neighbours in order of length (``_WINDOW``), so that no bucket costs a square.

Does not confirm anything: MinHash is an estimate, and the caller compares the sets.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from ulorl.curate.features import Features

_BANDS = 32
_ROWS = 3
_WINDOW = 24
_CHUNK = 8192
_SEED = 20_250


def candidate_pairs(rows: Sequence[Features], least_numbers: float) -> np.ndarray:
    """(pairs, 2) row indices, left < right, sorted and without repetition."""
    if len(rows) < 2:
        return np.empty((0, 2), dtype=np.int64)
    bands = _band_hashes([row.words for row in rows])
    owners, keys = _number_keys(rows, least_numbers)
    sizes = np.array([len(row.words) for row in rows], dtype=np.int64)
    found = [_pairs_of_band(bands[:, band], owners, keys, sizes) for band in range(bands.shape[1])]
    return np.unique(np.concatenate(found), axis=0)


def _band_hashes(word_sets: Sequence[frozenset[str]]) -> np.ndarray:
    """(rows, bands) hash of each band of the MinHash of each word set."""
    from rensa import RMinHash

    hashes = np.zeros((len(word_sets), _BANDS), dtype=np.uint64)
    for start in range(0, len(word_sets), _CHUNK):
        chunk = [sorted(words) or [""] for words in word_sets[start : start + _CHUNK]]
        matrix = RMinHash.digest_matrix_from_token_sets(chunk, _BANDS * _ROWS, _SEED)
        digests = np.array(matrix.to_rows(), dtype=np.uint64).reshape(len(chunk), _BANDS, _ROWS)
        hashes[start : start + _CHUNK] = _mix(digests)
    return hashes


def _mix(digests: np.ndarray) -> np.ndarray:
    """(rows, bands) hash of (rows, bands, values)."""
    hashes = np.zeros(digests.shape[:2], dtype=np.uint64)
    for row in range(_ROWS):
        hashes = (hashes ^ digests[:, :, row]) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(29)
    return hashes


def _number_keys(rows: Sequence[Features], least: float) -> tuple[np.ndarray, np.ndarray]:
    """(row, key) for every number by which a row must be found; two similar rows share a key."""
    frequency: Counter[str] = Counter()
    for row in rows:
        frequency.update(row.numbers)
    owners: list[int] = []
    keys: list[int] = []
    for index, row in enumerate(rows):
        rarest = sorted(row.numbers, key=lambda number: (frequency[number], number))
        count = len(rarest) - math.ceil(least * len(rarest) - 1e-9) + 1
        for number in rarest[: max(count, 1)] or [""]:
            owners.append(index)
            keys.append(_hash(number))
    return np.array(owners, dtype=np.int64), np.array(keys, dtype=np.uint64)


def _pairs_of_band(band: np.ndarray, owners: np.ndarray, keys: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Pairs that share a key and the band's hash: each row with its next ``_WINDOW`` neighbours."""
    buckets = (band[owners] ^ keys) * np.uint64(0xBF58476D1CE4E5B9)
    order = np.lexsort((owners, sizes[owners], buckets))
    buckets, members = buckets[order], owners[order]
    found = []
    for step in range(1, _WINDOW + 1):
        same = np.flatnonzero(buckets[:-step] == buckets[step:])
        if not len(same):
            break
        found.append(np.sort(np.stack([members[same], members[same + step]], axis=1), axis=1))
    pairs = np.concatenate(found) if found else np.empty((0, 2), dtype=np.int64)
    return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
