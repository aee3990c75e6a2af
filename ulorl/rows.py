"""Reading problems from wherever they lie, and the Parquet tables of problems that stages exchange.

Invariants: every row of the input comes back, as a ``Problem`` or as a ``BadRow`` that says where and why;
the order is the input's; ``source`` is the file's name (never its place), so that results do not depend on
where a file lies. Curation, verification of answers and duplicates are other modules' work.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from ulorl.columns import BadValueError, NoColumnError, json_object, to_problem
from ulorl.errors import UserError
from ulorl.fingerprint import GENERATED, HUB
from ulorl.problem import DROPPED_SCHEMA, PROBLEM_SCHEMA, BadRow, Dropped, Problem
from ulorl.raw_rows import FORMATS, RawRow, bad_row, format_by_name, read_file
from ulorl.recipe import FieldNames
from ulorl.seeds import derive_seed

PROBLEMS_FILE = "problems.parquet"
"""Name of the problems in a stage directory; such a directory, given as an input, stands for this file."""
_ENOUGH_TO_JUDGE = 1000

Tell = Callable[[str], None]
"""Takes a message for people."""


def read_rows(source: str, fields: FieldNames, seed: int = 0, tell: Tell | None = None) -> Iterator[Problem | BadRow]:
    """Every row of one input: a file, a directory, ``hub:NAME[/CONFIG][@SPLIT]``, ``quickstart:N``,
    ``quickstart-test:N``, ``logic:NAME:N`` or ``logic-test:NAME:N`` (``seed`` is for these four only).

    UserError when there is nothing to read or no column fits; it names the columns there are. With ``tell`` a file that
    is of no use is told and the others go on; its rows come back as bad ones.
    """
    if source.startswith((*GENERATED, HUB)):
        tell = None
    curated = _curated(source)
    if curated is not None:
        for batch in pq.ParquetFile(curated).iter_batches(1024, columns=PROBLEM_SCHEMA.names):
            yield from table_problems(pa.Table.from_batches([batch]).select(PROBLEM_SCHEMA.names).cast(PROBLEM_SCHEMA))
        return
    for name, open_rows in _parts(source, seed):
        try:
            yield from _problems(name, open_rows(), fields, to_the_end=tell is not None)
        except UserError as error:
            if tell is None:
                raise
            tell(str(error))


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
            of_source = bad[bad_before:]
            raise UserError(_useless(source, of_source[0] if of_source else None, len(of_source)))
    if 0 < limit < len(problems):
        problems = [problems[index] for index in _drawn(len(problems), limit, seed)]
    return problems, bad


def stream_problems(
    sources: Sequence[str], fields: FieldNames, limit: int = 0, seed: int = 0, tell: Tell | None = None
) -> Iterator[Problem | BadRow]:
    """What ``read_problems`` returns, in the input's order and without holding it; with a ``limit`` the input is
    read twice.

    With ``tell``, where there are several inputs or files, one without a usable row is told and the others go on;
    UserError then only where none has any.
    """
    if len(sources) == 1 and not Path(sources[0]).is_dir():
        tell = None
    chosen: set[int] | None = None
    if limit > 0:
        quiet = None if tell is None else _ignore
        count = sum(isinstance(row, Problem) for source in sources for row in read_rows(source, fields, seed, quiet))
        chosen = set(_drawn(count, limit, seed)) if limit < count else None
    number, told = 0, list[str]()
    for source in sources:
        first_bad, bad = None, 0
        good_before, told_before = number, len(told)
        for row in read_rows(source, fields, seed, None if tell is None else told.append):
            if isinstance(row, BadRow):
                first_bad, bad = first_bad or row, bad + 1
                yield row
                continue
            number += 1
            if chosen is None or number - 1 in chosen:
                yield row
        if number == good_before and len(told) == told_before:
            told.append(_useless(source, first_bad, bad))
            if tell is None:
                raise UserError(told[-1])
        if tell is not None:
            for message in told[told_before:]:
                tell(message)
    if told and not number:
        raise UserError("; ".join(told[:3]) + (f"; and {len(told) - 3} more" if len(told) > 3 else ""))


def _ignore(_: str) -> None:
    """For messages that will be told later."""


def _drawn(count: int, limit: int, seed: int) -> list[int]:
    return sorted(random.Random(derive_seed(seed, "limit")).sample(range(count), limit))


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
    return list(table_problems(_read_table(path, PROBLEM_SCHEMA)))


def table_problems(table: pa.Table | pa.RecordBatch) -> Iterator[Problem]:
    """The problems in the rows of a table of PROBLEM_SCHEMA."""
    return (_restored(row) for row in table.to_pylist())


def read_dropped_table(path: Path) -> list[Dropped]:
    """The rows of a file written from ``dropped_table``; UserError when it is none."""
    names = set(DROPPED_SCHEMA.names) - set(PROBLEM_SCHEMA.names)
    dropped = []
    for row in _read_table(path, DROPPED_SCHEMA).to_pylist():
        why = {name: row.pop(name) for name in names}
        dropped.append(Dropped(_restored(row), **why))
    return dropped


def _record(problem: Problem) -> dict[str, Any]:
    return vars(problem) | {"extra": json_object(problem.extra)}


def _restored(row: dict[str, Any]) -> Problem:
    return Problem(**row | {"extra": json.loads(row["extra"] or "{}")})


def _read_table(path: Path, schema: pa.Schema) -> pa.Table:
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{path}: not readable as Parquet: {str(error).splitlines()[0]}") from error
    missing = [name for name in schema.names if name not in table.column_names]
    if missing:
        raise UserError(f"{path}: not a table of problems, it lacks {', '.join(missing)}; curate makes one")
    return table.select(schema.names).cast(schema)


def _parts(source: str, seed: int) -> Iterator[tuple[str, Callable[[], Iterable[RawRow | BadRow]]]]:
    """The input's files (or the one data set it is), each with the name to record."""
    prefix, colon, rest = source.partition(":")
    if colon and prefix in ("quickstart", "quickstart-test"):
        yield source, partial(_generated, source, "test" if prefix == "quickstart-test" else "train", rest, seed)
    elif colon and prefix in ("logic", "logic-test"):
        yield source, partial(_puzzles, source, seed)
    elif colon and prefix == "hub":
        yield source, partial(_hub, source, rest)
    else:
        for path in _files(source):
            yield path.name, partial(read_file, path)


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
            f"{source}: no such file or directory; an input is a file, a directory, hub:NAME, quickstart:N or "
            "logic:NAME:N"
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


def _puzzles(source: str, seed: int) -> Iterator[RawRow]:
    from ulorl.verify.tasks.puzzles.make import make, parse

    # Neighbouring seeds of reasoning-gym share puzzles; derived ones do not.
    seed = derive_seed(seed, "test") if source.startswith("logic-test:") else seed
    for number, columns in enumerate(make([parse(source)], seed), 1):
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


def _problems(
    name: str, rows: Iterable[RawRow | BadRow], fields: FieldNames, to_the_end: bool
) -> Iterator[Problem | BadRow]:
    fits, misfits, unrated = 0, 0, bool(fields.pass_rate)
    misfit: tuple[RawRow, NoColumnError] | None = None
    columns: list[str] = []
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
                if not fits and misfits >= _ENOUGH_TO_JUDGE and not to_the_end:
                    break
            else:
                fits += 1
            yield bad_row(name, row.line, str(error), row.columns)
            continue
        fits += 1
        if unrated:
            unrated, columns = problem.pass_rate is None, list(row.columns)
        yield problem
    if misfit and not fits:
        _refuse_columns(name, *misfit)
    if unrated and columns:
        where = f"{fields.pass_rate!r} (data.fields.pass_rate)"
        raise UserError(f"{name}: no row has a number from 0 to 1 in {where}; the columns are: {_listed(columns)}")


def _listed(columns: Iterable[str]) -> str:
    return ", ".join(list(map(str, columns))[:30]) or "none"


def _refuse_columns(name: str, row: RawRow, error: NoColumnError) -> None:
    present = _listed(row.columns)
    setting = f"data.fields.{error.field}"
    if error.given:
        raise UserError(f"{name}: no column {error.given!r} ({setting}); the columns are: {present}")
    raise UserError(
        f"{name}: no column looks like the {error.field}; the columns are: {present}; name one in {setting}"
    )


def _useless(source: str, first: BadRow | None, count: int) -> str:
    if first is None:
        return f"{source}: holds no rows; check the input"
    example = f"the first, {first.source}:{first.line}: {first.reason}"
    return f"{source}: none of the {count} rows is usable; {example}"
