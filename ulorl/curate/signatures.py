"""What the search for duplicates knows of every row: hashes, in memory or in files, never texts.

A row costs 16 bytes for its normal form, 13 for which row of a group is best, 4 for every word and every number,
and 256 for its MinHash bands, of which one in 32 is in memory at a time when they lie in files.

Invariants: the signature of a row depends on that row alone, so that signatures may be made in any process and in
batches of any size; rows are numbered in the order in which batches were appended.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from ulorl.columns import json_object
from ulorl.curate.features import Features, exact_key, features
from ulorl.problem import MATH, Problem

BANDS = 32
_ROWS_PER_BAND = 3
_SEED = 20_250
_CHUNK_PAIRS = 10_000
_LONGEST = (1 << 40) - 1


@dataclass(frozen=True)
class Ragged:
    """(rows, varying) sorted 32-bit hashes: those of row i are ``values[offsets[i] : offsets[i + 1]]``."""

    values: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of_sets(cls, sets: Sequence[frozenset[str]]) -> Ragged:
        """The hashes of each set; two tokens of one set that share a hash count once."""
        hashed = [sorted({token_hash(token) for token in tokens}) for tokens in sets]
        return cls(np.array([one for row in hashed for one in row], dtype=np.uint32), _offsets(list(map(len, hashed))))

    @property
    def sizes(self) -> np.ndarray:
        """(rows,) number of hashes of each row."""
        return np.diff(self.offsets)

    def jaccard(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """(pairs,) similarity of rows ``left[i]`` and ``right[i]``; 1 for two empty sets."""
        parts = [
            self._jaccard(left[start : start + _CHUNK_PAIRS], right[start : start + _CHUNK_PAIRS])
            for start in range(0, len(left), _CHUNK_PAIRS)
        ]
        return np.concatenate(parts) if parts else np.empty(0)

    def _jaccard(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        keys = np.concatenate([self._keys(left), self._keys(right)])
        keys.sort(kind="stable")  # merges two sorted runs
        shared = keys[:-1][keys[:-1] == keys[1:]] >> np.uint64(32)
        common = np.bincount(shared.astype(np.int64), minlength=len(left))
        total = self.sizes_of(left) + self.sizes_of(right) - common
        return np.where(total == 0, 1.0, common / np.maximum(total, 1))

    def sizes_of(self, rows: np.ndarray) -> np.ndarray:
        """Number of hashes of each of ``rows``."""
        return self.offsets[rows + 1] - self.offsets[rows]

    def of_rows(self, rows: np.ndarray) -> np.ndarray:
        """The hashes of ``rows``, one row after the other."""
        sizes = self.sizes_of(rows)
        starts = np.repeat(self.offsets[rows] - (np.cumsum(sizes) - sizes), sizes)
        return np.asarray(self.values[starts + np.arange(len(starts))])

    def _keys(self, rows: np.ndarray) -> np.ndarray:
        """(pair, hash) of all hashes of ``rows`` as one sorted 64-bit number each."""
        values = self.of_rows(rows).astype(np.uint64)
        return values | np.repeat(np.arange(len(rows), dtype=np.uint64) << np.uint64(32), self.sizes_of(rows))


@dataclass(frozen=True)
class Signatures:
    """Signatures of some rows."""

    exact: np.ndarray
    """(rows, 2) uint64, equal for texts of the same normal form."""
    preference: np.ndarray
    """(rows,) uint64, smaller for the row to keep: one not rewritten, one with a pass rate, the longest text."""
    multiplicity: np.ndarray
    """(rows,) int32, how many rows a row already stands for."""
    words: Ragged
    numbers: Ragged
    bands: np.ndarray | None = None
    """(bands, rows) uint64 hash of each band of the MinHash of the words; None when they lie in files."""
    directory: Path | None = None

    def __len__(self) -> int:
        return len(self.preference)

    def band(self, index: int) -> np.ndarray:
        """(rows,) hashes of one band."""
        if self.bands is not None:
            return np.asarray(self.bands[index])
        assert self.directory is not None
        return np.fromfile(self.directory / _band_name(index), dtype=np.uint64)


def signatures(problems: Sequence[Problem]) -> Signatures:
    """The signatures of ``problems``, in memory.

    Two rows of another task than mathematics are duplicates only where all of them is the same but an id: puzzles are
    alike in their words, and each is another one.
    """
    found = [features(problem.problem) if problem.task == MATH else _by_itself(problem) for problem in problems]
    words = Ragged.of_sets([one.words for one in found])
    return Signatures(
        exact=np.frombuffer(b"".join(map(_exact, problems)), dtype=np.uint64).reshape(-1, 2),
        preference=np.array([_preference(one) for one in problems], dtype=np.uint64),
        multiplicity=np.array([one.multiplicity or 1 for one in problems], dtype=np.int32),
        words=words,
        numbers=Ragged.of_sets([one.numbers for one in found]),
        bands=_band_hashes(words),
    )


def _exact(problem: Problem) -> bytes:
    return exact_key(problem.problem) if problem.task == MATH else _whole(problem)


def _by_itself(problem: Problem) -> Features:
    """Words that no other row has, so that it is near none."""
    return Features(frozenset([f"{problem.task} {_whole(problem).hex()}"]), frozenset())


def _whole(problem: Problem) -> bytes:
    """16 bytes of all that makes a row of another task, but ``metadata``, which counts the rows of a puzzle's set."""
    extra = {name: value for name, value in problem.extra.items() if name != "metadata"}
    text = "\0".join((problem.task, problem.problem, problem.answer, json_object(extra)))
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


@lru_cache(maxsize=1 << 17)
def token_hash(token: str) -> int:
    """32 bits that are equal for equal words or numbers."""
    return zlib.crc32(token.encode("utf-8", "replace"))


class SignatureFiles:
    """Signatures on disk: append batches, then open all of them as one."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        self._directory = directory
        self._files = {name: (directory / name).open("wb") for name in [*_ARRAYS, *map(_band_name, range(BANDS))]}

    def append(self, batch: Signatures) -> None:
        """Add the rows of ``batch`` after those there are."""
        assert batch.bands is not None
        arrays = [batch.exact, batch.preference, batch.multiplicity, batch.words.values, batch.words.sizes]
        arrays += [batch.numbers.values, batch.numbers.sizes]
        for (name, kind), array in zip(_ARRAYS.items(), arrays, strict=True):
            self._files[name].write(np.ascontiguousarray(array, dtype=kind).tobytes())
        for index in range(BANDS):
            self._files[_band_name(index)].write(batch.bands[index].tobytes())

    def open(self) -> Signatures:
        """All rows appended; no more may follow."""
        for file in self._files.values():
            file.close()
        read: dict[str, np.ndarray] = {
            name: np.fromfile(self._directory / name, dtype=kind) for name, kind in _ARRAYS.items() if name != "words"
        }
        words = self._directory / "words"
        values = np.memmap(words, dtype=np.uint32, mode="r") if words.stat().st_size else np.empty(0, dtype=np.uint32)
        return Signatures(
            read["exact"].reshape(-1, 2),
            read["preference"],
            read["multiplicity"],
            Ragged(values, _offsets(read["word_counts"])),
            Ragged(read["numbers"], _offsets(read["number_counts"])),
            directory=self._directory,
        )


_ARRAYS: dict[str, type] = {
    "exact": np.uint64,
    "preference": np.uint64,
    "multiplicity": np.int32,
    "words": np.uint32,
    "word_counts": np.int32,
    "numbers": np.uint32,
    "number_counts": np.int32,
}


def _band_name(index: int) -> str:
    return f"band-{index:02}"


def _offsets(sizes: Sequence[int] | np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.asarray(sizes, dtype=np.int64))]).astype(np.int64)


def _preference(problem: Problem) -> int:
    rewritten = problem.kind in ("multiple_choice", "true_false", "proof")
    unrated = problem.pass_rate is None
    return (rewritten << 63) | (unrated << 62) | (_LONGEST - min(len(problem.problem), _LONGEST))


def _band_hashes(words: Ragged) -> np.ndarray:
    """(bands, rows) hash of each band of the MinHash of each word set."""
    from rensa import RMinHash

    rows = len(words.offsets) - 1
    if not rows:
        return np.empty((BANDS, 0), dtype=np.uint64)
    matrix = RMinHash.digest_matrix_from_flat_token_hashes(
        words.values.astype(np.uint64), words.offsets.astype(np.uint64), BANDS * _ROWS_PER_BAND, _SEED
    )
    digests = np.array(matrix.to_rows(), dtype=np.uint64).reshape(rows, BANDS, _ROWS_PER_BAND)
    hashes = np.zeros((rows, BANDS), dtype=np.uint64)
    for row in range(_ROWS_PER_BAND):
        hashes = (hashes ^ digests[:, :, row]) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(29)
    return np.ascontiguousarray(hashes.T)
