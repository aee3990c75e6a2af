"""``ulorl eval --boundary BASE TRAINED``: what the trained model solves that its base does not.

Exit codes: 0 whatever was found, 2 for what cannot be compared; evaluations that were finished by then are kept.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ulorl.cli_options import console, print_json, print_recipe
from ulorl.errors import UserError
from ulorl.launch import refuse_launcher

if TYPE_CHECKING:
    from ulorl.evaluate.boundary.sides import Side
    from ulorl.report.display import Display

_NOT_HERE = (
    "evaluate.samples",
    "evaluate.pass_k",
    "evaluate.population",
    "evaluate.significance",
    "evaluate.min_effect",
)


@dataclass(frozen=True)
class Asked:
    """The options. ``sampling``: those that have an effect only where a model is sampled, by name."""

    given: list[str]
    sampling: Mapping[str, object]
    recipe: Path | None
    bench: str
    pass_k: int
    output: Path | None
    dry_run: bool
    as_json: bool
    force: bool


def run_boundary(base_given: str, trained_given: str, asked: Asked) -> None:
    """Find or make both evaluations, measure, show."""
    from ulorl.evaluate.boundary.sides import default_place, find_side
    from ulorl.evaluate.boundary.stage import measure_boundary, read_boundary
    from ulorl.evaluate.finished import read_estimates

    for setting in asked.given:
        if (key := setting.partition("=")[0].strip()) in _NOT_HERE:
            raise UserError(f"eval: {key} has no effect with --boundary; --pass-k and evaluate.boundary are for it")
    base, trained = find_side("base", base_given), find_side("trained", trained_given)
    settings, of_model = _settings(base, trained, asked)
    if asked.dry_run:
        return print_recipe(settings, asked.as_json)
    refuse_launcher("eval")
    place = asked.output or default_place(trained, of_model)
    paths = _evaluations(base, trained, settings, place, asked)
    directory = measure_boundary(
        *paths,
        place,
        most_k=asked.pass_k,
        significance=settings.evaluate.boundary.significance,
        force=asked.force,
    )
    found = read_boundary(directory)
    _warn(found, {one.label: read_estimates(path) for one, path in zip((base, trained), paths, strict=True)})
    if asked.as_json:
        return print_json({"directory": str(directory), **found})
    from ulorl.report.tables_boundary import boundary_tables

    for table in boundary_tables(found):
        console().print(table)
    print(directory)


def _settings(base: Side, trained: Side, asked: Asked) -> tuple[Any, Path | None]:
    """The recipe that models are sampled and responses are scored with, and where an evaluation of the trained model
    would lie."""
    from ulorl.cli_evaluate import refuse_used, resolved_recipe
    from ulorl.engine import engine_kind
    from ulorl.evaluate.boundary.sides import recipe_of, refuse_one_model, samples_for, settings_for
    from ulorl.recipe_file import load_recipe

    sampled = [side for side in (trained, base) if side.kind == "model"]
    if not sampled:
        refuse_used("where nothing is sampled", asked.sampling)
        return load_recipe(asked.recipe, asked.given, embedded=False), None
    refuse_one_model(base, trained)
    recipe = asked.recipe or recipe_of(base, trained)
    settings, place = resolved_recipe(sampled[0].given, recipe, asked.given, asked.bench)
    if engine_kind(settings) == "server":
        raise UserError(
            "eval: a server has one model, a boundary needs two; evaluate each with --server and -o DIR, and give the "
            "two directories"
        )
    samples = samples_for(base, trained, settings, asked.pass_k)
    return settings_for(sampled[0], settings, samples), place


def _evaluations(base: Side, trained: Side, settings: Any, place: Path, asked: Asked) -> tuple[Path, Path]:
    """The two finished evaluations; what is not there yet is sampled or scored beside ``place``."""
    from ulorl.evaluate.boundary.sides import benchmark_of, settings_for
    from ulorl.evaluate.opening import OneEngine, evaluate_model
    from ulorl.evaluate.responses import score_responses
    from ulorl.fingerprint import manifest_at
    from ulorl.report.display import open_display

    found = list[Path]()
    making: list[str] = [side.label for side in (base, trained) if side.kind == "model"]
    with open_display(making) if making else nullcontext() as display, OneEngine() as engines:
        for side in (base, trained):
            target = place.with_name(f"{place.name}-{side.label}")
            if side.kind == "evaluation":
                found.append(side.path)
                continue
            found.append(target)
            if side.kind == "responses":
                name = benchmark_of(side, trained if side is base else base, settings)
                score_responses(side.path, settings, 0, target, asked.force, name)
                continue
            there = manifest_at(target)
            assert display is not None
            display.stage(side.label)
            evaluate_model(
                settings_for(side, settings, settings.evaluate.samples),
                target,
                force=asked.force,
                progress=partial(_progress, display),
                engines=engines,
            )
            if there is not None and there == manifest_at(target):
                display.log(f"{target} is complete, nothing to do")
    return found[0], found[1]


def _progress(display: Display, name: str, done: int, total: int) -> None:
    display.progress(done, total, name)


def _warn(found: Mapping[str, Any], estimates: Mapping[str, Mapping[str, Any]]) -> None:
    from ulorl.cli_evaluate import warn_of

    for label, one in estimates.items():
        warn_of(one, label)
    if found["settings_differ"]:
        print(f"ulorl: the settings differ: {'; '.join(found['settings_differ'])}", file=sys.stderr)
    if found["left_out"]:
        print(f"ulorl: only one of the two holds {', '.join(found['left_out'])}; left out", file=sys.stderr)
