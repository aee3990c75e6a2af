"""What a finished run prints: the funnel, before and after, where everything lies, what to try next."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from ulorl.curate.funnel import render_examples, render_funnel
from ulorl.report.tables import comparison_table

PLACES = (
    ("curate/problems.parquet", "the cleaned problems"),
    ("curate/dropped.parquet", "every dropped row with its reason"),
    ("train/model", "the trained model, a Hugging Face directory"),
    ("train/metrics.jsonl", "every number of every step"),
    ("train/rollouts", "the samples that left in each step"),
    ("before, after", "the two evaluations, with their samples"),
)


def print_summary(
    summary: Mapping[str, Any], console: Console | None = None, *, given: Sequence[str] = (), masks: bool = True
) -> None:
    """Print the summary of ``ulorl run``. ``given``: the words of the command line that made it what it is, recipe and
    settings; ``masks``: whether tokens were masked."""
    console = console or Console()
    directory = Path(summary["directory"])
    console.print(render_funnel(summary["funnel"]))
    console.print(render_examples(summary["funnel"], most=1), no_wrap=True, overflow="ellipsis", highlight=False)
    console.print(comparison_table(summary["before"], summary["after"], summary["comparison"]))
    console.print(f"Everything lies in [bold]{escape(str(directory))}[/bold]:", highlight=False)
    for path, what in PLACES:
        console.print(f"  {path:<24} {what}", highlight=False)
    place, ulorl, tensorboard = map(shlex.quote, (str(directory), *_programs()))
    again = shlex.join(["run", *given])
    console.print("\nWhat to try next:", highlight=False)
    for what, command in (
        ("the chain back to the raw data", f"{ulorl} lineage {place}/after"),
        ("the training curves", f"{tensorboard} --logdir {place}/train"),
        ("more samples a problem", f"{ulorl} eval {place}/train --pass-k 64 -o {place}/after64"),
        ("another seed", f"{ulorl} {again} --set seed=1 --set name=seed1"),
        *(
            [("no masking", f"{ulorl} {again} --set train.objective.mastered=never --set name=unmasked")]
            if masks
            else []
        ),
        ("every setting", f"{ulorl} show"),
    ):
        console.print(f"  {what:<31} {command}", highlight=False, markup=False, soft_wrap=True)


def _programs() -> tuple[str, str]:
    """This program and its neighbour TensorBoard, as they can be called from here."""
    if shutil.which("ulorl") or Path(sys.argv[0]).name != "ulorl":
        return "ulorl", "tensorboard"
    called = os.path.relpath(sys.argv[0])
    return called, str(Path(called).with_name("tensorboard"))
