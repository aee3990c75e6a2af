"""Which tensors a full set of weights consists of, and a check of a stream of them.

Invariant: a stream that passed brought every tensor of the model's own files, and no unknown one. Reads only
the headers of safetensors files, never their data.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ulorl.engine.base import EngineError, NamedTensors
from ulorl.errors import UserError

if TYPE_CHECKING:
    import torch

LM_HEAD = "lm_head.weight"


@dataclass(frozen=True)
class WeightNames:
    """Names of the tensors of a model; ``tied`` when the output layer is the input embedding."""

    names: frozenset[str]
    tied: bool

    @classmethod
    def of(cls, directory: Path) -> WeightNames:
        """Names as in the safetensors files of ``directory``."""
        from safetensors import safe_open

        names: set[str] = set()
        for file in sorted(directory.glob("*.safetensors")):
            with safe_open(file, framework="pt") as tensors:
                names.update(tensors.keys())
        if not names:
            raise EngineError(f"model.path: {directory} holds no *.safetensors file")
        config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
        tied = bool(config.get("tie_word_embeddings", False))
        return cls(frozenset(names - {LM_HEAD} if tied else names), tied)

    def checked(self, named_tensors: NamedTensors) -> Iterator[tuple[str, torch.Tensor]]:
        """Pass the stream on, but for a tied lm_head. Raises EngineError on a foreign or missing name."""
        missing = set(self.names)
        for name, tensor in named_tensors:
            if self.tied and name == LM_HEAD:
                continue
            if name not in missing:
                kind = "came twice" if name in self.names else "is not a tensor of this model"
                raise EngineError(f"loading weights: {name!r} {kind}")
            missing.remove(name)
            yield name, tensor
        if missing:
            raise EngineError(f"loading weights: {len(missing)} tensors are missing, {min(missing)!r} first")


def read_weights(directory: Path) -> Iterator[tuple[str, torch.Tensor]]:
    """Every tensor of a Hugging Face directory's safetensors files."""
    from safetensors import safe_open

    files = sorted(directory.glob("*.safetensors"))
    if not files:
        raise UserError(f"{directory}: no safetensors file")
    for file in files:
        with safe_open(file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 - safe_open is no mapping
                yield name, tensors.get_tensor(name)
