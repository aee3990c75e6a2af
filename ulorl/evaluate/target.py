"""What MODEL of ``ulorl eval`` means, and whether it is a model at all, before anything slow starts.

Invariant: a directory that cannot be loaded is refused in under a second, with the file that is missing or damaged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ulorl.artifact import partial_of
from ulorl.errors import UserError
from ulorl.recipe_file import TRAINED_RECIPE

_HEADER_LIMIT = 100_000_000


@dataclass(frozen=True)
class Target:
    """``model`` is what ``model.path`` takes; ``recipe`` that of the training run it comes from, if it does."""

    model: str
    recipe: Path | None = None


def find_target(given: str) -> Target:
    """The model of a training run (the run's directory or that of its train stage), of a checkpoint of one
    (``.../checkpoints/step_000020``, or a run's ``train.partial``: its latest), or whatever else is given, as it is.

    Raises UserError for a run without a checkpoint, and for a training run that is not finished.
    """
    path = Path(given).expanduser()
    for run in (path, path / "train"):
        if (run / "model" / "config.json").is_file() and (run / TRAINED_RECIPE).is_file():
            return Target(str(run / "model"), run / TRAINED_RECIPE)
    if (path / "trainer.json").is_file():
        recipe = path.parent.parent / TRAINED_RECIPE
        return Target(str(path / "model"), recipe if recipe.is_file() else None)
    if (path / "checkpoints").is_dir() and not (path / "config.json").is_file():
        latest = max(path.glob("checkpoints/step_[0-9]*"), default=None)
        if latest is None:
            raise UserError(f"{path}: an unfinished training run without a checkpoint; train on, or evaluate its model")
        return find_target(str(latest))
    partial = partial_of(path)
    if not path.exists() and (partial / "checkpoints").is_dir():
        raise UserError(f"{path}: the training is not finished; evaluate its latest checkpoint with {partial}")
    return Target(given)


def check_model(directory: Path, weights: bool = True) -> dict[str, Any]:
    """The configuration of a Hugging Face directory; UserError where a file that loading needs is missing or damaged.

    Without ``weights`` (a served model) the tokenizer is enough.
    """
    path = directory / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not readable as the configuration of a model: {error}") from error
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise UserError(f"{path}: no configuration of a model (it has no model_type)")
    if not any((directory / name).is_file() for name in ("tokenizer.json", "tokenizer.model", "vocab.json")):
        raise UserError(f"{directory}: no tokenizer (tokenizer.json, tokenizer.model or vocab.json)")
    if weights:
        _check_weights(directory)
    return config


def _check_weights(directory: Path) -> None:
    files = sorted(directory.glob("*.safetensors"))
    index = directory / "model.safetensors.index.json"
    if index.is_file():
        try:
            named = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
            raise UserError(f"{index}: not readable as an index of weights: {error}") from error
        missing = [name for name in named if not (directory / name).is_file()]
        if missing:
            raise UserError(f"{directory}: {len(missing)} of {len(named)} weight files are missing, first {missing[0]}")
    if not files:
        raise UserError(f"{directory}: no weights (*.safetensors), it is no model")
    for file in files:
        reason = _damage(file)
        if reason:
            raise UserError(f"{file}: damaged: {reason}; copy it again")


def _damage(file: Path) -> str:
    """Why a safetensors file cannot be whole; empty where its header fits its size."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if size < 8 or not 0 < length <= min(_HEADER_LIMIT, size - 8):
            return "no safetensors header"
        try:
            header = json.loads(stream.read(length))
            end = max((one["data_offsets"][1] for name, one in header.items() if name != "__metadata__"), default=0)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return "its header is no safetensors header"
    return "" if size == 8 + length + end else f"{size} bytes, its header says {8 + length + end}"


def positions_of(config: dict[str, Any], factor: float = 0.0, original: int = 0) -> int | None:
    """Positions of the model, stretched by a YaRN ``factor`` (0: not); None where the configuration names none."""
    positions = config.get("max_position_embeddings")
    if not isinstance(positions, int):
        return None
    return max(positions, int((original or positions) * factor)) if factor else positions


@contextmanager
def stretched(directory: Path, factor: float, original: int = 0) -> Iterator[Path]:
    """A directory with the same model, whose rotary embedding YaRN (arXiv 2309.00071) stretches by ``factor``.

    The weights are links to those of ``directory``; only config.json is another. It goes away at the end.
    """
    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    positions = original or config.get("max_position_embeddings")
    if not isinstance(positions, int):
        raise UserError(f"evaluate.yarn: {directory} names no max_position_embeddings; set evaluate.yarn_original")
    name = "rope_parameters" if isinstance(config.get("rope_parameters"), dict) else "rope_scaling"
    kept = config.get(name) or {}
    if any(isinstance(value, dict) for value in kept.values()):
        raise UserError(f"evaluate.yarn: {directory} has a rotary embedding for each kind of layer; not supported")
    if kept.get("rope_type", kept.get("type", "default")) not in ("default", "yarn"):
        raise UserError(f"evaluate.yarn: the rotary embedding of {directory} is already {kept}")
    yarn = {"rope_type": "yarn", "factor": float(factor), "original_max_position_embeddings": positions}
    # Both transformers and vLLM take max_position_embeddings for the stretched length.
    config["max_position_embeddings"] = positions_of(config, factor, original)
    config[name] = {key: value for key, value in kept.items() if key != "type"} | yarn
    with TemporaryDirectory(prefix="ulorl-yarn-") as place:
        view = Path(place)
        for file in directory.iterdir():
            if file.name != "config.json":
                (view / file.name).symlink_to(file.resolve())
        (view / "config.json").write_text(json.dumps(config), encoding="utf-8")
        yield view
