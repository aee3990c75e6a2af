"""The boundary as an artifact: ``boundary.json`` and ``problems.parquet``, from two finished evaluations.

Invariant: nothing is sampled or judged here; the same evaluations and settings give the same files. Evaluations that
have grown (more samples, more benchmarks) take the place of what was measured of them before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ulorl import artifact
from ulorl.errors import UserError
from ulorl.evaluate.boundary.measured import PROBLEMS_SCHEMA, boundary_of, paired
from ulorl.evaluate.compare import differing_settings
from ulorl.evaluate.finished import full_disk_told, read_estimates
from ulorl.evaluate.scores import read_scores
from ulorl.evaluate.statistics import LEVEL
from ulorl.files import write_json, write_table

STAGE = "boundary"
BOUNDARY_FILE, PROBLEMS_FILE = "boundary.json", "problems.parquet"


def measure_boundary(
    base: Path,
    trained: Path,
    output: Path,
    *,
    most_k: int = 0,
    significance: float = 0.05,
    force: bool = False,
) -> Path:
    """Measure the boundary of two finished evaluations on the benchmarks they share; returns the finished directory.

    ``most_k``: the largest k of tables, 0 for all samples. Raises UserError where they share no benchmark, hold other
    problems or other numbers of samples, or are of one model with one seed.
    """
    estimates = [read_estimates(one) for one in (base, trained)]
    _refuse_same(*estimates)
    scores = [read_scores(one) for one in (base, trained)]
    shared = [name for name in scores[1] if name in scores[0]]
    if not shared:
        raise UserError(
            f"boundary: {base} and {trained} share no benchmark: the first has {', '.join(scores[0])}, the second "
            f"{', '.join(scores[1])}"
        )
    benchmarks, problems = boundary_of(
        {name: paired(name, scores[0][name], scores[1][name]) for name in shared}, most_k, significance
    )
    with full_disk_told(output):
        work = artifact.begin(
            output,
            stage=STAGE,
            config={"most_k": most_k, "significance": significance},
            inputs=[base, trained],
            seed=0,
            force=force,
            extends=_same_evaluations,
        )
        if work.done:
            return work.path
        try:
            write_table(work.path / PROBLEMS_FILE, problems)
            left_out = [name for name in {**scores[0], **scores[1]} if name not in shared]
            write_json(work.path / BOUNDARY_FILE, _head(estimates, (base, trained), significance, left_out, benchmarks))
            return work.finish({name: one["problems"] for name, one in benchmarks.items()})
        finally:
            work.release()


def _head(
    estimates: list[dict[str, Any]],
    paths: tuple[Path, Path],
    significance: float,
    left_out: list[str],
    benchmarks: Mapping[str, Any],
) -> dict[str, Any]:
    sides = [{"path": str(path), "model": one["model"]} for path, one in zip(paths, estimates, strict=True)]
    return {
        "base": sides[0],
        "trained": sides[1],
        "settings_differ": differing_settings(*(one["settings"] for one in estimates)),
        "left_out": left_out,
        "population": "problems like these",
        "level": LEVEL,
        "significance": significance,
        "benchmarks": benchmarks,
    }


def _refuse_same(base: Mapping[str, Any], trained: Mapping[str, Any]) -> None:
    """The same model with the same seed has the same samples: nothing could differ."""
    seeds = [one["settings"].get("seed") for one in (base, trained)]
    if base["model_fingerprint"] == trained["model_fingerprint"] and seeds[0] == seeds[1]:
        raise UserError(
            f"boundary: BASE and TRAINED are the same model with the same seed ({base['model']}), and have the same "
            "samples; to see what chance does, evaluate it with another --set seed=N"
        )


def _same_evaluations(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> bool:
    places = [[one.get("path") for one in of.get("inputs", [])] for of in (earlier, later)]
    return earlier.get("stage") == STAGE and places[0] == places[1]


def read_boundary(directory: Path) -> dict[str, Any]:
    """``boundary.json`` of a finished boundary. UserError when the directory is none."""
    try:
        found: dict[str, Any] = json.loads((directory / BOUNDARY_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{directory}: not a finished boundary ({BOUNDARY_FILE}: {error})") from error
    return found


def read_boundary_problems(directory: Path) -> pa.Table:
    """PROBLEMS_SCHEMA of a finished boundary. UserError when the directory is none."""
    try:
        return pq.read_table(directory / PROBLEMS_FILE, schema=PROBLEMS_SCHEMA)
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{directory}: not a finished boundary ({PROBLEMS_FILE}: {error})") from error
