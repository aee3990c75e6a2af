"""The command line: parse, call one stage function, print.

Standard output holds results (with ``--json`` one JSON object and nothing else); progress and messages go to
standard error. Exit codes: 0 done, 1 negative answer, 2 misuse or a stack that cannot work, 130 interrupted.
"""

from __future__ import annotations

import errno
import json
import os
import select
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ulorl.cli_evaluate import compare, evaluate
from ulorl.cli_options import (
    AsJson,
    DryRun,
    Force,
    Output,
    Overrides,
    RecipeOption,
    RecipePath,
    console,
    print_json,
    print_recipe,
)
from ulorl.cli_report import report
from ulorl.cli_tasks import app as tasks_app
from ulorl.cli_train import train
from ulorl.cli_verify import app as verify_app
from ulorl.errors import MENDED_BY_USERS, ReportedError, UserError
from ulorl.process import is_first_process, launched_processes, leave_at_once

if TYPE_CHECKING:
    from ulorl.recipe import Recipe

INTERRUPTED = 130
"""The exit code after an interrupt, the shell's."""

TRACEBACK = "ULORL_TRACEBACK"
"""Set in the environment, errors of the system keep their traceback."""

app = typer.Typer(
    help="From raw mathematics problems to a better reasoning model: curate, verify, train, evaluate.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.add_typer(verify_app, name="verify")
app.add_typer(tasks_app, name="tasks")
app.command()(report)


@app.command()
def run(
    recipe: RecipePath = None,
    overrides: Overrides = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Curate, evaluate, train, evaluate again; skips what is already done and resumes what was interrupted."""
    from ulorl import pipeline
    from ulorl.recipe_file import load_recipe
    from ulorl.report.display import open_display

    resolved = load_recipe(recipe, overrides or [])
    if dry_run:
        return print_recipe(resolved, as_json)
    with open_display(list(pipeline.STAGES)) as display:
        summary = pipeline.run(resolved, display, force=force)
    if as_json:
        return print_json(summary)
    from ulorl.report.summary import print_summary

    given = [*([str(recipe)] if recipe else []), *(word for one in overrides or [] for word in ("--set", one))]
    print_summary(summary, given=given, masks=resolved.train.objective.mastered != "never")


@app.command()
def curate(
    inputs: Annotated[list[str], typer.Argument(help="Files, directories, hub:NAME, quickstart:N.")],
    output: Output = None,
    steps: Annotated[str, typer.Option(help="Steps to run, separated by commas.")] = "",
    explain: Annotated[
        str, typer.Option(metavar="ID", help="Tell the story of a row (our id or the input's own) of a curated DIR.")
    ] = "",
    recipe: RecipeOption = None,
    overrides: Overrides = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Clean problems; every dropped row keeps its reason. Without --recipe: all steps but difficulty, or named ones."""
    if explain:
        return _explain(inputs, explain, as_json)
    from ulorl import pipeline
    from ulorl.report.display import open_display

    resolved = _curate_recipe(recipe, [*(overrides or []), f"data.inputs={json.dumps(inputs)}"], steps)
    if dry_run:
        return print_recipe(resolved, as_json)
    if output is None:
        raise UserError("curate: name the directory of the result with -o DIR")
    with open_display(["curate"]) as display, pipeline.model_host(resolved) as host:
        directory = pipeline.run_curate(resolved, output, host, display, force=force)
    funnel = json.loads((directory / "funnel.json").read_text())
    for message in funnel["messages"]:
        print(f"ulorl: {message}", file=sys.stderr)
    if as_json:
        return print_json({"directory": str(directory), "funnel": funnel})
    from ulorl.curate.funnel import render_examples, render_funnel

    console().print(render_funnel(funnel))
    console().print(render_examples(funnel), no_wrap=True, overflow="ellipsis", highlight=False)
    print(f"{directory}: problems.parquet, dropped.parquet, funnel.json, funnel.md, card.md")


app.command()(train)
app.command("eval")(evaluate)
app.command()(compare)


@app.command()
def lineage(
    directory: Annotated[Path, typer.Argument(help="An artifact of ulorl, or a file in one.")], as_json: AsJson = False
) -> None:
    """The chain of an artifact back to the raw files."""
    from dataclasses import asdict

    from ulorl.lineage import lineage as lineage_of
    from ulorl.lineage import render_lineage

    if as_json:
        return print_json(asdict(lineage_of(directory)))
    print(render_lineage(directory))


@app.command()
def show(
    recipe: RecipePath = None,
    overrides: Overrides = None,
    changed: Annotated[bool, typer.Option(help="Only what differs from the defaults.")] = False,
    as_json: AsJson = False,
) -> None:
    """The resolved recipe with the documentation of every setting, and the sizes that follow from it."""
    from ulorl.recipe_file import load_recipe

    print_recipe(load_recipe(recipe, overrides or []), as_json, changed)


@app.command()
def doctor(recipe: RecipeOption = None, overrides: Overrides = None, as_json: AsJson = False) -> None:
    """What is installed, which engine and trainer will be used and why. Exit code 2 when the stack cannot work."""
    from ulorl.doctor import diagnose, render
    from ulorl.recipe_file import load_recipe

    diagnosis = diagnose(load_recipe(recipe, overrides or []))
    if as_json:
        print_json(diagnosis.as_dict())
    else:
        print(render(diagnosis))
    if not diagnosis.ok:
        raise typer.Exit(2)


def _curate_recipe(recipe: Path | None, settings: list[str], steps: str) -> Recipe:
    """The recipe of curation; without a file, and where no steps are named, its steps are all but difficulty."""
    from ulorl.recipe import CURATE_STEPS
    from ulorl.recipe_file import load_recipe

    def with_steps(names: Sequence[str]) -> Recipe:
        return load_recipe(recipe, [*settings, f"curate.steps={json.dumps(names)}"], embedded=False)

    if steps:
        if any(setting.partition("=")[0].strip() == "curate.steps" for setting in settings):
            raise UserError("--steps: goes without --set curate.steps; name the steps once")
        return with_steps([step.strip() for step in steps.split(",")])
    found = load_recipe(recipe, settings, embedded=False)
    if recipe is not None or "steps" in found.curate.model_fields_set:
        return found
    return with_steps([step for step in CURATE_STEPS if step != "difficulty"])


def _explain(directories: list[str], row: str, as_json: bool) -> None:
    from ulorl.curate.explain import explain

    if len(directories) != 1:
        raise UserError("curate --explain: give the one directory that holds the row")
    story = explain(Path(directories[0]), row)
    return print_json({"id": row, "story": story}) if as_json else print(story)


def guarded(command: Callable[[], Any]) -> NoReturn:
    """Run the command line; a user's mistake is one line and exit code 2, never a traceback."""
    code = 0
    try:
        command()
    except ReportedError:
        code = 2
    except UserError as error:
        print(f"ulorl{_rank()}: {error}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        code = INTERRUPTED
    except OSError as error:
        if _nobody_reads():
            _print_nowhere()
        else:
            code = _of_the_system(error)
    except SystemExit as end:  # Typer ends like this, and turns an interrupt or a closed pipe into it
        if isinstance(end.__context__, BrokenPipeError) and _nobody_reads():
            _print_nowhere()
        elif isinstance(end.code, int):
            code = end.code
        else:
            raise
    if code == INTERRUPTED:
        print("ulorl: interrupted; the same command goes on from what is kept", file=sys.stderr)
    try:
        sys.stdout.flush()
    except OSError as error:
        code = code if _nobody_reads() else _of_the_system(error)
        _print_nowhere()
    if launched_processes() > 1:
        leave_at_once(code)
    sys.exit(code)


def _rank() -> str:
    """Which process speaks, where it is not the first of several."""
    return "" if is_first_process() else f" (rank {os.environ['RANK']})"


def _nobody_reads() -> bool:
    """Whether standard output is a pipe that nobody reads any more, as after `| head`."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def _print_nowhere() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _of_the_system(error: OSError) -> int:
    """A path that cannot be used, or a full disk, is the user's to mend: one line and 2. What else it is, is raised."""
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list):
        error = OSError(errno.EIO, str(error.args[0][0][-1]))  # of a whole tree; the first says enough
    if error.errno not in MENDED_BY_USERS or os.environ.get(TRACEBACK):
        raise error
    where = " -> ".join(str(name) for name in (error.filename, error.filename2) if name)
    what = f"{where}: {error.strerror}" if where else error.strerror
    print(f"ulorl{_rank()}: {what}; what was finished before is kept ({TRACEBACK}=1 shows where)", file=sys.stderr)
    return 2


def main() -> None:
    """Entry point of the console script."""
    guarded(app)
