"""Options and output shared by the commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

RecipePath = Annotated[Path | None, typer.Argument(help="Recipe (TOML); without one, the embedded quickstart.")]
RecipeOption = Annotated[Path | None, typer.Option("--recipe", help="Recipe (TOML); else the defaults.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a setting: section.key=value."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the resolved recipe and its sizes, do nothing.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
Force = Annotated[bool, typer.Option("--force", help="Discard what an earlier run of this stage left.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="Directory of the result.")]


def print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))
