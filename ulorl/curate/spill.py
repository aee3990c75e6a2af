"""Files that hold the rows of a run while it streams, and the Parquet files it leaves.

Invariants: appending costs memory for one batch; a text is read by its row number with one system call, so that
comparing rows does not bring the file into memory; the bytes of a Parquet file depend on its rows and not on the
batches in which they came.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ulorl.files import replacing

_GROUP_ROWS = 1 << 14
_GROUP_BYTES = 1 << 26
_MEASURED = ("problem", "original_problem", "extra")


class RowFile:
    """Record batches of one schema on disk: append, close, then read them as often as needed, in order."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.rows = 0
        self._path, self._schema = path, schema
        self._sink = pa.OSFile(str(path), "wb")
        self._writer = pa.ipc.new_stream(self._sink, schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))

    def append(self, table: pa.Table) -> None:
        """Add rows after those there are."""
        for batch in table.to_batches():
            self._writer.write_batch(batch)
        self.rows += len(table)

    def close(self) -> None:
        """No more rows may follow."""
        self._writer.close()
        self._sink.close()

    def tables(self) -> Iterator[pa.Table]:
        """The batches as they were appended."""
        with pa.OSFile(str(self._path), "rb") as source:
            for batch in pa.ipc.open_stream(source):
                yield pa.Table.from_batches([batch], schema=self._schema)

    def remove(self) -> None:
        """Give the disk space back."""
        self._path.unlink()


class TextFile:
    """(problem, reference) of every row, found by its number."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w+b")
        self._lengths = list[np.ndarray]()
        self._ends = np.empty(0, dtype=np.int64)

    def append(self, table: pa.Table) -> None:
        """Add rows of PROBLEM_SCHEMA after those there are."""
        columns = table.column("problem").to_pylist(), table.column("answer").to_pylist()
        pieces = [text.encode() for row in zip(*columns, strict=True) for text in row]
        self._lengths.append(np.array([len(piece) for piece in pieces], dtype=np.int32))
        self._file.write(b"".join(pieces))

    def close(self) -> None:
        """No more rows may follow; ``text`` may be called."""
        self._file.flush()
        self._ends = np.cumsum(np.concatenate([np.zeros(1, dtype=np.int32), *self._lengths]), dtype=np.int64)
        self._lengths.clear()

    def text(self, row: int) -> tuple[str, str]:
        """(problem, reference) of row ``row``."""
        start, middle, end = self._ends[2 * row : 2 * row + 3].tolist()
        data = os.pread(self._file.fileno(), end - start, start)
        return data[: middle - start].decode(), data[middle - start :].decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def write_parquet(path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> int:
    """Write ``tables`` one after the other into a Parquet file; the number of rows.

    A row group ends at 16,384 rows, or with the row that makes its texts 64 MiB.
    """
    import pyarrow.parquet as pq

    rows = 0
    with replacing(path) as temporary, pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
        for group in _row_groups(schema, tables):
            # Chunks are how the rows came, and they show in the bytes.
            writer.write_table(group.combine_chunks(), row_group_size=_GROUP_ROWS)
            rows += len(group)
    return rows


def _row_groups(schema: pa.Schema, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    waiting, rows, size = list[pa.Table](), 0, 0
    for table in tables:
        sizes = _text_bytes(table)
        start = 0
        while start < len(table):
            total = size + np.cumsum(sizes[start : start + _GROUP_ROWS - rows])
            full = np.flatnonzero(total >= _GROUP_BYTES)
            taken = int(full[0]) + 1 if len(full) else len(total)
            waiting.append(table.slice(start, taken))
            rows, size, start = rows + taken, int(total[taken - 1]), start + taken
            if len(full) or rows == _GROUP_ROWS:
                yield pa.concat_tables(waiting)
                waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.concat_tables(waiting)


def _text_bytes(table: pa.Table) -> Any:
    columns = [pc.fill_null(pc.binary_length(table.column(name)), 0).to_numpy() for name in _MEASURED]
    return np.sum(columns, axis=0, dtype=np.int64)
