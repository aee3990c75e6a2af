"""The data card: what a curated set is made of, in Markdown, for the people who will use it.

Invariants: follows from the recipe, the rows, the funnel, and what the data sets of the inputs state beside their
files; what nobody states is called unknown.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from ulorl.curate.funnel import funnel_table
from ulorl.curate.licences import stated_licence
from ulorl.curate.reasons import REASONS
from ulorl.problem import PROBLEM_SCHEMA, BadRow, Problem
from ulorl.recipe import Recipe

_LICENCE_COLUMNS = ("licence", "license")
_ORIGIN_COLUMNS = ("source", "data_source", "source_repo", "dataset", "origin")
_MOST_VALUES = 1000
_OTHERS = "(others)"
_SHOWN = 8


class Census:
    """Counts of the rows that go in and come out, made while they pass; bounded in memory."""

    def __init__(self) -> None:
        self.sources_in: Counter[str] = Counter()
        self.sources_out: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.licences: dict[str, Counter[str]] = {}
        self.origins: dict[str, Counter[str]] = {}

    def count_in(self, row: Problem | BadRow) -> None:
        """Count a row of the input."""
        self.sources_in[row.source] += 1
        if isinstance(row, BadRow):
            return
        for columns, counts in ((_LICENCE_COLUMNS, self.licences), (_ORIGIN_COLUMNS, self.origins)):
            stated = next((value for name in columns if isinstance(value := row.extra.get(name), str) and value), None)
            if stated is not None:
                counter = counts.setdefault(row.source, Counter())
                counter[stated if stated in counter or len(counter) < _MOST_VALUES else _OTHERS] += 1

    def count_out(self, table: pa.Table) -> None:
        """Count rows that were kept."""
        self.sources_out.update(table.column("source").to_pylist())
        self.kinds.update(kind or "unknown" for kind in table.column("kind").to_pylist())


def data_card(recipe: Recipe, census: Census, funnel: dict[str, Any]) -> str:
    """Markdown: sources with their licences and counts, how to load, the funnel, kinds, and the settings."""
    lines = ["# Curated problems", "", f"{funnel['rows_in']} rows in, {funnel['rows_out']} out.", ""]
    lines += [f"- {_cell(message)}" for message in funnel["messages"]] + ([""] if funnel["messages"] else [])
    lines += ["## Sources", "", "| source | rows in | rows out | licence in the rows | from |", "|---|---|---|---|---|"]
    for source, count in sorted(census.sources_in.items()):
        licences = _listed(census.licences.get(source, Counter()), count) or "unknown"
        origins = _listed(census.origins.get(source, Counter()), count) or "unknown"
        lines.append(f"| {_cell(source)} | {count} | {census.sources_out[source]} | {licences} | {origins} |")
    lines += ["", "| input | licence that its data set states |", "|---|---|"]
    lines += [f"| {_cell(source)} | {_cell(stated_licence(source) or 'unknown')} |" for source in recipe.data.inputs]
    lines += ["", "## How to load", "", *_LOADING, "", "| column | type |", "|---|---|"]
    lines += [f"| {field.name} | {field.type}{'' if field.nullable else ', never null'} |" for field in PROBLEM_SCHEMA]
    lines += ["", "## Funnel", "", *funnel_table(funnel), "", "| reason | meaning |", "|---|---|"]
    for entry in funnel["steps"]:
        lines += [f"| {entry['step']}: {reason} | {REASONS[entry['step'], reason]} |" for reason in entry["dropped"]]
    lines += ["", "## Kinds of the problems kept", "", "| kind | rows |", "|---|---|"]
    lines += [f"| {kind} | {count} |" for kind, count in sorted(census.kinds.items())]
    lines += ["", "## Settings", "", "```toml", *_settings(recipe), "```", ""]
    return "\n".join(lines)


_LOADING = """```python
from datasets import load_dataset

problems = load_dataset("parquet", data_files="problems.parquet", split="train")
dropped = load_dataset("parquet", data_files="dropped.parquet", split="train")  # with step, reason, detail, other_id

import polars

problems = polars.read_parquet("problems.parquet")
```""".splitlines()


def _listed(stated: Counter[str], rows: int) -> str:
    """The most frequent values with their counts, and the rows that state none."""
    shown = [f"{_cell(name)} ({count})" for name, count in sorted(stated.items(), key=lambda one: (-one[1], one[0]))]
    more = [f"and {len(shown) - _SHOWN} more"] if len(shown) > _SHOWN else []
    silent = rows - stated.total()
    return "; ".join([*shown[:_SHOWN], *more, *([f"not stated ({silent})"] if silent and shown else [])])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "/")[:200]


def _settings(recipe: Recipe) -> list[str]:
    import tomli_w

    settings = {
        "seed": recipe.seed,
        "data": recipe.data.model_dump(mode="json"),
        "curate": recipe.curate.model_dump(mode="json", exclude={"workers"}),
    }
    return tomli_w.dumps(settings).rstrip().split("\n")
