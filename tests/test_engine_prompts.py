"""Prompts, model directories, and the choice of an engine, without running a model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

from ulorl.engine import EngineError, _check_positions, engine_kind, open_engine
from ulorl.engine.base import Sampling
from ulorl.engine.hf_engine import draw, truncate
from ulorl.engine.prompts import Prompter, resolve_model, stop_token_ids
from ulorl.engine.threads import thread_count
from ulorl.engine.weights import WeightNames
from ulorl.errors import UserError
from ulorl.recipe import EngineRecipe, ModelRecipe, Recipe

BRACES = "What is {x} in {problem}? 100% {0}"


@pytest.fixture
def editable(tiny_model: Path, tmp_path: Path) -> Path:
    """A copy of the tiny model to change."""
    return Path(shutil.copytree(tiny_model, tmp_path / "model"))


def test_plain_prompt_and_its_text(tiny_model: Path) -> None:
    prompter = Prompter(ModelRecipe(prompt="Q: {problem}\nA:"), tiny_model)
    assert prompter.decode(prompter.encode(BRACES)) == f"Q: {BRACES}\nA:"
    assert prompter.stop_ids == (2,)
    assert prompter.pad_id == 0
    assert prompter.decode((*prompter.encode("1"), 2, 0)) == "Q: 1\nA:"


def test_chat_prompt_has_its_special_tokens_once(tiny_model: Path) -> None:
    model = ModelRecipe(chat=True, system="Be brief.", prompt="Q: {problem}")
    prompter = Prompter(model, tiny_model)
    ids = prompter.encode(BRACES)
    assert ids.count(1) == 1
    assert ids[0] == 1
    assert prompter.decode(ids) == f"[system]Be brief.\n[user]Q: {BRACES}\n[assistant]"
    without = Prompter(ModelRecipe(chat=True), tiny_model)
    assert without.decode(without.encode("1+1")) == "[user]1+1\n[assistant]"


def test_chat_without_a_template_is_refused(editable: Path) -> None:
    (editable / "chat_template.jinja").unlink()
    with pytest.raises(UserError, match="no chat template"):
        Prompter(ModelRecipe(chat=True), editable)


def test_a_template_that_refuses_a_system_message_is_named(editable: Path) -> None:
    refusing = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}x"
    (editable / "chat_template.jinja").write_text(refusing)
    prompter = Prompter(ModelRecipe(chat=True, system="Be brief."), editable)
    with pytest.raises(UserError, match=r"no system role.*leave model\.system empty"):
        prompter.encode("1+1")
    assert Prompter(ModelRecipe(chat=True), editable).encode("1+1")


def test_a_damaged_generation_config_is_named(editable: Path) -> None:
    for text in ("{", "[]", "5"):
        (editable / "generation_config.json").write_text(text)
        with pytest.raises(UserError, match=r"generation_config\.json is damaged"):
            stop_token_ids(editable)


def test_stop_ids_come_from_every_place(editable: Path) -> None:
    file = editable / "generation_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "eos_token_id": [7, 5]}))
    assert stop_token_ids(editable) == (2, 5, 7)


def test_resolving_models(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert resolve_model(str(tiny_model)) == tiny_model
    with pytest.raises(UserError, match=r"no config\.json"):
        resolve_model(str(tmp_path))
    with pytest.raises(UserError, match="is no directory here"):
        resolve_model(str(tmp_path / "a" / "b" / "c"))


def test_hub_errors_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*args: object, **options: object) -> str:
        raise ConnectionError("no route\nsecond line")

    monkeypatch.setattr("huggingface_hub.snapshot_download", offline)
    with pytest.raises(UserError, match=r"'some/model' is no directory here.*no route$"):
        resolve_model("some/model")


def test_engine_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    assert engine_kind(Recipe(engine=EngineRecipe(kind="hf"))) == "hf"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert engine_kind(Recipe()) == "hf"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert engine_kind(Recipe()) == "vllm"


def test_thread_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3,1")
    assert (thread_count(5), thread_count(0)) == (5, 3)
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 4, 7})
    assert thread_count(0) == 3


def test_streams_of_weights_are_checked(tiny_model: Path) -> None:
    names = WeightNames.of(tiny_model)
    assert names.tied
    full = [(name, torch.zeros(1)) for name in sorted(names.names)]
    assert [name for name, _ in names.checked([*full, ("lm_head.weight", torch.zeros(1))])] == sorted(names.names)
    with pytest.raises(EngineError, match=r"1 tensors are missing, 'model\.embed_tokens\.weight'"):
        list(names.checked(full[1:]))
    with pytest.raises(EngineError, match="'other' is not a tensor"):
        list(names.checked([*full, ("other", torch.zeros(1))]))
    with pytest.raises(EngineError, match="came twice"):
        list(names.checked([*full, full[0]]))


def test_truncation_keeps_the_fewest_tokens_that_reach_top_p() -> None:
    logits_V = torch.tensor([0.1, 0.5, 0.15, 0.25]).log()

    def kept(sampling: Sampling) -> list[int]:
        return truncate(logits_V, sampling).isfinite().nonzero()[:, 0].tolist()

    assert kept(Sampling(top_p=0.74)) == [1, 3]
    assert kept(Sampling(top_p=0.76)) == [1, 2, 3]
    assert kept(Sampling(top_p=0.01)) == [1]
    assert kept(Sampling(top_k=3)) == [1, 2, 3]
    assert kept(Sampling(top_k=2, top_p=0.6)) == [1]
    assert kept(Sampling()) == [0, 1, 2, 3]


def test_drawing_follows_the_probabilities() -> None:
    logits_V = torch.tensor([0.2, 0.5, 0.3]).log()
    generator = torch.Generator().manual_seed(0)
    counts = [0, 0, 0]
    for _ in range(2000):
        token, logprob = draw(logits_V, Sampling(), generator)
        counts[token] += 1
        assert logprob == pytest.approx(float(logits_V[token]), abs=1e-6)
    assert [count / 2000 for count in counts] == pytest.approx([0.2, 0.5, 0.3], abs=0.04)
    assert draw(logits_V, Sampling(temperature=0.0), generator)[0] == 1


def test_a_recipe_longer_than_the_model_is_refused_in_one_line(tiny_model: Path) -> None:
    with pytest.raises(EngineError, match=r"3072 tokens.*2048 positions.*max_prompt_tokens") as caught:
        open_engine(Recipe(model=ModelRecipe(max_prompt_tokens=2048)), tiny_model)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("rope", "positions"),
    [
        ({"rope_type": "default", "rope_theta": 1e4}, 2048),
        ({"rope_type": "yarn", "factor": 1.5, "original_max_position_embeddings": 2048}, 3072),
        ({"type": "linear", "factor": 2.0}, 4096),
        ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 256}, 2048),
    ],
)
def test_a_stretched_rotary_embedding_allows_its_factor(
    editable: Path, rope: dict[str, object], positions: int
) -> None:
    config = json.loads((editable / "config.json").read_text())
    (editable / "config.json").write_text(json.dumps(config | {"rope_parameters": rope}))
    _check_positions(editable, positions)
    with pytest.raises(EngineError, match=f"{positions} positions"):
        _check_positions(editable, positions + 1)
