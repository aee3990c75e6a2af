"""Reading problems from wherever they lie, and the Parquet tables of problems that stages exchange.

Invariants: every row of the input comes back, as a ``Problem`` or as a ``BadRow`` that says where and why;
the order is the input's; ``source`` is the file's name (never its place), so that results do not depend on
where a file lies. Curation, verification of answers and duplicates are other modules' work.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from ulorl.columns import BadValueError, NoColumnError, json_object, to_problem
from ulorl.errors import UserError
from ulorl.problem import DROPPED_SCHEMA, PROBLEM_SCHEMA, BadRow, Dropped, Problem
from ulorl.raw_rows import FORMATS, RawRow, bad_row, format_by_name, read_file
from ulorl.recipe import FieldNames
from ulorl.seeds import derive_seed

PROBLEMS_FILE = "problems.parquet"
"""Name of the problems in a stage directory; such a directory, given as an input, stands for this file."""
_ENOUGH_TO_JUDGE = 1000


def read_rows(source: str, fields: FieldNames, seed: int = 0) -> Iterator[Problem | BadRow]:
    """Every row of one input: a file, a directory, ``hub:NAME[/CONFIG][@SPLIT]``, ``quickstart:N`` or
    ``quickstart-test:N`` (``seed`` is for these two only).

    UserError when there is nothing to read or no column fits; it names the columns there are.
    """
    curated = _curated(source)
    if curated is not None:
        yield from read_problem_table(curated)
        return
    for name, rows in _parts(source, seed):
        yield from _problems(name, rows, fields)


def read_problems(
    sources: Sequence[str], fields: FieldNames, limit: int = 0, seed: int = 0
) -> tuple[list[Problem], list[BadRow]]:
    """The problems of several inputs, in order, and the rows that are none.

    ``limit`` > 0 keeps that many problems, drawn with ``seed``, in order. UserError for an input without a
    single usable row.
    """
    problems: list[Problem] = []
    bad: list[BadRow] = []
    for source in sources:
        good_before, bad_before = len(problems), len(bad)
        for row in read_rows(source, fields, seed):
            if isinstance(row, BadRow):
                bad.append(row)
            else:
                problems.append(row)
        if len(problems) == good_before:
            _refuse_useless(source, bad[bad_before:])
    if 0 < limit < len(problems):
        drawn = random.Random(derive_seed(seed, "limit")).sample(range(len(problems)), limit)
        problems = [problems[index] for index in sorted(drawn)]
    return problems, bad


def problem_table(problems: Iterable[Problem]) -> pa.Table:
    """Problems as a table of PROBLEM_SCHEMA."""
    return pa.Table.from_pylist([_record(problem) for problem in problems], schema=PROBLEM_SCHEMA)


def dropped_table(dropped: Iterable[Dropped]) -> pa.Table:
    """Dropped rows as a table of DROPPED_SCHEMA (bad rows of the input through ``BadRow.dropped``)."""
    rows = [
        _record(row.problem) | {"step": row.step, "reason": row.reason, "detail": row.detail, "other_id": row.other_id}
        for row in dropped
    ]
    return pa.Table.from_pylist(rows, schema=DROPPED_SCHEMA)


def read_problem_table(path: Path) -> list[Problem]:
    """The problems of a file written from ``problem_table``; UserError when it is none."""
    return [_restored(row) for row in _read_table(path, PROBLEM_SCHEMA)]


def read_dropped_table(path: Path) -> list[Dropped]:
    """The rows of a file written from ``dropped_table``; UserError when it is none."""
    names = set(DROPPED_SCHEMA.names) - set(PROBLEM_SCHEMA.names)
    dropped = []
    for row in _read_table(path, DROPPED_SCHEMA):
        why = {name: row.pop(name) for name in names}
        dropped.append(Dropped(_restored(row), **why))
    return dropped


def _record(problem: Problem) -> dict[str, Any]:
    return asdict(problem) | {"extra": json_object(problem.extra)}


def _restored(row: dict[str, Any]) -> Problem:
    return Problem(**row | {"extra": json.loads(row["extra"] or "{}")})


def _read_table(path: Path, schema: pa.Schema) -> list[dict[str, Any]]:
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{path}: not readable as Parquet: {str(error).splitlines()[0]}") from error
    missing = [name for name in schema.names if name not in table.column_names]
    if missing:
        raise UserError(f"{path}: not a table of problems, it lacks {', '.join(missing)}; curate makes one")
    rows: list[dict[str, Any]] = table.select(schema.names).cast(schema).to_pylist()
    return rows


def _parts(source: str, seed: int) -> Iterator[tuple[str, Iterable[RawRow | BadRow]]]:
    """The input's files (or the one data set it is), each with the name to record."""
    prefix, colon, rest = source.partition(":")
    if colon and prefix in ("quickstart", "quickstart-test"):
        yield source, _generated(source, "test" if prefix == "quickstart-test" else "train", rest, seed)
    elif colon and prefix == "hub":
        yield source, _hub(source, rest)
    else:
        for path in _files(source):
            yield path.name, read_file(path)


def _curated(source: str) -> Path | None:
    """The table of problems that a stage directory, or the file itself, is; read as it is, with all its
    columns."""
    path = Path(source)
    path = path / PROBLEMS_FILE if path.is_dir() else path
    if path.name != PROBLEMS_FILE or not path.is_file():
        return None
    try:
        names = pq.read_schema(path).names
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{path}: not readable as Parquet: {str(error).splitlines()[0]}") from error
    return path if set(PROBLEM_SCHEMA.names) <= set(names) else None


def _files(source: str) -> list[Path]:
    path = Path(source)
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UserError(
            f"{source}: no such file or directory; an input is a file, a directory, hub:NAME or quickstart:N"
        )
    files = sorted(file for file in path.iterdir() if file.is_file() and _has_rows(file))
    if not files:
        raise UserError(f"{source}: holds no file with rows ({', '.join(FORMATS)}, also with .gz)")
    return files


def _has_rows(file: Path) -> bool:
    return not file.name.startswith(".") and format_by_name(file) is not None


def _generated(source: str, split: Literal["train", "test"], count: str, seed: int) -> Iterator[RawRow]:
    if not (count.isdecimal() and int(count) > 0):
        raise UserError(f"{source}: after the colon must come the number of problems, as in quickstart:700")
    from ulorl.quickstart.problems import generate_problems

    for number, columns in enumerate(generate_problems(split=split, count=int(count), seed=seed), 1):
        yield RawRow(number, columns)


def _hub(source: str, name: str) -> Iterator[RawRow]:
    """Rows of a Hugging Face data set: ``hub:OWNER/NAME``, ``hub:OWNER/NAME/CONFIG``, then ``@SPLIT``
    (train)."""
    from datasets import load_dataset

    name, _, split = name.partition("@")
    config: str | None = None
    if name.count("/") == 2 and not name.startswith(("/", ".")):
        name, config = name.rsplit("/", 1)
    if not name:
        raise UserError(f"{source}: the name of the data set is missing, as in hub:openai/gsm8k/main@train")
    try:
        dataset = load_dataset(name, config, split=split or "train")
    except Exception as error:  # the hub's client raises a dozen kinds; each is the user's to see in one line
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        hint = "check name, config and split, and the network (or HF_HOME for a copy on this machine)"
        raise UserError(f"{source}: the data set cannot be loaded: {reason}; {hint}") from error
    for number, columns in enumerate(dataset, 1):
        yield RawRow(number, columns)


def _problems(name: str, rows: Iterable[RawRow | BadRow], fields: FieldNames) -> Iterator[Problem | BadRow]:
    fits, misfits = 0, 0
    misfit: tuple[RawRow, NoColumnError] | None = None
    for row in rows:
        if isinstance(row, BadRow):
            yield row
            continue
        try:
            problem = to_problem(row.columns, fields, name)
        except BadValueError as error:
            if isinstance(error, NoColumnError):
                misfits += 1
                misfit = misfit or (row, error)
                if not fits and misfits >= _ENOUGH_TO_JUDGE:
                    break
            else:
                fits += 1
            yield bad_row(name, row.line, str(error), row.columns)
            continue
        fits += 1
        yield problem
    if misfit and not fits:
        _refuse_columns(name, *misfit)


def _refuse_columns(name: str, row: RawRow, error: NoColumnError) -> None:
    present = ", ".join(list(map(str, row.columns))[:30]) or "none"
    setting = f"data.fields.{error.field}"
    if error.given:
        raise UserError(f"{name}: no column {error.given!r} ({setting}); the columns are: {present}")
    raise UserError(
        f"{name}: no column looks like the {error.field}; the columns are: {present}; name one in {setting}"
    )


def _refuse_useless(source: str, bad: list[BadRow]) -> None:
    if not bad:
        raise UserError(f"{source}: holds no rows; check the input")
    first = bad[0]
    example = f"the first, {first.source}:{first.line}: {first.reason}"
    raise UserError(f"{source}: none of the {len(bad)} rows is usable; {example}")
