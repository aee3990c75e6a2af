"""What a finished run prints: the funnel, before and after, where everything lies, what to try next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from ulorl.curate.funnel import render_funnel
from ulorl.report.tables import comparison_table

PLACES = (
    ("curate/problems.parquet", "the cleaned problems"),
    ("curate/dropped.parquet", "every dropped row with its reason"),
    ("train/model", "the trained model, a Hugging Face directory"),
    ("train/metrics.jsonl", "every number of every step (and TensorBoard files beside it)"),
    ("train/rollouts", "the samples each step trained on"),
    ("before, after", "the two evaluations, with their samples"),
)


def print_summary(summary: Mapping[str, Any], console: Console | None = None) -> None:
    """Print the summary of ``ulorl run``."""
    console = console or Console()
    directory = Path(summary["directory"])
    console.print(render_funnel(summary["funnel"]))
    console.print(comparison_table(summary["before"], summary["after"], summary["comparison"]))
    console.print(f"Everything lies in [bold]{directory}[/bold]:", highlight=False)
    for path, what in PLACES:
        console.print(f"  {path:<24} {what}", highlight=False)
    place = shlex.quote(str(directory))
    console.print("\nWhat to try next:", highlight=False)
    for command, what in (
        (f"ulorl lineage {place}/after", "the chain back to the raw data"),
        (f"tensorboard --logdir {place}/train", "the training curves"),
        (f"ulorl eval {place}/train --pass-k 64 -o {place}/eval64", "more samples a problem"),
        ("ulorl run --set seed=1 --set name=seed1", "another seed"),
        ("ulorl run --set train.objective.mask_mastered=false --set name=unmasked", "watch entropy collapse"),
        ("ulorl show", "every setting"),
    ):
        console.print(f"  {command:<78} {what}", highlight=False, soft_wrap=True)
