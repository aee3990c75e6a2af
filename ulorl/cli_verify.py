"""``ulorl verify``: score a file or explain one verdict; ``ulorl verify train`` makes a judge.

A first argument that is no subcommand belongs to the scoring; a file called ``train`` is given as ``./train``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ulorl.cli_options import AsJson, Force, Overrides, RecipeOption, print_json
from ulorl.errors import UserError

_SCORE = "file"


class _ScoreByDefault(TyperGroup):
    """Puts the name of the scoring command in front of arguments that name no command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] == _SCORE or args[0] not in self.commands:
            args = [_SCORE, *args]
        return list(super().parse_args(ctx, args))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return "" if name == _SCORE else name, command, rest


app = typer.Typer(cls=_ScoreByDefault, help="Score responses against references, or train a judge.")


@app.command(_SCORE, epilog="`ulorl verify train --help`: fine-tune a language model that judges what rules cannot.")
def score(
    file: Annotated[
        Path | None, typer.Argument(help="References and responses: JSON lines, CSV or Parquet, also gzipped.")
    ] = None,
    reference: Annotated[str | None, typer.Option("--ref", help="One reference, with --answer.")] = None,
    answer: Annotated[str | None, typer.Option("--answer", help="One answer or response, with --ref.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Verdicts, a row each: .jsonl, .jsonl.gz or .parquet.")
    ] = None,
    recipe: RecipeOption = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
    disagreements: Annotated[bool, typer.Option(help="List the rows that differ from their label.")] = False,
) -> None:
    """Score responses against references, or explain one verdict step by step."""
    from ulorl.recipe_file import load_recipe

    config = load_recipe(recipe, overrides or [], embedded=False).verify
    if (file is None) == (reference is None) or (reference is None) != (answer is None):
        raise UserError("verify: give a FILE, or --ref and --answer")
    if reference is not None and answer is not None:
        for option, used in {"-o": output is not None, "--disagreements": disagreements}.items():
            if used:
                raise UserError(f"verify: {option} has no effect with --ref and --answer")
        from ulorl.verify.scoring.explanation import explain

        steps = explain(reference, answer, config)
        return print_json({"steps": steps}) if as_json else print("\n".join(steps))
    assert file is not None
    from ulorl.verify.scoring.files import verify_file

    summary = verify_file(file, config, output=output, keep=lambda row: disagreements and row.disagrees)
    rows = summary.pop("rows")
    if as_json:
        return print_json({**summary, **({"disagreements": rows} if disagreements else {})})
    _print_summary(summary)
    for row in rows:
        print(json.dumps(row, ensure_ascii=False))


@app.command("train")
def train_judge(
    model: Annotated[str, typer.Argument(help="Any Hugging Face causal language model: directory or hub name.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory of the judge.")],
    inputs: Annotated[
        list[str] | None, typer.Option("--input", help="Problems whose references are rewritten into pairs (repeat).")
    ] = None,
    evaluate: Annotated[
        list[str] | None, typer.Option("--evaluate", help="Labelled file to measure it on, never to train on (repeat).")
    ] = None,
    pairs: Annotated[int | None, typer.Option(help="Pairs to train on.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over them.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Pairs an update.")] = None,
    lr: Annotated[float | None, typer.Option(help="Peak learning rate.")] = None,
    train_layers: Annotated[int | None, typer.Option(help="Only this many of the last layers; 0 for all.")] = None,
    bfloat16: Annotated[bool | None, typer.Option("--bfloat16", help="Compute in bfloat16.")] = None,
    threads: Annotated[int | None, typer.Option(help="CPU threads.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of pairs, order and initialisation.")] = None,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Fine-tune a model into a judge of equivalence, for `verify.judge.model`; measured before and after."""
    from pydantic import ValidationError

    from ulorl.recipe_errors import Origin
    from ulorl.recipe_errors import explain as explain_error
    from ulorl.verify.judge.report import render
    from ulorl.verify.judge.settings import JudgeTraining
    from ulorl.verify.judge.training import read_evaluation
    from ulorl.verify.judge.training import train_judge as train

    given = {
        "model": model,
        "inputs": tuple(inputs or ()),
        "evaluate": tuple(evaluate or ()),
        "pairs": pairs,
        "epochs": epochs,
        "batch_size": batch_size,
        "lr": lr,
        "train_layers": train_layers,
        "bfloat16": bfloat16,
        "threads": threads,
        "seed": seed,
    }
    try:
        settings = JudgeTraining.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        raise UserError(explain_error(error, Origin("verify train", {}), list(JudgeTraining.model_fields))) from error
    directory = train(settings, output, force=force, say=lambda line: print(line, file=sys.stderr))
    evaluation = read_evaluation(directory)
    if as_json:
        return print_json({"directory": str(directory), "evaluation": evaluation})
    if evaluation:
        print("\n".join(render(evaluation)))
    print(directory)


def _print_summary(summary: dict[str, Any]) -> None:
    def share(name: str) -> str:
        return "-" if summary[name] is None else f"{100 * summary[name]:.2f} %"

    print(f"rows             {summary['n']}, of which {summary['labelled']} labelled")
    print(f"accepted         {share('accepted')}")
    if summary["reward"] != summary["accepted"]:
        print(f"reward           {summary['reward']:.4f} on average")
    print(f"accuracy         {share('accuracy')} (undecided counts as not accepted)")
    print(f"false positives  {share('false_positive_rate')} of the unequal")
    print(f"false negatives  {share('false_negative_rate')} of the equal")
    print(f"throughput       {summary['pairs_per_second']:.0f} a second")
    print("by rule          " + ", ".join(f"{rule} {count}" for rule, count in summary["by_rule"].items()))
    print(f"undecided        {summary['undecided']}")
    for reason, count in summary["undecided_reasons"].items():
        print(f"  {count:6} {reason}")
    if (judge := summary.get("judge")) is not None:
        print(f"judge            accepted {judge['accepted']} and rejected {judge['rejected']} of {judge['undecided']}")
        print(f"  overturned     {judge['overturned']} of {judge['reviewed']} rejections of the rules")
        print(f"  not asked      {judge['gated']}, no answer to {judge['failed']}")
