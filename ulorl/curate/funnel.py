"""The funnel: how many rows came in, which step dropped how many for which reason, how many came out.

Invariant: for every step, rows in = rows out + rows dropped (asserted where the funnel is made). A funnel is
plain JSON. Does not run steps (``stage``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ulorl.curate.reasons import REASONS
from ulorl.errors import UserError
from ulorl.problem import Dropped

if TYPE_CHECKING:
    from rich.table import Table

EXAMPLES = 3
_EXAMPLE_CHARS = 300


def step_entry(
    step: str, rows_in: int, rows_out: int, dropped: Sequence[Dropped], notes: dict[str, int]
) -> dict[str, Any]:
    """The funnel's record of one step, with up to three examples of each reason."""
    assert rows_in == rows_out + len(dropped), f"{step}: {rows_in} rows in, {rows_out} out, {len(dropped)} dropped"
    examples: dict[str, list[dict[str, str | None]]] = {}
    for row in dropped:
        listed = examples.setdefault(row.reason, [])
        if len(listed) < EXAMPLES:
            listed.append(_example(row))
    counts = Counter(row.reason for row in dropped)
    return {
        "step": step,
        "rows_in": rows_in,
        "rows_out": rows_out,
        "dropped": dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
        "notes": notes,
        "examples": examples,
    }


def render_funnel(funnel: dict[str, Any]) -> Table:
    """The funnel as a table for the terminal; under each reason, its first example."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"{funnel['rows_in']:,} rows in, {funnel['rows_out']:,} out", title_justify="left", expand=True)
    table.add_column("step", no_wrap=True)
    table.add_column("dropped because", no_wrap=True)
    table.add_column("rows", justify="right", no_wrap=True)
    table.add_column("left", justify="right", no_wrap=True)
    # The example takes what width is left; a terminal of 80 columns shows the beginning of it.
    table.add_column("for example", ratio=1, no_wrap=True, overflow="ellipsis")
    for entry in funnel["steps"]:
        notes = Text("; ".join(f"{name}: {value}" for name, value in entry["notes"].items()), style="dim")
        table.add_row(entry["step"], "" if entry["dropped"] else "-", "", f"{entry['rows_out']:,}", notes)
        for reason, count in entry["dropped"].items():
            example = entry["examples"][reason][0]
            shown = " ".join(f"{example['detail']}: {example['problem']}".split())
            table.add_row("", reason, f"{count:,}", "", Text(shown))
    return table


def explain(directory: Path, identity: str) -> str:
    """One row's story, found by its id or its ``source_id``. UserError when there is no such row."""
    from ulorl.rows import read_dropped_table, read_problem_table

    kept = read_problem_table(directory / "problems.parquet")
    lost = read_dropped_table(directory / "dropped.parquet")
    stories = [_story(row.problem, row) for row in lost if identity in (row.problem.id, row.problem.source_id)]
    stories += [_story(problem, None) for problem in kept if identity in (problem.id, problem.source_id)]
    because_of = [row for row in lost if row.other_id == identity]
    if not stories:
        raise UserError(f"{directory}: no row has the id or source_id {identity!r}; ids are in problems.parquet")
    if because_of:
        listed = "".join(f"\n  {row.problem.id} ({row.step}: {row.reason}, {row.detail})" for row in because_of[:20])
        stories.append(f"{len(because_of)} rows were dropped because of it:{listed}")
    return "\n\n".join(stories)


def _example(row: Dropped) -> dict[str, str | None]:
    return {
        "id": row.problem.id,
        "source_id": row.problem.source_id,
        "other_id": row.other_id,
        "detail": row.detail,
        "problem": row.problem.problem[:_EXAMPLE_CHARS],
        "answer": row.problem.answer[:_EXAMPLE_CHARS],
    }


def _story(problem: Any, dropped: Dropped | None) -> str:
    lines = [f"{problem.id}  from {problem.source}, there {problem.source_id}", f"problem: {problem.problem}"]
    if problem.original_problem:
        lines.append(f"  was: {problem.original_problem}")
    lines.append(f"answer: {problem.answer}")
    if problem.original_answer:
        lines.append(f"  was: {problem.original_answer}")
    for name in ("kind", "multiplicity", "pass_rate"):
        value = getattr(problem, name)
        if value is not None:
            lines.append(f"{name}: {value}")
    if dropped is None:
        lines.append("kept")
    else:
        lines.append(f"dropped by {dropped.step}: {dropped.reason} ({dropped.detail})")
        lines.append(f"  {REASONS[dropped.step, dropped.reason]}")
        if dropped.other_id:
            lines.append(f"  because of: {dropped.other_id}")
    return "\n".join(lines)
