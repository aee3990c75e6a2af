"""Log-probs of the policy against those of the Hugging Face model itself, for models of several kinds."""

import pytest
import torch
import transformers
from tiny_model import _write_tokenizer

from ulorl.engine.base import GenerationRequest, Sampling
from ulorl.engine.hf_engine import HFEngine
from ulorl.engine.weights import read_weights
from ulorl.errors import UserError
from ulorl.recipe import EngineRecipe
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


GEMMA2 = {"head_dim": 32, "query_pre_attn_scalar": 32}


@pytest.mark.parametrize("packing", ["auto", "never"])
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("Gemma2", GEMMA2 | {"final_logit_softcapping": 30.0, "attn_logit_softcapping": 50.0}),
        ("Gemma2", GEMMA2 | {"final_logit_softcapping": 5.0, "attn_logit_softcapping": None}),
        ("Gemma2", GEMMA2 | {"final_logit_softcapping": None, "attn_logit_softcapping": 5.0}),
        ("Granite", {"logits_scaling": 8.0, "attention_multiplier": 0.17}),
        ("Cohere", {"logit_scale": 0.0625}),
    ],
)
def test_logprobs_are_those_of_models_that_scale_or_cap_their_logits(tmp_path, name, settings, packing):
    tokens, response = sequences()
    directory = make(tmp_path, name, **settings)
    policy = Policy(directory, "float32", packing=packing)
    expected = plain(directory, tokens)
    for found, one in zip(policy(tokens, response, TEMPERATURE), expected, strict=True):
        torch.testing.assert_close(found, one, atol=2e-5, rtol=1e-5)


def test_the_engine_of_transformers_caps_attention_too(tmp_path):
    directory = make(tmp_path, "Gemma2", **GEMMA2, attn_logit_softcapping=5.0)
    _write_tokenizer(directory)
    engine = HFEngine(directory, EngineRecipe(kind="hf", threads=1), dtype="float32", max_model_len=64)
    engine.load_weights(((name, 1.1 * tensor) for name, tensor in read_weights(directory)), 1)
    (generation,) = engine.generate([GenerationRequest("", tuple(range(4, 30)), 12, 0, Sampling(TEMPERATURE))])
    engine._model.save_pretrained(directory)
    tokens = torch.tensor([[*range(4, 30), *generation.token_ids]])
    expected, _ = plain(directory, tokens)
    assert generation.logprobs == pytest.approx(expected[0, -12:].tolist(), abs=1e-4)


class Sharpened(transformers.LlamaForCausalLM):
    """Does to its logits what no configuration says."""

    def forward(self, *arguments, **settings):
        output = super().forward(*arguments, **settings)
        output.logits = output.logits * 1.5
        return output


def test_models_without_sdpa_are_sampled_and_trained(tmp_path):
    directory = make(tmp_path, "Bloom")
    _write_tokenizer(directory)
    policy = Policy(directory, "float32", packing="auto")
    assert "its attention cannot be replaced" in policy.rows
    assert HFEngine(directory, EngineRecipe(), dtype="float32", max_model_len=64).policy_version == 0


def test_a_model_that_does_something_unknown_is_refused(tmp_path, monkeypatch, caplog):
    directory = make(tmp_path, "Llama")
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", Sharpened.from_pretrained)
    for dtype in ("float32", "bfloat16"):
        with pytest.raises(
            UserError, match=r"differ by .* nats from those of Sharpened, which does something to its logits"
        ):
            Policy(directory, dtype)
    monkeypatch.undo()
    monkeypatch.setattr("ulorl.train.policy.attention_for", lambda _: "sdpa")
    directory = make(tmp_path, "Gemma2", **GEMMA2, attn_logit_softcapping=5.0)
    with pytest.raises(UserError, match=r"of Gemma2ForCausalLM, whose attention is computed otherwise"):
        Policy(directory, "float32")
    Policy(directory, "bfloat16")
    assert "whose attention is computed otherwise" in caplog.text


@pytest.mark.parametrize("name", ["Llama", "Qwen3Moe", "Lfm2", "GPT2", "OPT"])
def test_rounding_in_half_precision_is_no_difference(tmp_path, name):
    more = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32} if name == "Qwen3Moe" else {}
    more |= {"layer_types": ["conv", "full_attention"]} if name == "Lfm2" else {}
    more |= {"word_embed_proj_dim": 64, "ffn_dim": 96} if name == "OPT" else {}
    policy = Policy(make(tmp_path, name, **more), "bfloat16", packing="auto")
    tokens, response = sequences()
    assert policy(tokens, response, TEMPERATURE)[0].isfinite().all()
