"""What MODEL means, models that are none, and a stretched rotary embedding."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ulorl import pipeline
from ulorl.errors import UserError
from ulorl.evaluate.target import Target, check_model, find_target, positions_of, stretched
from ulorl.recipe import EvaluateRecipe, Recipe
from ulorl.recipe_file import dump_recipe
from ulorl.report.display import SafeDisplay


@pytest.fixture
def model(tiny_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_model, tmp_path / "model"))


def test_runs_and_checkpoints_bring_their_recipe(model: Path, tmp_path: Path) -> None:
    partial = tmp_path / "run" / "train.partial"
    steps = [partial / "checkpoints" / f"step_{step:06d}" for step in (20, 40)]
    for step in steps:
        shutil.copytree(model, step / "model")
        (step / "trainer.json").write_text("{}")
    (partial / "recipe.toml").write_text(dump_recipe(Recipe()))
    assert find_target(str(steps[0])) == Target(str(steps[0] / "model"), partial / "recipe.toml")
    assert find_target(str(partial)) == Target(str(steps[1] / "model"), partial / "recipe.toml")
    with pytest.raises(UserError, match=r"the training is not finished; evaluate its latest checkpoint with .*partial"):
        find_target(str(tmp_path / "run" / "train"))
    done = tmp_path / "run" / "train"
    partial.rename(done)
    shutil.copytree(model, done / "model")
    for given in (done, done.parent):
        assert find_target(str(given)) == Target(str(done / "model"), done / "recipe.toml")
    assert find_target(str(model)) == Target(str(model))
    assert find_target("organisation/model") == Target("organisation/model")
    (empty := tmp_path / "empty" / "checkpoints").mkdir(parents=True)
    with pytest.raises(UserError, match="without a checkpoint"):
        find_target(str(empty.parent))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda d: (d / "config.json").write_text("{"), "config.json: not readable as the configuration"),
        (lambda d: (d / "config.json").write_text("[1]"), "no configuration of a model"),
        (lambda d: (d / "config.json").write_text('{"a": 1}'), "no model_type"),
        (lambda d: (d / "tokenizer.json").unlink(), "no tokenizer"),
        (lambda d: (d / "model.safetensors").unlink(), r"no weights \(\*.safetensors\)"),
        (lambda d: truncate(d / "model.safetensors"), "model.safetensors: damaged: .* its header says"),
        (lambda d: (d / "model.safetensors").write_bytes(b"not weights"), "damaged: no safetensors header"),
        (lambda d: (d / "model.safetensors").write_bytes(b""), "damaged: no safetensors header"),
        (
            lambda d: (d / "model.safetensors.index.json").write_text('{"weight_map": {"w": "gone.safetensors"}}'),
            "1 of 1 weight files are missing, first gone.safetensors",
        ),
        (lambda d: (d / "model.safetensors.index.json").write_text("{}"), "not readable as an index"),
    ],
)
def test_a_directory_that_is_no_model_is_refused_by_its_file(model: Path, spoil, message: str) -> None:
    assert check_model(model)["model_type"] == "qwen3"
    spoil(model)
    with pytest.raises(UserError, match=message):
        check_model(model)


def test_a_served_model_needs_no_weights(model: Path) -> None:
    (model / "model.safetensors").unlink()
    check_model(model, weights=False)


def test_stretching_changes_the_positions_and_what_the_model_says(model: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    config = json.loads((model / "config.json").read_text())
    assert (positions_of(config), positions_of(config, 4.0), positions_of(config, 4.0, 1024)) == (2048, 8192, 4096)
    ids = torch.arange(3, 60)[None]
    with stretched(model, 4.0) as view, torch.inference_mode():
        changed = json.loads((view / "config.json").read_text())
        assert changed["max_position_embeddings"] == 8192
        rope = changed["rope_parameters"]
        assert (rope["rope_type"], rope["factor"], rope["original_max_position_embeddings"]) == ("yarn", 4.0, 2048)
        plain, long = (AutoModelForCausalLM.from_pretrained(one)(ids).logits for one in (model, view))
        assert not torch.allclose(plain, long, atol=1e-3)
        assert {file.name for file in view.iterdir()} == {file.name for file in model.iterdir()}
    assert not view.exists() and (model / "model.safetensors").is_file()


def test_a_whole_run_cannot_stretch() -> None:
    with pytest.raises(UserError, match=r"evaluate.yarn: for `ulorl eval` only"):
        pipeline.run(Recipe(evaluate=EvaluateRecipe(yarn=2.0)), SafeDisplay(None))


def test_what_cannot_be_stretched_is_refused(model: Path) -> None:
    path = model / "config.json"
    config = json.loads(path.read_text())
    for change, message in (
        ({"max_position_embeddings": None}, "no max_position_embeddings"),
        ({"rope_parameters": {"rope_type": "llama3", "factor": 8.0}}, "is already"),
        ({"rope_parameters": {"full_attention": {}, "sliding_attention": {}}}, "each kind of layer"),
    ):
        path.write_text(json.dumps(config | change))
        with pytest.raises(UserError, match=message), stretched(model, 2.0):
            pass


def test_one_engine_takes_the_weights_of_models_of_its_shape_and_is_opened_anew_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ulorl.evaluate import opening

    log: list[tuple[str, str]] = []

    class FakeEngine:
        policy_version = 0

        def __init__(self, name: str) -> None:
            self.name = name
            log.append(("open", name))

        def load_weights(self, weights: str, version: int) -> None:
            log.append(("load", weights))
            self.policy_version = version

        def close(self) -> None:
            log.append(("close", self.name))

    places = []
    for name, hidden in (("base", 8), ("trained", 8), ("ends elsewhere", 8), ("larger", 16)):
        place = tmp_path / name
        place.mkdir()
        config = {"hidden_size": hidden, "use_cache": name == "base", "dtype": name}
        (place / "config.json").write_text(json.dumps(config))
        places.append(place)
    monkeypatch.setattr(opening, "open_engine", lambda recipe, place, max_model_len: FakeEngine(place.name))
    monkeypatch.setattr(opening, "read_weights", lambda place: place.name)
    monkeypatch.setattr(opening, "stop_token_ids", lambda place: (1, 2) if place.name == "ends elsewhere" else (1,))
    with opening.OneEngine() as engines:
        first, second, *others = (engines.on(Recipe(), place) for place in places)
    assert first is second and first not in others
    opened = [step for name in ("ends elsewhere", "larger") for step in (("open", name), ("close", name))]
    assert log == [("open", "base"), ("load", "trained"), ("close", "base"), *opened]
