"""Files of any accepted format as a stream of raw rows, one ``RawRow`` or ``BadRow`` for every row there is.

Invariants: a row that cannot be read becomes a ``BadRow`` with its place and never ends the stream; text
formats are streamed, whatever the length of a line; nothing here looks at column names. JSON documents that
are not JSON lines are held in memory whole.
"""

from __future__ import annotations

import csv
import json
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from ulorl.byte_lines import byte_lines, content
from ulorl.errors import UserError
from ulorl.problem import BadRow

FORMATS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}
"""File name extensions, ``.gz`` taken off."""
RAW_CHARS = 200
_LONGEST_CELL = 1 << 30
_LONGEST_RECORD = 1000
"""Lines of a CSV record; a longer one is an unclosed quotation mark."""


@dataclass(frozen=True)
class RawRow:
    """One row as the file has it: column names to values."""

    line: int
    columns: dict[str, Any]


def format_by_name(path: Path) -> str | None:
    """The format that the file's name says, None when it says none."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return FORMATS.get(suffixes[-1]) if suffixes else None


def read_file(path: Path) -> Iterator[RawRow | BadRow]:
    """Rows of a JSON lines, JSON, CSV, TSV or Parquet file, gzipped or not.

    UserError when the file cannot be opened or its format is not recognised.
    """
    kind = format_by_name(path) or _format_by_content(path)
    if kind == "parquet":
        return _parquet(path)
    if kind == "jsonl":
        return _json_lines(path)
    if kind == "json":
        return _json(path)
    return _delimited(path, "\t" if kind == "tsv" else ",")


def bad_row(source: str, line: int, reason: str, raw: object) -> BadRow:
    """A BadRow whose ``raw`` is the printable beginning of whatever was there."""
    if isinstance(raw, bytes):
        text = raw[: 4 * RAW_CHARS].decode("utf-8", "backslashreplace")
    else:
        text = raw if isinstance(raw, str) else _shown(raw)
    text = text[:RAW_CHARS].encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
    return BadRow(source, line, reason, text[:RAW_CHARS])


def _shown(value: object) -> str:
    try:
        if isinstance(value, dict):
            # Long cells are cut before they are joined: the row may be huge.
            return str({key: str(cell)[:RAW_CHARS] for key, cell in list(value.items())[:20]})
        return str(value)
    except RecursionError:
        return "(nested too deeply to be shown)"


def _format_by_content(path: Path) -> str:
    filled = islice((line for line in byte_lines(path) if line[1].strip()), 2)
    (number, first, _), *others = list(filled) or [(0, b"", "")]
    head = first.removeprefix(b"\xef\xbb\xbf").strip()
    if number == 1 and first.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"{"):
        return "jsonl" if others and isinstance(_parsed(head), dict) else "json"
    if head.startswith(b"["):
        return "json"
    for separator, kind in ((b"\t", "tsv"), (b",", "csv")):
        if separator in head:
            return kind
    raise UserError(f"{path}: format not recognised; name it .jsonl, .json, .csv, .tsv or .parquet (or add .gz)")


def _null(_: str) -> None:
    """NaN and infinities, which JSON lacks but pandas writes for missing values, become null."""


def _loads(data: bytes) -> Any:
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    return json.loads(text, parse_constant=_null)


def _parsed(data: bytes) -> Any:
    try:
        return _loads(data)
    except (ValueError, RecursionError):
        return None


def _why(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 (byte {error.start + 1}: 0x{error.object[error.start]:02x})"
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON ({error.msg} at character {error.pos + 1})"
    if isinstance(error, RecursionError):
        return "JSON nested too deeply"
    return f"not readable as JSON ({error})"


def _json_lines(path: Path) -> Iterator[RawRow | BadRow]:
    for number, line, damage in byte_lines(path):
        if damage:
            yield bad_row(path.name, number, damage, line)
            continue
        if not line.strip():
            continue
        try:
            value = _loads(line)
        except (ValueError, RecursionError) as error:
            yield bad_row(path.name, number, _why(error), line)
            continue
        yield _row(path, number, value)


def _row(path: Path, number: int, value: object) -> RawRow | BadRow:
    if isinstance(value, dict):
        return RawRow(number, value)
    return bad_row(path.name, number, f"a JSON {type(value).__name__} where an object (a row) must be", value)


def _json(path: Path) -> Iterator[RawRow | BadRow]:
    whole, damage = content(path)
    try:
        document = _loads(whole)
    except (ValueError, RecursionError) as error:
        first = next((line for line in whole.split(b"\n", 20)[:20] if line.strip()), b"")
        if isinstance(_parsed(first), dict):  # JSON lines under the name .json
            yield from _json_lines(path)
        else:
            yield bad_row(path.name, 1, damage or _why(error), whole[: 4 * RAW_CHARS])
        return
    if isinstance(document, dict) and isinstance(document.get("data"), list | dict):
        document = document["data"]
    if isinstance(document, dict):
        yield from _columns(path, document)
    elif isinstance(document, list):
        for number, value in enumerate(document, 1):
            yield _row(path, number, value)
    else:
        yield bad_row(path.name, 1, "the JSON document is neither an array nor an object", document)


def _columns(path: Path, document: dict[str, Any]) -> Iterator[RawRow | BadRow]:
    """Rows of an object of columns (arrays, or objects by row number as pandas writes them), or the one
    row it is."""
    table = {name: list(column.values()) if isinstance(column, dict) else column for name, column in document.items()}
    if not table or not all(isinstance(column, list) for column in table.values()):
        yield _row(path, 1, document)
        return
    lengths = {name: len(column) for name, column in table.items()}
    if len(set(lengths.values())) > 1:
        yield bad_row(path.name, 1, f"columns of unequal length: {lengths}", document)
        return
    for number, cells in enumerate(zip(*table.values(), strict=True), 1):
        yield RawRow(number, dict(zip(table, cells, strict=True)))


class _UnclosedError(Exception):
    """A record goes on for more lines than any record has: a quotation mark was not closed."""


class _TextLines:
    """Lines of text for ``csv``, which may be given back; bytes that are not UTF-8 become lone surrogates, to be
    found in their row."""

    def __init__(self, path: Path) -> None:
        self.damage = ""
        self.record: list[tuple[int, str]] = []
        """Number and text of the lines of the record that is being read."""
        self._lines = byte_lines(path)
        self._given_back: deque[tuple[int, str]] = deque()

    def __iter__(self) -> _TextLines:
        return self

    def __next__(self) -> str:
        if len(self.record) == _LONGEST_RECORD:
            raise _UnclosedError
        self.record.append(self._given_back.popleft() if self._given_back else self._read())
        return self.record[-1][1]

    def begin(self) -> None:
        """A record begins."""
        self.record.clear()

    def give_back(self) -> None:
        """Read the lines of this record, but for the first, once more."""
        self._given_back.extendleft(reversed(self.record[1:]))

    def _read(self) -> tuple[int, str]:
        number, line, self.damage = next(self._lines)
        text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        return number, text.decode("utf-8", "surrogateescape") + "\n"


def _delimited(path: Path, delimiter: str) -> Iterator[RawRow | BadRow]:
    csv.field_size_limit(_LONGEST_CELL)
    lines = _TextLines(path)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    header: list[str] | None = None
    while True:
        lines.begin()
        try:
            cells = next(reader, None)
        except (csv.Error, _UnclosedError) as error:
            # Most often a quotation mark that nothing closes took in rows that are none of its own.
            start, first = lines.record[0]
            reason = str(error) or f"a quotation mark is not closed within {_LONGEST_RECORD} lines"
            lines.give_back()
            yield bad_row(path.name, start, f"not CSV ({reason})", first)
            continue
        if cells is None:
            return
        if not cells:
            continue
        start = lines.record[0][0]
        if header is None:
            header = [cell.strip() for cell in cells]
            if len(set(header)) < len(header):
                _refuse_header(path, header)
        elif lines.damage:
            yield bad_row(path.name, start, lines.damage, delimiter.join(cells))
        elif len(cells) != len(header):
            reason = f"{len(cells)} cells where the header has {len(header)}"
            yield bad_row(path.name, start, reason, delimiter.join(cells))
        else:
            yield RawRow(start, dict(zip(header, cells, strict=True)))


def _refuse_header(path: Path, header: list[str]) -> NoReturn:
    twice = sorted({name for name in header if header.count(name) > 1})
    raise UserError(f"{path}: the header names {', '.join(map(repr, twice))} twice; rename one of the columns")


def _parquet(path: Path) -> Iterator[RawRow | BadRow]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    with path.open("rb") as stream:
        gzipped = stream.read(2) == b"\x1f\x8b"
    try:
        source: Any = pa.BufferReader(content(path)[0]) if gzipped else path
        for batch in pq.ParquetFile(source).iter_batches(batch_size=1024):
            for columns in _batch_rows(batch):
                number += 1
                yield RawRow(number, columns)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = f"not readable as Parquet from row {number + 1} on ({str(error).splitlines()[0]})"
        yield bad_row(path.name, number + 1, reason, "")


def _batch_rows(batch: Any) -> Iterable[dict[str, Any]]:
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows
