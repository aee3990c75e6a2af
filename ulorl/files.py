"""Writing files so that they appear whole or not at all.

Invariants: a reader never sees half a file; when a function returns, the data and its name are on disk; the
same table gives the same bytes. A kill may leave ``.NAME.tmp~`` beside the target, which the next write of
the same name replaces and ``remove_temporary`` sweeps up. Two processes must not write the same name at once
(stage directories are locked by ``ulorl.artifact``).
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ulorl.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa

TEMPORARY_SUFFIX = ".tmp~"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def fsync_dir(path: Path) -> None:
    """Makes the names in a directory durable (a rename is only on disk after this)."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def fsync_file(path: Path) -> None:
    """Makes the contents of a file that something else wrote durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives a temporary path to write to; on success it is synced and takes the name ``path``.

    On an exception the temporary file is removed and ``path`` keeps what it had.
    """
    temporary = _temporary(path)
    try:
        yield temporary
        fsync_file(temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    fsync_dir(path.parent)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}{TEMPORARY_SUFFIX}")


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """`replacing`, for a file that a user names: UserError where it cannot be written, mostly before it is waited for.

    What fails with other files meanwhile stays what it is.
    """
    temporary = _temporary(path)
    try:
        with replacing(path):
            temporary.touch()
            yield temporary
    except OSError as error:
        if error.errno in _FULL or error.filename in (str(path), str(temporary)):
            raise UserError(f"{path}: cannot be written ({error.strerror}); name another file") from error
        raise


def link_file(source: str, target: str) -> None:
    """A second name for a file that is never changed in place, or a copy where there can be none."""
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without hard links
        shutil.copy2(source, target)


def write_atomic(path: Path, data: bytes | str) -> None:
    """Writes bytes, or text as UTF-8 with its line ends as they are."""
    with replacing(path) as temporary:
        temporary.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)


def canonical_json(value: Any) -> str:
    """The one compact JSON text of a value: sorted keys, ASCII, no NaN. TypeError for what JSON lacks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def write_json(path: Path, value: Any) -> None:
    """Writes indented JSON with sorted keys; ValueError for NaN and infinities, which JSON lacks."""
    write_atomic(path, json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n")


def write_table(path: Path, table: pa.Table) -> None:
    """Writes a Parquet file, zstd-compressed. Equal tables give equal bytes with the same pyarrow."""
    import pyarrow.parquet as pq

    with replacing(path) as temporary:
        # Chunking depends on how the table was built; the bytes must not.
        pq.write_table(table.combine_chunks(), temporary, compression="zstd", store_schema=True)


def remove_temporary(directory: Path) -> None:
    """Removes what killed writes left anywhere under a directory."""
    for path in directory.rglob(f".*{TEMPORARY_SUFFIX}"):
        path.unlink(missing_ok=True)


def fsync_tree(directory: Path) -> None:
    """Makes every file and directory under a directory durable, the directory itself last."""
    for folder, _, names in os.walk(directory, topdown=False):
        for name in names:
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                fsync_file(path)
        fsync_dir(Path(folder))
