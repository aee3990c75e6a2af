"""Log-probs of the policy against those of the Hugging Face model itself, for models of several kinds."""

import pytest
import torch
import transformers

from ulorl.train.policy import Policy

pytestmark = pytest.mark.engine
TEMPERATURE = 0.8
SIZES = {
    "vocab_size": 103,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 256,
    "initializer_range": 0.3,
    "tie_word_embeddings": False,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GPT2 = {"n_embd": 64, "n_layer": 2, "n_head": 2, "n_positions": 256}
FALCON = {"alibi": False, "new_decoder_architecture": False, "multi_query": True, "parallel_attn": False}


def make(directory, name, **settings):
    """A model of random weights, large enough in its logits for a difference to show."""
    config = getattr(transformers, f"{name}Config")(**SIZES | settings)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.save_pretrained(directory)
    return directory


def sequences():
    random = torch.Generator().manual_seed(1)
    return torch.randint(4, 100, (2, 24), generator=random), torch.ones(2, 23, dtype=torch.bool)


def plain(directory, tokens_BL, dtype=torch.float64):
    """Log-probs and entropies from the model's own logits."""
    eager = {"attn_implementation": "eager", "experts_implementation": "eager"}
    model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=dtype, **eager)
    with torch.no_grad():
        logprobs_BTV = torch.log_softmax(model(tokens_BL[:, :-1]).logits / TEMPERATURE, dim=-1)
    chosen_BT = logprobs_BTV.gather(-1, tokens_BL[:, 1:, None])[..., 0]
    return chosen_BT.float(), -(logprobs_BTV.exp() * logprobs_BTV).sum(-1).float()


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("GPT2", GPT2),  # its default configuration has three kinds of dropout
        ("Phi", {"resid_pdrop": 0.1}),
        ("Qwen2", {"attention_dropout": 0.1}),
        ("Llama", {"attention_dropout": 0.1}),
        ("Falcon", FALCON | {"hidden_dropout": 0.1, "attention_dropout": 0.1}),
        ("OPT", {"word_embed_proj_dim": 64, "ffn_dim": 96, "dropout": 0.1, "layerdrop": 0.5}),
        ("Mixtral", {"num_local_experts": 4, "router_jitter_noise": 0.5}),
    ],
)
def test_a_policy_in_training_has_no_dropout(tmp_path, name, settings, checkpointing):
    tokens, response = sequences()
    directory = make(tmp_path, name, **settings)
    policy = Policy(directory, "float32", packing="auto", activation_checkpointing=checkpointing).train()
    logprobs, entropy = policy(tokens, response, TEMPERATURE)
    for found, expected in zip((logprobs, entropy), plain(directory, tokens), strict=True):
        torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-5)
    logprobs.sum().backward()  # recomputes what was not kept
    assert any(module.training for module in policy.model.modules()) == checkpointing
