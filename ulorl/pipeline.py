"""`ulorl run`: curate, evaluate, train, evaluate again, in one process with one engine; done stages are skipped.

The run's directory holds one artifact a stage (``curate``, ``before``, ``train``, ``after``) and ``summary.json``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ulorl import artifact
from ulorl.engine import Engine, open_engine
from ulorl.engine.prompts import Prompter, resolve_model
from ulorl.engine.weights import read_weights
from ulorl.errors import UserError
from ulorl.files import write_json
from ulorl.fingerprint import fingerprint_of, manifest_at
from ulorl.launch import refuse_launcher
from ulorl.recipe import Recipe

if TYPE_CHECKING:
    from ulorl.report.display import Display

STAGES = ("curate", "before", "train", "after")


class ModelHost:
    """Opens the engine when a stage first needs it and keeps it for the later ones.

    Opening vLLM twice in a process is slow and fragile, so a model of the same shape is loaded into the engine
    that is there.
    """

    def __init__(self, recipe: Recipe, start: Path) -> None:
        self.recipe, self.start = recipe, start
        self._engine: Engine | None = None
        self._holds: Path | None = None

    def engine(self, model_dir: Path) -> Engine:
        """The engine with the weights of ``model_dir``."""
        if self._engine is None:
            self._engine = open_engine(self.recipe, model_dir)
        elif self._holds != model_dir:
            self._engine.load_weights(read_weights(model_dir), self._engine.policy_version + 1)
        self._holds = model_dir
        return self._engine

    def training_engine(self, model_dir: Path) -> Engine:
        """The engine, whose weights the trainer is about to replace again and again."""
        engine = self.engine(model_dir)
        self._holds = None
        return engine

    def prompter(self) -> Prompter:
        return Prompter(self.recipe.model, self.start)

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()
            self._engine = None


@contextmanager
def model_host(recipe: Recipe) -> Iterator[ModelHost]:
    """A ModelHost on the recipe's start model, closed at the end."""
    host = ModelHost(recipe, resolve_model(recipe.model.path))
    try:
        yield host
    finally:
        host.close()


def run_directory(recipe: Recipe) -> Path:
    """Where the artifacts of a run lie."""
    return Path(recipe.output or f"runs/{recipe.name}")


def run(recipe: Recipe, display: Display, *, force: bool = False) -> dict[str, Any]:
    """All stages; returns the summary that is also written to ``summary.json``."""
    from ulorl.evaluate.compare import compare

    refuse_launcher("run")
    if recipe.evaluate.yarn:
        raise UserError("evaluate.yarn: for `ulorl eval` only; a run has one engine for all its stages")
    output = run_directory(recipe)
    with model_host(recipe) as host:
        curated = run_curate(recipe, output / "curate", host, display, force=force)
        before = run_evaluate(recipe, output / "before", host, host.start, display, force=force, stage="before")
        trained = run_train(recipe, output / "train", host, curated, display, force=force)
        model = trained / "model"
        anew = force or _is_of_another(output / "after", model)
        after = run_evaluate(recipe, output / "after", host, model, display, force=anew, stage="after")
    summary = {
        "recipe": recipe.model_dump(mode="json"),
        "directory": str(output),
        "funnel": json.loads((curated / "funnel.json").read_text()),
        "before": json.loads((before / "estimates.json").read_text()),
        "after": json.loads((after / "estimates.json").read_text()),
        "comparison": compare(before, after),
    }
    write_json(output / "summary.json", summary)
    return summary


def _is_of_another(evaluation: Path, model_dir: Path) -> bool:
    """Whether an evaluation in this run, finished or not, is of the model before it was trained for longer."""
    fingerprint = fingerprint_of(model_dir)
    made = (manifest_at(evaluation), artifact.unfinished(evaluation))
    return any(one is not None and one["config"].get("key", {}).get("model") != fingerprint for one in made)


def run_curate(recipe: Recipe, output: Path, host: ModelHost, display: Display, *, force: bool = False) -> Path:
    """The curate stage with the start model as its sampler."""
    from ulorl.curate.stage import curate

    refuse_launcher("curate")
    with _stage(display, "curate", output, force):
        return curate(
            recipe,
            output,
            engine_factory=lambda: (host.engine(host.start), host.prompter()),
            force=force,
            progress=_progress(display),
        )


def run_evaluate(
    recipe: Recipe,
    output: Path,
    host: ModelHost,
    model_dir: Path,
    display: Display,
    *,
    force: bool = False,
    stage: str = "evaluate",
) -> Path:
    """The evaluate stage on ``model_dir``."""
    from ulorl.evaluate.stage import evaluate

    refuse_launcher("eval")
    with _stage(display, stage, output, force):
        return evaluate(
            recipe,
            output,
            engine=lambda: host.engine(model_dir),
            prompter=host.prompter(),
            model_name=str(model_dir),
            model_fingerprint=fingerprint_of(model_dir),
            model_dir=model_dir,
            force=force,
            progress=_progress(display),
        )


def run_train(
    recipe: Recipe, output: Path, host: ModelHost, curated: Path, display: Display, *, force: bool = False
) -> Path:
    """The train stage from the start model on the curated problems."""
    from ulorl.train.stage import train

    with _stage(display, "train", output, force):
        return train(
            recipe,
            output,
            problems_path=curated / "problems.parquet",
            model_dir=host.start,
            engine=lambda: host.training_engine(host.start),
            prompter=host.prompter(),
            display=display,
            force=force,
        )


def run_rollouts(
    recipe: Recipe, output: Path, host: ModelHost, curated: Path, display: Display, *, force: bool = False
) -> Path:
    """The rollouts of the train stage with the start model, without updates."""
    from ulorl.train.debug import roll_out

    with _stage(display, "train", output, force):
        return roll_out(
            recipe,
            output,
            problems_path=curated / "problems.parquet",
            model_dir=host.start,
            engine=lambda: host.engine(host.start),
            prompter=host.prompter(),
            display=display,
            force=force,
        )


def run_updates(
    recipe: Recipe, output: Path, host: ModelHost, rollouts: Path, display: Display, *, force: bool = False
) -> Path:
    """The updates of the train stage on samples that a run kept, without an engine."""
    from ulorl.train.debug import train_from_rollouts

    with _stage(display, "train", output, force):
        return train_from_rollouts(
            recipe,
            output,
            rollouts=rollouts,
            model_dir=host.start,
            prompter=host.prompter(),
            display=display,
            force=force,
        )


@contextmanager
def _stage(display: Display, name: str, output: Path, force: bool) -> Iterator[None]:
    """A stage on the display; afterwards says so where its artifact was there and nothing had to be done.

    A stage refuses an artifact of other settings itself, with an exception that passes through here.
    """
    display.stage(name)
    before = None if force else manifest_at(output)
    yield
    if before is not None and manifest_at(output) == before:
        display.log(f"{name}: {output} is complete, nothing to do")


def _progress(display: Display) -> Callable[[str, int, int], None]:
    return lambda what, done, total: display.progress(done, total, what)
