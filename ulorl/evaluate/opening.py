"""A recipe's model, opened for an evaluation: check, stretch, engine, prompter. Another model of the same shape that
is evaluated after it takes over the engine, since opening vLLM twice in a process is slow.

`ulorl run` has its engine opened already and calls ``ulorl.evaluate.stage`` itself.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ulorl.engine import Engine, engine_kind, open_engine
from ulorl.engine.prompts import Prompter, resolve_model, stop_token_ids
from ulorl.engine.weights import read_weights
from ulorl.errors import UserError
from ulorl.evaluate.stage import Progress, evaluate
from ulorl.evaluate.target import check_model, stretched
from ulorl.fingerprint import fingerprint_of
from ulorl.recipe import Recipe

_NO_SHAPE = ("_name_or_path", "transformers_version", "torch_dtype", "dtype", "use_cache")
"""Entries of config.json in which two models of one shape may differ: the recipe says the precision."""


class OneEngine:
    """The engine for one model after another; opened when a model first needs it, closed at the end of its block."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._engine: Engine | None = None
        self._shape: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.close()

    def on(self, recipe: Recipe, directory: Path) -> Engine:
        """The engine with the model in ``directory``, for the outputs of ``recipe.evaluate``."""
        config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
        # Where a sample ends is read once, when an engine is opened.
        shape = {key: value for key, value in config.items() if key not in _NO_SHAPE}, stop_token_ids(directory)
        if self._engine is not None and shape == self._shape:
            self._engine.load_weights(read_weights(directory), self._engine.policy_version + 1)
            return self._engine
        self._open.close()
        chosen, place = recipe.evaluate, directory
        if chosen.yarn:
            place = self._open.enter_context(stretched(directory, chosen.yarn, chosen.yarn_original))
        longest = recipe.engine.max_model_len or recipe.model.max_prompt_tokens + chosen.max_tokens
        self._engine, self._shape = open_engine(recipe, place, max_model_len=longest), shape
        self._open.callback(self._engine.close)
        return self._engine


def evaluate_model(
    recipe: Recipe,
    output: Path,
    *,
    force: bool = False,
    progress: Progress | None = None,
    engines: OneEngine | None = None,
) -> Path:
    """Evaluate ``recipe.model.path``; returns the finished directory. Raises UserError where it is no model.

    ``engines`` is that of several evaluations; without it, one is opened for this one.
    """
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
    with ExitStack() as stack:
        opened = engines or stack.enter_context(OneEngine())
        return evaluate(
            recipe,
            output,
            engine=lambda: opened.on(recipe, directory),
            prompter=Prompter(recipe.model, directory),
            model_name=recipe.model.path,
            model_fingerprint=fingerprint,
            model_dir=directory,
            force=force,
            progress=progress,
        )


def _joined(fingerprint: str, what: str) -> str:
    return hashlib.sha256(f"{fingerprint}\0{what}".encode()).hexdigest()
