"""The formulas of training against plain numpy in float64."""

import numpy as np
import pytest
import torch

from ulorl.train.advantage import grpo_advantages, is_uniform
from ulorl.train.batch import Trajectory, collate, micro_batches
from ulorl.train.logprobs import token_logprobs
from ulorl.train.mastered import masked_tokens, mastered_tokens, response_entropy
from ulorl.train.objective import policy_loss


def test_grpo_advantages_follow_the_formula():
    rewards = np.array([[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0]])
    expected = []
    for row in rewards:
        mean = sum(row) / 4
        deviation = (sum((value - mean) ** 2 for value in row) / 3) ** 0.5
        expected.append([(value - mean) / (deviation + 1e-6) for value in row])
    np.testing.assert_allclose(grpo_advantages(rewards), expected, rtol=1e-12)


def test_a_uniform_group_has_no_advantage():
    assert is_uniform([1.0, 1.0])
    assert not is_uniform([1.0, 0.0])
    assert (grpo_advantages(np.ones((1, 4))) == 0).all()


def reference_loss(logprobs, old, advantages, trained, total, low, high):
    """UloRL's J in plain Python, negated."""
    value = 0.0
    for row in range(logprobs.shape[0]):
        for column in range(logprobs.shape[1]):
            if trained[row, column]:
                ratio = np.exp(logprobs[row, column] - old[row, column])
                clipped = min(max(ratio, 1 - low), 1 + high)
                value += min(ratio * advantages[row], clipped * advantages[row])
    return -value / total


@pytest.mark.parametrize(("low", "high"), [(0.2, 0.2), (0.2, 0.28), (0.05, 0.4)])
def test_policy_loss_and_gradient(low, high):
    rng = np.random.default_rng(0)
    logprobs, old = rng.normal(-1, 0.5, (5, 7)), rng.normal(-1, 0.5, (5, 7))
    advantages, trained = rng.normal(size=5), rng.random((5, 7)) < 0.7
    tensor = torch.tensor(logprobs, requires_grad=True)
    result = policy_loss(
        tensor,
        torch.tensor(old),
        torch.tensor(advantages),
        torch.tensor(trained),
        total_tokens=41,
        clip_low=low,
        clip_high=high,
    )
    expected = reference_loss(logprobs, old, advantages, trained, 41, low, high)
    assert result.loss.item() == pytest.approx(expected, rel=1e-12)
    result.loss.backward()
    step = 1e-6
    for row, column in [(0, 0), (2, 3), (4, 6)]:
        moved = logprobs.copy()
        moved[row, column] += step
        slope = (reference_loss(moved, old, advantages, trained, 41, low, high) - expected) / step
        assert tensor.grad[row, column].item() == pytest.approx(slope, abs=1e-6)


def test_at_the_first_update_nothing_is_clipped_and_the_gradient_is_the_advantage():
    logprobs = torch.tensor([[-0.5, -3.0]], dtype=torch.float64, requires_grad=True)
    trained = torch.tensor([[True, True]])
    result = policy_loss(
        logprobs,
        logprobs.detach(),
        torch.tensor([1.5]),
        trained,
        total_tokens=2,
        clip_low=0.2,
        clip_high=0.2,
    )
    result.loss.backward()
    assert result.clipped.item() == 0
    assert logprobs.grad.tolist() == [[-0.75, -0.75]]


def test_untrained_positions_do_not_poison_the_loss():
    logprobs = torch.tensor([[0.0, -1.0]], requires_grad=True)
    old = torch.tensor([[-1e9, -1.0]])
    result = policy_loss(
        logprobs,
        old,
        torch.tensor([1.0]),
        torch.tensor([[False, True]]),
        total_tokens=1,
        clip_low=0.2,
        clip_high=0.2,
    )
    result.loss.backward()
    assert result.loss.item() == -1.0
    assert torch.isfinite(logprobs.grad).all()


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


@pytest.mark.parametrize("tile_logits", [1, 7 * 11, 10**6])
def test_logprobs_and_entropy_equal_numpy_for_any_tile(tile_logits):
    rng = np.random.default_rng(1)
    hidden, weight = rng.normal(size=(9, 5)), rng.normal(size=(11, 5))
    targets = rng.integers(0, 11, 9)
    logits = hidden @ weight.T / 0.7
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    head = torch.nn.Linear(5, 11, bias=False, dtype=torch.float64)
    head.weight.data = torch.tensor(weight)
    states = torch.tensor(hidden, requires_grad=True)
    logprobs, entropy = token_logprobs(
        states, torch.tensor(targets), head, vocab_size=11, temperature=0.7, tile_logits=tile_logits
    )
    np.testing.assert_allclose(logprobs.detach(), np.log(probabilities[np.arange(9), targets]), atol=2e-6)
    np.testing.assert_allclose(entropy, -(probabilities * np.log(probabilities)).sum(axis=1), atol=2e-6)
    logprobs.sum().backward()
    expected = (np.eye(11)[targets] - probabilities) @ weight / 0.7
    np.testing.assert_allclose(states.grad, expected, atol=1e-5)


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
    batch = collate([trajectory(2, 3), trajectory(1, 1)], "cpu")
    targets = batch.tokens_BL[:, 1:]
    assert targets[batch.response_BT].tolist() == [50, 51, 52, 50]
    assert batch.behaviour_logprobs_BT[batch.response_BT].tolist() == pytest.approx([0, -0.1, -0.2, 0])
    assert batch.versions_BT[batch.response_BT].tolist() == [3, 3, 3, 3]
