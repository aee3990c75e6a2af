"""Packed rows: attention stays within each sequence, and a model's results do not show how rows are laid out."""

import sys
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from ulorl.errors import UserError
from ulorl.recipe_train import LearnerRecipe
from ulorl.train import packing
from ulorl.train.batch import LOSS_PADDING, Trajectory, micro_batches
from ulorl.train.packing import Layout, pack, packed_attention
from ulorl.train.policy import Policy
from ulorl.train.sequence_parallel import SequenceGroup, check_group, check_heads

LENGTHS = [(5,), (1, 1), (7, 7, 7), (9, 4, 1), (1, 30, 2, 3), (12, 11, 6, 5, 1, 1)]


class Pretended(SequenceGroup):
    """A group of which one member looks at whole rows."""

    def __init__(self, size):
        self.size = size


def inputs(lengths, heads, kv_heads, seed=0):
    random = torch.Generator().manual_seed(seed)
    shapes = [(1, count, sum(lengths), 3) for count in (heads, kv_heads, kv_heads)]
    return [torch.randn(shape, generator=random, dtype=torch.float64, requires_grad=True) for shape in shapes]


def dense(query, key, value, lengths, scaling, window):
    """Attention with the whole mask written out, each head with the key and value head of its group."""
    number = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    place = torch.arange(len(number))
    seen = (number[:, None] == number) & (place[:, None] >= place)
    if window is not None:
        seen &= place[:, None] - place < window
    groups = query.shape[1] // key.shape[1]
    results = []
    for head in range(query.shape[1]):
        scores = scaling * query[0, head] @ key[0, head // groups].T
        weights = torch.softmax(scores.masked_fill(~seen, -torch.inf), dim=-1)
        results.append(weights @ value[0, head // groups])
    return torch.stack(results, dim=1).unsqueeze(0)


def compare(lengths, heads, kv_heads, window):
    own, other = inputs(lengths, heads, kv_heads), inputs(lengths, heads, kv_heads)
    layout = Layout(tuple(lengths), SequenceGroup())
    found, _ = packed_attention(None, *own, None, layout=layout, scaling=0.4, sliding_window=window)
    expected = dense(*other, lengths, 0.4, window)
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=1e-10)
    slope = torch.sin(torch.arange(found.numel(), dtype=torch.float64)).view_as(found)
    (found * slope).sum().backward()
    (expected * slope).sum().backward()
    for one, two in zip(own, other, strict=True):
        torch.testing.assert_close(one.grad, two.grad, atol=1e-12, rtol=1e-10)


@pytest.mark.parametrize("window", [None, 1, 4])
@pytest.mark.parametrize(("heads", "kv_heads"), [(2, 2), (4, 1)])
@pytest.mark.parametrize("lengths", LENGTHS)
def test_attention_stays_within_each_sequence(lengths, heads, kv_heads, window):
    compare(lengths, heads, kv_heads, window)


@pytest.mark.parametrize("window", [None, 4])
def test_flash_attention_is_called_with_the_borders_of_the_sequences(monkeypatch, window):
    """Its kernel for rows of sequences, played by the dense computation (there is no GPU here)."""

    def flash_attn_varlen_func(q, k, v, *, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, **settings):
        assert cu_seqlens_q.dtype == torch.int32 and cu_seqlens_q.equal(cu_seqlens_k)
        lengths = cu_seqlens_q.diff().tolist()
        assert max_seqlen_q == max_seqlen_k == max(lengths)
        left, right = settings["window_size"]
        assert settings["causal"] and right <= 0
        heads = (one.transpose(0, 1).unsqueeze(0) for one in (q, k, v))
        return dense(*heads, lengths, settings["softmax_scale"], None if left == -1 else left + 1)[0]

    monkeypatch.setitem(sys.modules, "flash_attn", SimpleNamespace(flash_attn_varlen_func=flash_attn_varlen_func))
    monkeypatch.setattr(packing, "flash_kernel", lambda *_: True)
    compare((9, 4, 1), 4, 2, window)


def test_the_flash_kernel_is_for_half_precision_on_a_gpu_where_it_is_installed(monkeypatch):
    monkeypatch.setattr(packing, "_flash_installed", lambda: True)
    assert packing.flash_kernel("cuda", torch.bfloat16)
    assert not packing.flash_kernel("cuda", torch.float32)
    assert not packing.flash_kernel("cpu", torch.bfloat16)
    monkeypatch.setattr(packing, "_flash_installed", lambda: False)
    assert not packing.flash_kernel("cuda", torch.bfloat16)


def test_attention_that_packed_rows_cannot_compute_is_refused():
    row = inputs((3, 2), 2, 2)
    layout = Layout((3, 2), SequenceGroup())
    with pytest.raises(UserError, match=r'softcap.*packing = "never"'):
        packed_attention(None, *row, None, layout=layout, softcap=30.0)
    with pytest.raises(UserError, match="mask of its own"):
        packed_attention(None, *row, torch.ones(5, 5), layout=layout)
    with pytest.raises(UserError, match="not told where sequences end"):
        packed_attention(None, *row, None)


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_a_row_holds_each_sequence_up_to_its_last_response(size):
    tokens = torch.arange(1, 25).view(3, 8)
    response = torch.zeros(3, 7, dtype=torch.bool)
    response[0, 3:5] = response[2, 1:7] = True  # the second has no response
    row = pack(tokens, response, Pretended(size))
    assert len(row.tokens_P) % size == 0 and len(row.tokens_P) < 12 + size
    assert row.tokens_P[:12].tolist() == [1, 2, 3, 4, 5, 17, 18, 19, 20, 21, 22, 23]
    assert row.targets_P[:12].tolist() == [2, 3, 4, 5, 6, 18, 19, 20, 21, 22, 23, 24]
    assert row.positions_P[:12].tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 6]
    assert row.targets_P[row.response_P].tolist() == tokens[:, 1:][response].tolist()
    assert sum(row.layout.lengths) == len(row.tokens_P)


def test_a_row_of_nothing_has_a_token_for_each_process():
    row = pack(torch.zeros(1, 2, dtype=torch.long), torch.zeros(1, 1, dtype=torch.bool), Pretended(4))
    assert len(row.tokens_P) == 4
    assert not row.response_P.any()


SIZES = {
    "vocab_size": 50,
    "hidden_size": 24,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 6,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}


def make(directory, config):
    """A random model of this configuration, with weights large enough that attention matters."""
    from transformers import AutoModelForCausalLM

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config)
        for parameter in model.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(directory)
    return directory


def results(policy, tokens, response):
    """Log-probs, entropies and the gradient of a function of both."""
    logprobs, entropy = policy(tokens, response, 0.8)
    policy.zero_grad()
    (logprobs.sin() + entropy.square()).sum().backward()
    gradients = {name: one.grad.clone() for name, one in policy.model.named_parameters() if one.grad is not None}
    return logprobs.detach(), entropy.detach(), gradients


def batch():
    rng = np.random.default_rng(5)
    tokens = torch.tensor(rng.integers(1, 50, (5, 20)))
    lengths, prompts = [20, 18, 7, 7, 3], [4, 1, 3, 6, 1]
    places = torch.arange(19)
    response = torch.stack([(places >= p - 1) & (places < n - 1) for n, p in zip(lengths, prompts, strict=True)])
    return tokens, response


@pytest.mark.parametrize("name", ["LlamaConfig", "Qwen2Config", "MistralConfig", "Qwen3MoeConfig", "Gemma3TextConfig"])
def test_results_and_gradients_of_a_model_do_not_show_how_rows_are_laid_out(name, tmp_path):
    import transformers

    more = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16} if "Moe" in name else {}
    more |= {"sliding_window": 4} if name in ("MistralConfig", "Gemma3TextConfig") else {}
    model = make(tmp_path, getattr(transformers, name)(**SIZES, **more))
    tokens, response = batch()
    padded = results(Policy(model, "float32", packing="never"), tokens, response)
    packed = Policy(model, "float32", packing="auto")
    assert packed.packed and "packed" in packed.rows
    found = results(packed, tokens, response)
    for one, other in zip(found[:2], padded[:2], strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
        assert (one[response] != 0).all()
    assert found[2].keys() == padded[2].keys()
    for weight, gradient in padded[2].items():
        assert (found[2][weight] - gradient).abs().max() <= 1e-5 * gradient.abs().max() + 1e-7, weight


def test_a_packed_row_equals_that_of_transformers_with_a_block_mask(tiny_model):
    """Which it makes of position ids that begin again: quadratic in the row, and here an independent computation."""
    from transformers import AutoModelForCausalLM

    tokens, response = batch()
    row = pack(tokens, response, SequenceGroup())
    other = AutoModelForCausalLM.from_pretrained(tiny_model, attn_implementation="sdpa")
    logits = other(input_ids=row.tokens_P[None], position_ids=row.positions_P[None], use_cache=False).logits[0]
    logprobs = torch.log_softmax(logits / 0.8, dim=-1)[torch.arange(len(logits)), row.targets_P][row.response_P]
    found, _ = Policy(tiny_model, "float32", packing="always")(tokens, response, 0.8)
    torch.testing.assert_close(found[response], logprobs, atol=1e-5, rtol=1e-5)


def test_models_that_carry_a_state_along_the_row_are_padded(tmp_path):
    from transformers import Lfm2Config

    model = make(tmp_path, Lfm2Config(**SIZES, layer_types=["conv", "full_attention"]))
    policy = Policy(model, "float32", packing="auto")
    assert not policy.packed
    assert policy.rows == "rows of padded sequences (it has layers that carry a state along the row)"
    with pytest.raises(UserError, match=r'packing = "always".*state along the row'):
        Policy(model, "float32", packing="always")
    with pytest.raises(UserError, match=r"sequence_parallel_size = 2.*state along the row"):
        Policy(model, "float32", packing="auto", group=Pretended(2))


def test_heads_and_processes_must_divide(tiny_model):
    check_heads(32, 4, 8)
    check_heads(32, 8, 4)
    with pytest.raises(UserError, match="has 14 attention heads, which 4 processes"):
        check_heads(14, 2, 4)
    with pytest.raises(UserError, match="6 key and value heads"):
        check_heads(24, 6, 4)
    with pytest.raises(UserError, match="has 2 attention heads, which 4 processes"):
        Policy(tiny_model, "float32", packing="auto", group=Pretended(4))
    check_group(2, 8)
    with pytest.raises(UserError, match=r"sequence_parallel_size: 4 does not divide the 6 processes.*--nproc"):
        check_group(4, 6)
    with pytest.raises(UserError, match="the 1 process of"):
        check_group(2, 1)
    with pytest.raises(ValueError, match="packing"):
        LearnerRecipe(sequence_parallel_size=2, packing="never")


def items(lengths):
    return [
        Trajectory((1,), (5,) * (length - 1), (0.0,) * (length - 1), (0,) * (length - 1), 0.0, 0.0)
        for length in lengths
    ]


@pytest.mark.parametrize("lengths", [[30, 10, 20, 40, 5], [64, 2, 2, 2], [100, 70, 3], [60] + [2] * 200])
def test_packed_micro_batches_are_full_of_tokens_rather_than_of_padding(lengths):
    batches = micro_batches(items(lengths), 64, packed=True)
    assert sorted(index for of in batches for index in of) == list(range(len(lengths)))
    held = [[lengths[index] for index in of] for of in batches]
    for of in held:
        assert sum(of) <= 64 or len(of) == 1
        assert len(of) * max(of) <= 64 * LOSS_PADDING
    for of, following in pairwise(held):
        assert sum(of) + following[0] > 64 or (len(of) + 1) * max(of) > 64 * LOSS_PADDING
    assert len(batches) <= len(micro_batches(items(lengths), 64))
