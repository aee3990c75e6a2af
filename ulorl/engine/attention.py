"""Which of transformers' attention implementations computes what the model's configuration says."""

from __future__ import annotations

from pathlib import Path


def attention_for(directory: Path) -> str | None:
    """None, transformers' own choice (sdpa, where a model has it), but for models that cap their attention logits: sdpa
    leaves the cap out."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(directory, local_files_only=True).get_text_config()
    return "eager" if getattr(config, "attn_logit_softcapping", None) else None
