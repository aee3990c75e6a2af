"""The data of a run that a report shows, read once.

Invariants: what cannot be read costs only itself: it is left out and named in ``troubles``; nothing is computed here
but the comparison of the two evaluations; at most ``PROBLEMS`` problems' samples are in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from ulorl.errors import UserError
from ulorl.evaluate.boundary.stage import read_boundary, read_boundary_problems
from ulorl.evaluate.compare import compare
from ulorl.evaluate.finished import read_estimates
from ulorl.evaluate.scores import read_scores
from ulorl.recipe_file import TRAINED_RECIPE
from ulorl.report.chosen_samples import (
    PROBLEMS,
    ShownProblem,
    evaluated_problems,
    pick_changed,
    problem_texts,
    trained_problems,
    training_samples,
)
from ulorl.report.curves_evaluation import ProblemChange, changes
from ulorl.report.metrics import FILE as METRICS_FILE
from ulorl.report.metrics import read_metrics
from ulorl.report.run_files import RunFiles, StageFiles, find_run, read_json

Value = TypeVar("Value")


@dataclass(frozen=True)
class Evaluation:
    """A finished evaluation. ``label`` names it in plots: before, after, or the directory's name."""

    label: str
    stage: StageFiles
    estimates: dict[str, Any]
    scores: dict[str, pa.Table]


@dataclass(frozen=True)
class Boundary:
    """What training made solvable: ``found`` is boundary.json, ``problems`` one row a problem."""

    name: str
    found: dict[str, Any]
    problems: pa.Table


@dataclass
class RunData:
    """Everything that the page, the summary and the plots are made of."""

    files: RunFiles
    funnel: dict[str, Any] | None = None
    kinds: dict[str, int] = field(default_factory=dict)
    """Kept problems by kind of answer."""
    metrics: list[dict[str, float]] = field(default_factory=list)
    metrics_written: float | None = None
    """When the last line was written, seconds since the epoch."""
    recipe_path: Path | None = None
    recipe_text: str = ""
    evaluations: list[Evaluation] = field(default_factory=list)
    comparison: dict[str, Any] | None = None
    changed: dict[str, list[ProblemChange]] = field(default_factory=dict)
    """By benchmark; where there is one evaluation, it stands for both sides."""
    evaluated: dict[str, list[ShownProblem]] = field(default_factory=dict)
    trained: list[ShownProblem] = field(default_factory=list)
    boundaries: list[Boundary] = field(default_factory=list)
    sampled: dict[str, int] = field(default_factory=dict)
    """Samples kept so far of unfinished evaluations, by "stage/benchmark"."""
    troubles: list[str] = field(default_factory=list)

    @property
    def pair(self) -> tuple[Evaluation, Evaluation] | None:
        by_label = {evaluation.label: evaluation for evaluation in self.evaluations}
        return (by_label["before"], by_label["after"]) if {"before", "after"} <= by_label.keys() else None

    @property
    def steps_planned(self) -> int | None:
        config = self.files.train.identity.get("config") if self.files.train else None
        steps = config.get("train", {}).get("steps") if isinstance(config, dict) else None
        return steps if isinstance(steps, int) else None


def read_run(directory: Path) -> RunData:
    """The data of the run, or of the stage, in ``directory``. UserError where it holds neither."""
    data = RunData(find_run(directory))
    _read_curation(data)
    _read_training_and_recipe(data)
    _read_evaluations(data)
    _read_boundaries(data)
    _read_samples(data)
    return data


def _attempt(data: RunData, what: str, otherwise: Value, read: Callable[..., Value], *arguments: Any) -> Value:
    """``read(*arguments)``, or ``otherwise`` and a trouble where a file is missing, damaged or of another version."""
    try:
        return read(*arguments)
    except (UserError, OSError, pa.ArrowException, ValueError, KeyError, TypeError, AttributeError) as error:
        detail = str(error) if isinstance(error, UserError | OSError) else f"{type(error).__name__}: {error}"
        data.troubles.append(f"{what}: {detail[:600]}")
        return otherwise


def _read_curation(data: RunData) -> None:
    stage = data.files.curate
    if stage is None:
        return
    funnel = read_json(stage.path / "funnel.json")
    if isinstance(funnel, dict):
        data.funnel = funnel
    elif stage.finished:
        data.troubles.append(f"curation: {stage.path / 'funnel.json'} is missing or damaged")
    problems = stage.path / "problems.parquet"
    if problems.is_file():
        data.kinds = _attempt(data, "curation", {}, _kinds, problems)


def _kinds(problems: Path) -> dict[str, int]:
    counted = pq.read_table(problems, columns=["kind"])["kind"].value_counts().to_pylist()
    by_kind = {str(one["values"] or "unknown"): int(one["counts"]) for one in counted}
    return dict(sorted(by_kind.items(), key=lambda item: (-item[1], item[0])))


def _read_training_and_recipe(data: RunData) -> None:
    stage = data.files.train
    path = stage.path / METRICS_FILE if stage is not None else None
    if path is not None and path.is_file():
        data.metrics = _attempt(data, "training", [], read_metrics, path)
        data.metrics_written = path.stat().st_mtime
    # Of training, which has all settings of a run, else of the last stage that keeps one.
    keeping = [one.path / TRAINED_RECIPE for one in (*data.files.evaluations, *([stage] if stage is not None else []))]
    kept = [path for path in keeping if path.is_file()]
    if kept:
        data.recipe_path = kept[-1]
        data.recipe_text = _attempt(data, "recipe", "", kept[-1].read_text, "utf-8", "replace")


def _read_evaluations(data: RunData) -> None:
    files = data.files
    for stage in files.evaluations:
        if not stage.finished:
            for folder in sorted((stage.path / "samples").glob("*/")):
                kept = sum(_attempt(data, stage.name, 0, _rows, path) for path in folder.glob("*.parquet"))
                data.sampled[f"{stage.name}/{folder.name}"] = kept
            continue
        label = "before" if stage == files.before else "after" if stage == files.after and files.before else stage.name
        found = _attempt(data, f"evaluation {stage.name}", None, _evaluation, label, stage)
        if found is not None:
            data.evaluations.append(found)
    if data.pair is not None:
        before, after = data.pair
        data.comparison = _attempt(data, "comparison", None, compare, before.stage.path, after.stage.path)


def _evaluation(label: str, stage: StageFiles) -> Evaluation | None:
    return Evaluation(label, stage, read_estimates(stage.path), read_scores(stage.path))


def _read_boundaries(data: RunData) -> None:
    for stage in data.files.boundaries:
        if stage.finished:
            found = _attempt(data, f"boundary {stage.name}", None, _boundary, stage)
            if found is not None:
                data.boundaries.append(found)


def _boundary(stage: StageFiles) -> Boundary | None:
    return Boundary(stage.name, read_boundary(stage.path), read_boundary_problems(stage.path))


def _rows(path: Path) -> int:
    return int(pq.read_metadata(path).num_rows)


def _read_samples(data: RunData) -> None:
    pair = data.pair or ((data.evaluations[-1],) * 2 if data.evaluations else None)
    if pair is not None:
        before, after = pair
        shared = [name for name in after.scores if name in before.scores]
        directories = {one.label: one.stage.path for one in (before, after)}
        for name in shared:
            both = (before.scores[name], after.scores[name])
            data.changed[name] = _attempt(data, f"benchmark {name}", [], changes, *both)
            picked = pick_changed(data.changed[name], max(2, PROBLEMS // len(shared)))
            data.evaluated[name] = _attempt(
                data, f"samples of {name}", [], evaluated_problems, name, picked, directories
            )
    if data.files.train is not None:
        folder = data.files.train.path
        ids: list[str] = _attempt(data, "rollouts", [], trained_problems, folder)
        texts = problem_texts(_problems_path(data), ids)
        data.trained = _attempt(data, "rollouts", [], training_samples, folder, texts)


def _problems_path(data: RunData) -> Path:
    """Where the problems that were trained on lie: in this run, else where training found them."""
    if data.files.curate is not None:
        return data.files.curate.path / "problems.parquet"
    assert data.files.train is not None
    inputs = data.files.train.identity.get("inputs") or [{}]
    return Path(str(inputs[0].get("path") or ""))
