"""The evaluate stage: a model's samples on every benchmark, and what follows from them.

An evaluation is an artifact: ``samples/BENCHMARK/`` (see ``ulorl.sample_store``), ``scores.parquet`` (one row
a problem) and ``estimates.json``. Interrupted, it resumes where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ulorl import artifact
from ulorl.engine.base import Engine, Sampling
from ulorl.errors import UserError
from ulorl.evaluate.benchmarks import load_benchmark
from ulorl.evaluate.compare import SOLVED, compare_benchmark, differing_settings
from ulorl.evaluate.estimates import estimate
from ulorl.evaluate.scores import SCORES_FILE, read_scores, score_problems
from ulorl.evaluate.statistics import LEVEL
from ulorl.files import write_json, write_table
from ulorl.problem import Problem
from ulorl.recipe import Recipe
from ulorl.sampling import sample_problems
from ulorl.verify import Verifier, equivalence_classes

if TYPE_CHECKING:
    from ulorl.engine.prompts import Prompter

ESTIMATES_FILE = "estimates.json"
Progress = Callable[[str, int, int], None]


def evaluate(
    recipe: Recipe,
    output: Path,
    *,
    engine: Callable[[], Engine],
    prompter: Prompter,
    model_name: str,
    model_fingerprint: str,
    model_dir: Path | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Evaluate a model on the benchmarks of ``recipe.evaluate``; returns the finished directory.

    ``engine`` is called once, unless the evaluation is finished already. ``model_dir`` is where the model
    lies, for the lineage; None for a served one. ``progress`` receives (benchmark, samples done, samples
    asked for). A finished evaluation with the same settings is returned as it is; one that ``force`` replaces
    passes its samples on where they were made alike, so that more samples extend it.
    Raises UserError for a benchmark that cannot be used or a prompt that is too long, before it samples.
    """
    key = {
        "model": model_fingerprint,
        "prompt": recipe.model.model_dump(mode="json", include={"chat", "dtype", "prompt", "system"}),
        "verify": recipe.verify.model_dump(mode="json"),
    }
    sources: list[str | Path] = [benchmark.source for benchmark in recipe.evaluate.benchmarks]
    work = artifact.begin(
        output,
        stage="evaluate",
        config={"key": key, "evaluate": recipe.evaluate.model_dump(mode="json")},
        inputs=sources if model_dir is None else [model_dir, *sources],
        seed=recipe.seed,
        force=force,
    )
    if work.done:
        return work.path
    try:
        sets = _load(recipe, prompter)
        scores, estimates = _sample_and_estimate(
            recipe, work, sets, engine=engine(), prompter=prompter, key=key, progress=progress
        )
        write_table(work.path / SCORES_FILE, scores)
        write_json(
            work.path / ESTIMATES_FILE,
            {
                "model": model_name,
                "model_fingerprint": model_fingerprint,
                "settings": _settings(recipe),
                "level": LEVEL,
                "benchmarks": estimates,
            },
        )
        return work.finish({name: len(problems) * recipe.evaluate.samples for name, problems in sets.items()})
    finally:
        work.release()


def _load(recipe: Recipe, prompter: Prompter) -> dict[str, list[Problem]]:
    """Problems by benchmark, all of whose prompts are short enough."""
    longest = recipe.model.max_prompt_tokens
    sets = {one.name: load_benchmark(one, recipe.seed) for one in recipe.evaluate.benchmarks}
    for name, problems in sets.items():
        for problem in problems:
            tokens = len(prompter.encode(problem.problem))
            if tokens > longest:
                raise UserError(
                    f"benchmark {name}: the prompt of problem {problem.id} has {tokens} tokens, more than "
                    f"model.max_prompt_tokens = {longest}; raise it"
                )
    return sets


def _sample_and_estimate(
    recipe: Recipe,
    work: artifact.Work,
    sets: Mapping[str, Sequence[Problem]],
    *,
    engine: Engine,
    prompter: Prompter,
    key: Mapping[str, Any],
    progress: Progress | None,
) -> tuple[pa.Table, dict[str, Any]]:
    """SCORES_SCHEMA of all benchmarks, and the estimates by benchmark."""
    chosen = recipe.evaluate
    verifier = Verifier(recipe.verify)
    classes = partial(equivalence_classes, config=recipe.verify)
    scores, estimates = [], {}
    for name, problems in sets.items():
        samples = sample_problems(
            problems,
            engine=engine,
            prompter=prompter,
            verifier=verifier,
            samples=chosen.samples,
            sampling=Sampling(chosen.temperature, chosen.top_p, chosen.top_k),
            max_tokens=chosen.max_tokens,
            seed=recipe.seed,
            directory=work.path / "samples" / name,
            key=key,
            earlier=work.final / "samples" / name,
            on_progress=partial(progress, name) if progress else None,
        )
        scores.append(score_problems(name, problems, samples, classes))
        lengths = pc.list_value_length(samples["token_ids"]).to_pylist()
        estimates[name] = estimate(scores[-1], lengths, chosen.pass_k)
    return pa.concat_tables(scores), estimates


def read_estimates(directory: Path) -> dict[str, Any]:
    """``estimates.json`` of a finished evaluation. UserError when the directory is none."""
    try:
        estimates: dict[str, Any] = json.loads((directory / ESTIMATES_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{directory}: not a finished evaluation ({ESTIMATES_FILE}: {error})") from error
    return estimates


def compare(before: Path, after: Path) -> dict[str, Any]:
    """Compare two finished evaluations on the benchmarks they share, paired by problem.

    For each benchmark: ``measures`` (avg, pass@k, maj@k for every k of both, truncated, length), each with
    before, after, difference, interval (for problems like these) and detectable; ``gained`` and ``lost``
    problems. Raises UserError when they share no benchmark, or one holds other problems.
    """
    first, second = read_estimates(before), read_estimates(after)
    first_scores, second_scores = read_scores(before), read_scores(after)
    shared = [name for name in first_scores if name in second_scores]
    if not shared:
        raise UserError(
            f"{before} and {after} share no benchmark: the first has {', '.join(first_scores)}, the second "
            f"{', '.join(second_scores)}"
        )
    return {
        "before": {"path": str(before), "model": first["model"]},
        "after": {"path": str(after), "model": second["model"]},
        "settings_differ": differing_settings(first["settings"], second["settings"]),
        "population": "problems like these",
        "level": LEVEL,
        "solved_above": SOLVED,
        "benchmarks": {
            name: compare_benchmark(name, first_scores[name], second_scores[name], _shared_ks(first, second, name))
            for name in shared
        },
    }


def _shared_ks(first: dict[str, Any], second: dict[str, Any], name: str) -> list[int]:
    of_first, of_second = (one["benchmarks"][name]["pass_at_k"] for one in (first, second))
    return sorted(int(k) for k in of_first if k in of_second)


def _settings(recipe: Recipe) -> dict[str, Any]:
    """The settings of sampling and verifying that estimates are to be read with."""
    chosen = recipe.evaluate.model_dump(mode="json", exclude={"benchmarks", "pass_k"})
    return chosen | {"seed": recipe.seed, "verify": recipe.verify.model_dump(mode="json")}
