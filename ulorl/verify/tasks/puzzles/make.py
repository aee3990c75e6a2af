"""Puzzles as rows: what ``ulorl tasks make`` writes and the input ``logic:NAME:N`` stands for.

Invariant: the same names, settings, size and seed give the same rows, in any process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ulorl.errors import UserError
from ulorl.verify.tasks.puzzles.library import SettingError, dataset

MODULE = "ulorl.verify.tasks.puzzles.maker"
_ROOT = str(Path(__file__).resolve().parents[4])
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Puzzles:
    """``size`` puzzles of the data set ``name`` with other than its default ``settings``."""

    name: str
    size: int
    settings: Mapping[str, Any] = field(default_factory=dict)


def make(wanted: Sequence[Puzzles], seed: int, tell: Tell | None = None) -> Iterator[dict[str, Any]]:
    """The rows of each, in order. ``tell`` hears of puzzles left out.

    UserError for a data set or setting that there is not, or one that has no puzzle left to give.
    """
    for one in wanted:
        try:
            dataset(one.name, one.settings)
        except SettingError as error:
            raise UserError(f"logic: {error}; `ulorl tasks list logic` names them all") from error
    specs = [{"name": one.name, "size": one.size, "settings": dict(one.settings), "seed": seed} for one in wanted]
    found, names = 0, iter(wanted)
    for row in _made(specs):
        if "error" in row:
            raise UserError(f"logic: {row['error']}")
        if "left_out" not in row:
            found += 1
            yield row
            continue
        asked = next(names)
        why = ", ".join(f"{count} {reason}" for reason, count in row["left_out"].items())
        if not found:
            raise UserError(f"logic: {asked.name} gives no usable puzzle with {dict(asked.settings)} ({why})")
        if tell is not None and found < asked.size:
            tell(f"logic: {asked.name} has only {found} of {asked.size} puzzles ({why})")
        found = 0


def parse(source: str) -> Puzzles:
    """``logic:NAME:N`` or ``logic:NAME:N:SETTINGS`` (a JSON object), also logic-test. UserError says what is wrong."""
    _, name, count, *rest = (*source.split(":", 3), "", "")[:5]
    if not (name and count.isdecimal() and int(count) > 0):
        raise UserError(f"{source}: an input of puzzles is logic:NAME:N, as in logic:chain_sum:500")
    settings = rest[0]
    try:
        given = json.loads(settings) if settings else {}
    except ValueError as error:
        raise UserError(f"{source}: after the number come settings as a JSON object: {error}") from error
    if not isinstance(given, dict):
        raise UserError(f"{source}: after the number come settings as a JSON object")
    return Puzzles(name, int(count), given)


def _made(specs: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """What the maker says, line by line."""
    path = os.pathsep.join([_ROOT, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
        )
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(specs).encode())
            process.stdin.close()
            yield from map(json.loads, process.stdout)
            if process.wait() != 0:
                errors.seek(0)
                last = errors.read().decode("utf-8", "replace").strip().splitlines()[-1:]
                raise UserError(f"logic: puzzles cannot be made: {''.join(last) or process.returncode}")
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
