"""Ids that no two rows of a run share, for as many rows as come.

Invariants: the first row keeps the id it would have alone, further ones get ``-2``, ``-3``, ... in their order; the
result depends on the order of the rows and not on how they are cut into batches; memory grows by 8 bytes a row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

_HASH_DIGITS = 16


class UniqueIds:
    """Hands out ids. It remembers hashes: 64 bits of an id that is itself a hash are the whole id."""

    def __init__(self) -> None:
        self._runs: list[np.ndarray] = []
        self._last: dict[int, int] = {}

    def unique(self, ids: Sequence[str]) -> list[str]:
        """``ids``, each changed where it was handed out before."""
        keys = [_key(identity) for identity in ids]
        known = self._known(np.array(keys, dtype=np.uint64)).tolist()
        fresh: set[int] = set()
        given: list[str] = []
        for identity, key, is_known in zip(ids, keys, known, strict=True):
            free = self._next(identity, key, fresh) if is_known or key in fresh else (identity, key)
            given.append(free[0])
            fresh.add(free[1])
        self._remember(np.sort(np.fromiter(fresh, dtype=np.uint64, count=len(fresh))))
        return given

    def _next(self, identity: str, key: int, fresh: set[int]) -> tuple[str, int]:
        number = self._last.get(key, 1)
        while True:
            number += 1
            candidate = f"{identity}-{number}"
            candidate_key = _key(candidate)
            if candidate_key not in fresh and not self._known(np.array([candidate_key], dtype=np.uint64))[0]:
                self._last[key] = number
                return candidate, candidate_key

    def _known(self, keys: np.ndarray) -> np.ndarray:
        known = np.zeros(len(keys), dtype=bool)
        for run in self._runs:
            known |= run[np.minimum(np.searchsorted(run, keys), len(run) - 1)] == keys
        return known

    def _remember(self, run: np.ndarray) -> None:
        """Sorted runs of growing size, so that there are never more than log2 of the rows."""
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")
        if len(run):
            self._runs.append(run)


def _key(identity: str) -> int:
    if len(identity) == _HASH_DIGITS:
        try:
            return int(identity, 16)
        except ValueError:
            pass
    return int.from_bytes(hashlib.blake2b(identity.encode("utf-8", "replace"), digest_size=8).digest(), "big")
