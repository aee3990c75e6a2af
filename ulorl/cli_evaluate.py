"""``ulorl eval`` and ``ulorl compare``: samples or given responses to estimates, two evaluations to a decision
(``--boundary``: ``ulorl.cli_boundary``).

Exit codes: 1 for a real loss against a baseline, 2 for what cannot be evaluated; what was finished by then is kept.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ulorl.cli_options import AsJson, DryRun, Force, Output, Overrides, RecipeOption, console, print_json, print_recipe
from ulorl.errors import UserError
from ulorl.launch import refuse_launcher

LONGEST_OUTPUT = 32_768
"""Longest output without a recipe, where the model has the positions."""
_Junit = Annotated[Path | None, typer.Option("--junit", help="The decision as JUnit XML, for CI.")]
_MinEffect = Annotated[
    float | None, typer.Option(help="Smaller losses in avg never fail (points; else evaluate.min_effect).")
]
_TheseProblems = Annotated[
    bool,
    typer.Option("--these-problems", help="A loss on these very problems counts, beyond sampling noise."),
]


def evaluate(
    model: Annotated[
        str, typer.Argument(help="Model directory, training run or checkpoint, hub name, or quickstart.")
    ] = "",
    bench: Annotated[str, typer.Option(help="Benchmarks, separated by commas: known names, or NAME=SOURCE.")] = "",
    bench_dir: Annotated[str, typer.Option(help="Directory of benchmark files that stands in for the hub.")] = "",
    pass_k: Annotated[
        int, typer.Option(min=0, help="Samples a problem; pass@k for powers of 2 up to it. More later extend the set.")
    ] = 0,
    max_tokens: Annotated[int | None, typer.Option(help="Longest output.")] = None,
    yarn: Annotated[float | None, typer.Option(help="Stretch the model's positions by this factor (YaRN).")] = None,
    server: Annotated[str, typer.Option(metavar="URL", help="MODEL is served there; its tokenizer is MODEL's.")] = "",
    responses: Annotated[
        Path | None, typer.Option(help="Score these instead: rows with problem, gold and response.")
    ] = None,
    rescore: Annotated[bool, typer.Option(help="MODEL is an evaluation: judge its samples anew, sample none.")] = False,
    baseline: Annotated[Path | None, typer.Option(help="An earlier evaluation; exit code 1 for a real loss.")] = None,
    min_effect: _MinEffect = None,
    these_problems: _TheseProblems = False,
    junit: _Junit = None,
    boundary: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--boundary",
            metavar="BASE TRAINED",
            help="What TRAINED solves that BASE does not: models, finished evaluations, or files of responses.",
        ),
    ] = None,
    output: Output = None,
    recipe: RecipeOption = None,
    overrides: Overrides = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Sample a model on benchmarks: avg@n, pass@k, maj@k with intervals. A trained run brings its own recipe."""
    sampling = {
        "--bench": bench,
        "--bench-dir": bench_dir,
        "--max-tokens": max_tokens,
        "--yarn": yarn,
        "--server": server,
    }
    if boundary is not None:
        from ulorl.cli_boundary import Asked, run_boundary

        without = {
            "MODEL": model,
            "--responses": responses,
            "--rescore": rescore,
            "--baseline": baseline,
            "--junit": junit,
            "--min-effect": min_effect,
            "--these-problems": these_problems,
        }
        refuse_used("with --boundary", without)
        settings = [*(overrides or []), *_sampling(bench_dir, max_tokens, yarn, server)]
        return run_boundary(
            *boundary, Asked(settings, sampling, recipe, bench, pass_k, output, dry_run, as_json, force)
        )
    if bool(model) == (responses is not None):
        raise UserError("eval: give a MODEL, or --responses FILE")
    if junit is not None and baseline is None:
        raise UserError("eval: --junit has no effect without --baseline DIR")
    given = [*(overrides or []), *_gate(min_effect, these_problems)]
    if responses is not None and baseline is not None and output is None:
        raise UserError("eval: to compare responses with a baseline, keep them with -o DIR")
    _check_places(baseline, junit)
    if responses is not None or rescore:
        name = sampling.pop("--bench") if responses is not None else ""
        refuse_used("where nothing is sampled", sampling)
        if dry_run:
            from ulorl.recipe_file import load_recipe

            return print_recipe(load_recipe(recipe, given, embedded=False), as_json)
    directory: Path | None
    if responses is not None:
        directory, settings, estimates = _score(responses, recipe, given, pass_k, output, force, str(name))
    elif rescore:
        directory, settings = _rescore(Path(model), recipe, given, pass_k, output)
        estimates = None
    else:
        given += _sampling(bench_dir, max_tokens, yarn, server)
        if pass_k:
            given += _samples(pass_k)
        settings, place = resolved_recipe(model, recipe, given, bench)
        if dry_run:
            return print_recipe(settings, as_json)
        refuse_launcher("eval")
        directory, estimates = _sample(settings, output or place, force), None
    if estimates is None:
        from ulorl.evaluate.finished import read_estimates

        assert directory is not None
        estimates = read_estimates(directory)
    warn_of(estimates)
    comparison = _compared(baseline, directory, settings.evaluate) if baseline is not None and directory else None
    if as_json:
        print_json(
            {"directory": str(directory) if directory else None, **estimates}
            | ({} if comparison is None else {"comparison": comparison})
        )
    else:
        _print(estimates, directory)
    _conclude(baseline, directory, comparison, junit, shown=not as_json)


def compare(
    before: Annotated[Path, typer.Argument(help="An evaluation.")],
    after: Annotated[Path, typer.Argument(help="Another evaluation of the same benchmarks.")],
    min_effect: _MinEffect = None,
    these_problems: _TheseProblems = False,
    significance: Annotated[
        float | None, typer.Option(help="False alarms allowed over all benchmarks (else evaluate.significance).")
    ] = None,
    junit: _Junit = None,
    as_json: AsJson = False,
) -> None:
    """Compare two evaluations, paired by problem. Exit code 1 where the second has really lost."""
    from ulorl.recipe_file import load_recipe

    given = _gate(min_effect, these_problems)
    given += [] if significance is None else [f"evaluate.significance={float(significance)}"]
    _check_places(None, junit)
    comparison = _compared(before, after, load_recipe(None, given, embedded=False).evaluate)
    if as_json:
        print_json(comparison)
    _conclude(before, after, comparison, junit, shown=not as_json)


def refuse_used(where: str, options: Mapping[str, object]) -> None:
    for option, used in options.items():
        if used not in (None, "", False):
            raise UserError(f"eval: {option} has no effect {where}")


def _sampling(bench_dir: str, max_tokens: int | None, yarn: float | None, server: str) -> list[str]:
    given = [f"evaluate.max_tokens={max_tokens}"] if max_tokens is not None else []
    given += [f"evaluate.yarn={float(yarn)}"] if yarn is not None else []
    given += ['engine.kind="server"', f"engine.url={json.dumps(server)}"] if server else []
    return given + ([f"evaluate.bench_dir={json.dumps(bench_dir)}"] if bench_dir else [])


def _gate(min_effect: float | None, these_problems: bool) -> list[str]:
    given = [] if min_effect is None else [f"evaluate.min_effect={min_effect / 100}"]
    return given + (['evaluate.population="these problems"'] if these_problems else [])


def _samples(pass_k: int) -> list[str]:
    from ulorl.evaluate.responses import powers_up_to

    return [f"evaluate.samples={pass_k}", f"evaluate.pass_k={json.dumps(powers_up_to(pass_k))}"]


def resolved_recipe(model: str, recipe: Path | None, given: list[str], bench: str) -> tuple[Any, Path]:
    """The recipe of an evaluation (that of the run, the file named, or the defaults for a model of its own), and where
    its result lies by default."""
    from ulorl.engine.prompts import QUICKSTART, resolve_model
    from ulorl.evaluate.benchmarks import parse_benchmarks
    from ulorl.evaluate.target import check_model, find_target, positions_of
    from ulorl.pipeline import run_directory
    from ulorl.recipe_file import QUICKSTART_RECIPE, load_recipe

    target = find_target(model)
    recipe = recipe or target.recipe or (QUICKSTART_RECIPE if target.model == QUICKSTART else None)
    path = [f"model.path={json.dumps(target.model)}"]
    automatic = list[str]()
    if recipe is None:
        served = any(one.startswith("engine.kind") and "server" in one for one in given)
        directory = resolve_model(target.model, weights=not served)
        config = check_model(directory, weights=not served)
        chat = "true" if _has_chat_template(directory) else "false"
        automatic = ["evaluate.instructions=true", f"model.chat={chat}"]
        draft = load_recipe(None, [*automatic, *given, *path], embedded=False)
        positions = positions_of(config, draft.evaluate.yarn, draft.evaluate.yarn_original)
        if positions is not None:
            room = max(1, min(LONGEST_OUTPUT, positions - draft.model.max_prompt_tokens))
            automatic.append(f"evaluate.max_tokens={room}")
    resolved = load_recipe(recipe, [*automatic, *given, *path], embedded=False)
    if bench:
        chosen = resolved.evaluate.model_copy(update={"benchmarks": parse_benchmarks(bench)})
        resolved = resolved.model_copy(update={"evaluate": chosen})
    of_run = run_directory(resolved)
    if target.recipe is not None:
        step = Path(target.model).parent.name
        return resolved, of_run / (f"eval-{step}" if step.startswith("step_") else "eval")
    return resolved, of_run.parent / f"eval-{'-'.join(re.findall(r'[A-Za-z0-9_.-]+', target.model)[-2:])}"


def _has_chat_template(directory: Path) -> bool:
    if (directory / "chat_template.jinja").is_file():
        return True
    try:
        return bool(json.loads((directory / "tokenizer_config.json").read_text(encoding="utf-8")).get("chat_template"))
    except (OSError, ValueError):
        return False


def _sample(settings: Any, target: Path, force: bool) -> Path:
    from ulorl.evaluate.opening import evaluate_model
    from ulorl.fingerprint import manifest_at
    from ulorl.report.display import open_display

    there = manifest_at(target)
    with open_display(["evaluate"]) as display:
        display.stage("evaluate")
        directory = evaluate_model(
            settings, target, force=force, progress=lambda name, done, total: display.progress(done, total, name)
        )
        if there is not None and there == manifest_at(target):
            display.log(f"{target} is complete, nothing to do")
        return directory


def _score(
    responses: Path,
    recipe: Path | None,
    given: list[str],
    pass_k: int,
    output: Path | None,
    force: bool,
    name: str,
) -> tuple[Path | None, Any, dict[str, Any]]:
    from ulorl.evaluate.responses import score_responses
    from ulorl.recipe_file import load_recipe

    settings = load_recipe(recipe, given, embedded=False)
    return output, settings, score_responses(responses, settings, pass_k, output, force, name)


def _rescore(
    directory: Path, recipe: Path | None, given: list[str], pass_k: int, output: Path | None
) -> tuple[Path, Any]:
    from ulorl.evaluate.rescore import rescore
    from ulorl.recipe_file import TRAINED_RECIPE, load_recipe

    kept = directory / TRAINED_RECIPE
    if recipe is None and not kept.is_file():
        raise UserError(f"{directory}: no evaluation to score again (no {TRAINED_RECIPE} in it)")
    given += _samples(pass_k)[1:] if pass_k else []
    settings = load_recipe(recipe or kept, given, embedded=False)
    return rescore(directory, settings, output or directory), settings


def _check_places(baseline: Path | None, junit: Path | None) -> None:
    """What is needed after the sampling, before it."""
    if baseline is not None:
        from ulorl.evaluate.finished import read_estimates

        read_estimates(baseline)
    if junit is not None and (junit.is_dir() or not junit.absolute().parent.is_dir()):
        what = "is a directory; give a file" if junit.is_dir() else "its directory is not there; make it first"
        raise UserError(f"--junit {junit}: {what}")


def _compared(before: Path, after: Path, settings: Any) -> dict[str, Any]:
    from ulorl.evaluate.compare import compare as compare_evaluations

    return compare_evaluations(before, after, settings)


def warn_of(estimates: Mapping[str, Any], whose: str = "") -> None:
    """What would be misread as wrong reasoning."""
    for bench, one in estimates["benchmarks"].items():
        name = f"{whose}: {bench}" if whose else bench
        if (one["truncated"] or 0) > 0.05:
            print(
                f"ulorl: {name}: {one['truncated']:.0%} of the samples were cut at the longest output, which is not "
                "wrong reasoning; raise --max-tokens (and --yarn)",
                file=sys.stderr,
            )
        if one.get("without_reference"):
            print(f"ulorl: {name}: {one['without_reference']} rows have no reference; left out", file=sys.stderr)
        if one["unusable_references"]:
            print(
                f"ulorl: {name}: the references of {one['unusable_references']} problems cannot be read; no answer to "
                "them is accepted",
                file=sys.stderr,
            )


def _print(estimates: Mapping[str, Any], directory: Path | None) -> None:
    from ulorl.evaluate.finished import describe_settings
    from ulorl.report.tables import evaluation_table

    console().print(evaluation_table(estimates))
    print(describe_settings(estimates["settings"]))
    for name, one in estimates["benchmarks"].items():
        if (labels := one.get("labels")) is not None:
            print(f"{name}: {labels['agreement']:.2%} of {labels['labelled']} labels agree")
    if directory is not None:
        print(directory)


def _conclude(
    before: Path | None, after: Path | None, comparison: dict[str, Any] | None, junit: Path | None, shown: bool
) -> None:
    """Show a comparison, write it for CI, and leave with 1 where a loss is real."""
    if comparison is None or before is None or after is None:
        return
    if shown:
        from ulorl.evaluate.finished import read_estimates
        from ulorl.report.tables import comparison_table

        console().print(comparison_table(read_estimates(before), read_estimates(after), comparison))
    if junit is not None:
        from ulorl.evaluate.finished import full_disk_told
        from ulorl.evaluate.gate import junit as as_junit
        from ulorl.files import write_atomic

        with full_disk_told(junit):
            write_atomic(junit, as_junit(comparison))
    if comparison["decision"]["loss"]:
        raise typer.Exit(1)
