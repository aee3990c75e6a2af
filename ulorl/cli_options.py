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


def print_recipe(resolved: Any, as_json: bool, changed: bool = False, processes: int = 1) -> None:
    """The resolved recipe with its documentation, and the sizes that follow from it."""
    from ulorl.model_shape import read_model_shape
    from ulorl.recipe_file import render_recipe
    from ulorl.sizes import derived_sizes, render_sizes, sizes_dict

    shape = read_model_shape(resolved.model.path)
    sizes = derived_sizes(resolved, shape, processes)
    if as_json:
        return print_json({"recipe": resolved.model_dump(mode="json"), "sizes": sizes_dict(sizes)})
    print(render_recipe(resolved, changed))
    print("# Sizes that follow")
    print("\n".join(f"# {line}" for line in render_sizes(sizes).splitlines()))
    if shape is None:
        print(f"# model     no memory sizes: the configuration of {resolved.model.path} is not on this machine")


def console() -> Any:
    """Where tables go: standard output."""
    from rich.console import Console

    return Console()
