"""Keys under which rows of similar number sets meet, without comparing all pairs.

Of two sets whose Jaccard similarity is s or more and which have n or more members each, every one shares at least
ceil(s n) members with the other. Hence, with the members of every set in one order, two such sets share one of their
first n - ceil(s n) + 1 members, and two of their first n - ceil(s n) + 2 (prefix filter: Chaudhuri et al., "A primitive
operator for similarity joins", 2006, and its extension to longer prefixes: Wang et al., "Can we beat the prefix
filtering?", 2012). Rare numbers come first. Where two sets must share two numbers, a key is a pair of them: single
numbers are few, so that the rows with one of them grow with the rows.

Invariants: two rows whose number sets are at least that similar share a key; keys come out sorted, and only those
that more than one row has; memory beside the result is that of a chunk of rows. Number sets are 32-bit hashes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ulorl.curate.signatures import Ragged

_COUNTERS = 1 << 22
_CHUNK_ROWS = 1 << 18
_LONGEST_PREFIX = 8
"""Numbers whose pairs are keys, at most; sets that need more of them meet by single numbers, of which some are rare."""
_MIX, _MIX_PAIRS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x9E3779B97F4A7C15)


def number_keys(numbers: Ragged, chosen: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """(rows, keys), (n,) uint32 and uint64, by key and then by row.

    Rows that need share no number, as those without any, share one key.
    """
    frequency = np.zeros(_COUNTERS, dtype=np.int64)
    chunks = [chosen[start : start + _CHUNK_ROWS] for start in range(0, len(chosen), _CHUNK_ROWS)]
    for chunk in chunks:
        # Any one order will do, so counts may share a counter.
        frequency += np.bincount(numbers.of_rows(chunk) % _COUNTERS, minlength=_COUNTERS)
    found = [part for chunk in chunks for part in _keys_of(numbers, chunk, least, frequency)]
    rows = np.concatenate([np.empty(0, dtype=np.uint32), *(one for one, _ in found)])
    keys = np.concatenate([np.empty(0, dtype=np.uint64), *(one for _, one in found)])
    del found
    order = np.lexsort((rows, keys))
    rows, keys = rows[order], keys[order]
    same = keys[1:] == keys[:-1]
    shared = np.concatenate([same, [False]]) | np.concatenate([[False], same]) if len(keys) else same
    return rows[shared], keys[shared]


def _keys_of(
    numbers: Ragged, chosen: np.ndarray, least: float, frequency: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    sizes = numbers.sizes_of(chosen)
    values = numbers.of_rows(chosen)
    order = np.lexsort((values, frequency[values % _COUNTERS], np.repeat(np.arange(len(chosen)), sizes)))
    values = values[order].astype(np.uint64) + np.uint64(1)
    starts = np.cumsum(sizes) - sizes
    named = chosen.astype(np.uint32)
    unbound = _shared(sizes, least) == 0
    yield named[unbound], np.zeros(np.count_nonzero(unbound), dtype=np.uint64)
    in_pairs = _meets_in_pairs(sizes, least)
    partners = _shared(sizes, least), np.floor(sizes / max(least, 1e-9) + 1e-9)
    # Both conditions are intervals of sizes, so that a set whose smallest and largest partners meet it in pairs needs
    # no other keys.
    alone = ~(in_pairs & _meets_in_pairs(partners[0], least) & _meets_in_pairs(partners[1], least))
    prefix = np.where(alone & ~unbound, sizes - _shared(sizes, least) + 1, 0).astype(np.int64)
    places = np.repeat(starts - (np.cumsum(prefix) - prefix), prefix) + np.arange(prefix.sum())
    yield np.repeat(named, prefix), values[places] * _MIX
    for second in range(1, _LONGEST_PREFIX):
        members = np.flatnonzero(in_pairs & (sizes - _shared(sizes, least) + 2 > second))
        for first in range(second):
            one, other = values[starts[members] + first], values[starts[members] + second]
            yield named[members], (one * _MIX ^ other) * _MIX_PAIRS


def _shared(sizes: np.ndarray, least: float) -> np.ndarray:
    """Least number of members that a set of that size shares with one that is similar, at least 0."""
    return np.ceil(least * sizes - 1e-9)


def _meets_in_pairs(sizes: np.ndarray, least: float) -> np.ndarray:
    shared = _shared(sizes, least)
    return (shared >= 2) & (sizes - shared + 2 <= _LONGEST_PREFIX)
