"""Samples on disk: Parquet shards in one directory, and a guard file that says how they were made.

Invariants:
- every shard was made under exactly the settings in ``settings.json``: a directory is never mixed;
- a shard appears whole or not at all and is never changed afterwards;
- rows are found again by problem id, sample index and prompt, so a shard may hold rows nobody asks for now.

Does not: generate, verify, or lock the directory against a second process writing to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ulorl.errors import UserError
from ulorl.files import write_json, write_table
from ulorl.problem import SAMPLE_SCHEMA

STORE_SCHEMA = pa.schema(
    [
        *SAMPLE_SCHEMA,
        pa.field("prompt_hash", pa.string(), nullable=False),
        pa.field("reference", pa.string(), nullable=False),
    ]
)
"""A sample, the hash of the prompt it answers, and the reference it was judged against."""

SETTINGS_FILE = "settings.json"
_SHARD = re.compile(r"shard-(\d+)\.parquet")


class SampleStore:
    """The samples in ``directory``, which is made if absent.

    Raises UserError when the directory holds samples made with other ``settings`` (JSON values), naming each
    difference, or holds shards without a settings file.
    """

    def __init__(self, directory: Path, settings: Mapping[str, Any]) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._next = max((number for number, _ in self._shards()), default=-1) + 1
        self._settings = json.loads(json.dumps(settings))
        self._guard(self._settings)

    def read(self) -> pa.Table:
        """Every kept row (STORE_SCHEMA), oldest shard first."""
        tables = []
        for _, path in self._shards():
            try:
                tables.append(pq.read_table(path, schema=STORE_SCHEMA))
            except (pa.ArrowException, OSError) as error:
                raise UserError(
                    f"{path}: not a readable samples file ({error}); delete it to sample it again"
                ) from error
        return pa.concat_tables(tables) if tables else STORE_SCHEMA.empty_table()

    def append(self, rows: pa.Table) -> None:
        """Keep ``rows`` (STORE_SCHEMA) as one more shard. Raises UserError when the disk refuses."""
        path = self.directory / f"shard-{self._next:06d}.parquet"
        try:
            write_table(path, rows)
        except OSError as error:
            raise UserError(f"cannot write {path}: {error}; the samples written before it are kept") from error
        self._next += 1

    def adopt(self, earlier: Path) -> None:
        """Copy the samples of another directory into this one, if this is empty and that was made alike."""
        path = earlier / SETTINGS_FILE
        if self._next == 0 and path.exists() and _read_settings(path) == self._settings:
            rows = SampleStore(earlier, self._settings).read()
            if rows.num_rows:
                self.append(rows)

    def _shards(self) -> list[tuple[int, Path]]:
        matches = ((_SHARD.fullmatch(path.name), path) for path in self.directory.iterdir())
        return sorted((int(match.group(1)), path) for match, path in matches if match)

    def _guard(self, settings: dict[str, Any]) -> None:
        path = self.directory / SETTINGS_FILE
        if not path.exists():
            if self._next:
                raise UserError(f"{self.directory}: holds samples but no {SETTINGS_FILE} that says how they were made")
            write_json(path, settings)
            return
        kept = _read_settings(path)
        if kept != settings:
            differences = "; ".join(_differences(kept, settings))
            raise UserError(
                f"{self.directory}: holds samples made with other settings: {differences}. "
                "Choose another output directory, or delete this one"
            )


def _read_settings(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path}: not valid JSON ({error})") from error


def _differences(kept: Any, given: Any, name: str = "") -> list[str]:
    if isinstance(kept, dict) and isinstance(given, dict):
        keys = sorted(kept.keys() | given.keys())
        return [
            line
            for key in keys
            if kept.get(key) != given.get(key)
            for line in _differences(kept.get(key), given.get(key), f"{name}.{key}" if name else str(key))
        ]
    return [f"{name} was {json.dumps(kept)}, now {json.dumps(given)}"]
