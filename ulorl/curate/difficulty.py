"""Eighth step: how often does the start model solve it?

A problem whose ``pass_rate`` is known from the input is not sampled. Invariants: an undecided verdict is not
a failure - it counts in neither the numerator nor the denominator and is reported; a problem with only
undecided verdicts is kept without a pass rate. Sampling and its resumption are ``ulorl.sampling``'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ulorl.curate.reasons import drop
from ulorl.curate.result import StepResult
from ulorl.errors import UserError
from ulorl.problem import Dropped, Problem
from ulorl.recipe import DifficultyRecipe

if TYPE_CHECKING:
    from ulorl.engine.base import Engine
    from ulorl.engine.prompts import Prompter
    from ulorl.verify import Verifier


@dataclass(frozen=True)
class Sampler:
    """What it takes to measure pass rates: a model behind an engine, and a verifier."""

    engine: Engine
    prompter: Prompter
    verifier: Verifier
    seed: int
    directory: Path
    key: dict[str, object]
    on_progress: Callable[[int, int], None] | None = None


def difficulty(problems: list[Problem], recipe: DifficultyRecipe, sampler: Sampler | None) -> StepResult:
    """Write ``pass_rate`` and drop what lies outside the window.

    ``sampler`` may be None when all rates are known. UserError when it is None and some are not.
    """
    unknown = [problem for problem in problems if problem.pass_rate is None]
    rates: dict[str, float | None] = {}
    notes = {
        "problems sampled": len(unknown),
        "pass rates taken from the input": len(problems) - len(unknown),
    }
    if unknown:
        if sampler is None:
            raise UserError(
                f"the difficulty step needs a model: {len(unknown)} of {len(problems)} problems "
                f"have no pass_rate; set "
                "model.path, give the input a pass_rate column, or leave difficulty out of curate.steps"
            )
        samples = _sample(unknown, recipe, sampler)
        rates = pass_rates(samples)
        unanswered = pc.sum(pc.equal(samples.column("reason"), "no_answer")).as_py() or 0
        notes["samples without an answer"] = unanswered
        notes["undecided verdicts"] = samples.column("equivalent").null_count - unanswered
    kept: list[Problem] = []
    dropped: list[Dropped] = []
    for problem in problems:
        rate = problem.pass_rate if problem.pass_rate is not None else rates.get(problem.id)
        rated = replace(problem, pass_rate=rate)
        detail = "" if rate is None else f"pass rate {rate:.3f}"
        if rate is not None and rate > recipe.max_pass_rate:
            dropped.append(drop(rated, "difficulty", "too_easy", f"{detail}, at most {recipe.max_pass_rate}"))
        elif rate is not None and rate < recipe.min_pass_rate:
            dropped.append(drop(rated, "difficulty", "too_hard", f"{detail}, at least {recipe.min_pass_rate}"))
        else:
            kept.append(rated)
    return StepResult(kept, dropped, notes=notes)


def short_prompts(problems: list[Problem], prompter: Prompter, most: int) -> StepResult:
    """Drop the problems whose prompt has more than ``most`` tokens."""
    kept: list[Problem] = []
    dropped: list[Dropped] = []
    for problem in problems:
        tokens = len(prompter.encode(problem.problem))
        if tokens > most:
            dropped.append(drop(problem, "difficulty", "prompt_too_long", f"{tokens} tokens, at most {most}"))
        else:
            kept.append(problem)
    return StepResult(kept, dropped)


def pass_rates(samples: pa.Table) -> dict[str, float | None]:
    """Problem id -> correct / judged; None where nothing was judged.

    A sample that states no answer is wrong; one whose answer the verifier could not decide does not count.
    """
    correct: dict[str, int] = {}
    judged: dict[str, int] = {}
    for row in samples.select(["problem_id", "equivalent", "reason"]).to_pylist():
        identity = row["problem_id"]
        correct[identity] = correct.get(identity, 0) + (row["equivalent"] is True)
        decided = row["equivalent"] is not None or row["reason"] == "no_answer"
        judged[identity] = judged.get(identity, 0) + decided
    return {identity: correct[identity] / count if count else None for identity, count in judged.items()}


def _sample(problems: list[Problem], recipe: DifficultyRecipe, sampler: Sampler) -> pa.Table:
    from ulorl.engine.base import Sampling
    from ulorl.sampling import sample_problems

    return sample_problems(
        problems,
        engine=sampler.engine,
        prompter=sampler.prompter,
        verifier=sampler.verifier,
        samples=recipe.samples,
        sampling=Sampling(temperature=recipe.temperature),
        max_tokens=recipe.max_tokens,
        seed=sampler.seed,
        directory=sampler.directory,
        key=sampler.key,
        on_progress=sampler.on_progress,
    )
