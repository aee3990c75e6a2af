"""A mixture of experts, whose weights are other tensors in transformers than in files: trained, synced, saved."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from test_train_learner import TEMPERATURE, learner_of, plain_loss, trajectories
from tiny_model import make_tiny_model

from ulorl.engine.base import EngineError, GenerationRequest, Sampling
from ulorl.engine.hf_engine import HFEngine
from ulorl.engine.weights import WeightNames, read_weights
from ulorl.recipe import EngineRecipe
from ulorl.recipe_train import ObjectiveRecipe
from ulorl.train.checkpoint import TrainerState, load_checkpoint, save_checkpoint, save_model
from ulorl.train.sync import sync_weights

pytestmark = pytest.mark.engine
REQUESTS = [
    GenerationRequest(str(seed), tuple(range(4 + seed, 20 + seed)), 16, seed, Sampling(temperature=TEMPERATURE))
    for seed in range(4)
]


@pytest.fixture(scope="module")
def mixture(tmp_path_factory):
    return make_tiny_model(tmp_path_factory.mktemp("model") / "mixture", tied=False, experts=4)


def hf_engine(directory):
    return HFEngine(directory, EngineRecipe(kind="hf", threads=1), dtype="float32", max_model_len=128)


def logprobs_of(policy, request, generation):
    """Log-probs of what an engine sampled, by the policy that is trained."""
    tokens_1L = torch.tensor([[*request.prompt_ids, *generation.token_ids]])
    response_1T = torch.arange(tokens_1L.shape[1] - 1)[None] >= len(request.prompt_ids) - 1
    with torch.no_grad():
        logprobs_1T, _ = policy(tokens_1L, response_1T, TEMPERATURE)
    return logprobs_1T[response_1T].tolist()


def largest_mismatch(learner, engine):
    return max(
        abs(one - other)
        for request, generation in zip(REQUESTS, engine.generate(REQUESTS), strict=True)
        for one, other in zip(generation.logprobs, logprobs_of(learner.engine, request, generation), strict=True)
    )


@pytest.mark.parametrize("zero_stage", [0, 3])
def test_the_engine_samples_from_the_mixture_that_was_trained(mixture, tmp_path, zero_stage):
    items = trajectories()
    learner, engine = learner_of(mixture, ObjectiveRecipe(mastered="never"), zero_stage=zero_stage), hf_engine(mixture)
    before = {name: tensor.clone() for name, tensor in learner.named_tensors()}
    assert before.keys() == WeightNames.of(mixture).names == dict(read_weights(mixture)).keys()
    for name, tensor in read_weights(mixture):
        assert torch.equal(before[name], tensor), name

    tally = learner.update(items).metrics()
    loss, norm, _ = plain_loss(mixture, items)
    assert tally["objective/loss"] == pytest.approx(loss, abs=1e-5)
    assert tally["objective/grad_norm"] == pytest.approx(norm, rel=1e-4)
    assert largest_mismatch(learner, engine) > 1e-3
    sync_weights(learner, engine, learner.ranks)
    assert engine.policy_version == 1
    assert largest_mismatch(learner, engine) < 1e-4

    save_model(learner, tmp_path / "saved", mixture)
    saved = dict(read_weights(tmp_path / "saved"))
    assert saved.keys() == before.keys()
    assert not any(torch.equal(saved[name], before[name]) for name in saved if ".experts." in name)
    assert largest_mismatch(learner, hf_engine(tmp_path / "saved")) < 1e-4


def test_vllm_samples_from_the_mixture_that_was_trained(mixture):
    pytest.importorskip("vllm", reason="vLLM is not installed")
    result = subprocess.run(
        [sys.executable, __file__, str(mixture)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    mismatches = json.loads(result.stdout.splitlines()[-1])
    assert mismatches == pytest.approx([0, 0, 0], abs=1e-4)


@pytest.mark.parametrize("zero_stage", [0, 3])
def test_a_checkpoint_of_a_mixture_continues_with_its_reference(mixture, tmp_path, zero_stage):
    objective, items = ObjectiveRecipe(kl=0.5, mastered="never"), trajectories(8)
    learner = learner_of(mixture, objective, zero_stage=zero_stage)
    learner.update(items)
    learner.reset_reference()
    learner.update(items)
    path = save_checkpoint(tmp_path, learner, TrainerState(1, learner.version, 7, 0), [], mixture, keep=1)
    kept = load_file(path / "state" / "reference.safetensors")
    assert "model.layers.0.mlp.experts.gate_up_proj" in kept
    resumed = learner_of(mixture, objective, zero_stage=zero_stage)
    load_checkpoint(path, resumed, [])
    found, expected = resumed.update(items).metrics(), learner.update(items).metrics()
    assert found == expected
    assert expected["objective/kl"] > 0


def test_weights_that_do_not_fill_the_model_in_memory_are_refused(mixture, monkeypatch):
    engine = hf_engine(mixture)
    before = {name: tensor.clone() for name, tensor in engine._model.named_parameters()}
    changed = {name: tensor + 1 for name, tensor in read_weights(mixture)}
    kept = "model.layers.1.mlp.experts.3.up_proj.weight"
    monkeypatch.setattr(engine, "_names", WeightNames(engine._names.names - {"lm_head.weight"}, False))
    with pytest.raises(EngineError, match=r"version 1.*missing, 'lm_head.weight'"):
        engine.load_weights(((name, one) for name, one in changed.items() if name != "lm_head.weight"), 1)
    monkeypatch.setattr(engine, "_names", WeightNames(frozenset({*changed, "model.odd"}), False))
    with pytest.raises(EngineError, match=r"unexpected, 'model.odd'"):
        engine.load_weights((changed | {"model.odd": changed[kept]}).items(), 1)
    assert engine.policy_version == 0
    assert all(torch.equal(tensor, before[name]) for name, tensor in engine._model.named_parameters())


def main(directory):
    """Mismatch of learner and vLLM at the start, and after each of two updates."""
    from ulorl.engine.vllm_engine import VLLMEngine
    from ulorl.process import quiet_libraries

    quiet_libraries()
    engine = VLLMEngine(directory, EngineRecipe(threads=1), dtype="float32", max_model_len=128)
    learner = learner_of(directory)
    found = [largest_mismatch(learner, engine)]
    for seed in (1, 2):
        learner.update(trajectories(seed=seed))
        sync_weights(learner, engine, learner.ranks)
        found.append(largest_mismatch(learner, engine))
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
