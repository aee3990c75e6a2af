"""The records that flow between stages, and their Arrow schemas.

Reading files into rows is in ``ulorl.rows``; this module holds only what a problem *is*.
"""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

MATH = "math"
"""The task of a problem that names none: mathematics, which the verifier judges."""

PROBLEM_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("problem", pa.string(), nullable=False),
        pa.field("answer", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("source_id", pa.string()),
        pa.field("task", pa.string(), nullable=False),
        pa.field("kind", pa.string()),
        pa.field("pass_rate", pa.float64()),
        pa.field("multiplicity", pa.int32()),
        pa.field("conflict", pa.string()),
        pa.field("consensus", pa.float64()),
        pa.field("template", pa.string()),
        pa.field("original_problem", pa.string()),
        pa.field("original_answer", pa.string()),
        pa.field("extra", pa.string()),
    ]
)
"""Columns of problems.parquet. ``multiplicity`` counts the rows that this one stands for, ``conflict`` is the id of the
first of the duplicates whose references differ, ``consensus`` the share of the models asked whose answer is the
reference, ``template`` the benchmark item that is the same problem with other data, ``extra`` a JSON object of the
input's other columns."""

DROPPED_SCHEMA = pa.schema(
    [
        *PROBLEM_SCHEMA,
        pa.field("step", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("detail", pa.string(), nullable=False),
        pa.field("other_id", pa.string()),
    ]
)
"""Columns of dropped.parquet: the problem, which step dropped it, why, and because of which other row."""

SAMPLE_SCHEMA = pa.schema(
    [
        pa.field("problem_id", pa.string(), nullable=False),
        pa.field("sample_index", pa.int32(), nullable=False),
        pa.field("seed", pa.int64(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("token_ids", pa.list_(pa.int32()), nullable=False),
        pa.field("logprobs", pa.list_(pa.float32())),
        pa.field("segment_lengths", pa.list_(pa.int32())),
        pa.field("segment_versions", pa.list_(pa.int32())),
        pa.field("finish_reason", pa.string(), nullable=False),
        pa.field("answer", pa.string()),
        pa.field("equivalent", pa.bool_()),
        pa.field("reward", pa.float64(), nullable=False),
        pa.field("rule", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
    ]
)
"""Columns of a samples file, of any stage. ``equivalent`` is null when the verifier was undecided."""

ROLLOUT_SCHEMA = pa.schema(
    [
        *SAMPLE_SCHEMA,
        pa.field("task", pa.string(), nullable=False),
        pa.field("group", pa.int64(), nullable=False),
        pa.field("prompt_ids", pa.list_(pa.int32()), nullable=False),
        pa.field("born_step", pa.int64(), nullable=False),
        pa.field("finished_step", pa.int64(), nullable=False),
    ]
)
"""Columns of rollouts/step_*.parquet of training: all that an update needs of a sample. ``group`` is the group's number
in the run (a problem drawn again is another group), ``prompt_ids`` what the engine was asked with."""


def problem_id(problem: str) -> str:
    """Stable id: 16 hex digits of the hash of the text, Unicode NFC, white space folded."""
    text = " ".join(unicodedata.normalize("NFC", problem).split())
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True)
class Problem:
    """One problem with its short reference answer.

    Curation replaces values with ``dataclasses.replace`` and keeps the first value of ``problem`` and
    ``answer`` in ``original_problem`` and ``original_answer``.
    """

    id: str
    problem: str
    answer: str
    source: str = ""
    source_id: str | None = None
    task: str = MATH
    kind: str | None = None
    pass_rate: float | None = None
    multiplicity: int | None = None
    conflict: str | None = None
    consensus: float | None = None
    template: str | None = None
    original_problem: str | None = None
    original_answer: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Dropped:
    """A problem that is not used: which step dropped it, the reason (from the step's closed list), a
    detail for people, and the id of the other row because of which it was dropped, if there is one."""

    problem: Problem
    step: str
    reason: str
    detail: str
    other_id: str | None = None


@dataclass(frozen=True)
class BadRow:
    """A row of the input from which no problem could be made.

    ``line`` counts from 1: the line of a text file (the first one of a CSV record), else the number of the
    row. ``raw`` is the beginning of what was there.
    """

    source: str
    line: int
    reason: str
    raw: str

    def dropped(self) -> Dropped:
        """The row as an entry of dropped.parquet, so that no row of the input is lost."""
        place = f"{self.source}:{self.line}"
        problem = Problem(problem_id(f"{place}\n{self.raw}"), self.raw, "", self.source, str(self.line))
        return Dropped(problem, step="load", reason="malformed_row", detail=f"{place}: {self.reason}")
