"""From judged samples to one row a problem, on which all estimates and comparisons rest.

Invariants: every sample is exactly one of right, in a class of other answers, or without an answer; those
undecided (an answer, and no verdict on it) and truncated are counted apart as well, never dropped. Right is a reward of
1; parts of a reward count in the average alone.
Does not: average over problems.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean, variance

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ulorl.columns import json_object
from ulorl.errors import UserError
from ulorl.evaluate.estimators import ProblemCounts
from ulorl.problem import Problem
from ulorl.verify.verdict import ERROR

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
        pa.field("verifier_errors", pa.int32()),
        pa.field("truncated", pa.int32()),
        pa.field("other_classes", pa.list_(pa.int32()), nullable=False),
        pa.field("mean_length", pa.float64()),
        pa.field("task", pa.string()),
        pa.field("reward", pa.float64()),
        pa.field("reward_variance", pa.float64()),
        pa.field("extra", pa.string()),
    ]
)
"""One row a problem. ``other_classes``: sizes of the classes of equivalent answers that are not right,
largest first; ``mean_length``: tokens of a sample; ``verifier_errors``: undecided because the verifier itself failed.
``truncated`` and ``mean_length`` are null where the samples do not say (other people's responses). ``reward``, the
mean, and the variance of that mean are null where every reward is 0 or 1; ``extra``, what the task judges by, is null
for mathematics; ``task`` is null in files of earlier versions, which know mathematics alone."""

VERIFIER_ERRORS = ("timed out", "out of memory", "worker died", "output flood", "judge failed", ERROR)
"""How reasons of undecided verdicts begin where the verifier failed, not the answer."""
UNKNOWN = "unknown"
"""Finish reason of a response of which nobody told it."""

Classes = Callable[[Sequence[str]], Sequence[int]]


def score_problems(
    benchmark: str,
    problems: Sequence[Problem],
    samples: pa.Table,
    classes: Classes,
    lengths: Sequence[int | None] | None = None,
) -> pa.Table:
    """SCORES_SCHEMA, in the order of ``problems``, from SAMPLE_SCHEMA with each problem's rows together.

    ``lengths``: tokens of each sample, where the samples themselves do not say.

    ``classes`` gives each answer the number of its class of equivalent answers; answers of other tasks than mathematics
    are of one class where they are the same text.
    """
    names = ("problem_id", "equivalent", "answer", "finish_reason", "reason", "reward")
    columns = (samples[name].to_pylist() for name in names)
    judged = {
        problem_id: list(group)
        for problem_id, group in groupby(
            zip(*columns, lengths or token_counts(samples), strict=True), key=lambda row: row[0]
        )
    }
    rows = []
    for problem in problems:
        _, equivalent, answers, finishes, reasons, rewards, lengths = zip(*judged[problem.id], strict=True)
        others = [a for a, right in zip(answers, equivalent, strict=True) if right is not True and a is not None]
        told = UNKNOWN not in finishes
        is_math = problem.task == "math"
        in_parts = any(0 < reward < 1 for reward in rewards)
        rows.append(
            {
                "benchmark": benchmark,
                "problem_id": problem.id,
                "problem": problem.problem,
                "reference": problem.answer,
                "samples": len(answers),
                "correct": sum(right is True for right in equivalent),
                "undecided": sum(right is None and a is not None for a, right in zip(answers, equivalent, strict=True)),
                "no_answer": sum(a is None for a in answers),
                "verifier_errors": sum(reason.startswith(VERIFIER_ERRORS) for reason in reasons),
                "truncated": sum(finish == "length" for finish in finishes) if told else None,
                "other_classes": sorted(Counter(classes(others) if is_math else others).values(), reverse=True),
                "mean_length": None if None in lengths else sum(lengths) / len(lengths),
                "task": problem.task,
                "reward": fmean(rewards) if in_parts else None,
                "reward_variance": variance(rewards) / len(rewards) if in_parts and len(rewards) > 1 else None,
                "extra": None if is_math else json_object(problem.extra),
            }
        )
    return pa.Table.from_pylist(rows, schema=SCORES_SCHEMA)


def token_counts(samples: pa.Table) -> list[int | None]:
    """Tokens of each sample; None where there are no token ids but a text."""
    counts = pc.list_value_length(samples["token_ids"]).to_pylist()
    empty = pc.equal(pc.utf8_length(samples["text"]), 0).to_pylist()
    return [count if count or nothing else None for count, nothing in zip(counts, empty, strict=True)]


def counts_of(scores: pa.Table) -> list[ProblemCounts]:
    """What the estimators need of each row."""
    names = ("problem_id", "samples", "correct", "other_classes", "reward", "reward_variance")
    columns = (scores[name].to_pylist() for name in names)
    return [
        ProblemCounts(problem_id, samples, correct, tuple(others), reward, math.nan if spread is None else spread)
        for problem_id, samples, correct, others, reward, spread in zip(*columns, strict=True)
    ]


def by_task(scores: pa.Table) -> dict[str, pa.Table]:
    """The rows of each task, by name, in alphabetical order."""
    tasks = tasks_of(scores)
    return {task: scores.filter(pa.array([one == task for one in tasks])) for task in sorted(set(tasks))}


def tasks_of(scores: pa.Table) -> list[str]:
    """The task of each row; rows of before there were tasks are mathematics."""
    return pc.fill_null(scores["task"], "math").to_pylist()  # type: ignore[no-any-return]


def read_scores(directory: Path) -> dict[str, pa.Table]:
    """The scores of a finished evaluation, by benchmark. UserError when the directory is none."""
    path = directory / SCORES_FILE
    try:
        table = pq.read_table(path, schema=SCORES_SCHEMA)
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{directory}: not a finished evaluation ({SCORES_FILE}: {error})") from error
    names = dict.fromkeys(table["benchmark"].to_pylist())
    return {name: table.filter(pc.field("benchmark") == name) for name in names}
