"""The evaluate stage: a model's samples on every benchmark, and what follows from them.

An evaluation is an artifact: ``samples/BENCHMARK/`` (see ``ulorl.sample_store``), ``scores.parquet`` (one row
a problem), ``estimates.json`` and ``recipe.toml``. Interrupted, it resumes where it stopped; asked for more samples
or more benchmarks, it keeps those it has.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ulorl import artifact
from ulorl.engine.base import Engine, Sampling
from ulorl.errors import UserError
from ulorl.evaluate.benchmarks import load_benchmark, located
from ulorl.evaluate.estimates import estimate
from ulorl.evaluate.finished import SAMPLES, full_disk_told, settings_of, write_results
from ulorl.evaluate.scores import Classes, score_problems, token_counts
from ulorl.files import write_atomic
from ulorl.problem import Problem
from ulorl.recipe import Recipe, VerifyRecipe
from ulorl.recipe_evaluate import Benchmark
from ulorl.recipe_file import TRAINED_RECIPE, dump_recipe
from ulorl.sampling import sample_problems
from ulorl.verify import equivalence_classes
from ulorl.verify.tasks.scorer import Scorer, named

if TYPE_CHECKING:
    from ulorl.engine.prompts import Prompter

Progress = Callable[[str, int, int], None]
NO_INFLUENCE = ("bench_dir", "population", "significance", "min_effect", "boundary")
"""Settings on which no sample and no estimate depends."""
GROWING = ("benchmarks", "pass_k", "samples")
"""Settings in which an evaluation may grow and keep its samples."""


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
    asked for). A finished evaluation with the same settings is returned as it is; one with fewer samples or
    benchmarks, or one that ``force`` replaces, passes its samples on where they were made alike.
    Raises UserError for a benchmark that cannot be used or a prompt that is too long, before it samples, and for a
    disk that is full.
    """
    key = {
        "model": model_fingerprint,
        "prompt": recipe.model.model_dump(mode="json", include={"chat", "dtype", "prompt", "system"}),
        "verify": recipe.verify.model_dump(mode="json"),
    }
    if not recipe.evaluate.benchmarks:
        raise UserError("evaluate.benchmarks: names nothing; give at least one (--bench, or [evaluate] in the recipe)")
    benchmarks = located(recipe.evaluate)
    chosen = recipe.evaluate.model_copy(update={"benchmarks": benchmarks})
    sources: list[str | Path] = [benchmark.source for benchmark in benchmarks]
    with full_disk_told(output):
        work = artifact.begin(
            output,
            stage="evaluate",
            config={"key": key, "evaluate": chosen.model_dump(mode="json", exclude=set(NO_INFLUENCE))},
            inputs=sources if model_dir is None else [model_dir, *sources],
            seed=recipe.seed,
            force=force,
            extends=extends,
        )
        if work.done:
            return work.path
        try:
            write_atomic(work.path / TRAINED_RECIPE, dump_recipe(recipe))
            with Scorer(recipe.verify) as verifier:
                sets = _loaded(recipe, benchmarks, prompter, verifier, work)
                scores, estimates = _sample_and_estimate(
                    recipe,
                    work,
                    sets,
                    engine=engine(),
                    prompter=prompter,
                    verifier=verifier,
                    key=key,
                    progress=progress,
                )
            write_results(
                work.path,
                model=model_name,
                fingerprint=model_fingerprint,
                settings=settings_of(recipe),
                scores=scores,
                estimates=estimates,
            )
            return work.finish({one.name: len(sets[one]) * recipe.evaluate.samples for one in benchmarks})
        finally:
            work.release()


def extends(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> bool:
    """Whether an evaluation contains another: the same but for more samples, other k, or more benchmarks."""
    if any(earlier.get(name) != later.get(name) for name in ("format", "stage", "seed")):
        return False
    old, new = earlier.get("config", {}), later["config"]
    if old.get("key") != new["key"] or not isinstance(before := old.get("evaluate"), dict):
        return False
    after = new["evaluate"]
    same = all(before.get(name) == after.get(name) for name in before.keys() | after.keys() if name not in GROWING)
    kept = all(benchmark in after["benchmarks"] for benchmark in before["benchmarks"])
    return same and kept and before["samples"] <= after["samples"]


def _loaded(
    recipe: Recipe, benchmarks: Sequence[Benchmark], prompter: Prompter, verifier: Scorer, work: artifact.Work
) -> dict[Benchmark, list[Problem]]:
    """As ``_load``; a benchmark that cannot be used leaves no begun work in the way of the mended command."""
    try:
        return _load(recipe, benchmarks, prompter, verifier)
    except UserError:
        if not work.resumed:
            shutil.rmtree(work.path, ignore_errors=True)
        raise


def _load(
    recipe: Recipe, benchmarks: Sequence[Benchmark], prompter: Prompter, verifier: Scorer
) -> dict[Benchmark, list[Problem]]:
    """Problems by benchmark, as a model is shown them, all of whose prompts are short enough.

    A reference that is unusable in mathematics is counted (``unusable_references``), since published benchmarks have
    some; a row of another task that cannot be judged is refused.
    """
    longest = recipe.model.max_prompt_tokens
    sets = {}
    for one in benchmarks:
        problems = load_benchmark(one, recipe.seed)
        for problem in problems:
            fault = None if problem.task == "math" else verifier.check(problem)
            if fault is not None:
                raise UserError(f"benchmark {one.name}: {named(problem)}, task {problem.task}: {fault}")
        sets[one] = verifier.prompted(problems)
    for benchmark, problems in sets.items():
        wrapped = Wrapped(prompter, benchmark.prompt)
        for problem in problems:
            tokens = len(wrapped.encode(problem.problem))
            if tokens > longest:
                raise UserError(
                    f"benchmark {benchmark.name}: the prompt of problem {problem.id} has {tokens} tokens, more than "
                    f"model.max_prompt_tokens = {longest}; raise it"
                )
    return sets


class Wrapped:
    """A prompter that puts a benchmark's own text around each problem first."""

    def __init__(self, prompter: Prompter, prompt: str) -> None:
        self._prompter, self._prompt = prompter, prompt or "{problem}"

    def encode(self, problem_text: str) -> tuple[int, ...]:
        return self._prompter.encode(self._prompt.replace("{problem}", problem_text))

    def decode(self, token_ids: Sequence[int]) -> str:
        return self._prompter.decode(token_ids)


def _sample_and_estimate(
    recipe: Recipe,
    work: artifact.Work,
    sets: Mapping[Benchmark, Sequence[Problem]],
    *,
    engine: Engine,
    prompter: Prompter,
    verifier: Scorer,
    key: Mapping[str, Any],
    progress: Progress | None,
) -> tuple[pa.Table, dict[str, Any]]:
    """SCORES_SCHEMA of all benchmarks, and the estimates by benchmark."""
    chosen = recipe.evaluate
    scores, estimates = [], {}
    with voting_classes(recipe.verify) as classes:
        for benchmark, problems in sets.items():
            name = benchmark.name
            samples = sample_problems(
                problems,
                engine=engine,
                prompter=Wrapped(prompter, benchmark.prompt),
                verifier=verifier,
                samples=chosen.samples,
                sampling=Sampling(chosen.temperature, chosen.top_p, chosen.top_k),
                max_tokens=chosen.max_tokens,
                seed=recipe.seed,
                directory=work.path / SAMPLES / name,
                key=key,
                earlier=work.final / SAMPLES / name,
                on_progress=partial(progress, name) if progress else None,
            )
            scores.append(score_problems(name, problems, samples, classes))
            estimates[name] = estimate(scores[-1], token_counts(samples), chosen.pass_k)
            estimates[name]["unusable_references"] = unusable_references(problems, verifier)
    return pa.concat_tables(scores), estimates


def unusable_references(problems: Sequence[Problem], verifier: Scorer) -> int:
    """Problems that nothing can be right on, because their task finds them broken (a reference that cannot be read)."""
    return sum(verifier.check(problem) is not None for problem in problems)


@contextmanager
def voting_classes(config: VerifyRecipe) -> Iterator[Classes]:
    """Classes of equivalent answers for majority votes, with the symbolic tier where the verifier has it."""
    if not config.symbolic:
        yield partial(equivalence_classes, config=config)
        return
    from ulorl.verify.symbolic.tier import SymbolicTier

    tier = SymbolicTier(config)
    try:
        yield partial(equivalence_classes, config=config, symbolic=tier)
    finally:
        tier.close()
