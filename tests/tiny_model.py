"""Builds a tiny random Qwen3 model with a character-level tokenizer: everything a real model directory has.

Deterministic in ``seed``. Does not train: outputs are noise, which is what engine tests need.
"""

from __future__ import annotations

import string
from pathlib import Path

SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>", "<unk>")
CHARACTERS = string.digits + string.ascii_letters + string.punctuation + " \n"
CHAT_TEMPLATE = (
    "{{ bos_token }}"
    "{% for message in messages %}[{{ message['role'] }}]{{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


def make_tiny_model(
    directory: Path, seed: int = 0, *, hidden_size: int = 64, layers: int = 2, tied: bool = True, experts: int = 0
) -> Path:
    """Write model and tokenizer to ``directory`` and return it. ``tied``: no lm_head of its own.

    ``experts``: of each layer, two of them chosen for a token; 0 is a dense model.
    """
    import torch
    from transformers import AutoModelForCausalLM, Qwen3Config, Qwen3MoeConfig

    directory.mkdir(parents=True, exist_ok=True)
    tokenizer_size = _write_tokenizer(directory)
    mixture = {"num_experts": experts, "num_experts_per_tok": 2, "moe_intermediate_size": 32} if experts else {}
    config = (Qwen3MoeConfig if experts else Qwen3Config)(
        **mixture,
        vocab_size=tokenizer_size,
        hidden_size=hidden_size,
        intermediate_size=2 * hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=2048,
        tie_word_embeddings=tied,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        initializer_range=0.3,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.generation_config.eos_token_id = 2
    model.generation_config.pad_token_id = 0
    model.save_pretrained(directory)
    return directory


def _write_tokenizer(directory: Path) -> int:
    """Write tokenizer files; returns the vocabulary size (103)."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {token: index for index, token in enumerate((*SPECIAL_TOKENS, *CHARACTERS))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<bos>",
        eos_token="<eos>",
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = CHAT_TEMPLATE
    fast.save_pretrained(directory)
    return len(vocabulary)
