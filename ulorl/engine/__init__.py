"""Text generation behind one protocol; ``open_engine`` chooses the implementation a recipe asks for."""

from __future__ import annotations

import importlib.util
import json
import warnings
from pathlib import Path

from ulorl.engine.base import Engine, EngineError, Generation, GenerationRequest, Sampling
from ulorl.recipe import Recipe

__all__ = [
    "Engine",
    "EngineError",
    "Generation",
    "GenerationRequest",
    "Sampling",
    "engine_kind",
    "open_engine",
]

STRETCHED_ROPE = ("yarn", "linear", "dynamic")
"""Kinds of rotary embedding that allow more positions than the model was trained with."""


def engine_kind(recipe: Recipe) -> str:
    """The engine that ``recipe.engine.kind`` means on this machine: "vllm", "server" or "hf"."""
    kind = recipe.engine.kind
    if kind != "auto":
        return kind
    return "vllm" if importlib.util.find_spec("vllm") is not None else "hf"


def open_engine(
    recipe: Recipe, model_dir: Path, *, max_model_len: int | None = None, seed: int | None = None
) -> Engine:
    """Open the engine of ``recipe`` on the model in ``model_dir``.

    ``max_model_len`` defaults to the recipe's setting, else to its longest prompt + output; ``seed`` (of the
    engine; requests bring their own) to the recipe's. Raises EngineError; warns when "auto" fell back to hf.
    """
    settings = recipe.engine
    longest = max_model_len or settings.max_model_len or recipe.longest_sequence
    named = recipe.longest_setting if longest == recipe.longest_sequence else "the max_tokens settings"
    _check_positions(model_dir, longest, named)
    kind = engine_kind(recipe)
    if kind == "server":
        from ulorl.engine.server import ServerEngine

        return ServerEngine(model_dir, settings, max_model_len=longest)
    if kind == "hf":
        from ulorl.engine.hf_engine import HFEngine

        if settings.kind == "auto":
            warnings.warn(
                "vLLM is not installed (no package named vllm): generating with plain transformers,"
                ' which is slow; set engine.kind = "hf" to accept that',
                stacklevel=2,
            )
        return HFEngine(model_dir, settings, dtype=recipe.model.dtype, max_model_len=longest)
    from ulorl.engine.vllm_engine import VLLMEngine

    return VLLMEngine(
        model_dir,
        settings,
        dtype=recipe.model.dtype,
        max_model_len=longest,
        seed=recipe.seed if seed is None else seed,
    )


def _check_positions(model_dir: Path, longest: int, named: str = "the max_tokens settings") -> None:
    """Raise EngineError when the model's configuration does not allow sequences of ``longest`` tokens; ``named``: what
    to lower.

    A rotary embedding that is stretched (YaRN, linear, dynamic) allows its factor times the original length.
    """
    config = json.loads((model_dir / "config.json").read_text(encoding="utf-8"))
    positions = config.get("max_position_embeddings")
    if not isinstance(positions, int):
        return
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if rope.get("rope_type", rope.get("type")) in STRETCHED_ROPE:
        original = rope.get("original_max_position_embeddings") or positions
        positions = max(positions, int(original * rope.get("factor", 1)))
    if longest > positions:
        raise EngineError(
            f"the longest prompt + output of the recipe is {longest} tokens, the model in {model_dir} has "
            f"{positions} positions (config.json); lower model.max_prompt_tokens or {named}"
        )
