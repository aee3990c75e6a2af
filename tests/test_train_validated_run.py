"""The train stage with validation, resets and phases, on the real vLLM and DeepSpeed: interrupted, it ends alike."""

import json
import subprocess
import sys
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from test_pipeline import metrics, settings, ulorl, wait_for_step
from test_train_learner import learner_of, trajectories

from ulorl.engine.prompts import Prompter
from ulorl.files import write_table
from ulorl.problem import Problem
from ulorl.recipe import ModelRecipe, Recipe
from ulorl.recipe_train import ObjectiveRecipe, TrainRecipe
from ulorl.rows import problem_table
from ulorl.train import checkpoint, stage
from ulorl.train.checkpoint import load_checkpoint, save_checkpoint
from ulorl.train.state import TrainerState
from ulorl.verify import Verdict

PROBLEMS = [
    Problem(f"{task}{number:02d}", f"{number}{sign}{number}", "0", task=task)
    for task, sign in (("math", "+"), ("other", "-"))
    for number in range(12)
]
SETTINGS = {
    "steps": 7,
    "checkpoint_every": 3,
    "keep_checkpoints": 1,
    # Hot, so that a random model ends some of its samples.
    "rollout": {"prompts_per_step": 4, "group_size": 4, "max_tokens": 32, "segments": 2, "temperature": 1.5},
    "objective": {"kl": 0.05, "mastered": "never", "reference_reset_patience": 2, "reference_reset_min_delta": 0.01},
    "learner": {"lr": 2e-3},
    "validation": {"every": 1, "size": 8, "samples": 4, "max_tokens": 48, "top_p": 1.0, "top_k": 0},
    "schedule": ({"from_step": 4, "max_tokens": 64, "tasks": {"math": 1.0, "other": 3.0}, "lr_factor": 0.5},),
    "final": "best",
}


class Checksums:
    """Stands in for the tasks: right or wrong by a checksum, since a random model solves nothing."""

    judge_counts = None

    def __init__(self, *_):
        pass

    def check(self, _):
        return None

    def prompted(self, problems):
        return list(problems)

    def verify(self, items):
        return [Verdict(zlib.crc32(one.response[:4].encode()) % 3 == 0, one.response[:4], "checksum") for one in items]


class Interrupted(Exception):
    pass


def interrupt(*_):
    raise Interrupted


@dataclass
class Display:
    """Keeps what is said; ends the run at a step, like a kill after its line of metrics."""

    stop_at: int = 0
    lines: list = field(default_factory=list)

    def step(self, step, total, metrics):
        if step == self.stop_at:
            raise Interrupted

    def samples(self, step, shown):
        pass

    def log(self, line):
        self.lines.append(line)


@pytest.fixture
def run(monkeypatch, tmp_path, tiny_model, vllm_engine):
    monkeypatch.setattr(stage, "Scorer", Checksums)
    write_table(tmp_path / "problems.parquet", problem_table(PROBLEMS))
    recipe = Recipe(seed=3, model=ModelRecipe(path=str(tiny_model)), train=TrainRecipe.model_validate(SETTINGS))

    def train(name, stop_at=0, **changes):
        display = Display(stop_at)
        stage.train(
            recipe.model_copy(update={"train": TrainRecipe.model_validate(SETTINGS | changes)}),
            tmp_path / name,
            problems_path=tmp_path / "problems.parquet",
            model_dir=tiny_model,
            engine=lambda: vllm_engine,
            prompter=Prompter(recipe.model, tiny_model),
            display=display,
        )
        return display.lines

    yield train
    vllm_engine.load_weights(start_weights(tiny_model), vllm_engine.policy_version + 1)


@pytest.mark.engine
def test_a_finished_run_goes_on_from_its_last_step(run, tmp_path):
    short = {"checkpoint_every": 50, "keep_best": True, "final": "last", "validation": {}, "schedule": ()}
    short |= {"objective": {"mastered": "never"}, "rollout": SETTINGS["rollout"] | {"dynamic_sampling": "off"}}
    run("whole", **short | {"steps": 3})
    run("longer", **short | {"steps": 2})
    assert [path.name for path in (tmp_path / "longer" / "checkpoints").iterdir()] == ["step_000002"]
    said = run("longer", **short | {"steps": 3})
    assert any("resuming after step 2 of 3" in line for line in said)
    assert metrics(tmp_path / "longer") == metrics(tmp_path / "whole")
    weights = [(tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("longer", "whole")]
    assert weights[0] == weights[1]


def start_weights(directory: Path):
    from ulorl.pipeline import read_weights

    return read_weights(directory)


@pytest.mark.engine
def test_an_interrupted_run_validates_resets_and_ends_as_an_uninterrupted_one(run, tmp_path, monkeypatch):
    said = run("whole")
    for step in (1, 5):
        with pytest.raises(Interrupted):
            run("resumed", stop_at=step)
        assert not (tmp_path / "resumed").exists()
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save_result", interrupt)
        with pytest.raises(Interrupted):
            run("resumed")
    assert not (tmp_path / "resumed").exists()
    again = run("resumed")
    assert any("resuming after step 7 of 7" in line for line in again)
    whole, resumed = (metrics(tmp_path / name) for name in ("whole", "resumed"))
    assert whole == resumed
    for name in ("validation", "rollouts"):
        for file in sorted((tmp_path / "whole" / name).iterdir()):
            assert pq.read_table(file).equals(pq.read_table(tmp_path / "resumed" / name / file.name)), file.name
    weights = [(tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("whole", "resumed")]
    assert weights[0] == weights[1]

    averages = [line["validation/avg"] for line in whole]
    best = max(averages[1:])
    assert len(set(averages)) > 2, "the random model solves something now and then"
    assert [line.get("run/phase") for line in whole] == [None, 1, 1, 1, 2, 2, 2, 2]
    assert whole[-1]["reference/resets"] >= 1
    assert any("phase 2 begins: max_tokens 32 to 64, tasks math 1 other 3, lr_factor 1 to 0.5" in line for line in said)
    assert any("the reference is reset and the optimizer emptied (validation stalled" in line for line in said)
    counts = json.loads((tmp_path / "whole" / "manifest.json").read_text())["counts"]
    assert counts["best_step"] == counts["model_step"] == 1 + averages[1:].index(best)
    assert counts["best_validation"] == best
    assert f"the model is that of step {counts['model_step']}" in said[-1]
    left = {path.name for path in (tmp_path / "whole" / "checkpoints").iterdir()}
    assert left == {f"step_{counts['best_step']:06d}", "step_000007"}
    held = set(pq.read_table(tmp_path / "whole" / "validation" / "step_000000.parquet")["problem_id"].to_pylist())
    trained = set(pq.read_table(tmp_path / "whole" / "rollouts")["problem_id"].to_pylist())
    assert len(held) == 8 and not held & trained


@pytest.mark.engine
@pytest.mark.parametrize("zero_stage", [0, 2])
def test_a_checkpoint_written_right_after_a_reset_goes_on_with_an_empty_optimizer(tiny_model, tmp_path, zero_stage):
    objective = ObjectiveRecipe(kl=0.5, mastered="never")
    learner = learner_of(tiny_model, objective, lr=1e-2, zero_stage=zero_stage)
    items = trajectories(8)
    learner.update(items)
    learner.reset_reference()
    path = save_checkpoint(tmp_path, learner, TrainerState(1, 1, 7, 1), [], tiny_model, keep=1)
    resumed = learner_of(tiny_model, objective, lr=1e-2, zero_stage=zero_stage)
    load_checkpoint(path, resumed, [])
    for _ in range(2):
        assert resumed.update(items).metrics() == learner.update(items).metrics()


LONG = {
    "train.steps": "8",
    "train.checkpoint_every": "3",
    "train.objective.kl": "0.01",
    "train.objective.reference_reset_patience": "1",
    "train.learner.lr": "1e-3",
    "train.validation": "{every = 2, size = 10, samples = 2}",
    "train.schedule": "[{from_step = 5, max_tokens = 96, lr_factor = 0.5}]",
}


@pytest.fixture(scope="module")
def long_run(tmp_path_factory):
    """A curated directory, and a training run on it with validation, resets and a phase that nobody interrupted."""
    directory = tmp_path_factory.mktemp("long")
    done = ulorl("curate", "quickstart:60", "-o", str(directory / "curate"))
    assert done.returncode == 0, done.stderr[-3000:]
    done = ulorl(*long_command(directory, directory / "whole"))
    assert done.returncode == 0, done.stderr[-3000:]
    return directory


def long_command(directory, output, *more):
    return ["train", *more, "--problems", str(directory / "curate"), "-o", str(output), *settings(directory, **LONG)]


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_run_killed_between_validations_ends_as_an_uninterrupted_one(long_run, tmp_path):
    output = tmp_path / "killed"
    for line in (1, 4, 7):  # lines of metrics.jsonl, of which the first is the validation of the start model
        process = subprocess.Popen(
            [sys.executable, "-m", "ulorl", *long_command(long_run, output)],
            stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        wait_for_step(line, process, tmp_path / "killed.partial" / "metrics.jsonl")
        process.kill()
        process.communicate()
        assert not output.exists()
    done = ulorl(*long_command(long_run, output))
    assert done.returncode == 0, done.stderr[-3000:]
    whole = metrics(long_run / "whole")
    assert metrics(output) == whole
    assert whole[-1]["reference/resets"] > 0
    weights = [path / "model" / "model.safetensors" for path in (output, long_run / "whole")]
    assert weights[0].read_bytes() == weights[1].read_bytes()


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_two_processes_validate_as_one_does(long_run, tmp_path):
    done = ulorl(*long_command(long_run, tmp_path / "two", "--nproc", "2"))
    assert done.returncode == 0, done.stderr[-3000:]
    for one, two in zip(metrics(long_run / "whole"), metrics(tmp_path / "two"), strict=True):
        assert one.keys() == two.keys()
        assert two == pytest.approx(one, rel=1e-4, abs=1e-5)
    files = sorted(path.name for path in (tmp_path / "two" / "validation").iterdir())
    assert files[:2] == ["step_000000_rank_0.parquet", "step_000000_rank_1.parquet"]
