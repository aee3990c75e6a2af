"""Asks the voters of a recipe: one model after the other, each about all problems that are left.

Invariants: a text that several rows share is asked about once; samples are kept as they come, by voter, and found
again after an interruption; one model is open at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ulorl.curate.ballots import Ballot, Extract, text_key
from ulorl.errors import UserError
from ulorl.problem import Problem
from ulorl.recipe import DifficultyRecipe, Recipe
from ulorl.recipe_curate import VoterRecipe
from ulorl.sample_store import SETTINGS_FILE

if TYPE_CHECKING:
    from ulorl.engine.base import Engine
    from ulorl.engine.prompts import Prompter
    from ulorl.sampling import Judge

ASKED_TOGETHER = 20_000
"""Problems that are put to an engine in one call."""

OpenModel = Callable[[], "tuple[Engine, Prompter]"]
Progress = Callable[[str, int, int], None]


def ask_voter(
    voter: VoterRecipe,
    model: tuple[Engine, Prompter],
    problems: Iterable[Problem],
    *,
    verifier: Judge,
    extract: Extract,
    seed: int,
    directory: Path,
    key: dict[str, Any],
    on_progress: Callable[[int, int], None] | None = None,
) -> Iterator[list[Ballot]]:
    """Sample ``voter`` on ``problems``; ballots in batches. Problems with too long a prompt are left out."""
    from ulorl.engine.base import Sampling
    from ulorl.sampling import sample_problems

    engine, prompter = model
    for batch in _distinct(problems):
        fitting = [one for one in batch if len(prompter.encode(one.problem)) <= voter.model.max_prompt_tokens]
        if not fitting:
            continue
        table = sample_problems(
            fitting,
            engine=engine,
            prompter=prompter,
            verifier=verifier,
            samples=voter.samples,
            sampling=Sampling(temperature=voter.temperature),
            max_tokens=voter.max_tokens,
            seed=seed,
            directory=directory,
            key=key,
            on_progress=on_progress,
        )
        rows = zip(table["problem_id"].to_pylist(), table["text"].to_pylist(), strict=True)
        yield [Ballot(voter.label, extract(response), text) for text, response in rows]


@contextmanager
def open_voter(recipe: Recipe, voter: VoterRecipe, start_model: OpenModel | None) -> Iterator[tuple[Engine, Prompter]]:
    """The voter's engine and prompter, closed at the end unless the engine is the start model's."""
    from ulorl.engine import open_engine
    from ulorl.engine.prompts import Prompter, resolve_model

    directory = resolve_model(voter.model.path)
    prompter = Prompter(voter.model, directory)
    if start_model is not None and recipe.shares_engine(voter):
        yield start_model()[0], prompter
        return
    own = recipe.model_copy(update={"model": voter.model, "engine": voter.engine})
    engine = open_engine(own, directory, max_model_len=voter.model.max_prompt_tokens + voter.max_tokens)
    try:
        yield engine, prompter
    finally:
        engine.close()


def sampling_key(recipe: Recipe, model: Any) -> dict[str, Any]:
    """What besides the settings of sampling determines a sample of ``model`` (a ModelRecipe), as JSON."""
    from ulorl.engine.prompts import resolve_model
    from ulorl.fingerprint import fingerprint_of

    return {
        "model": fingerprint_of(resolve_model(model.path)),
        "prompt": model.model_dump(mode="json", exclude={"path"}),
        "verify": recipe.verify.model_dump(mode="json"),
    }


def matching_samples(key: dict[str, Any], settings: DifficultyRecipe, seed: int, directory: Path) -> Path | None:
    """The samples that difficulty may start from: of ``settings.earlier``, or of a voter that is the start model."""
    if settings.earlier and not Path(settings.earlier).is_dir():
        raise UserError(f"curate.difficulty.earlier: {settings.earlier}: no such directory")
    places = [Path(settings.earlier)] if settings.earlier else []
    stores = [found.parent for place in places for found in sorted(place.rglob(SETTINGS_FILE))]
    stores += [found.parent for found in sorted((directory / "votes").rglob(SETTINGS_FILE))]
    wanted = {"key": key, "max_tokens": settings.max_tokens, "seed": seed}
    for store in stores:
        made = json.loads((store / SETTINGS_FILE).read_bytes())
        alike = {name: made.get(name) for name in wanted} == wanted
        if alike and made.get("sampling", {}).get("temperature") == settings.temperature:
            return store
    return None


def _distinct(problems: Iterable[Problem]) -> Iterator[Sequence[Problem]]:
    """Batches of problems of different texts, whose ids are the hashes of the texts."""
    seen: set[str] = set()
    batch: list[Problem] = []
    for problem in problems:
        text = text_key(problem.problem)
        if text in seen:
            continue
        seen.add(text)
        batch.append(Problem(text, problem.problem, problem.answer))
        if len(batch) == ASKED_TOGETHER:
            yield batch
            batch = []
    if batch:
        yield batch
