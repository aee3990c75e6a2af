"""A recipe's model, opened for one evaluation and closed after it: check, stretch, engine, prompter.

`ulorl run` has its engine opened already and calls ``ulorl.evaluate.stage`` itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ulorl.engine import Engine, engine_kind, open_engine
from ulorl.engine.prompts import Prompter, resolve_model
from ulorl.errors import UserError
from ulorl.evaluate.stage import Progress, evaluate
from ulorl.evaluate.target import check_model, stretched
from ulorl.fingerprint import fingerprint_of
from ulorl.recipe import Recipe


def evaluate_model(recipe: Recipe, output: Path, *, force: bool = False, progress: Progress | None = None) -> Path:
    """Evaluate ``recipe.model.path``; returns the finished directory. Raises UserError where it is no model."""
    served = engine_kind(recipe) == "server"
    directory = resolve_model(recipe.model.path, weights=not served)
    check_model(directory, weights=not served)
    fingerprint = fingerprint_of(directory)
    chosen = recipe.evaluate
    if served:
        fingerprint = _joined(fingerprint, recipe.engine.served_model or recipe.engine.url)
    elif chosen.yarn:
        fingerprint = _joined(fingerprint, f"yarn {chosen.yarn} {chosen.yarn_original}")
    if served and chosen.yarn:
        raise UserError("evaluate.yarn: has no effect on a served model; start the server with it")
    with _engine_of(recipe, directory) as engine:
        return evaluate(
            recipe,
            output,
            engine=engine,
            prompter=Prompter(recipe.model, directory),
            model_name=recipe.model.path,
            model_fingerprint=fingerprint,
            model_dir=directory,
            force=force,
            progress=progress,
        )


@contextmanager
def _engine_of(recipe: Recipe, directory: Path) -> Iterator[Callable[[], Engine]]:
    """What opens the engine when it is called; it is closed at the end."""
    chosen = recipe.evaluate
    with ExitStack() as stack:

        def start() -> Engine:
            place = directory
            if chosen.yarn:
                place = stack.enter_context(stretched(directory, chosen.yarn, chosen.yarn_original))
            longest = recipe.engine.max_model_len or recipe.model.max_prompt_tokens + chosen.max_tokens
            engine = open_engine(recipe, place, max_model_len=longest)
            stack.callback(engine.close)
            return engine

        yield start


def _joined(fingerprint: str, what: str) -> str:
    return hashlib.sha256(f"{fingerprint}\0{what}".encode()).hexdigest()
