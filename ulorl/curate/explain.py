"""One row's story: where it came from, what was changed, which step dropped it and because of which other row.

Invariants: reads only the rows it tells about, whatever the size of the artifact; a row is found by our id, or by the
input's own, which may belong to several.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ulorl.curate.reasons import REASONS
from ulorl.errors import UserError

_LISTED = 20
_QUOTED = 300


def explain(directory: Path, identity: str) -> str:
    """The stories of the rows with this id or ``source_id``. UserError when there is none."""
    kept, lost = (_table(directory / name) for name in ("problems.parquet", "dropped.parquet"))
    steps = [entry["step"] for entry in json.loads((directory / "funnel.json").read_text(encoding="utf-8"))["steps"]]
    is_row = (pc.field("id") == identity) | (pc.field("source_id") == identity)
    rows = [*_rows(kept, is_row), *_rows(lost, is_row)]
    caused = _rows(lost, pc.field("other_id") == identity)
    if not rows and not caused:
        raise UserError(f"{directory}: no row has the id or source_id {identity!r}; ids are in problems.parquet")
    stories = [_story(row, steps, _other(row.get("other_id"), kept, lost)) for row in rows]
    for row in rows:
        caused += _rows(lost, pc.field("other_id") == row["id"]) if row["id"] != identity else []
    if caused:
        listed = [f"  {one['id']} ({one['step']}: {one['reason']}, {one['detail']})" for one in caused[:_LISTED]]
        listed += [f"  and {len(caused) - _LISTED} more"] if len(caused) > _LISTED else []
        stories.append("\n".join([f"{len(caused)} rows were dropped because of it:", *listed]))
    return "\n\n".join(stories)


def _table(path: Path) -> ds.Dataset:
    try:
        return ds.dataset(path, format="parquet")
    except (OSError, pa.ArrowException) as error:
        hint = "--explain needs a directory that curate made"
        raise UserError(f"{path}: not readable: {str(error).splitlines()[0]}; {hint}") from error


def _rows(table: ds.Dataset, which: pc.Expression) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_table(filter=which).to_pylist()
    return rows


def _other(identity: str | None, kept: ds.Dataset, lost: ds.Dataset) -> str:
    """The text of the row that is the cause; empty for none, and for an item of a benchmark."""
    if identity is None:
        return ""
    found = _rows(kept, pc.field("id") == identity) or _rows(lost, pc.field("id") == identity)
    return found[0]["problem"] if found else ""


def _story(row: dict[str, Any], steps: Sequence[str], other: str) -> str:
    lines = [f"{row['id']}  from {row['source']}, there {row['source_id']}", f"problem: {row['problem']}"]
    lines += [f"  was: {row['original_problem']}"] if row["original_problem"] else []
    lines.append(f"answer: {row['answer']}")
    lines += [f"  was: {row['original_answer']}"] if row["original_answer"] else []
    for name in ("kind", "multiplicity", "conflict", "consensus", "template", "pass_rate"):
        lines += [f"{name}: {row[name]}"] if row[name] is not None else []
    step = row.get("step")
    passed = steps if step is None else list(steps)[: steps.index(step)]
    lines.append(f"passed: {', '.join(passed) or 'no step'}")
    if step is None:
        return "\n".join([*lines, "kept"])
    lines.append(f"dropped by {step}: {row['reason']} ({row['detail']})")
    lines.append(f"  {REASONS[step, row['reason']]}")
    if row["other_id"]:
        lines.append(f"  because of: {row['other_id']}" + (f": {other[:_QUOTED]}" if other else ""))
    return "\n".join(lines)
