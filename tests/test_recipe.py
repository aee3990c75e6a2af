"""Recipes: defaults, overrides, one clear line for every mistake, round trips, and the sizes that follow."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

import pytest

from ulorl.errors import UserError
from ulorl.model_shape import KNOWN_CONFIGS, read_model_shape, shape_of
from ulorl.recipe import Recipe
from ulorl.recipe_errors import nearest_key
from ulorl.recipe_file import QUICKSTART_RECIPE, dump_recipe, load_recipe, recipe_keys, render_recipe
from ulorl.sizes import derived_sizes, human, render_sizes, sizes_dict

QWEN3_30B_A3B = KNOWN_CONFIGS["Qwen/Qwen3-30B-A3B"]
DEFAULTS = Path(os.devnull)
"""An empty recipe: the defaults of recipe.py, whatever the embedded quickstart sets."""
RECIPE = """
name = "mine"
seed = 3
[model]
prompt = "Solve: {problem}\\nAnswer:"
[data]
inputs = ["a.jsonl", "b.csv"]
[train.rollout]
max_tokens = 1200
segments = 3
[train.learner]
lr = 1
betas = [0.9, 0.95]
[[evaluate.benchmarks]]
name = "aime"
source = "aime.jsonl"
[[evaluate.benchmarks]]
name = "gsm8k"
source = "gsm8k.jsonl"
limit = 100
"""


@pytest.fixture
def recipe_file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(RECIPE)
    return path


def message(path: Path | None, *overrides: str) -> str:
    with pytest.raises(UserError) as caught:
        load_recipe(path, overrides)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_file_and_overrides(recipe_file: Path) -> None:
    recipe = load_recipe(
        recipe_file,
        [
            "train.rollout.group_size=16",
            "data.inputs=['c.jsonl']",
            "output=runs/of mine",
            "train.rollout.dynamic_sampling=off",
            "curate.difficulty.max_pass_rate=1",
            'engine.kind="hf"',
        ],
    )
    assert (recipe.name, recipe.seed, recipe.output) == ("mine", 3, "runs/of mine")
    assert recipe.data.inputs == ("c.jsonl",)
    assert recipe.train.rollout.group_size == 16
    assert recipe.train.rollout.segments == 3
    assert recipe.train.rollout.dynamic_sampling == "off"
    assert recipe.train.learner.lr == 1.0
    assert recipe.train.learner.betas == (0.9, 0.95)
    assert recipe.curate.difficulty.max_pass_rate == 1.0
    assert [benchmark.limit for benchmark in recipe.evaluate.benchmarks] == [0, 100]
    assert recipe.evaluate.samples == Recipe().evaluate.samples


def test_no_file_is_the_embedded_quickstart() -> None:
    expected = load_recipe(QUICKSTART_RECIPE) if QUICKSTART_RECIPE.exists() else Recipe()
    assert load_recipe(None) == expected


def test_an_override_value_cannot_smuggle_in_another_key() -> None:
    recipe = load_recipe(DEFAULTS, ["output=1\nseed = 5"])
    assert recipe.output == "1\nseed = 5"
    assert recipe.seed == Recipe().seed


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("train.lr=3", "train.lr: unknown key; did you mean train.learner.lr?"),
        ("lr=1", "lr: unknown key; did you mean train.learner.lr?"),
        ("trian.steps=3", "trian: unknown key; did you mean train?"),
        (
            "train.rollout.groupsize=3",
            "train.rollout.groupsize: unknown key; did you mean train.rollout.group_size?",
        ),
        ("qqqq=1", "qqqq: unknown key; `ulorl show` lists all keys"),
        ("train.steps=many", "train.steps: expected an integer, not 'many'"),
        ("train.steps=2.5", "train.steps: expected an integer, not 2.5"),
        ("train.steps=0", "train.steps: must be greater than or equal to 1, not 0"),
        ("train.rollout.top_p=1.5", "train.rollout.top_p: must be less than or equal to 1, not 1.5"),
        ("train.learner.lr=inf", "train.learner.lr: expected a finite number, not inf"),
        ("train.learner.lr=nan", "train.learner.lr: expected a finite number, not nan"),
        ("train.learner.betas=[0.9]", "train.learner.betas[1]: missing"),
        ("train.learner.betas=[1, 2, 3]", "train.learner.betas: expected at most 2 items, not [1, 2, 3]"),
        ("model.chat=1", "model.chat: expected true or false, not 1"),
        ("seed=true", "seed: expected an integer, not true"),
        ("name=2024", """name: expected text in quotes, as in name='"2024"', not 2024"""),
        ("name=a b", "name: expected only letters, digits and . _ -, not 'a b'"),
        ("data.inputs=x.jsonl", "data.inputs: expected an array in brackets, not 'x.jsonl'"),
        ("train=3", "train: expected a section (a table of settings), not 3"),
        ("engine.kind=tpu", "engine.kind: expected 'auto', 'vllm', 'server' or 'hf', not 'tpu'"),
        ("train.rollout.segments=7", "train.rollout.segments: max_tokens = "),
        ("curate.steps=['kind']", "curate.steps[0]: expected 'normalise', "),
        ("evaluate.pass_k=[99999]", "evaluate.pass_k: pass@99999 needs samples >= 99999"),
        ("engine.max_model_len=10", "engine.max_model_len: 10 is below the longest prompt + output"),
        (
            "evaluate.benchmarks=[{nam='a', source='b'}]",
            "evaluate.benchmarks[0].nam: unknown key; did you mean evaluate.benchmarks.name? (and 1 more)",
        ),
    ],
)
def test_every_mistake_is_one_line_with_place_key_and_what_is_expected(override: str, expected: str) -> None:
    assert message(DEFAULTS, override).startswith(f"--set {override}: {expected}")


@pytest.mark.parametrize("override", ["", "train.steps", "=3", ".a=3", "a..b=3"])
def test_an_override_must_be_an_assignment(override: str) -> None:
    assert "must be section.key=value" in message(DEFAULTS, override)


def test_a_mistake_in_the_file_names_the_file(recipe_file: Path) -> None:
    recipe_file.write_text(RECIPE.replace("segments = 3", "segment = 3"))
    expected = "train.rollout.segment: unknown key; did you mean train.rollout.segments?"
    assert message(recipe_file, "seed=1") == f"{recipe_file}: {expected}"
    recipe_file.write_text(RECIPE.replace("seed = 3", 'seed = "3"'))
    assert message(recipe_file) == f"{recipe_file}: seed: expected an integer, not '3'"
    recipe_file.write_text(RECIPE.replace('"mine"', "2024"))
    assert message(recipe_file) == f'{recipe_file}: name: expected text in quotes, as in "2024", not 2024'


def test_an_impossible_combination_names_the_override_that_made_it(recipe_file: Path) -> None:
    text = message(recipe_file, "train.rollout.max_tokens=1000")
    assert text.startswith("--set train.rollout.max_tokens=1000: train.rollout.segments: max_tokens = 1000 must")


def test_a_value_is_no_section(recipe_file: Path) -> None:
    assert "seed is a value, not a section" in message(recipe_file, "seed.x=1")


def test_unreadable_files(tmp_path: Path) -> None:
    assert "no such recipe file" in message(tmp_path / "gone.toml")
    assert "cannot be read" in message(tmp_path)
    broken = tmp_path / "broken.toml"
    broken.write_text("a = 1\nb = = 2\n")
    assert "not valid TOML" in message(broken)
    assert "line 2" in message(broken)
    broken.write_bytes(b"a = '\xff'")
    assert "byte 6 is not UTF-8" in message(broken)


def test_dump_and_render_load_back(recipe_file: Path, tmp_path: Path) -> None:
    recipe = load_recipe(recipe_file, ['model.system=he said "no" \\ tab\t', "model.chat=true"])
    for text in (dump_recipe(recipe), render_recipe(recipe), render_recipe(recipe, changed_only=True)):
        written = tmp_path / "written.toml"
        written.write_text(text)
        assert load_recipe(written) == recipe


def test_render_documents_every_key_and_marks_what_was_changed(recipe_file: Path) -> None:
    text = render_recipe(load_recipe(recipe_file))
    lines = text.splitlines()
    section = ""
    keys = set()
    for number, line in enumerate(lines):
        if line.startswith("["):
            section = line.strip("[]") + "."
        elif line and not line.startswith("#"):
            keys.add(section + line.partition(" ")[0])
            assert lines[number - 1].startswith("# "), f"{line} has no documentation"
    values = {key for key in recipe_keys() if not any(other.startswith(f"{key}.") for other in recipe_keys())}
    arrays = {"evaluate.benchmarks", "curate.consensus.voters", "train.schedule"}
    assert keys == {key for key in values if not key.startswith(tuple(f"{array}." for array in arrays))} | arrays
    assert "seed = 3  # default: 0" in lines
    assert 'output = ""  # default' in lines
    changed = tomllib.loads(render_recipe(load_recipe(recipe_file), changed_only=True))
    assert changed["train"] == {
        "rollout": {"max_tokens": 1200, "segments": 3},
        "learner": {"lr": 1.0, "betas": [0.9, 0.95]},
    }
    assert "curate" not in changed


def test_nearest_key_prefers_the_same_section() -> None:
    keys = ["a.samples", "b.samples", "a.steps", "b.max_tokens"]
    assert nearest_key("b.sampels", keys) == "b.samples"
    assert nearest_key("a.max_tokens", keys) == "b.max_tokens"
    assert nearest_key("x.nothing", keys) is None


def sizes(recipe: Recipe, config: dict[str, object] | None = None, processes: int = 1) -> dict[str, int]:
    shape = shape_of(config) if config else None
    return {f"{size.stage}: {size.name}": size.value for size in derived_sizes(recipe, shape, processes)}


def test_sizes_of_a_step(recipe_file: Path) -> None:
    overrides = ["train.rollout.prompts_per_step=10", "train.rollout.group_size=4", "train.steps=7"]
    found = sizes(load_recipe(recipe_file, [*overrides, "train.objective.minibatches=2"]))
    assert found["train: new samples a step"] == 40
    assert found["train: segment length"] == 400
    assert found["train: unfinished samples carried over, at most"] == 80
    assert found["train: tokens decoded in a step, at most"] == 40 * 3 * 400
    assert found["train: updates in all, at most"] == 14
    assert not any(name.startswith(("model", "engine", "learner")) for name in found)
    assert "evaluate: samples of a model, at most" not in found, "the size of aime.jsonl is not known"


def test_sizes_of_generated_problems_and_limits() -> None:
    overrides = [
        "data.inputs=['quickstart:30', 'quickstart:20']",
        "data.limit=40",
        "curate.difficulty.samples=4",
        "evaluate.benchmarks=[{name='a', source='quickstart-test:50', limit=5}, {name='b', source='x', limit=7}]",
        "evaluate.samples=32",
    ]
    found = sizes(load_recipe(DEFAULTS, overrides))
    assert found["curate: difficulty samples, at most"] == 160
    assert found["evaluate: samples of a model, at most"] == 12 * 32


def test_parameters_of_a_known_model() -> None:
    assert read_model_shape("Qwen/Qwen3-30B-A3B") == shape_of(QWEN3_30B_A3B)
    assert read_model_shape("Qwen/no-such-model") is None
    shape = shape_of(QWEN3_30B_A3B)
    assert shape is not None
    assert shape.parameters == 30_532_122_624  # as published: 30.5B, of which 3.3B work on a token
    assert shape.active_parameters == 3_353_032_704


def test_memory_of_a_long_run_on_many_processes() -> None:
    overrides = ["model.dtype=bfloat16", "model.max_prompt_tokens=1024", "train.rollout.max_tokens=130048"]
    overrides += [
        "train.learner.zero_stage=3",
        "evaluate.max_tokens=1024",
        "curate.difficulty.max_tokens=1024",
    ]
    recipe = load_recipe(DEFAULTS, overrides)
    found = sizes(recipe, QWEN3_30B_A3B, processes=64)
    parameters = found["model: parameters"]
    assert found["engine: KV cache a token"] == 2 * 48 * 4 * 128 * 2
    assert found["learner: weights a process"] == pytest.approx(parameters * 2 / 64, abs=1)
    assert found["learner: optimizer state a process (ZeRO 3)"] == pytest.approx(parameters * 12 / 64, abs=1)
    logits = found["learner: fp32 logits of the longest sequence"]
    assert logits / 1e9 == pytest.approx(79.7, abs=0.05)  # the known size at 128k tokens
    whole = sizes(load_recipe(DEFAULTS, [*overrides, "train.learner.zero_stage=1"]), QWEN3_30B_A3B, processes=64)
    assert whole["learner: gradients a process"] == parameters * 2


def test_shape_of_real_configurations(tmp_path: Path) -> None:
    """The parameter counts of small models built by transformers itself."""
    transformers = pytest.importorskip("transformers")
    small = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 50}
    cases = [
        (transformers.Qwen3Config, {"intermediate_size": 40, "num_key_value_heads": 2, "head_dim": 8}),
        (transformers.Qwen2Config, {"intermediate_size": 40, "num_key_value_heads": 2}),
        (transformers.LlamaConfig, {"intermediate_size": 40, "tie_word_embeddings": True}),
        (
            transformers.Qwen3MoeConfig,
            {"intermediate_size": 40, "moe_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2}
            | {"num_key_value_heads": 2, "head_dim": 8, "mlp_only_layers": [0]},
        ),
    ]
    for number, (kind, more) in enumerate(cases):
        model = transformers.AutoModelForCausalLM.from_config(kind(**small, **more))
        model.config.save_pretrained(tmp_path / str(number))
        shape = read_model_shape(str(tmp_path / str(number)))
        assert shape is not None
        assert shape.parameters == sum(weights.numel() for weights in model.parameters()), kind.__name__


def test_no_shape_without_a_known_configuration(tmp_path: Path) -> None:
    assert read_model_shape("organisation/unknown") is None
    (tmp_path / "config.json").write_text('{"n_layer": 2}')
    assert read_model_shape(str(tmp_path)) is None
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(UserError, match=r"config\.json: not readable as JSON"):
        read_model_shape(str(tmp_path))


def test_sizes_for_people_and_for_machines() -> None:
    found = derived_sizes(Recipe(), shape_of(QWEN3_30B_A3B))
    lines = render_sizes(found).splitlines()
    assert len(lines) == len(found)
    assert len({line.index("  = ") for line in lines}) == 1
    assert json.loads(json.dumps(sizes_dict(found)))[0].keys() == {
        "stage",
        "name",
        "value",
        "unit",
        "formula",
    }
    assert human(1023, "bytes") == "1023 B"
    assert human(3 * 2**30, "bytes") == "3 GiB"
    assert human(1234567, "tokens") == "1,234,567 tokens"
