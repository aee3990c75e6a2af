"""vLLM and plain transformers: same tokens and log-probs, before and after an update."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ulorl.engine import EngineError, GenerationRequest, Sampling
from ulorl.engine.base import Engine, Generation
from ulorl.engine.hf_engine import HFEngine
from ulorl.recipe import EngineRecipe

pytestmark = pytest.mark.engine

PROMPTS = ((5, 6, 7, 8), (20, 21, 22), (9,), tuple(range(4, 90)))
WARM = Sampling(temperature=0.7)


@pytest.fixture(scope="module")
def reference(tiny_model: Path) -> Any:
    """The model in transformers, in fp32."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(1)
    return AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def hf_engine(tiny_model: Path) -> HFEngine:
    return HFEngine(tiny_model, EngineRecipe(kind="hf", threads=1), dtype="float32", max_model_len=512)


@pytest.fixture(params=["vllm", "hf"])
def engine(request: pytest.FixtureRequest) -> Engine:
    return request.getfixturevalue(f"{request.param}_engine")


def requests_at(sampling: Sampling, count: int = 8, max_tokens: int = 24) -> list[GenerationRequest]:
    return [
        GenerationRequest(f"r{index}", PROMPTS[index % 4], max_tokens + index, 100 + index, sampling)
        for index in range(count)
    ]


def logprobs_of(model: Any, request: GenerationRequest, generation: Generation) -> list[float]:
    """Log-probs of the generated tokens at the request's temperature, by one forward pass of transformers."""
    import torch

    ids_1T = torch.tensor([[*request.prompt_ids, *generation.token_ids]])
    with torch.inference_mode():
        logits_TV = model(ids_1T).logits[0, len(request.prompt_ids) - 1 : -1]
    scaled_TV = logits_TV / (request.sampling.temperature or 1.0)
    return torch.log_softmax(scaled_TV, -1).gather(1, ids_1T[0, len(request.prompt_ids) :, None])[:, 0].tolist()


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_logprobs_equal_transformers(engine: Engine, reference: Any, temperature: float) -> None:
    requests = requests_at(Sampling(temperature=temperature))
    for request, generation in zip(requests, engine.generate(requests), strict=True):
        assert generation.logprobs == pytest.approx(logprobs_of(reference, request, generation), abs=1e-4)


def test_greedy_and_random_requests_in_one_batch(engine: Engine, reference: Any) -> None:
    requests = [
        *requests_at(WARM, 2),
        *requests_at(Sampling(temperature=0.0), 2),
        *requests_at(Sampling(), 2),
    ]
    for request, generation in zip(requests, engine.generate(requests), strict=True):
        assert generation.logprobs == pytest.approx(logprobs_of(reference, request, generation), abs=1e-4)


def test_greedy_equals_transformers_generate(engine: Engine, reference: Any) -> None:
    import torch

    for request, generation in zip(
        requests_at(Sampling(temperature=0.0)),
        engine.generate(requests_at(Sampling(temperature=0.0))),
        strict=True,
    ):
        ids_1T = torch.tensor([request.prompt_ids])
        expected = reference.generate(
            ids_1T, attention_mask=torch.ones_like(ids_1T), max_new_tokens=request.max_tokens, do_sample=False
        )[0, ids_1T.shape[1] :]
        assert generation.token_ids == tuple(expected.tolist())


def test_truncated_sampling_draws_inside_and_renormalises(engine: Engine, reference: Any) -> None:
    import torch

    sampling = Sampling(temperature=0.7, top_p=0.6, top_k=5)
    requests = requests_at(sampling, 4)
    for request, generation in zip(requests, engine.generate(requests), strict=True):
        ids_1T = torch.tensor([[*request.prompt_ids, *generation.token_ids]])
        with torch.inference_mode():
            logits_TV = reference(ids_1T).logits[0, len(request.prompt_ids) - 1 : -1] / 0.7
        for position, token in enumerate(generation.token_ids):
            top = logits_TV[position].topk(5)
            probs = top.values.softmax(-1).tolist()
            kept: list[int] = []
            for rank in range(5):  # the nucleus: the fewest most likely tokens that together reach top_p
                kept.append(rank)
                if sum(probs[rank] for rank in kept) >= 0.6:
                    break
            assert token in top.indices[kept].tolist()
            mass = sum(probs[rank] for rank in kept)
            own = probs[top.indices.tolist().index(token)]
            assert generation.logprobs[position] == pytest.approx(float(torch.log(torch.tensor(own / mass))), abs=1e-3)


def test_same_seed_same_tokens_whatever_the_batch(engine: Engine) -> None:
    requests = requests_at(WARM)
    together = engine.generate(requests)
    backwards = engine.generate(requests[::-1])[::-1]
    alone = [engine.generate([request])[0] for request in requests]
    assert [one.token_ids for one in together] == [one.token_ids for one in backwards]
    assert [one.token_ids for one in together] == [one.token_ids for one in alone]
    other_seed = GenerationRequest("other", requests[0].prompt_ids, 24, 7, WARM)
    assert engine.generate([other_seed])[0].token_ids != together[0].token_ids


def test_order_lengths_and_callback(engine: Engine) -> None:
    requests = [GenerationRequest(f"r{n}", PROMPTS[0], n, n, Sampling()) for n in (40, 1, 20, 3)]
    seen: list[str] = []
    generations = engine.generate(requests, lambda generation: seen.append(generation.id))
    assert [one.id for one in generations] == ["r40", "r1", "r20", "r3"]
    assert sorted(seen) == ["r1", "r20", "r3", "r40"]
    assert seen[0] == "r1"  # the callback comes when a request finishes, not at the end
    for request, generation in zip(requests, generations, strict=True):
        assert 1 <= len(generation.token_ids) == len(generation.logprobs) <= request.max_tokens


def test_stop_and_length(engine: Engine) -> None:
    requests = [GenerationRequest(str(seed), (5, 6), 200, seed, Sampling(temperature=1.5)) for seed in range(12)]
    generations = engine.generate(requests)
    assert {one.finish_reason for one in generations} == {"stop", "length"}
    for generation in generations:
        assert 2 not in generation.token_ids[:-1]
        assert (generation.token_ids[-1] == 2) == (generation.finish_reason == "stop")
        assert generation.finish_reason == "stop" or len(generation.token_ids) == 200


def test_stop_token_at_the_last_allowed_position_is_a_stop(engine: Engine) -> None:
    sampling = Sampling(temperature=1.5)
    long = [GenerationRequest(str(seed), (5, 6), 200, seed, sampling) for seed in range(12)]
    stopped = next(one for one in engine.generate(long) if one.finish_reason == "stop")
    tight = GenerationRequest("tight", (5, 6), len(stopped.token_ids), int(stopped.id), sampling)
    (again,) = engine.generate([tight])
    assert (again.token_ids, again.finish_reason) == (stopped.token_ids, "stop")


def test_continuing_a_partial_output(engine: Engine, reference: Any) -> None:
    whole = GenerationRequest("whole", PROMPTS[3], 60, 1, Sampling(temperature=0.0))
    (uncut,) = engine.generate([whole])
    first = GenerationRequest("first", PROMPTS[3], 25, 1, whole.sampling)
    (head,) = engine.generate([first])
    rest = GenerationRequest("rest", PROMPTS[3] + head.token_ids, 60 - len(head.token_ids), 2, whole.sampling)
    (tail,) = engine.generate([rest])
    assert head.token_ids + tail.token_ids == uncut.token_ids
    assert tail.logprobs == pytest.approx(logprobs_of(reference, rest, tail), abs=1e-4)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (GenerationRequest("long", (5,) * 500, 20, 0, WARM), r"'long'.*max_model_len = 512"),
        (GenerationRequest("none", (), 20, 0, WARM), r"'none'.*empty"),
        (GenerationRequest("zero", (5,), 0, 0, WARM), r"'zero'.*at least 1"),
        (GenerationRequest("odd", (5, 100), 5, 0, WARM), r"'odd'.*vocabulary of 100"),
    ],
)
def test_impossible_requests(engine: Engine, request_: GenerationRequest, message: str) -> None:
    with pytest.raises(EngineError, match=message):
        engine.generate([GenerationRequest("fine", (5,), 2, 0, WARM), request_])
    assert len(engine.generate([GenerationRequest("after", (5,), 2, 0, WARM)])) == 1


def test_more_prompt_tokens_than_are_computed_together(engine: Engine, reference: Any) -> None:
    """Seeded prompts beyond vLLM's budget of a step (8192 tokens on a CPU) wait their turn whole."""
    prompts = [tuple(4 + (index * 7 + position * (index + 1)) % 96 for position in range(480)) for index in range(20)]
    requests = [GenerationRequest(f"r{index}", prompt, 6, index, WARM) for index, prompt in enumerate(prompts)]
    generations = engine.generate(requests)
    assert generations[19].logprobs == pytest.approx(logprobs_of(reference, requests[19], generations[19]), abs=1e-4)
    again = engine.generate(requests[17:19])
    assert [one.token_ids for one in again] == [one.token_ids for one in generations[17:19]]


def test_an_error_in_the_callback_leaves_no_request_behind(engine: Engine) -> None:
    def fail(generation: Generation) -> None:
        raise RuntimeError(generation.id)

    with pytest.raises(RuntimeError, match="r0"):
        engine.generate(requests_at(WARM), fail)
    assert [one.id for one in engine.generate(requests_at(WARM, 2))] == ["r0", "r1"]


@pytest.fixture
def restored(engine: Engine, reference: Any) -> Iterator[Any]:
    """A copy of the model to change; the engine gets its own weights back afterwards."""
    import copy

    yield copy.deepcopy(reference)
    engine.load_weights(reference.named_parameters(), 0)


def test_new_weights(engine: Engine, reference: Any, restored: Any) -> None:
    import torch

    requests = [*requests_at(WARM), *requests_at(Sampling(temperature=0.0))]
    before = engine.generate(requests)
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in restored.parameters():  # the tied embedding included
            parameter.add_(0.05 * torch.randn_like(parameter))
    engine.load_weights(restored.named_parameters(), 7)
    after = engine.generate(requests)
    assert {one.policy_version for one in before} == {0}
    assert {one.policy_version for one in after} == {7}
    assert [one.token_ids for one in before] != [one.token_ids for one in after]
    for request, generation in zip(requests, after, strict=True):
        assert generation.logprobs == pytest.approx(logprobs_of(restored, request, generation), abs=1e-4)
    engine.load_weights(reference.named_parameters(), 0)
    assert [one.token_ids for one in engine.generate(requests)] == [one.token_ids for one in before]


def test_vllm_leaves_the_process_as_it_found_it(vllm_engine: Engine) -> None:
    import torch

    torch.set_num_threads(1)
    assert torch.get_num_threads() == 1
    assert "LD_PRELOAD" not in os.environ
    assert os.sched_getaffinity(0) == os.sched_getaffinity(os.getppid())


BOTH_ORDERS = """
import os, sys
os.environ["DS_ACCELERATOR"] = "cpu"
from pathlib import Path
import torch
from ulorl.engine import GenerationRequest, Sampling
from ulorl.engine.vllm_engine import VLLMEngine
from ulorl.process import join_process_group
from ulorl.recipe import EngineRecipe

directory = Path(sys.argv[1])

def open_engine():
    return VLLMEngine(directory, EngineRecipe(threads=1), dtype="float32", max_model_len=128)

def open_learner():
    import deepspeed
    from transformers import AutoModelForCausalLM
    # Without this DeepSpeed compiles its shared-memory collectives at first use.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    join_process_group(on_gpu=False)
    deepspeed.init_distributed("gloo", verbose=False)
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    config = {"train_micro_batch_size_per_gpu": 1, "zero_allow_untested_optimizer": True}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    return deepspeed.initialize(model=model, optimizer=optimizer, config=config)[0]

if sys.argv[2] == "engine":
    engine = open_engine(); learner = open_learner()
else:
    learner = open_learner(); engine = open_engine()
request = GenerationRequest("r", (5, 6, 7, 8), 30, 1, Sampling())
for version in (1, 2):
    (generation,) = engine.generate([request])
    ids = torch.tensor([[*request.prompt_ids, *generation.token_ids]])
    learner.backward(learner(input_ids=ids, labels=ids).loss)
    learner.step()
    engine.load_weights(learner.module.named_parameters(), version)
(generation,) = engine.generate([request])
ids = torch.tensor([[*request.prompt_ids, *generation.token_ids]])
with torch.no_grad():
    logprobs = torch.log_softmax(learner.module(ids).logits[0, 3:-1], -1).gather(1, ids[0, 4:, None])[:, 0]
difference = (logprobs - torch.tensor(generation.logprobs)).abs().max().item()
print("DIFFERENCE", difference, generation.policy_version)
engine.close()
engine.close()
assert torch.distributed.is_initialized()
"""


@pytest.mark.parametrize("first", ["engine", "learner"])
def test_deepspeed_in_the_same_process(tiny_model: Path, first: str) -> None:
    pytest.importorskip("vllm", reason="vLLM is not installed")
    pytest.importorskip("deepspeed", reason="DeepSpeed is not installed")
    keep = {key: value for key, value in os.environ.items() if key not in ("RANK", "MASTER_PORT")}
    result = subprocess.run(
        [sys.executable, "-c", BOTH_ORDERS, str(tiny_model), first],
        env=keep, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("DIFFERENCE")]
    assert float(line.split()[1]) < 1e-4
    assert line.split()[2] == "2"
