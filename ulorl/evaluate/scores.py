"""From judged samples to one row a problem, on which all estimates and comparisons rest.

Invariants: every sample is exactly one of right, in a class of other answers, or without an answer; those
undecided (an answer, and no verdict on it) and truncated are counted apart as well, never dropped.
Does not: average over problems.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ulorl.errors import UserError
from ulorl.evaluate.estimators import ProblemCounts
from ulorl.problem import Problem

SCORES_FILE = "scores.parquet"
SCORES_SCHEMA = pa.schema(
    [
        pa.field("benchmark", pa.string(), nullable=False),
        pa.field("problem_id", pa.string(), nullable=False),
        pa.field("problem", pa.string(), nullable=False),
        pa.field("reference", pa.string(), nullable=False),
        pa.field("samples", pa.int32(), nullable=False),
        pa.field("correct", pa.int32(), nullable=False),
        pa.field("undecided", pa.int32(), nullable=False),
        pa.field("no_answer", pa.int32(), nullable=False),
        pa.field("truncated", pa.int32(), nullable=False),
        pa.field("other_classes", pa.list_(pa.int32()), nullable=False),
        pa.field("mean_length", pa.float64(), nullable=False),
    ]
)
"""One row a problem. ``other_classes``: sizes of the classes of equivalent answers that are not right,
largest first; ``mean_length``: tokens of a sample."""

Classes = Callable[[Sequence[str]], Sequence[int]]


def score_problems(benchmark: str, problems: Sequence[Problem], samples: pa.Table, classes: Classes) -> pa.Table:
    """SCORES_SCHEMA, in the order of ``problems``, from SAMPLE_SCHEMA with each problem's rows together.

    ``classes`` gives each answer the number of its class of equivalent answers.
    """
    lengths = pc.list_value_length(samples["token_ids"]).to_pylist()
    columns = (samples[name].to_pylist() for name in ("problem_id", "equivalent", "answer", "finish_reason"))
    judged = {
        problem_id: list(group)
        for problem_id, group in groupby(zip(*columns, lengths, strict=True), key=lambda row: row[0])
    }
    rows = []
    for problem in problems:
        group = judged[problem.id]
        others = [answer for _, equivalent, answer, _, _ in group if equivalent is not True and answer is not None]
        rows.append(
            {
                "benchmark": benchmark,
                "problem_id": problem.id,
                "problem": problem.problem,
                "reference": problem.answer,
                "samples": len(group),
                "correct": sum(equivalent is True for _, equivalent, _, _, _ in group),
                "undecided": sum(equivalent is None and answer is not None for _, equivalent, answer, _, _ in group),
                "no_answer": sum(answer is None for _, _, answer, _, _ in group),
                "truncated": sum(finish == "length" for _, _, _, finish, _ in group),
                "other_classes": sorted(Counter(classes(others)).values(), reverse=True),
                "mean_length": sum(length for *_, length in group) / len(group),
            }
        )
    return pa.Table.from_pylist(rows, schema=SCORES_SCHEMA)


def counts_of(scores: pa.Table) -> list[ProblemCounts]:
    """What the estimators need of each row."""
    columns = (scores[name].to_pylist() for name in ("problem_id", "samples", "correct", "other_classes"))
    return [
        ProblemCounts(problem_id, samples, correct, tuple(others))
        for problem_id, samples, correct, others in zip(*columns, strict=True)
    ]


def read_scores(directory: Path) -> dict[str, pa.Table]:
    """The scores of a finished evaluation, by benchmark. UserError when the directory is none."""
    path = directory / SCORES_FILE
    try:
        table = pq.read_table(path, schema=SCORES_SCHEMA)
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{directory}: not a finished evaluation ({SCORES_FILE}: {error})") from error
    names = dict.fromkeys(table["benchmark"].to_pylist())
    return {name: table.filter(pc.field("benchmark") == name) for name in names}
