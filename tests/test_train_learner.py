"""The DeepSpeed update on the tiny model: against a plain computation, and independent of how it is cut."""

import json
import shutil
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from ulorl.engine.base import Generation
from ulorl.problem import Problem
from ulorl.recipe import ModelRecipe
from ulorl.recipe_train import LearnerRecipe, ObjectiveRecipe
from ulorl.train.advantage import advantages as group_advantages
from ulorl.train.batch import Trajectory, split, trajectory
from ulorl.train.checkpoint import TrainerState, checkpoints, load_checkpoint, save_checkpoint, save_model
from ulorl.train.learner import Learner
from ulorl.train.pool import Group, Sample, UnfinishedPool

pytestmark = pytest.mark.engine
TEMPERATURE = 0.8


def trajectories(count=12, seed=0):
    rng = np.random.default_rng(seed)
    rewards = rng.integers(0, 2, (count // 4, 4)).astype(float)
    rewards[:, 0], rewards[:, 1] = 0, 1
    advantages = group_advantages(rewards).ravel()
    return [
        Trajectory(
            prompt_ids=tuple(rng.integers(4, 100, rng.integers(3, 9)).tolist()),
            token_ids=tuple(rng.integers(4, 100, length).tolist()),
            logprobs=(-2.0,) * length,
            versions=(0,) * length,
            reward=reward,
            advantage=advantage,
        )
        for length, reward, advantage in zip(
            rng.integers(1, 40, count).tolist(), rewards.ravel().tolist(), advantages.tolist(), strict=True
        )
    ]


def learner_of(model, objective=ObjectiveRecipe(), updates=0, **settings):
    recipe = LearnerRecipe(**{"lr": 1e-3, "max_grad_norm": 0.5} | settings)
    return Learner(model, ModelRecipe(), recipe, objective, TEMPERATURE, max_tokens=64, planned_updates=updates)


def weights(learner):
    return {name: tensor.clone() for name, tensor in learner.named_tensors()}


def plain_loss(model_dir, items, mask_below=None):
    """The objective from full logits, one sequence at a time, in float64; mean entropy with it."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float64, experts_implementation="eager")
    total, entropies = sum(len(item.token_ids) for item in items), []
    loss = torch.zeros((), dtype=torch.float64)
    for item in items:
        ids = torch.tensor([item.prompt_ids + item.token_ids])
        logprobs = torch.log_softmax(model(ids).logits[0, len(item.prompt_ids) - 1 : -1] / TEMPERATURE, dim=-1)
        entropy = -(logprobs.exp() * logprobs).sum(dim=-1)
        entropies += entropy.tolist()
        chosen = logprobs[torch.arange(len(item.token_ids)), list(item.token_ids)]
        keep = torch.ones(len(item.token_ids), dtype=torch.bool)
        if mask_below is not None and item.reward == 1 and entropy.mean() < mask_below[1]:
            keep = chosen.exp() < mask_below[0]
        ratio = (chosen - chosen.detach()).exp()
        loss = loss - (ratio * item.advantage)[keep].sum() / total
    loss.backward()
    norm = sum(float((p.grad**2).sum()) for p in model.parameters() if p.grad is not None) ** 0.5
    return float(loss.detach()), norm, float(np.mean(entropies))


@pytest.mark.parametrize("mask", [None, (0.02, 100.0), (0.02, 3.9)])
def test_loss_gradient_and_entropy_equal_the_plain_computation(tiny_model, mask):
    objective = (
        ObjectiveRecipe(mastered="never")
        if mask is None
        else ObjectiveRecipe(tau=mask[0], sigma=mask[1], entropy_scope="response")
    )
    items = trajectories()
    tally = learner_of(tiny_model, objective).update(items).metrics()
    loss, norm, entropy = plain_loss(tiny_model, items, mask)
    assert tally["objective/loss"] == pytest.approx(loss, abs=1e-5)
    assert tally["objective/grad_norm"] == pytest.approx(norm, rel=1e-4)
    assert tally["entropy/mean"] == pytest.approx(entropy, rel=1e-5)
    assert (tally["objective/masked_share"] > 0) == (mask is not None)


@pytest.mark.parametrize(
    "settings",
    [
        {"micro_batch_tokens": 60},
        {"packing": "never"},
        {"packing": "never", "micro_batch_tokens": 60},
        {"zero_stage": 1},
        {"zero_stage": 2, "micro_batch_tokens": 200},
        {"zero_stage": 3},
        {"activation_checkpointing": True},
    ],
)
def test_the_update_does_not_depend_on_how_it_is_computed(tiny_model, settings):
    first, second = trajectories(seed=1), trajectories(seed=2)
    plain, other = learner_of(tiny_model), learner_of(tiny_model, **settings)
    for items in (first, second):
        expected, found = plain.update(items).metrics(), other.update(list(reversed(items))).metrics()
        assert found["objective/loss"] == pytest.approx(expected["objective/loss"], abs=1e-5)
        assert found["objective/grad_norm"] == pytest.approx(expected["objective/grad_norm"], rel=1e-4)
    for name, tensor in weights(plain).items():
        # AdamW's first steps are lr * sign(gradient): near-zero gradients may flip between orders of summation.
        assert (weights(other)[name] - tensor).abs().mean() < 1e-5, name


def through_the_pool(items, pieces):
    """The trajectories of ``items`` after they grew in the pool by so many segments under one policy."""
    pool = UnfinishedPool(max_tokens=64)
    for number, item in enumerate(items):
        group = Group(number, Problem(str(number), "", ""), item.prompt_ids, [Sample(0, 0)], born_step=1)
        pool.add([group])
        (sample,) = group.samples
        bounds = sorted({len(item.token_ids) * piece // pieces for piece in range(pieces + 1)})
        for step, (start, end) in enumerate(pairwise(bounds), 1):
            reason = "stop" if end == len(item.token_ids) else "length"
            segment = Generation("", item.token_ids[start:end], item.logprobs[start:end], reason, policy_version=0)
            pool.extend(group, sample, segment, step)
        sample.reward = item.reward
    return [
        trajectory(group, group.samples[0], item.advantage)
        for group, item in zip(pool.groups.values(), items, strict=True)
    ]


@pytest.mark.parametrize("ratio", ["pois", "sais"])
def test_one_segment_or_several_are_the_same_update_while_the_policy_is_the_same(tiny_model, ratio):
    items = trajectories(8)
    objective = ObjectiveRecipe(ratio=ratio, tau=0.02, sigma=100.0)
    one, several = through_the_pool(items, 1), through_the_pool(items, 4)
    assert one == several
    found = [learner_of(tiny_model, objective).update(grown).metrics() for grown in (one, several)]
    assert found[0] == found[1] == learner_of(tiny_model, objective).update(items).metrics()


def test_batch_scope_uses_one_entropy_for_all(tiny_model):
    items = trajectories()
    _, _, entropy = plain_loss(tiny_model, items)
    for sigma, expected in ((entropy + 0.01, True), (entropy - 0.01, False)):
        objective = ObjectiveRecipe(tau=0.02, sigma=sigma, entropy_scope="batch")
        tally = learner_of(tiny_model, objective).update(items).metrics()
        assert (tally["objective/masked_share"] == tally["objective/mastered_share"] > 0) == expected
        assert (tally["objective/masked_share"] == 0) == (not expected)


def test_several_updates_keep_the_ratio_to_the_start_of_the_step(tiny_model):
    objective = ObjectiveRecipe(epochs=3, mastered="never", clip_low=0.01, clip_high=0.01)
    learner = learner_of(tiny_model, objective, lr=1e-2)
    tally = learner.update(trajectories())
    assert learner.version == 3
    assert tally.metrics()["objective/clipped_share"] > 0


def test_mismatch_counts_tokens_of_the_current_policy_only(tiny_model):
    items = trajectories(4)
    stale = [
        Trajectory(item.prompt_ids, item.token_ids, item.logprobs, (-1,) * len(item.token_ids), 0.0, 1.0)
        for item in items[:2]
    ]
    tokens = sum(len(item.token_ids) for item in items[2:])
    tally = learner_of(tiny_model).update(stale + items[2:])
    assert tally.on_policy == tokens
    assert tally.metrics()["mismatch/max"] > 0.1
    old = learner_of(tiny_model).update(stale).metrics()
    assert (old["segment/age_1_share"], [name for name in old if name.startswith("mismatch/")]) == (1, [])


def test_a_checkpoint_continues_exactly_and_loads_as_a_hugging_face_model(tiny_model, tmp_path):
    first, second = trajectories(seed=3), trajectories(seed=4)
    learner = learner_of(tiny_model, warmup_steps=4)
    learner.update(first)
    for step in (1, 2, 3):
        save_checkpoint(tmp_path, learner, TrainerState(step, learner.version, 7, 2), [], tiny_model, keep=2)
    assert [path.name for path in checkpoints(tmp_path)] == ["step_000002", "step_000003"]
    saved = load_file(tmp_path / "step_000003" / "model" / "model.safetensors")
    held = weights(learner)
    assert saved.keys() == held.keys()
    assert all(torch.equal(saved[name], held[name]) for name in held)
    expected = learner.update(second).metrics()

    resumed = learner_of(tiny_model, warmup_steps=4)
    state, groups = load_checkpoint(tmp_path / "step_000003", resumed, [])
    assert (state, groups) == (TrainerState(3, 1, 7, 2), [])
    assert resumed.update(second).metrics() == expected
    assert all(torch.equal(tensor, weights(learner)[name]) for name, tensor in weights(resumed).items())


def test_sais_takes_the_log_probs_recorded_at_sampling(tiny_model):
    items = trajectories(8)
    objective = ObjectiveRecipe(ratio="sais", mastered="never", clip_low=0.2, clip_high=0.2)
    tally = learner_of(tiny_model, objective).update(items).metrics()
    expected, clipped, tokens = 0.0, 0, sum(len(item.token_ids) for item in items)
    for item, logprobs in zip(items, sampled_logprobs(tiny_model, items), strict=True):
        for logprob in logprobs:
            ratio = np.exp(logprob + 2.0)  # every token was recorded with a log-prob of -2
            bound = min(max(ratio, 0.8), 1.2)
            expected -= min(ratio * item.advantage, bound * item.advantage) / tokens
            clipped += bound * item.advantage < ratio * item.advantage
    assert tally["objective/loss"] == pytest.approx(expected, abs=1e-5)
    assert tally["objective/clipped_share"] == pytest.approx(clipped / tokens)
    assert clipped


def sampled_logprobs(model_dir, items):
    """Log-probs of each trajectory's response tokens in float64."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float64)
    found = []
    with torch.no_grad():
        for item in items:
            logits = model(torch.tensor([item.prompt_ids + item.token_ids])).logits[0, len(item.prompt_ids) - 1 : -1]
            logprobs = torch.log_softmax(logits / TEMPERATURE, dim=-1)
            found.append(logprobs[torch.arange(len(item.token_ids)), list(item.token_ids)].tolist())
    return found


@pytest.mark.parametrize("zero_stage", [0, 2, 3])
def test_the_kl_penalty_pulls_towards_the_reference_until_it_is_reset(tiny_model, tmp_path, zero_stage):
    objective = ObjectiveRecipe(kl=0.5, kl_estimator="k2", mastered="never")
    learner = learner_of(tiny_model, objective, lr=1e-2, zero_stage=zero_stage)
    items = trajectories(8)
    first = learner.update(items).metrics()
    before = sampled_logprobs(tiny_model, items)
    second = learner.update(items).metrics()
    assert first["objective/kl"] == 0 < second["objective/kl"]
    save_checkpoint(tmp_path, learner, TrainerState(1, learner.version, 7, 0), [], tiny_model, keep=1)
    now = sampled_logprobs(tmp_path / "step_000001" / "model", items)
    pairs = [pair for rows in zip(now, before, strict=True) for pair in zip(*rows, strict=True)]
    expected = np.mean([0.5 * (after - start) ** 2 for after, start in pairs])

    resumed = learner_of(tiny_model, objective, lr=1e-2, zero_stage=zero_stage)
    load_checkpoint(tmp_path / "step_000001", resumed, [])
    third = resumed.update(items).metrics()
    assert third == learner.update(items).metrics()
    assert third["objective/kl"] == pytest.approx(expected, rel=1e-4)

    learner.reset_reference()
    save_checkpoint(tmp_path, learner, TrainerState(2, learner.version, 7, 2), [], tiny_model, keep=1)
    fresh = learner_of(tmp_path / "step_000002" / "model", objective, lr=1e-2, zero_stage=zero_stage)
    assert learner.update(items).metrics()["objective/kl"] == fresh.update(items).metrics()["objective/kl"] == 0
    for name, tensor in weights(fresh).items():
        assert (weights(learner)[name] - tensor).abs().mean() < 1e-5, name


def test_the_first_update_in_half_precision_is_the_same_for_all_zero_stages(tiny_model):
    moves = []
    for zero_stage in (0, 1):
        recipe = LearnerRecipe(lr=1e-2, zero_stage=zero_stage)
        learner = Learner(
            tiny_model, ModelRecipe(dtype="bfloat16"), recipe, ObjectiveRecipe(), TEMPERATURE, max_tokens=64
        )
        before = weights(learner)
        learner.update(trajectories())
        after = weights(learner)
        moves.append(sum(float((after[name] - before[name]).float().abs().sum()) for name in before))
    assert moves[0] == pytest.approx(moves[1], rel=0.02)


def test_an_entropy_bonus_raises_entropy(tiny_model):
    items = [replace(item, advantage=0.0) for item in trajectories(8)]
    learner = learner_of(tiny_model, ObjectiveRecipe(entropy_bonus=1.0, mastered="never"), lr=1e-3)
    entropies = [learner.update(items).metrics()["entropy/mean"] for _ in range(4)]
    assert entropies == sorted(entropies) and entropies[-1] > entropies[0]


def test_minibatches_are_updates_of_their_own_over_the_policy_at_the_start(tiny_model):
    items = trajectories(12)
    objective = ObjectiveRecipe(minibatches=3, mastered="never", clip_low=0.001, clip_high=0.001)
    learner = learner_of(tiny_model, objective, lr=1e-2)
    tally = learner.update(items)
    assert learner.version == 3
    assert tally.tokens == sum(len(item.token_ids) for item in items)
    assert tally.metrics()["objective/clipped_share"] > 0  # the second and third update see a policy that moved


def test_the_loss_is_the_mean_of_the_updates_that_are_made(tiny_model):
    losses = []
    for minibatches in (4, 9):
        objective = ObjectiveRecipe(minibatches=minibatches, epochs=2, mastered="never")
        learner = learner_of(tiny_model, objective, lr=1e-3)
        losses.append(learner.update(trajectories(4)).metrics()["objective/loss"])
        assert learner.version == 8
    assert losses[0] == losses[1] != 0


@pytest.mark.parametrize(("count", "parts", "sizes"), [(12, 3, [4, 4, 4]), (5, 2, [2, 3]), (2, 4, [1, 1])])
def test_experience_is_split_in_nearly_equal_parts(count, parts, sizes):
    found = split(list(range(count)), parts)
    assert [len(part) for part in found] == sizes
    assert [item for part in found for item in part] == list(range(count))


def test_a_saved_model_has_the_configurations_of_the_start_model(tiny_model, tmp_path):
    """Also those that transformers would not write: a temperature for sampling without ``do_sample``."""
    from transformers import AutoModelForCausalLM

    start = shutil.copytree(tiny_model, tmp_path / "start")
    generation = {"eos_token_id": [2, 5], "temperature": 0.6, "top_p": 0.95}
    (start / "generation_config.json").write_text(json.dumps(generation))
    config = json.loads((start / "config.json").read_text()) | {"attention_dropout": 0.1, "use_cache": True}
    (start / "config.json").write_text(json.dumps(config))
    learner = learner_of(start)
    learner.update(trajectories())
    save_model(learner, tmp_path / "saved", start)
    assert json.loads((tmp_path / "saved" / "generation_config.json").read_text()) == generation
    assert json.loads((tmp_path / "saved" / "config.json").read_text()) == config
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "saved")
    for name, tensor in weights(learner).items():
        assert torch.equal(loaded.get_parameter(name), tensor), name
