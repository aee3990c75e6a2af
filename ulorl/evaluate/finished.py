"""A finished evaluation on disk: ``estimates.json``, ``scores.parquet``, ``samples/``, and its resolved recipe.

Invariants: an evaluation is read as it was written, or refused with its path; running out of disk while one is
written is a UserError, and what was finished before stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from ulorl.errors import MENDED_BY_USERS, UserError
from ulorl.evaluate.scores import SCORES_FILE
from ulorl.evaluate.statistics import LEVEL
from ulorl.files import write_json, write_table
from ulorl.recipe import Recipe

ESTIMATES_FILE = "estimates.json"
SAMPLES = "samples"


def write_results(
    directory: Path,
    *,
    model: str,
    fingerprint: str,
    settings: Mapping[str, Any],
    scores: pa.Table,
    estimates: Mapping[str, Any],
) -> None:
    """Writes what follows from the samples."""
    write_table(directory / SCORES_FILE, scores)
    content = {"model": model, "model_fingerprint": fingerprint, "settings": settings}
    write_json(directory / ESTIMATES_FILE, {**content, "level": LEVEL, "benchmarks": estimates})


def read_estimates(directory: Path) -> dict[str, Any]:
    """``estimates.json`` of a finished evaluation. UserError when the directory is none."""
    try:
        estimates: dict[str, Any] = json.loads((directory / ESTIMATES_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{directory}: not a finished evaluation ({ESTIMATES_FILE}: {error})") from error
    return estimates


def settings_of(recipe: Recipe) -> dict[str, Any]:
    """The settings of sampling and verifying that estimates are to be read with."""
    left_out = {"benchmarks", "bench_dir", "pass_k", "population", "significance", "min_effect", "boundary"}
    chosen = recipe.evaluate.model_dump(mode="json", exclude=left_out)
    prompt = recipe.model.model_dump(mode="json", include={"chat", "system", "prompt"})
    return chosen | prompt | {"seed": recipe.seed, "verify": recipe.verify.model_dump(mode="json")}


def describe_settings(settings: Mapping[str, Any]) -> str:
    """The settings of ``estimates.json`` in a line, for people."""
    if "samples" not in settings:
        return "Scored responses: how they were sampled is not known."
    parts = [
        f"temperature {settings['temperature']:g}",
        f"top_p {settings['top_p']:g}",
        f"top_k {settings['top_k']}",
        f"{settings['samples']} samples a problem of at most {settings['max_tokens']:,} tokens",
        f"seed {settings['seed']}",
    ]
    parts += [f"YaRN {settings['yarn']:g}"] if settings.get("yarn") else []
    parts += ["chat template" if settings.get("chat") else "no chat template"]
    parts += ["with the benchmarks' instructions"] if settings.get("instructions") else []
    return f"Sampled with {', '.join(parts)}."


@contextmanager
def full_disk_told(output: Path) -> Iterator[None]:
    """Turns errors of the file system into one line that says what is kept."""
    try:
        yield
    except OSError as error:
        if error.errno not in MENDED_BY_USERS:
            raise
        what = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        raise UserError(
            f"{output}: {what}; what was finished before is kept, and the same command goes on from it"
        ) from error
