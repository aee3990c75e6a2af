"""The data card: what a curated set is made of, in Markdown, for the people who will use it.

Invariant: follows from the recipe, the rows and the funnel alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ulorl.curate.reasons import REASONS
from ulorl.problem import Problem
from ulorl.recipe import Recipe

_LICENCE_COLUMNS = ("licence", "license")


def data_card(recipe: Recipe, raw: Sequence[Problem], kept: Sequence[Problem], funnel: dict[str, Any]) -> str:
    """Markdown: sources with their licences and counts, the funnel, kinds, and the settings."""
    sources = Counter(problem.source for problem in raw)
    out = Counter(problem.source for problem in kept)
    lines = [
        f"# {recipe.name}: curated problems",
        "",
        f"{funnel['rows_in']} rows in, {funnel['rows_out']} out.",
        "",
    ]
    lines += [
        "## Sources",
        "",
        "| source | rows in | rows out | licence as stated in the rows |",
        "|---|---|---|---|",
    ]
    for source, count in sorted(sources.items()):
        lines.append(f"| {source} | {count} | {out[source]} | {_licences(source, raw)} |")
    lines += ["", "## What was dropped", "", "| step | reason | rows | meaning |", "|---|---|---|---|"]
    for entry in funnel["steps"]:
        for reason, count in entry["dropped"].items():
            lines.append(f"| {entry['step']} | {reason} | {count} | {REASONS[entry['step'], reason]} |")
    kinds = Counter(problem.kind or "unknown" for problem in kept)
    lines += ["", "## Kinds of the problems kept", "", "| kind | rows |", "|---|---|"]
    lines += [f"| {kind} | {count} |" for kind, count in sorted(kinds.items())]
    notes = [
        f"- {entry['step']}: {name}: {count}" for entry in funnel["steps"] for name, count in entry["notes"].items()
    ]
    lines += ["", "## Notes of the steps", "", *notes]
    lines += ["", "## Settings", "", "```toml", *_settings(recipe), "```", ""]
    return "\n".join(lines)


def _licences(source: str, raw: Sequence[Problem]) -> str:
    stated = Counter(
        str(problem.extra[column])
        for problem in raw
        if problem.source == source
        for column in _LICENCE_COLUMNS
        if problem.extra.get(column)
    )
    return "; ".join(name.replace("|", "/") for name, _ in stated.most_common(5)) or "not stated"


def _settings(recipe: Recipe) -> list[str]:
    import tomli_w

    settings = {
        "seed": recipe.seed,
        "data": recipe.data.model_dump(mode="json"),
        "curate": recipe.curate.model_dump(mode="json"),
    }
    return tomli_w.dumps(settings).rstrip().split("\n")
