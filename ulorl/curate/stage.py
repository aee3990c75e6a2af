"""The curate stage: run the steps of a recipe in order and write what came out.

Writes problems.parquet, dropped.parquet, funnel.json, card.md and, where difficulty sampled, samples/.
Invariants: every row of the input is in exactly one of the two Parquet files; the same input, recipe and seed
give the same bytes; nothing appears under the output's name before everything is there (``ulorl.artifact``).

Does not know how a step decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ulorl import artifact
from ulorl.curate.answers import answers
from ulorl.curate.card import data_card
from ulorl.curate.contamination import contamination
from ulorl.curate.difficulty import Sampler, difficulty, short_prompts
from ulorl.curate.duplicates import duplicates
from ulorl.curate.funnel import step_entry
from ulorl.curate.kinds import kinds
from ulorl.curate.load import normalise, unique_ids
from ulorl.curate.references import references
from ulorl.curate.result import StepResult
from ulorl.curate.rewrite import rewrite
from ulorl.errors import UserError
from ulorl.files import write_atomic, write_json, write_table
from ulorl.fingerprint import fingerprint_of
from ulorl.problem import Dropped, Problem
from ulorl.recipe import CURATE_STEPS, CurateStep, FieldNames, Recipe
from ulorl.rows import PROBLEMS_FILE, dropped_table, problem_table, read_problems
from ulorl.verify import Verifier

if TYPE_CHECKING:
    from ulorl.engine.base import Engine
    from ulorl.engine.prompts import Prompter

EngineFactory = Callable[[], "tuple[Engine, Prompter]"]
Progress = Callable[[str, int, int], None]


def curate(
    recipe: Recipe,
    output: Path,
    *,
    engine_factory: EngineFactory | None,
    force: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Curate ``recipe.data.inputs`` into the artifact ``output``; a no-op when it is there.

    ``engine_factory`` opens the start model, and is called only when difficulty must sample; it may be None
    where no step needs one. ``progress`` receives (step, rows done, rows in all). Returns the path.
    UserError: unreadable input, no model for difficulty, or no row left (saying which step took them).
    """
    work = artifact.begin(
        output,
        stage="curate",
        config=_identity(recipe, engine_factory is not None),
        inputs=[*recipe.data.inputs, *recipe.curate.benchmarks],
        seed=recipe.seed,
        force=force,
    )
    if work.done:
        return work.path
    try:
        raw, bad = read_problems(recipe.data.inputs, recipe.data.fields, recipe.data.limit, recipe.seed)
        run = _Run(recipe, engine_factory, work.path / "samples", progress or _silent)
        run.start(raw, [row.dropped() for row in bad])
        for step in CURATE_STEPS:
            if step in recipe.curate.steps:
                run.step(step)
        funnel = run.funnel(len(raw) + len(bad))
        write_table(work.path / PROBLEMS_FILE, problem_table(run.problems))
        write_table(work.path / "dropped.parquet", dropped_table(run.dropped))
        write_json(work.path / "funnel.json", funnel)
        write_atomic(work.path / "card.md", data_card(recipe, raw, run.problems, funnel))
        counts = {"rows_in": funnel["rows_in"], "rows_out": funnel["rows_out"], "dropped": len(run.dropped)}
        return work.finish(counts=counts)
    finally:
        work.release()


class _Run:
    """The rows on their way through the steps, and what was found on the way."""

    def __init__(self, recipe: Recipe, engine_factory: EngineFactory | None, samples: Path, progress: Progress) -> None:
        self.problems: list[Problem] = []
        self.dropped: list[Dropped] = []
        self._recipe, self._engine_factory, self._samples, self._progress = (
            recipe,
            engine_factory,
            samples,
            progress,
        )
        self._conflicts: dict[str, str] = {}
        self._entries: list[dict[str, Any]] = []
        self._verifier = Verifier(recipe.verify)

    def start(self, problems: list[Problem], unreadable: list[Dropped]) -> None:
        self.problems = problems if "normalise" in self._recipe.curate.steps else unique_ids(problems)
        self._record("load", len(problems) + len(unreadable), StepResult(self.problems, unreadable))

    def step(self, step: CurateStep) -> None:
        """Run one step and record it."""
        rows = len(self.problems)
        self._progress(step, 0, rows)
        result = self._run(step)
        self._conflicts |= result.conflicts
        self._record(step, rows, result)
        self._progress(step, rows, rows)

    def funnel(self, rows_in: int) -> dict[str, Any]:
        assert rows_in == len(self.problems) + len(self.dropped), "rows were lost"
        return {"rows_in": rows_in, "rows_out": len(self.problems), "steps": self._entries}

    def _record(self, step: str, rows_in: int, result: StepResult) -> None:
        entry = step_entry(step, rows_in, len(result.kept), result.dropped, result.notes)
        self._entries.append(entry)
        self.problems = result.kept
        self.dropped += result.dropped
        if not self.problems:
            worst = max(self._entries, key=lambda one: one["rows_in"] - one["rows_out"])
            raise UserError(
                f"curate: no row is left after {step}; {worst['step']} dropped most, "
                f"{worst['rows_in'] - worst['rows_out']} of {worst['rows_in']} "
                f"({_listed(worst['dropped'])}); "
                "look at the input, or leave that step out of curate.steps"
            )

    def _run(self, step: CurateStep) -> StepResult:
        recipe = self._recipe.curate
        match step:
            case "normalise":
                return normalise(self.problems)
            case "answers":
                return answers(self.problems, recipe)
            case "kinds":
                return kinds(self.problems)
            case "rewrite":
                return rewrite(self.problems)
            case "duplicates":
                return duplicates(self.problems, recipe)
            case "contamination":
                return contamination(self.problems, recipe, read_benchmarks(recipe.benchmarks, self._recipe.seed))
            case "references":
                return references(self.problems, self._verifier, self._conflicts)
            case "difficulty":
                return self._difficulty()

    def _difficulty(self) -> StepResult:
        settings = self._recipe.curate.difficulty
        if self._engine_factory is None:
            return difficulty(self.problems, settings, None)
        from ulorl.engine.prompts import Prompter, resolve_model

        if all(problem.pass_rate is not None for problem in self.problems):
            prompter = Prompter(self._recipe.model, resolve_model(self._recipe.model.path))
            sampler = None
        else:
            engine, prompter = self._engine_factory()
            sampler = Sampler(
                engine=engine,
                prompter=prompter,
                verifier=self._verifier,
                seed=self._recipe.seed,
                directory=self._samples,
                key=_identity(self._recipe, True)["sampling"],
                on_progress=lambda done, total: self._progress("difficulty", done, total),
            )
        short = short_prompts(self.problems, prompter, self._recipe.model.max_prompt_tokens)
        result = difficulty(short.kept, settings, sampler)
        return StepResult(result.kept, short.dropped + result.dropped, notes=result.notes)


def read_benchmarks(sources: Sequence[str], seed: int) -> dict[str, list[Problem]]:
    """Benchmark name -> its items."""
    return {Path(source).name: read_problems([source], FieldNames(), 0, seed)[0] for source in sources}


def _identity(recipe: Recipe, has_model: bool) -> dict[str, Any]:
    """What besides inputs and seed determines the result, as JSON."""
    config: dict[str, Any] = {
        "data": recipe.data.model_dump(mode="json", exclude={"inputs"}),
        "curate": recipe.curate.model_dump(mode="json", exclude={"benchmarks"}),
        "benchmarks": len(recipe.curate.benchmarks),
        "verify": recipe.verify.model_dump(mode="json"),
    }
    if has_model and "difficulty" in recipe.curate.steps:
        from ulorl.engine.prompts import resolve_model

        config["sampling"] = {
            "model": fingerprint_of(resolve_model(recipe.model.path)),
            "prompt": recipe.model.model_dump(mode="json", exclude={"path"}),
            "verify": config["verify"],
        }
    return config


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in counts.items())


def _silent(step: str, done: int, total: int) -> None:
    pass
