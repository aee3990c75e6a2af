"""The shape of a transformer, read from a Hugging Face ``config.json``, and the parameter count that follows.

Covers dense and mixture-of-experts decoders with the configuration names of Llama and Qwen (grouped-query
attention, gated MLP, RMS norms). Reads no weights and downloads nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ulorl.errors import UserError

QUICKSTART_MODEL = Path(__file__).parent / "quickstart" / "model"
_NEEDED = ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size")


@dataclass(frozen=True)
class ModelShape:
    """Sizes of a decoder. ``experts`` 0 means a dense MLP; ``qk_norm`` says that queries and keys are
    normalised."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    intermediate: int
    dense_layers: int
    experts: int = 0
    experts_per_token: int = 0
    expert_intermediate: int = 0
    tied_embeddings: bool = False
    attention_bias: bool = False
    qk_norm: bool = False

    @property
    def parameters(self) -> int:
        """All parameters."""
        return self._count(self.experts)

    @property
    def active_parameters(self) -> int:
        """Parameters that work on one token."""
        return self._count(self.experts_per_token)

    def _count(self, experts: int) -> int:
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        attention = 2 * self.hidden * queries + 2 * self.hidden * keys
        attention += (queries + 2 * keys) if self.attention_bias else 0
        attention += 2 * self.head_dim if self.qk_norm else 0
        dense = 3 * self.hidden * self.intermediate
        sparse = experts * 3 * self.hidden * self.expert_intermediate + self.experts * self.hidden
        layers = self.layers * (attention + 2 * self.hidden)
        layers += self.dense_layers * dense + (self.layers - self.dense_layers) * sparse
        embeddings = self.vocab * self.hidden * (1 if self.tied_embeddings else 2)
        return layers + embeddings + self.hidden


KNOWN_CONFIGS: dict[str, dict[str, Any]] = {
    "Qwen/Qwen3-30B-A3B": {
        "model_type": "qwen3_moe",
        "num_hidden_layers": 48,
        "hidden_size": 2048,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "vocab_size": 151936,
        "intermediate_size": 6144,
        "moe_intermediate_size": 768,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "tie_word_embeddings": False,
    },
}
"""Published configurations of hub models that recipes of this repository name, so that sizes need no download."""


def read_model_shape(model: str) -> ModelShape | None:
    """The shape of a local model directory (or ``quickstart``), or of a known hub model; None for other hub names
    and for unknown architectures.

    UserError when the directory's config.json cannot be read.
    """
    path = (QUICKSTART_MODEL if model == "quickstart" else Path(model)) / "config.json"
    if not path.is_file():
        return shape_of(KNOWN_CONFIGS[model]) if model in KNOWN_CONFIGS else None
    try:
        config = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not readable as JSON: {error}") from error
    return shape_of(config)


def shape_of(config: dict[str, Any]) -> ModelShape | None:
    """The shape that a Hugging Face configuration describes; None when it uses other names."""
    if not all(isinstance(config.get(name), int) for name in _NEEDED):
        return None
    layers, hidden, heads = (config[name] for name in _NEEDED[:3])
    family = str(config.get("model_type", ""))
    experts = config.get("num_experts") or config.get("num_local_experts") or 0
    every = config.get("decoder_sparse_step") or 1
    dense_only = set(config.get("mlp_only_layers") or ())
    sparse = [layer for layer in range(layers) if layer not in dense_only and (layer + 1) % every == 0]
    return ModelShape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=config.get("num_key_value_heads") or heads,
        head_dim=config.get("head_dim") or hidden // heads,
        vocab=config["vocab_size"],
        intermediate=config.get("intermediate_size") or 0,
        dense_layers=layers - len(sparse) if experts else layers,
        experts=experts,
        experts_per_token=config.get("num_experts_per_tok") or 0,
        expert_intermediate=config.get("moe_intermediate_size") or config.get("intermediate_size") or 0,
        tied_embeddings=bool(config.get("tie_word_embeddings", False)),
        # Qwen2 has biases on queries, keys and values without saying so in its configuration.
        attention_bias=bool(config.get("attention_bias", family.startswith("qwen2"))),
        qk_norm=family.startswith("qwen3"),
    )
