"""The rows of a run on their way through its passes, on disk between one pass and the next.

1. Raw rows, in batches through the row steps before duplicates (``rowwise.FirstPass``), to a file of rows, a file of
   texts and the signatures.
2. Duplicates: decided from the signatures, which are hashes.
3. Batches of the file of rows through what was decided and the row steps after it (``rowwise.SecondPass``).
4. References, batch by batch; difficulty, which samples a model, on the list of what is left.

Invariants: a row is in memory only with its batch (but for difficulty); dropped rows are ordered by step, then as they
came; every row of the input is in ``rows`` or in the file of the step that dropped it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from ulorl.curate.card import Census
from ulorl.curate.duplicates import SKIPPED, Groups, group_rows
from ulorl.curate.funnel import merge_entries, step_entry
from ulorl.curate.ids import UniqueIds
from ulorl.curate.reader import Reader
from ulorl.curate.result import StepResult
from ulorl.curate.rowwise import BatchResult, FirstPass, RawBatch, SecondPass, TableBatch
from ulorl.curate.signatures import SignatureFiles, Signatures
from ulorl.curate.spill import RowFile, TextFile
from ulorl.curate.workers import ordered_map
from ulorl.errors import UserError
from ulorl.problem import DROPPED_SCHEMA, PROBLEM_SCHEMA, BadRow, Problem
from ulorl.recipe import CurateRecipe
from ulorl.rows import dropped_table, problem_table, table_problems

BATCH_ROWS = 1000
_BATCH_CHARS = 4_000_000

Progress = Callable[[str, int, int], None]


class Stream:
    """The rows that are left, the rows that were dropped, and the funnel so far."""

    def __init__(self, recipe: CurateRecipe, directory: Path, progress: Progress, batch_rows: int = BATCH_ROWS) -> None:
        directory.mkdir()
        self.entries: list[dict[str, Any]] = []
        self.messages: list[str] = []
        """What people should know about the input."""
        self.census = Census()
        self.rows = RowFile(directory / "rows-0", PROBLEM_SCHEMA)
        self._recipe, self._directory, self._progress, self._batch_rows = recipe, directory, progress, batch_rows
        self._dropped: dict[str, RowFile] = {}
        self._groups: Groups | None = None
        self._ids = pa.chunked_array([], pa.string())
        self._passes = 0

    def read(self, raw: Iterable[Problem | BadRow], reader: Reader | None = None) -> None:
        """Pass 1, in this process where a ``reader`` is asked, and the decision about duplicates."""
        with_duplicates = "duplicates" in self._recipe.steps
        files = SignatureFiles(self._directory / "signatures") if with_duplicates else None
        give, chunks, done = UniqueIds(), list[pa.Array](), 0
        with TextFile(self._directory / "texts") as texts:
            for result in self._first_pass(with_duplicates, self._batches(raw), reader):
                result.give_ids(give.unique(result.ids))
                if files is not None and result.signatures is not None:
                    files.append(result.signatures)
                    texts.append(result.kept)
                    chunks += result.kept.column("id").chunks
                self._take(result, self.rows)
                done += len(result.ids)
                self._progress("rows read", done, done)
            self._ids = pa.chunked_array(chunks, pa.string())
            self.rows.close()
            self._check_left()
            if files is not None:
                texts.close()
                self._group(files.open(), texts)

    def carry_out(self, benchmarks: Mapping[str, Sequence[Problem]]) -> None:
        """Pass 3: drop the duplicates, then the row steps after them."""
        done, total = 0, self.rows.rows
        for result in self._pass(self._mapped(partial(SecondPass, self._recipe, benchmarks), self._decided())):
            done += result.entries[0]["rows_in"] if result.entries else 0
            self._progress("duplicates and leaks", done, total)
        skipped = self._groups.skipped if self._groups is not None else 0
        self._groups, self._ids = None, pa.chunked_array([], pa.string())
        for entry in self.entries:
            if entry["step"] == "duplicates":
                entry["notes"][SKIPPED] = skipped
            if entry["step"] == "contamination":
                entry["notes"]["benchmark items"] = sum(map(len, benchmarks.values()))

    def step(self, name: str, call: Callable[[list[Problem]], StepResult]) -> None:
        """One further step, batch by batch."""
        done, total = 0, self.rows.rows
        for result in self._pass(_run_step(name, call, list(table_problems(one))) for one in self.rows.tables()):
            done += result.entries[0]["rows_in"]
            self._progress(name, done, total)

    def step_on_all(self, name: str, call: Callable[[list[Problem]], StepResult]) -> None:
        """One further step that needs the rows together."""
        problems = [problem for table in self.rows.tables() for problem in table_problems(table)]
        for _ in self._pass(iter([_run_step(name, call, problems)])):
            pass

    def problems(self) -> Iterator[pa.Table]:
        """The rows that are left."""
        for table in self.rows.tables():
            self.census.count_out(table)
            yield table

    def dropped(self) -> Iterator[pa.Table]:
        """The rows that are not, in the order of the steps."""
        for entry in self.entries:
            if entry["step"] in self._dropped:
                file = self._dropped[entry["step"]]
                file.close()
                yield from file.tables()

    def funnel(self) -> dict[str, Any]:
        """Rows in, what each step dropped, rows out, messages."""
        rows_in = self.entries[0]["rows_in"]
        return {"rows_in": rows_in, "rows_out": self.rows.rows, "steps": self.entries, "messages": self.messages}

    def _first_pass(
        self, with_duplicates: bool, batches: Iterable[RawBatch], reader: Reader | None
    ) -> Iterator[BatchResult]:
        if reader is not None:
            return map(FirstPass(self._recipe, with_duplicates, reader), batches)
        return self._mapped(partial(FirstPass, self._recipe, with_duplicates), batches)

    def _mapped(self, make: Any, batches: Iterable[Any]) -> Iterator[BatchResult]:
        return ordered_map(make, batches, self._recipe.workers)

    def _batches(self, raw: Iterable[Problem | BadRow]) -> Iterator[RawBatch]:
        batch, chars, start = list[Problem | BadRow](), 0, 0
        for row in raw:
            batch.append(row)
            self.census.count_in(row)
            if isinstance(row, Problem):
                chars += len(row.problem) + len(row.answer)
            if len(batch) == self._batch_rows or chars > _BATCH_CHARS:
                yield RawBatch(start, batch)
                batch, chars, start = [], 0, start + len(batch)
        if batch:
            yield RawBatch(start, batch)

    def _group(self, signatures: Signatures, texts: TextFile) -> None:
        self._progress("duplicates", 0, len(signatures))
        self._groups = group_rows(signatures, texts, self._recipe)
        self._progress("duplicates", len(signatures), len(signatures))

    def _decided(self) -> Iterator[TableBatch]:
        start = 0
        for table in self.rows.tables():
            if self._groups is None:
                yield TableBatch(table)
            else:
                groups = self._groups.slice(start, start + len(table))
                yield TableBatch(table, groups, self._ids.take(pa.array(groups.leader)).to_pylist())
            start += len(table)

    def _pass(self, results: Iterator[BatchResult]) -> Iterator[BatchResult]:
        """Collect the results of a pass over ``rows``, which they replace."""
        self._passes += 1
        left = RowFile(self._directory / f"rows-{self._passes}", PROBLEM_SCHEMA)
        for result in results:
            self._take(result, left)
            yield result
        left.close()
        self.rows.remove()
        self.rows = left
        self._check_left()

    def _take(self, result: BatchResult, kept: RowFile) -> None:
        kept.append(result.kept)
        for step, table in result.dropped.items():
            if step not in self._dropped:
                self._dropped[step] = RowFile(self._directory / f"dropped-{step}", DROPPED_SCHEMA)
            self._dropped[step].append(table)
        known = {entry["step"]: place for place, entry in enumerate(self.entries)}
        for entry in result.entries:
            place = known.get(entry["step"])
            if place is None:
                self.entries.append(entry)
            else:
                self.entries[place] = merge_entries(self.entries[place], entry)

    def _check_left(self) -> None:
        if self.rows.rows:
            return
        empty = next(entry["step"] for entry in self.entries if not entry["rows_out"])
        worst = max(self.entries, key=lambda one: one["rows_in"] - one["rows_out"])
        reasons = ", ".join(f"{reason} {count}" for reason, count in worst["dropped"].items())
        raise UserError(
            f"curate: no row is left after {empty}; {worst['step']} dropped most, "
            f"{worst['rows_in'] - worst['rows_out']} of {worst['rows_in']} ({reasons}); "
            "look at the input, or leave that step out of curate.steps"
        )


def _run_step(name: str, call: Callable[[list[Problem]], StepResult], problems: list[Problem]) -> BatchResult:
    result = call(problems)
    entry = step_entry(name, len(problems), len(result.kept), result.dropped, result.notes)
    dropped = {name: dropped_table(result.dropped)} if result.dropped else {}
    return BatchResult(problem_table(result.kept), dropped, [entry])
