"""Reading anybody's responses: a file with a problem, its reference and a response in each row.

Invariants: every row counts or the file is refused, with the row; rows of one problem are its samples, in the order
of the file; what a row does not tell (tokens, finish reason) is unknown, never assumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ulorl.columns import plain
from ulorl.errors import UserError
from ulorl.evaluate.scores import UNKNOWN
from ulorl.problem import BadRow, Problem, problem_id
from ulorl.raw_rows import read_file
from ulorl.verify.scoring.reading import truth

SPELLINGS = {
    "problem": ("problem", "question", "prompt", "query"),
    "reference": ("gold", "reference", "ref", "ground_truth", "gt", "reference_answer", "target", "answer"),
    "response": ("response", "completion", "generation", "output", "text", "responses", "completions", "outputs"),
    "id": ("id", "problem_id", "question_id", "index"),
    "finish_reason": ("finish_reason",),
    "tokens": ("tokens", "completion_tokens", "num_tokens"),
    "label": ("label",),
}
"""Columns looked for, in this order. A list of responses is as many samples."""
_NOT_THE_ROWS = {spelling for spellings in SPELLINGS.values() for spelling in spellings} | {"task"}
"""Columns that say nothing about a problem beside its text and its reference."""
_STOPPED = {"stop": "stop", "length": "length"}


@dataclass(frozen=True)
class Response:
    """One sample of somebody's model. ``row`` counts from 1; None is what the row does not tell."""

    row: int
    problem: Problem
    text: str
    finish_reason: str
    tokens: int | None
    label: bool | None


def read_responses(path: Path) -> tuple[list[Response], int]:
    """Every response of a file (JSON lines, JSON, CSV, TSV, Parquet, gzipped or not) that has a reference, and the
    number of rows whose reference is null.

    UserError for a row that lacks problem (and id), reference or response, that gives a problem another reference, or
    where no row has a reference.
    """
    if not path.is_file():
        why = "is a directory; give a file" if path.is_dir() else "no such file"
        raise UserError(f"--responses {path}: {why}")
    found: list[Response] = []
    references: dict[str, tuple[str, int]] = {}
    unscored = 0
    for raw in read_file(path):
        if isinstance(raw, BadRow):
            raise UserError(f"{path}:{raw.line}: {raw.reason}; every row needs a problem, a reference and a response")
        if _is_null(raw.columns, "reference") and raw.columns.get("task") in (None, "math"):
            unscored += 1
            continue
        for response in _responses(path, raw.line, raw.columns):
            found.append(response)
            known, row = references.setdefault(response.problem.id, (response.problem.answer, response.row))
            if known != response.problem.answer:
                raise UserError(
                    f"{path}: rows {row} and {response.row} give one problem two references, {known[:60]!r} and "
                    f"{response.problem.answer[:60]!r}; mend one"
                )
    if not found:
        what = f"none of the {unscored} rows has a reference" if unscored else "holds no rows"
        raise UserError(f"{path}: {what}; there is nothing to score against")
    return found, unscored


def _is_null(columns: Mapping[str, Any], field: str) -> bool:
    """Whether a row has a column for ``field``, with nothing in it."""
    there = [name for name in SPELLINGS[field] if name in columns]
    return bool(there) and all(columns[name] is None or columns[name] == "" for name in there)


def _responses(path: Path, row: int, columns: Mapping[str, Any]) -> Iterator[Response]:
    values = {name: _value(columns, spellings) for name, spellings in SPELLINGS.items()}
    task = columns.get("task") or "math"
    needed = ("reference", "response") if task == "math" else ("response",)
    what = "problem (or id)" if values["problem"] is None and values["id"] is None else ""
    what = what or next((name for name in needed if values[name] is None), "")
    if what:
        name = what.partition(" ")[0]
        raise UserError(
            f"{path}:{row}: no {what}; looked for {', '.join(SPELLINGS[name])}; "
            f"the columns are: {', '.join(map(str, columns)) or 'none'}"
        )
    given = values["problem"] if values["problem"] is not None else f"problem {values['id']}"
    text, reference = str(given), "" if values["reference"] is None else str(values["reference"])
    if not reference.strip() and task == "math":
        raise UserError(f"{path}:{row}: the reference is empty")
    others = {str(name): plain(cell) for name, cell in columns.items() if name not in _NOT_THE_ROWS}
    extra = {} if task == "math" else others
    problem = Problem(problem_id(text), text, reference, source=path.name, task=str(task), extra=extra)
    several = values["response"] if isinstance(values["response"], list) else [values["response"]]
    for one in several:
        if not isinstance(one, str):
            raise UserError(f"{path}:{row}: a response is a {type(one).__name__}, not text")
        yield Response(
            row,
            problem,
            one,
            _STOPPED.get(str(values["finish_reason"]), UNKNOWN),
            _count(values["tokens"], f"{path}:{row}: tokens"),
            truth(values["label"], f"{path}:{row}"),
        )


def _count(value: Any, where: str) -> int | None:
    """A number of tokens, as text too (CSV); UserError for anything else that is there."""
    if value is None or value == "":
        return None
    try:
        count = -1 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        count = -1
    if not 0 <= count < 2**53 or count != int(count):
        raise UserError(f"{where} is {value!r:.60}; give a whole number or null")
    return int(count)


def _value(columns: Mapping[str, Any], spellings: Sequence[str]) -> Any:
    return next((columns[name] for name in spellings if columns.get(name) is not None), None)


def name_of(path: Path) -> str:
    """Name of a file of responses in tables: without its extensions."""
    return path.name.split(".")[0] or path.name
