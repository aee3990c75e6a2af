"""The formulas of training against plain numpy in float64."""

import numpy as np
import pytest
import torch

from ulorl.train.batch import Trajectory, collate, micro_batches
from ulorl.train.logprobs import token_logprobs
from ulorl.train.mastered import masked_tokens, mastered_tokens, response_entropy


def test_mastered_tokens_and_their_mask():
    logprobs = torch.log(torch.tensor([[0.995, 0.5, 0.99], [0.999, 0.999, 0.2]], dtype=torch.float64))
    response = torch.tensor([[True, True, True], [True, True, False]])
    mastered = mastered_tokens(logprobs, response, torch.tensor([1.0, 0.0]), tau=0.99)
    assert mastered.tolist() == [[True, False, True], [False, False, False]]
    assert masked_tokens(mastered, torch.tensor([0.1, 0.1]), sigma=0.2).tolist() == mastered.tolist()
    assert not masked_tokens(mastered, torch.tensor([0.3, 0.1]), sigma=0.2).any()


def test_response_entropy_is_the_mean_over_response_tokens():
    entropy = torch.tensor([[0.4, 0.2, 9.0], [0.3, 9.0, 9.0]])
    response = torch.tensor([[True, True, False], [True, False, False]])
    np.testing.assert_allclose(response_entropy(entropy, response).numpy(), [0.3, 0.3], rtol=1e-6)


@pytest.mark.parametrize("tile", [(1, 1), (4, 3), (2, 11), (100, 100)])
@pytest.mark.parametrize("scale", [1.0, 60.0])
def test_logprobs_and_entropy_equal_numpy_for_any_tile(tile, scale):
    rng = np.random.default_rng(1)
    hidden, weight, bias = rng.normal(size=(9, 5)) * scale, rng.normal(size=(11, 5)), rng.normal(size=11)
    targets, slope, entropy_slope = rng.integers(0, 11, 9), rng.normal(size=9), rng.normal(size=9)
    logits = (hidden @ weight.T + bias) / 0.7
    logits -= logits.max(axis=1, keepdims=True)
    logprobs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    probabilities = np.exp(logprobs)
    entropy = -(probabilities * logprobs).sum(axis=1)
    gradient = slope[:, None] * (np.eye(11)[targets] - probabilities)
    gradient -= entropy_slope[:, None] * probabilities * (logprobs + entropy[:, None])
    gradient /= 0.7

    states, head, offset = (torch.tensor(value, requires_grad=True) for value in (hidden, weight, bias))
    found, found_entropy = token_logprobs(states, torch.tensor(targets), head, offset, temperature=0.7, tile=tile)
    (found @ torch.tensor(slope) + found_entropy @ torch.tensor(entropy_slope)).backward()
    np.testing.assert_allclose(found.detach(), logprobs[np.arange(9), targets], atol=1e-10)
    np.testing.assert_allclose(found_entropy.detach(), entropy, atol=1e-10)
    np.testing.assert_allclose(states.grad, gradient @ weight, atol=1e-9)
    np.testing.assert_allclose(head.grad, gradient.T @ hidden, atol=1e-8)
    np.testing.assert_allclose(offset.grad, gradient.sum(axis=0), atol=1e-9)


@pytest.mark.parametrize("tile", [(4, 3), (100, 100)])
@pytest.mark.parametrize(("scale", "softcap"), [(0.125, None), (1.0, 5.0), (3.0, 5.0)])
def test_scaled_and_capped_logits_have_the_gradient_of_autograd(tile, scale, softcap):
    random = torch.Generator().manual_seed(1)
    shapes = ((9, 5), (11, 5), (11,), (9,), (9,))
    states, head, offset, slope, entropy_slope = (
        torch.randn(shape, generator=random, dtype=torch.float64) for shape in shapes
    )
    targets = torch.randint(0, 11, (9,), generator=random)
    given = [one.requires_grad_() for one in (states * 4, head, offset)]
    logits = torch.nn.functional.linear(*given) * scale
    logits = logits if softcap is None else softcap * torch.tanh(logits / softcap)
    every = torch.log_softmax(logits / 0.7, dim=-1)
    expected = every[torch.arange(9), targets], -(every.exp() * every).sum(-1)
    found = token_logprobs(
        given[0], targets, given[1], given[2], temperature=0.7, scale=scale, softcap=softcap, tile=tile
    )
    gradients = []
    for logprobs, entropy in (expected, found):
        gradients.append(torch.autograd.grad(logprobs @ slope + entropy @ entropy_slope, given))
    for one, other in ((expected, found), gradients):
        for right, mine in zip(one, other, strict=True):
            torch.testing.assert_close(mine, right, atol=1e-10, rtol=1e-10)


def test_logprobs_of_half_precision_states_are_kept_in_fp32():
    states, head = torch.randn(6, 8, dtype=torch.bfloat16), torch.randn(50, 8, dtype=torch.bfloat16)
    logprobs, entropy = token_logprobs(states, torch.arange(6), head, temperature=1.0, tile=(4, 16))
    expected = torch.log_softmax((states @ head.T).float(), dim=-1)
    assert logprobs.dtype == entropy.dtype == torch.float32
    torch.testing.assert_close(logprobs, expected[torch.arange(6), torch.arange(6)])


def test_no_tokens_have_no_logprobs():
    logprobs, entropy = token_logprobs(
        torch.zeros(0, 4), torch.zeros(0, dtype=torch.long), torch.zeros(7, 4), temperature=1.0
    )
    assert logprobs.shape == entropy.shape == (0,)


def trajectory(prompt, response):
    return Trajectory(
        tuple(range(1, prompt + 1)),
        tuple(range(50, 50 + response)),
        tuple(-0.1 * n for n in range(response)),
        (3,) * response,
        1.0,
        0.5,
    )


def test_micro_batches_keep_everything_within_the_budget():
    items = [trajectory(3, length) for length in (1, 30, 2, 9, 9, 4, 100)]
    batches = micro_batches(items, max_tokens=64)
    assert sorted(index for batch in batches for index in batch) == list(range(7))
    for batch in batches:
        cells = len(batch) * max(items[index].length for index in batch)
        assert cells <= 64 or len(batch) == 1


def test_collate_aligns_response_targets():
    batch = collate([trajectory(2, 3), trajectory(1, 1)], [0.25, 0.5], "cpu")
    targets = batch.tokens_BL[:, 1:]
    assert targets[batch.response_BT].tolist() == [50, 51, 52, 50]
    assert batch.behaviour_logprobs_BT[batch.response_BT].tolist() == pytest.approx([0, -0.1, -0.2, 0])
    assert batch.weights_BT[batch.response_BT].tolist() == [0.25, 0.25, 0.25, 0.5]
    assert batch.weights_BT[~batch.response_BT].eq(0).all()
    assert batch.versions_BT[batch.response_BT].tolist() == [3, 3, 3, 3]
