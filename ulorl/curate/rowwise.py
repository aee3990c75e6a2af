"""The steps that look at one row at a time, on batches of rows, in any process.

Invariants: what becomes of a row does not depend on the other rows of its batch; rows keep their order; every row of
a batch is in ``kept`` or in ``dropped``; steps about mathematics (all here but duplicates) leave rows of other tasks as
they are. In a first pass the rows have their number in the input for an id, because
ids that no two rows share cannot be given in one process without knowing the others' rows: ``BatchResult.give_ids``
puts them in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from ulorl.curate.answers import answers
from ulorl.curate.ask import read_kinds
from ulorl.curate.contamination import BenchmarkIndex, contamination
from ulorl.curate.duplicates import Groups, settle
from ulorl.curate.funnel import step_entry
from ulorl.curate.kinds import kinds
from ulorl.curate.load import clean_rows, cleaned_id
from ulorl.curate.reader import Reader
from ulorl.curate.result import StepResult
from ulorl.curate.reword import reword
from ulorl.curate.rewrite import rewrite
from ulorl.curate.signatures import Signatures, signatures
from ulorl.problem import MATH, BadRow, Dropped, Problem
from ulorl.recipe import CurateRecipe
from ulorl.rows import dropped_table, problem_table, table_problems


@dataclass(frozen=True)
class RawBatch:
    """Rows of the input, the first of which is number ``start``."""

    start: int
    rows: list[Problem | BadRow]


@dataclass(frozen=True)
class TableBatch:
    """Rows of an earlier pass, and what was decided about them as duplicates, if that was asked."""

    table: pa.Table
    groups: Groups | None = None
    leader_ids: Sequence[str] = ()


@dataclass
class BatchResult:
    """What the steps made of a batch."""

    kept: pa.Table
    dropped: dict[str, pa.Table]
    entries: list[dict[str, Any]]
    """The funnel's entry of each step."""
    start: int = 0
    ids: list[str] = field(default_factory=list)
    """First pass: the id that each row of the batch would have alone."""
    signatures: Signatures | None = None

    def give_ids(self, ids: Sequence[str]) -> None:
        """Put ``ids`` (of all rows of the batch) in the place of the row numbers."""
        self.kept = self._with_ids(self.kept, ids)
        self.dropped = {step: self._with_ids(table, ids) for step, table in self.dropped.items()}
        for entry in self.entries:
            for examples in entry["examples"].values():
                for example in examples:
                    example["id"] = ids[int(example["id"]) - self.start]

    def _with_ids(self, table: pa.Table, ids: Sequence[str]) -> pa.Table:
        given = [ids[int(number) - self.start] for number in table.column("id").to_pylist()]
        place = table.schema.get_field_index("id")
        return table.set_column(place, table.schema.field(place), pa.array(given, pa.string()))


class FirstPass:
    """From raw rows to the row steps before duplicates."""

    def __init__(self, recipe: CurateRecipe, with_signatures: bool, reader: Reader | None = None) -> None:
        """``reader`` decides what the rules leave undecided; it is not picklable and lives in one process."""
        self._recipe, self._with_signatures = recipe, with_signatures
        self._decide = partial(read_kinds, reader=reader) if reader is not None else None
        self._reword = partial(reword, reader=reader, recipe=recipe) if reader is not None else None

    def __call__(self, batch: RawBatch) -> BatchResult:
        rows = {batch.start + place: row for place, row in enumerate(batch.rows)}
        problems = [replace(row, id=str(number)) for number, row in rows.items() if isinstance(row, Problem)]
        unreadable = {number: row.dropped() for number, row in rows.items() if isinstance(row, BadRow)}
        run = _Run(problems)
        run.record("load", len(rows), StepResult(problems, [_numbered(row, at) for at, row in unreadable.items()]))
        cleaning = "normalise" in self._recipe.steps
        if cleaning:
            run.mathematics("normalise", clean_rows)
        if "answers" in self._recipe.steps:
            run.mathematics("answers", partial(answers, recipe=self._recipe))
        if "kinds" in self._recipe.steps:
            run.mathematics("kinds", partial(kinds, decide=self._decide))
        if "rewrite" in self._recipe.steps:
            run.mathematics("rewrite", partial(rewrite, reword=self._reword))
        result = run.result()
        result.start = batch.start
        for number, row in rows.items():
            if isinstance(row, Problem):
                result.ids.append(cleaned_id(row) if cleaning and row.task == MATH else row.id)
            else:
                result.ids.append(unreadable[number].problem.id)
        if self._with_signatures:
            result.signatures = signatures(run.problems)
        return result


class SecondPass:
    """Carry out what was decided about duplicates, then the row steps after them."""

    def __init__(self, recipe: CurateRecipe, benchmarks: Mapping[str, Sequence[Problem]]) -> None:
        self._recipe = recipe
        self._index = BenchmarkIndex(benchmarks, recipe.leak_words, recipe.leak_numbers)

    def __call__(self, batch: TableBatch) -> BatchResult:
        run = _Run(list(table_problems(batch.table)))
        if batch.groups is not None:
            run.step("duplicates", partial(settle, groups=batch.groups, leader_ids=batch.leader_ids))
        if "contamination" in self._recipe.steps:
            run.mathematics("contamination", partial(contamination, recipe=self._recipe, benchmarks=self._index))
        return run.result()


class _Run:
    """Problems on their way through steps."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        self._dropped: dict[str, list[Dropped]] = {}
        self._entries: list[dict[str, Any]] = []

    def step(self, name: str, call: Any) -> None:
        self.record(name, len(self.problems), call(self.problems))

    def mathematics(self, name: str, call: Any) -> None:
        """A step that rows of other tasks pass untouched."""
        result = call([problem for problem in self.problems if problem.task == MATH])
        left = {problem.id: problem for problem in result.kept}
        kept = [left.get(one.id, one) for one in self.problems if one.task != MATH or one.id in left]
        self.record(name, len(self.problems), replace(result, kept=kept))

    def record(self, name: str, rows_in: int, result: StepResult) -> None:
        self._entries.append(step_entry(name, rows_in, len(result.kept), result.dropped, result.notes))
        self._dropped[name] = result.dropped
        self.problems = result.kept

    def result(self) -> BatchResult:
        dropped = {name: dropped_table(rows) for name, rows in self._dropped.items() if rows}
        return BatchResult(problem_table(self.problems), dropped, self._entries)


def _numbered(row: Dropped, number: int) -> Dropped:
    return replace(row, problem=replace(row.problem, id=str(number)))
