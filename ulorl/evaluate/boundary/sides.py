"""What BASE and TRAINED of ``ulorl eval --boundary`` mean: an evaluation that is there, responses to score, a model.

Invariant: models that are sampled for one boundary are sampled alike: with one recipe, that of the evaluation on the
other side where there is one, else that of the training run that one of them is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ulorl import artifact
from ulorl.errors import UserError
from ulorl.evaluate.boundary.stage import STAGE
from ulorl.evaluate.finished import read_estimates
from ulorl.evaluate.target import find_target
from ulorl.fingerprint import manifest_at
from ulorl.recipe import Recipe
from ulorl.recipe_file import TRAINED_RECIPE

Label = Literal["base", "trained"]


@dataclass(frozen=True)
class Side:
    """One of the two models. ``path`` is that of an evaluation or a file of responses."""

    label: Label
    given: str
    kind: Literal["evaluation", "responses", "model"]
    path: Path

    @property
    def sampled(self) -> dict[str, Any] | None:
        """The estimates of an evaluation whose samples were made here; None for everything else."""
        if self.kind != "evaluation":
            return None
        estimates = read_estimates(self.path)
        return estimates if "samples" in estimates["settings"] else None


def find_side(label: Label, given: str) -> Side:
    """UserError for what is none of the three, and for an evaluation that is not finished."""
    path = Path(given).expanduser()
    manifest = manifest_at(path)
    if manifest is not None and manifest["stage"] == "evaluate":
        return Side(label, given, "evaluation", path)
    if manifest is not None and manifest["stage"] in ("curate", STAGE):
        raise UserError(f"boundary: {given} is a stage of kind {manifest['stage']}; give an evaluation or a model")
    if path.is_file():
        return Side(label, given, "responses", path)
    if not path.exists() and (partial := artifact.partial_of(path)).is_dir():
        raise UserError(f"boundary: {given} is not finished ({partial} is there); run its command again first")
    return Side(label, given, "model", path)


def refuse_one_model(base: Side, trained: Side) -> None:
    """UserError, before anything is sampled, where both are to be sampled from one directory."""
    places = {find_target(side.given).model for side in (base, trained) if side.kind == "model"}
    if base.kind == trained.kind == "model" and len(places) == 1:
        raise UserError(f"boundary: BASE and TRAINED are the same model ({places.pop()})")


def recipe_of(base: Side, trained: Side) -> Path | None:
    """The recipe with which a model on either side is sampled, where none is given; None for the defaults."""
    for side in (trained, base):
        if side.sampled is not None:
            return side.path / TRAINED_RECIPE
    for side in (trained, base):
        if side.kind == "model" and (recipe := find_target(side.given).recipe) is not None:
            return recipe
    return None


def settings_for(side: Side, settings: Recipe, samples: int) -> Recipe:
    """``settings`` for this side's model: its path, and as many samples of each problem."""
    from ulorl.evaluate.responses import powers_up_to

    evaluate = settings.evaluate.model_copy(update={"samples": samples, "pass_k": tuple(powers_up_to(samples))})
    model = settings.model.model_copy(update={"path": find_target(side.given).model})
    return settings.model_copy(update={"evaluate": evaluate, "model": model})


def samples_for(base: Side, trained: Side, settings: Recipe, asked: int) -> int:
    """Samples a problem: ``asked``, else those of the evaluation on one side, else the setting. UserError where
    an evaluation has others than asked for."""
    for side in (base, trained):
        estimates = side.sampled
        if estimates is None:
            continue
        there = min(int(one["samples"]) for one in estimates["benchmarks"].values())
        if asked and asked != there:
            raise UserError(
                f"boundary: {side.given} has {there} samples a problem, not {asked}; leave --pass-k out to take as "
                f"many of the other model, or extend it with `ulorl eval ... --pass-k {asked}`"
            )
        return there
    return asked or settings.evaluate.boundary.samples


def benchmark_of(side: Side, other: Side, settings: Recipe) -> str:
    """The name of the set of problems in a file of responses, which has none of its own: that of the only set on the
    other side. UserError where there are several."""
    if other.kind == "responses":
        return "responses"
    if other.kind == "evaluation":
        names = list(read_estimates(other.path)["benchmarks"])
    else:
        names = [one.name for one in settings.evaluate.benchmarks]
    if len(names) > 1:
        raise UserError(
            f"boundary: {side.given} holds responses to one set of problems, {other.given} has {', '.join(names)}; "
            "score them with `ulorl eval --responses` under the set's own name"
        )
    return names[0]


def default_place(trained: Side, of_model: Path | None) -> Path:
    """Where the boundary lies by default: beside the trained model's evaluations. ``of_model`` is where one of them
    would lie, where a model is sampled."""
    if of_model is not None and trained.kind == "model":
        return of_model.with_name(of_model.name.replace("eval", STAGE, 1))
    if trained.kind == "evaluation":
        return trained.path.parent / STAGE
    return Path("runs") / f"{STAGE}-{trained.path.name.split('.')[0]}"
