"""``ulorl train``: a whole run, or one half of its steps to look into."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ulorl.cli_options import AsJson, DryRun, Force, Output, Overrides, RecipePath, print_json, print_recipe
from ulorl.errors import UserError

if TYPE_CHECKING:
    from ulorl.recipe import Recipe


def train(
    recipe: RecipePath = None,
    problems: Annotated[Path | None, typer.Option(help="Curated directory; else that of the recipe's run.")] = None,
    output: Output = None,
    nproc: Annotated[int, typer.Option(metavar="N", help="Start N processes on this machine.")] = 0,
    watch: Annotated[bool, typer.Option("--watch", help="Show a few samples of each step.")] = False,
    rollout_only: Annotated[
        bool, typer.Option("--rollout-only", help="Decode, score and keep samples; no update. For debugging.")
    ] = False,
    from_rollouts: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Make the updates on the samples that this run kept; no engine. To debug."),
    ] = None,
    overrides: Overrides = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Segment-rollout reinforcement learning on curated problems; resumes an interrupted run by itself."""
    from ulorl import pipeline
    from ulorl.launch import launch, needs_launch
    from ulorl.process import is_first_process, launched_processes
    from ulorl.recipe_file import load_recipe
    from ulorl.report.display import open_display

    resolved = load_recipe(recipe, overrides or [])
    if dry_run:
        return print_recipe(resolved, as_json, processes=nproc or launched_processes())
    if from_rollouts is not None and (rollout_only or problems is not None):
        other = "--rollout-only" if rollout_only else "--problems"
        raise UserError(f"--from-rollouts: goes without {other}; samples are read, not made")
    curated = None if from_rollouts is not None else _curated(resolved, problems)
    if needs_launch(nproc):
        return launch(nproc)
    first, run = is_first_process(), pipeline.run_directory(resolved)
    with open_display(["train"], silent=not first, watch=watch) as display, pipeline.model_host(resolved) as host:
        if from_rollouts is not None:
            made = output or run / "from-rollouts"
            directory = pipeline.run_updates(resolved, made, host, from_rollouts, display, force=force)
        else:
            assert curated is not None
            made = output or run / ("rollouts" if rollout_only else "train")
            make = pipeline.run_rollouts if rollout_only else pipeline.run_train
            directory = make(resolved, made, host, curated, display, force=force)
    if first:
        _print_result(directory, as_json)


def _curated(resolved: Recipe, problems: Path | None) -> Path:
    """The directory of the problems to train on."""
    from ulorl.pipeline import run_directory

    curated = problems or run_directory(resolved) / "curate"
    if curated.name == "problems.parquet" and curated.is_file():
        raise UserError(f"train: --problems {curated}: give its directory, {curated.parent}")
    if not (curated / "problems.parquet").is_file():
        raise UserError(f"train: {curated} holds no problems.parquet; run `ulorl curate INPUT -o {curated}` first")
    return curated


def _print_result(directory: Path, as_json: bool) -> None:
    made = {"directory": directory, "model": directory / "model", "rollouts": directory / "rollouts"}
    shown = {name: str(path) for name, path in made.items() if path.is_dir()}
    if as_json:
        return print_json(shown)
    for name, value in shown.items():
        print(f"{name}: {value}")
    sys.stdout.flush()
