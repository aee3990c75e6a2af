"""Eighth step: how often does the start model solve it?

A problem whose ``pass_rate`` is known from the input is not sampled. What remains within the window may be put once
more, for the bare answer: what the model guesses teaches no reasoning.

Invariants:
- an undecided verdict is neither right nor wrong: the pass rate is right / decided, and a row is dropped only if it
  would be, whatever the undecided ones are (so that an all-correct row with one undecided verdict stays); they are
  counted, and the rows that stay for them too;
- a response that states no answer is wrong;
- samples are kept as they come and found again (``ulorl.sampling``).

Does not open models (``last_steps``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from ulorl.curate.reasons import drop
from ulorl.curate.result import StepResult
from ulorl.errors import UserError
from ulorl.problem import Dropped, Problem
from ulorl.recipe import DifficultyRecipe

if TYPE_CHECKING:
    import pyarrow as pa

    from ulorl.engine.base import Engine
    from ulorl.engine.prompts import Prompter
    from ulorl.sampling import Judge


@dataclass(frozen=True)
class Sampler:
    """What it takes to have problems solved: a model behind an engine, a verifier, and where samples are kept."""

    engine: Engine
    prompter: Prompter
    verifier: Judge
    seed: int
    directory: Path
    key: dict[str, object]
    shown: Callable[[list[Problem]], list[Problem]] = list
    """From problems to the texts that a model is shown of them."""
    earlier: Path | None = None
    """Samples to start from, where they were made alike."""
    on_progress: Callable[[int, int], None] | None = None

    def sample(self, problems: list[Problem], samples: int, temperature: float, max_tokens: int) -> pa.Table:
        """SAMPLE_SCHEMA, ``samples`` rows a problem."""
        from ulorl.engine.base import Sampling
        from ulorl.sampling import sample_problems

        return sample_problems(
            self.shown(problems),
            engine=self.engine,
            prompter=self.prompter,
            verifier=self.verifier,
            samples=samples,
            sampling=Sampling(temperature=temperature),
            max_tokens=max_tokens,
            seed=self.seed,
            directory=self.directory,
            key=self.key,
            earlier=self.earlier,
            on_progress=self.on_progress,
        )


@dataclass(frozen=True)
class Solved:
    """Samples of one problem by verdict."""

    right: int
    wrong: int
    undecided: int = 0

    @property
    def rate(self) -> float | None:
        """Pass rate of the decided ones; None where there is none."""
        decided = self.right + self.wrong
        return self.right / decided if decided else None

    @property
    def bounds(self) -> tuple[float, float]:
        """The pass rate if all undecided ones were wrong, and if all were right."""
        samples = self.right + self.wrong + self.undecided
        return self.right / samples, (self.right + self.undecided) / samples

    def __str__(self) -> str:
        told = f"{self.right} of {self.right + self.wrong + self.undecided} right"
        return f"{told}, {self.undecided} undecided" if self.undecided else told


def difficulty(
    problems: list[Problem], recipe: DifficultyRecipe, sampler: Sampler | None, guesser: Sampler | None = None
) -> StepResult:
    """Write ``pass_rate`` and drop what lies outside the window, then what ``guesser`` guesses.

    ``sampler`` may be None when all rates are known, ``guesser`` when no guesses are asked for. UserError when it is
    None and needed.
    """
    unknown = [problem for problem in problems if problem.pass_rate is None]
    notes = {"problems sampled": len(unknown), "pass rates taken from the input": len(problems) - len(unknown)}
    solved: dict[str, Solved] = {}
    if unknown:
        if sampler is None:
            raise _needs_model(f"{len(unknown)} of {len(problems)} problems have no pass_rate")
        table = sampler.sample(unknown, recipe.samples, recipe.temperature, recipe.max_tokens)
        solved = solved_counts(table)
        notes |= _notes(table, solved)
    kept: list[Problem] = []
    dropped: list[Dropped] = []
    left_open = 0
    for problem in problems:
        counts = solved.get(problem.id)
        rated = problem if counts is None else replace(problem, pass_rate=counts.rate)
        reason, detail, is_open = _outside(rated, counts, recipe)
        left_open += is_open
        if reason:
            dropped.append(drop(rated, "difficulty", reason, detail))
        else:
            kept.append(rated)
    if unknown:
        notes["rows kept because of undecided verdicts"] = left_open
    if recipe.guess.samples and kept:
        if guesser is None:
            raise _needs_model("curate.difficulty.guess asks for guesses")
        kept, guessed, more = _without_guessable(kept, recipe, guesser)
        dropped = _in_order(problems, dropped + guessed)
        notes |= more
    return StepResult(kept, dropped, notes=notes)


def short_prompts(
    problems: list[Problem], prompter: Prompter, most: int, shown: Sequence[Problem] | None = None
) -> StepResult:
    """Drop the problems whose prompt has more than ``most`` tokens; ``shown``: as a model is shown them."""
    kept: list[Problem] = []
    dropped: list[Dropped] = []
    for problem, text in zip(problems, shown or problems, strict=True):
        tokens = len(prompter.encode(text.problem))
        if tokens > most:
            dropped.append(drop(problem, "difficulty", "prompt_too_long", f"{tokens} tokens, at most {most}"))
        else:
            kept.append(problem)
    return StepResult(kept, dropped)


def solved_counts(samples: pa.Table) -> dict[str, Solved]:
    """Problem id -> its samples by verdict."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    columns = (samples.column(name).to_pylist() for name in ("problem_id", "equivalent", "reason"))
    for identity, equivalent, reason in zip(*columns, strict=True):
        counts[identity][0 if equivalent else 1 if equivalent is False or reason == "no_answer" else 2] += 1
    return {identity: Solved(*one) for identity, one in counts.items()}


def _outside(problem: Problem, counts: Solved | None, recipe: DifficultyRecipe) -> tuple[str, str, bool]:
    """(reason to drop, empty for none; detail; whether undecided verdicts alone keep the row)."""
    rate = problem.pass_rate
    if rate is None:
        return "", "", counts is not None
    least, most = (rate, rate) if counts is None else counts.bounds
    told = f"pass rate {rate:.4g} of the input" if counts is None else str(counts)
    if least > recipe.max_pass_rate:
        return "too_easy", f"{told}, at most {recipe.max_pass_rate} is kept", False
    if recipe.drop_unsolved and most == 0:
        return "unsolved", told, False
    if most < recipe.min_pass_rate:
        return "too_hard", f"{told}, at least {recipe.min_pass_rate} is kept", False
    is_outside = rate > recipe.max_pass_rate or rate < recipe.min_pass_rate or (recipe.drop_unsolved and rate == 0)
    return "", "", is_outside


def _without_guessable(
    problems: list[Problem], recipe: DifficultyRecipe, guesser: Sampler
) -> tuple[list[Problem], list[Dropped], dict[str, int]]:
    asked = recipe.guess
    table = guesser.sample(problems, asked.samples, asked.temperature, asked.max_tokens)
    guessed = solved_counts(table)
    kept: list[Problem] = []
    dropped: list[Dropped] = []
    for problem in problems:
        counts = guessed[problem.id]
        if counts.right >= asked.right:
            dropped.append(drop(problem, "difficulty", "guessable", f"without reasoning {counts}"))
        else:
            kept.append(problem)
    undecided = sum(one.undecided for one in guessed.values())
    return kept, dropped, {"problems guessed at": len(problems), "guesses with an undecided verdict": undecided}


def _notes(samples: pa.Table, solved: Mapping[str, Solved]) -> dict[str, int]:
    return {
        "samples": len(samples),
        "samples without an answer": pc.sum(pc.equal(samples.column("reason"), "no_answer")).as_py() or 0,
        "samples cut at max_tokens": pc.sum(pc.equal(samples.column("finish_reason"), "length")).as_py() or 0,
        "undecided verdicts": sum(one.undecided for one in solved.values()),
    }


def _in_order(problems: list[Problem], dropped: list[Dropped]) -> list[Dropped]:
    places = {problem.id: place for place, problem in enumerate(problems)}
    return sorted(dropped, key=lambda row: places[row.problem.id])


def _needs_model(why: str) -> UserError:
    return UserError(
        f"the difficulty step needs a model: {why}; set model.path, give the input a pass_rate column, or leave "
        "difficulty out of curate.steps"
    )
