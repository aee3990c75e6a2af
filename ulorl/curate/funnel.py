"""The funnel: how many rows came in, which step dropped how many for which reason, how many came out.

Invariants: rows in = rows out + rows dropped, for every step and for the whole (asserted where the funnel is made);
each step begins with what the step before it left. A funnel is plain JSON. Does not run steps (``stage``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ulorl.curate.reasons import REASONS
from ulorl.problem import Dropped

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

EXAMPLES = 3
_EXAMPLE_CHARS = 300
_PAGE_CHARS = 160


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


def merge_entries(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """The entry of one step for two batches of rows, those of ``first`` before those of ``second``."""
    assert first["step"] == second["step"], (first["step"], second["step"])
    counts = Counter(first["dropped"]) + Counter(second["dropped"])
    notes = Counter(first["notes"])
    notes.update(second["notes"])
    reasons = sorted(first["examples"].keys() | second["examples"].keys())
    examples = {why: (first["examples"].get(why, []) + second["examples"].get(why, []))[:EXAMPLES] for why in reasons}
    return {
        "step": first["step"],
        "rows_in": first["rows_in"] + second["rows_in"],
        "rows_out": first["rows_out"] + second["rows_out"],
        "dropped": dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
        "notes": dict(notes),
        "examples": examples,
    }


def check_conservation(funnel: dict[str, Any], kept: int, dropped: int) -> None:
    """Assert that no row was lost: between steps, in a step, and in the files, which hold ``kept`` and ``dropped``."""
    left = funnel["rows_in"]
    for entry in funnel["steps"]:
        lost = sum(entry["dropped"].values())
        assert entry["rows_in"] == left == entry["rows_out"] + lost, f"{entry['step']}: rows were lost: {entry}"
        left = entry["rows_out"]
    assert left == funnel["rows_out"] == kept, f"{left} rows left by the steps, {kept} in the file"
    assert funnel["rows_in"] == kept + dropped, f"{funnel['rows_in']} rows in, {kept} kept and {dropped} dropped"


def render_funnel(funnel: dict[str, Any]) -> Table:
    """The funnel as a table for the terminal."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"{funnel['rows_in']:,} rows in, {funnel['rows_out']:,} out", title_justify="left", expand=True)
    table.add_column("step", no_wrap=True)
    table.add_column("dropped because", no_wrap=True)
    table.add_column("rows", justify="right", no_wrap=True)
    table.add_column("left", justify="right", no_wrap=True)
    table.add_column("notes", ratio=1)
    for entry in funnel["steps"]:
        notes = Text(_notes(entry), style="dim")
        table.add_row(entry["step"], "" if entry["dropped"] else "-", "", f"{entry['rows_out']:,}", notes)
        for reason, count in entry["dropped"].items():
            table.add_row("", reason, f"{count:,}", "", "")
    return table


def render_examples(funnel: dict[str, Any], most: int = EXAMPLES) -> Text:
    """Up to ``most`` dropped rows of each reason, with why and the problem on a line each, for the terminal.

    To be printed without wrapping: a terminal shows what fits, funnel.md more.
    """
    from rich.text import Text

    text = Text()
    for entry in funnel["steps"]:
        for reason in entry["dropped"]:
            text.append(f"{entry['step']}: {reason}\n", style="bold")
            for example in entry["examples"][reason][:most]:
                text.append(f"  {example['id']}  {_line(example['detail'])}\n      {_line(example['problem'])}\n")
    return text


def funnel_page(funnel: dict[str, Any]) -> str:
    """The funnel in Markdown: a table, then each reason with its meaning and its examples."""
    lines = ["# Funnel", "", f"{funnel['rows_in']} rows in, {funnel['rows_out']} out.", ""]
    lines += [f"- {_line(message)}" for message in funnel["messages"]] + ([""] if funnel["messages"] else [])
    lines += [*funnel_table(funnel), ""]
    for entry in funnel["steps"]:
        for reason, count in entry["dropped"].items():
            lines += [f"## {entry['step']}: {reason} ({count})", "", REASONS[entry["step"], reason], ""]
            for example in entry["examples"][reason]:
                other = f", because of `{_code(example['other_id'])}`" if example["other_id"] else ""
                lines += [
                    f"- `{_code(example['id'])}`{other}: {_prose(example['detail'])}",
                    f"  - problem: `{_code(example['problem'])}`",
                    f"  - answer: `{_code(example['answer'])}`",
                ]
            lines.append("")
    return "\n".join(lines)


def funnel_table(funnel: dict[str, Any]) -> list[str]:
    """The lines of a Markdown table of steps, reasons and counts."""
    lines = ["| step | reason | rows | left | notes |", "|---|---|---|---|---|"]
    for entry in funnel["steps"]:
        lines.append(f"| {entry['step']} | | | {entry['rows_out']} | {_notes(entry)} |")
        lines += [f"| | {reason} | {count} | | |" for reason, count in entry["dropped"].items()]
    return lines


def _notes(entry: dict[str, Any]) -> str:
    return "; ".join(f"{name}: {value}" for name, value in entry["notes"].items())


def _example(row: Dropped) -> dict[str, str | None]:
    return {
        "id": row.problem.id,
        "source_id": row.problem.source_id,
        "other_id": row.other_id,
        "detail": row.detail,
        "problem": row.problem.problem[:_EXAMPLE_CHARS],
        "answer": row.problem.answer[:_EXAMPLE_CHARS],
    }


def _line(text: str) -> str:
    return " ".join(text.split())


def _code(text: str) -> str:
    """``text`` on one line, as it can stand between backticks."""
    line = _line(text).replace("`", "'")
    return line if len(line) <= _PAGE_CHARS else line[:_PAGE_CHARS] + " ..."


def _prose(text: str) -> str:
    """``text`` on one line in which Markdown and HTML mean nothing."""
    line = _line(text)[:_EXAMPLE_CHARS]
    return "".join("\\" + letter if letter in "\\`*_[]<>#|$" else letter for letter in line)
