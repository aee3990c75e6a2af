"""References and difficulty, the steps that may ask models, carried out on a stream of rows.

Invariants: samples of an interrupted run are found again; one engine is open at a time, besides the start model's;
memory holds the final answers of models and, where difficulty samples, the rows that are left, never a response.

Does not decide about rows (``references``, ``consensus``, ``difficulty``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ulorl.curate.ballots import Ballots
from ulorl.curate.consensus import Consensus, Finding
from ulorl.curate.difficulty import Sampler, difficulty, short_prompts
from ulorl.curate.earlier import EarlierSamples, batches
from ulorl.curate.guesses import BareAnswers
from ulorl.curate.reasons import drop
from ulorl.curate.references import references
from ulorl.curate.result import StepResult
from ulorl.curate.stream import Progress, Stream
from ulorl.curate.votes import OpenModel, ask_voter, matching_samples, open_voter, sampling_key
from ulorl.files import write_table
from ulorl.problem import MATH, Dropped, Problem
from ulorl.recipe import Recipe
from ulorl.rows import table_problems
from ulorl.verify.verdict import Item

if TYPE_CHECKING:
    from ulorl.engine.prompts import Prompter
    from ulorl.verify.tasks.scorer import Scorer

VOTES_FILE = "votes.parquet"
VOTES_SCHEMA = pa.schema(
    [
        pa.field("problem_id", pa.string(), nullable=False),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("model", pa.string(), nullable=False),
        pa.field("answer", pa.string()),
        pa.field("agreeing", pa.int32(), nullable=False),
        pa.field("samples", pa.int32(), nullable=False),
        pa.field("for_reference", pa.bool_()),
    ]
)
"""A row for each model asked about each problem that came to the references step. ``answer`` is null where too few of
the model's samples agree, ``for_reference`` also where the comparison is undecided."""


class LastSteps:
    """The steps of a recipe after contamination on ``stream``, with what models said kept in ``directory``:
    ``samples`` and ``guesses`` of the start model, ``votes/NAME`` of every voter, and ``votes.parquet``."""

    def __init__(
        self,
        recipe: Recipe,
        stream: Stream,
        scorer: Scorer,
        start_model: OpenModel | None,
        directory: Path,
        progress: Progress,
    ) -> None:
        self._recipe, self._stream, self._scorer, self._verifier = recipe, stream, scorer, scorer.mathematics
        self._start_model, self._directory, self._progress = start_model, directory, progress

    def run(self) -> None:
        """The steps of the recipe, in order."""
        if "references" in self._recipe.curate.steps:
            self._references()
        if "difficulty" in self._recipe.curate.steps:
            self._difficulty()

    def _references(self) -> None:
        consensus, notes = self._consensus()
        fate, groups = self._settled(consensus)
        votes: list[dict[str, Any]] = []

        def step(problems: list[Problem]) -> StepResult:
            findings = consensus.findings(problems) if consensus is not None else {}
            votes.extend(_vote_rows(findings))
            mathematics = [one for one in problems if one.task == MATH and one.id not in fate]
            single = references(mathematics, self._verifier, findings=findings)
            lost = {row.problem.id: row for row in single.dropped} | self._broken(problems) | fate
            usable = {one.id: one for one in single.kept}
            kept = [replace(usable.get(one.id, one), conflict=None) for one in problems if one.id not in lost]
            return StepResult(kept, [lost[one.id] for one in problems if one.id in lost], notes=single.notes)

        self._stream.step("references", step)
        self._stream.entries[-1]["notes"] |= {"groups with conflicting references": groups} | notes
        if consensus is not None:
            write_table(self._directory / VOTES_FILE, pa.Table.from_pylist(votes, schema=VOTES_SCHEMA))

    def _broken(self, problems: Sequence[Problem]) -> dict[str, Dropped]:
        """Rows of other tasks than mathematics that their task cannot judge, by id."""
        found = {}
        for problem in problems:
            fault = self._scorer.check(problem) if problem.task != MATH else None
            if fault is not None:
                detail = f"task {problem.task}: {fault}"
                found[problem.id] = drop(problem, "references", "unverifiable_reference", detail)
        return found

    def _settled(self, consensus: Consensus | None) -> tuple[dict[str, Dropped], int]:
        """(id -> what becomes of it, for the rows in conflict that are not kept; number of their groups)."""
        members = [
            problem
            for table in self._stream.rows.tables()
            for problem in table_problems(table.filter(pc.is_valid(table.column("conflict"))))
        ]
        conflicts = {problem.id: problem.conflict for problem in members if problem.conflict is not None}
        findings = consensus.findings(members) if consensus is not None else {}
        dropped = references(members, self._verifier, conflicts, findings).dropped
        return {row.problem.id: row for row in dropped}, len(set(conflicts.values()))

    def _consensus(self) -> tuple[Consensus | None, dict[str, int]]:
        settings = self._recipe.curate.consensus
        if not settings.voters and not settings.files:
            return None, {}
        from ulorl.verify import equivalence_classes

        keys = {voter.label: sampling_key(self._recipe, voter.model) for voter in settings.voters}
        names = {key["model"]: label for label, key in keys.items()}
        ballots, earlier = Ballots(), EarlierSamples(settings.files, self._extract, names)
        for batch in batches(iter(earlier)):
            ballots.add(batch)
        for voter in settings.voters:
            with open_voter(self._recipe, voter, self._start_model) as model:
                for batch in ask_voter(
                    voter,
                    model,
                    self._rows(),
                    verifier=self._verifier,
                    extract=self._extract,
                    seed=self._recipe.seed,
                    directory=self._directory / "votes" / voter.label,
                    key=keys[voter.label],
                    on_progress=partial(self._progress, f"votes of {voter.label}"),
                ):
                    ballots.add(batch)
        notes = {"earlier samples that cannot be used": earlier.unusable} if settings.files else {}
        if ballots.needs_ids:
            ids = (table.column("source_id").to_pylist() for table in self._stream.rows.tables())
            notes["ids of several rows, not used to find samples"] = ballots.refuse_shared(ids)
        classes = partial(equivalence_classes, config=self._recipe.verify)
        return Consensus(ballots, self._verifier, classes, settings), notes

    def _extract(self, response: str) -> str | None:
        return ", ".join(self._verifier.extraction(Item("", response)).answers) or None

    def _rows(self) -> Iterator[Problem]:
        """The rows that models vote on: mathematics."""
        rows = (problem for table in self._stream.rows.tables() for problem in table_problems(table))
        return (problem for problem in rows if problem.task == MATH)

    def _difficulty(self) -> None:
        settings = self._recipe.curate.difficulty
        known = all(not table.column("pass_rate").null_count for table in self._stream.rows.tables())
        if self._start_model is None:
            call = partial(difficulty, recipe=settings, sampler=None)
            return self._stream.step("difficulty", call) if known else self._stream.step_on_all("difficulty", call)
        if known and not settings.guess.samples:
            prompter = _prompter(self._recipe, None)
            return self._stream.step("difficulty", lambda problems: self._rated(problems, prompter, None, None))
        engine, prompter = self._start_model()
        key = sampling_key(self._recipe, self._recipe.model)
        found = matching_samples(key, settings, self._recipe.seed, self._directory)
        sampler = Sampler(
            engine=engine,
            prompter=prompter,
            verifier=self._scorer,
            shown=self._scorer.prompted,
            seed=self._recipe.seed,
            directory=self._directory / "samples",
            key=key,
            earlier=found,
            on_progress=partial(self._progress, "difficulty"),
        )
        guesser = (
            replace(
                sampler,
                prompter=_prompter(self._recipe, settings.guess.prompt),
                verifier=BareAnswers(self._scorer),
                directory=self._directory / "guesses",
                key=key | {"guess": settings.guess.prompt},
                earlier=None,
                on_progress=partial(self._progress, "guesses"),
            )
            if settings.guess.samples
            else None
        )
        self._stream.step_on_all("difficulty", lambda problems: self._rated(problems, prompter, sampler, guesser))

    def _rated(
        self, problems: list[Problem], prompter: Prompter, sampler: Sampler | None, guesser: Sampler | None
    ) -> StepResult:
        shown = self._scorer.prompted(problems)
        short = short_prompts(problems, prompter, self._recipe.model.max_prompt_tokens, shown)
        result = difficulty(short.kept, self._recipe.curate.difficulty, sampler, guesser)
        return StepResult(result.kept, short.dropped + result.dropped, notes=result.notes)


def _prompter(recipe: Recipe, prompt: str | None) -> Prompter:
    from ulorl.engine.prompts import Prompter, resolve_model

    model = recipe.model if prompt is None else recipe.model.model_copy(update={"prompt": prompt})
    return Prompter(model, resolve_model(recipe.model.path))


def _vote_rows(findings: Mapping[str, Finding]) -> Iterator[dict[str, Any]]:
    for identity, finding in findings.items():
        for vote in finding.votes:
            yield {"problem_id": identity, "outcome": finding.outcome, **vars(vote)}
