"""The metrics of a run on Weights & Biases (``train.wandb``), an optional service.

Invariants:
- a run keeps its id in its directory: after a kill the same run is continued; begun anew (``--force``) it is another;
- steps are the run's. Those that are done again after a kill are there already, and W&B takes no second value for a
  step: the first one stays there, metrics.jsonl has the one that counts;
- once training has begun no failure of the service ends it: it is said once, and the service is left alone.
"""

from __future__ import annotations

import importlib
import logging
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ulorl.errors import UserError
from ulorl.files import write_atomic
from ulorl.recipe import Recipe
from ulorl.recipe_wandb import WandbRecipe

log = logging.getLogger(__name__)

RUN_ID = "wandb_run_id"


def check_wandb(settings: WandbRecipe) -> None:
    """Raise UserError where W&B is asked for and not installed: before anything slow begins."""
    if settings.project and _client() is None:
        raise UserError(
            "train.wandb.project: the package wandb is not installed. Install it with `pip install 'ulorl[wandb]'`, "
            "or leave the setting out"
        )


class WandbTracker:
    """One run on W&B. ``directory`` is the training run's. Raises UserError where the service cannot be started."""

    def __init__(self, directory: Path, recipe: Recipe) -> None:
        client, settings = _client(), recipe.train.wandb
        assert client is not None and settings.project, "check_wandb comes first"
        try:
            self._run: Any = client.init(
                project=settings.project,
                mode=settings.mode,
                name=recipe.name,
                id=_run_id(directory),
                resume="allow",
                dir=str(directory),
                config=recipe.model_dump(mode="json"),
                settings={"console": "off"},  # standard error holds the live display
            )
        except Exception as error:  # the client has errors of its own for every way in which it fails
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise UserError(
                f'train.wandb: W&B does not start: {reason}. `wandb login`, or set train.wandb.mode = "offline"'
            ) from error

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Show one step's metrics."""
        if self._run is None or step < self._run.step:
            return
        try:
            self._run.log(dict(values), step=step)
        except Exception as error:
            log.warning("W&B failed at step %d and is left alone: %r", step, error)
            self._run = None

    def close(self) -> None:
        """Send what is left. Idempotent."""
        run, self._run = self._run, None
        if run is None:
            return
        try:
            run.finish()
        except Exception as error:
            log.warning("W&B did not take the end of the run: %r", error)


def _client() -> Any:
    try:
        return importlib.import_module("wandb")
    except ImportError:
        return None


def _run_id(directory: Path) -> str:
    """The id of the directory's run, made at its first start."""
    path = directory / RUN_ID
    if not path.exists():
        write_atomic(path, secrets.token_hex(4))
    return path.read_text().strip()
