"""Every metric is documented and written, also on Weights & Biases; runs are continued for longer."""

import json
import sys
import types
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError
from test_train_experience import trainer_of

from ulorl import artifact
from ulorl.errors import UserError
from ulorl.recipe import Recipe
from ulorl.recipe_train import ObjectiveRecipe, TrainRecipe
from ulorl.recipe_wandb import WandbRecipe
from ulorl.report.metrics import METRICS, MetricsWriter, documented, read_metrics
from ulorl.report.progress import SHOWN
from ulorl.report.wandb_tracker import RUN_ID, WandbTracker, check_wandb
from ulorl.train.extend import adopt, extends
from ulorl.train.mastered import ENTROPY_DEFINITION
from ulorl.train.ranks import Ranks
from ulorl.train.record import Recorder
from ulorl.train.stage import train_config
from ulorl.train.tally import UpdateTally
from ulorl.verify.judge.tier import JudgeCounts


class Screen:
    """A display that remembers."""

    def __init__(self):
        self.lines, self.shown = [], []

    def step(self, step, total, metrics):
        pass

    def samples(self, step, shown):
        self.shown.append(shown)

    def log(self, line):
        self.lines.append(line)


@dataclass
class Judged:
    """In the place of a verifier with a judge."""

    judge_counts: JudgeCounts | None = field(default_factory=JudgeCounts)


class Cuda:
    """A GPU of which torch gave out 3 GiB, of 10 with 4 free."""

    def is_available(self):
        return True

    def mem_get_info(self):
        return 4 * 2**30, 10 * 2**30

    def max_memory_allocated(self):
        return 3 * 2**30

    def reset_peak_memory_stats(self):
        pass


def recorded(directory, steps, *, objective=ObjectiveRecipe(), judge=None, **rollout):
    """The metrics of a run with doubles for engine and learner, and what it said."""
    trainer, screen = trainer_of(objective=objective, **rollout), Screen()
    update = trainer.learner.update

    def counted(trajectories):
        update(trajectories)
        return UpdateTally(0, 1, 1, tokens=1, on_policy=1)

    trainer.learner.update = counted
    verifier = Judged(judge)
    with MetricsWriter(directory) as writer:
        record = Recorder(
            directory,
            trainer.recipe,
            prompter=trainer.prompter,
            verifier=verifier,
            display=screen,
            ranks=Ranks(),
            writer=writer,
        )
        for _ in range(steps):
            result = trainer.run_step()
            if judge is not None:
                judge.undecided, judge.accepted = judge.undecided + 5, judge.accepted + 2
            record.step(result, trainer.pool, steps)
    return read_metrics(directory / "metrics.jsonl"), screen


def test_every_metric_is_documented_and_every_documented_one_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "cuda", Cuda())
    objective = ObjectiveRecipe(kl=0.1, reference_reset_every=3)
    rows, screen = recorded(tmp_path, 12, objective=objective, judge=JudgeCounts())
    written = {name for row in rows for name in row} - {"step"}
    assert written == set(documented(rows)) - VALIDATED
    assert [row["reward/judge_undecided"] for row in rows] == [5] * 12
    assert [row["reward/judge_accepted"] for row in rows] == [2] * 12
    assert {(row["memory/gpu_peak_gib"], row["memory/gpu_used_gib"]) for row in rows} == {(3, 6)}
    assert all(0 < row["memory/peak_rss_gib"] < 100 for row in rows)
    assert any(ENTROPY_DEFINITION in line for line in screen.lines)
    assert ENTROPY_DEFINITION in METRICS["entropy/mean"]
    assert {name for _, name, _ in SHOWN} <= written
    assert any(screen.shown)


VALIDATED = {name for name in METRICS if name.startswith("validation/")} | {"time/validation_s"}
"""Written by steps that validate; ``test_train_validation`` looks at them."""


def test_without_judge_and_gpu_their_metrics_are_absent(tmp_path):
    rows, _ = recorded(tmp_path, 3)
    names = {name for row in rows for name in row}
    assert not any(name.startswith(("reward/judge", "memory/gpu")) for name in names)
    assert {"pool/age_mean", "pool/oldest_age", "pool/straggler_groups"} <= names


def test_ages_of_the_pool_are_counted_from_the_prompts_entry(tmp_path):
    rows, _ = recorded(tmp_path, 10, prompts_per_step=1, segments=8, max_tokens=64)
    for row in rows:
        assert 0 <= row["pool/age_mean"] <= row["pool/oldest_age"] <= 8
    assert max(row["pool/oldest_age"] for row in rows) >= 3
    assert rows[0]["pool/age_mean"] == 0


class FakeWandb(types.ModuleType):
    """A client that writes down what it gets."""

    def __init__(self):
        super().__init__("wandb")
        self.calls, self.logged, self.failure, self.finished, self.step = [], [], None, 0, 0

    def init(self, **options):
        self.calls.append(options)
        if self.failure:
            raise RuntimeError(self.failure)
        return self

    def log(self, values, step):
        if self.failure:
            raise RuntimeError(self.failure)
        assert step >= self.step
        self.step = step + 1
        self.logged.append((step, values))

    def finish(self):
        self.finished += 1


@pytest.fixture
def wandb(monkeypatch):
    fake = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    return fake


RECIPE = Recipe(name="a-run", train=TrainRecipe(wandb=WandbRecipe(project="tests", mode="offline")))


def test_wandb_gets_the_same_metrics_and_the_same_run_after_a_kill(tmp_path, wandb, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    check_wandb(RECIPE.train.wandb)
    with MetricsWriter(tmp_path, tracker=WandbTracker(tmp_path, RECIPE)) as writer:
        for step in (1, 2, 3):
            writer.write(step, {"reward/mean": step / 10})
    with MetricsWriter(tmp_path, 2, WandbTracker(tmp_path, RECIPE)) as writer:
        for step in (3, 4):
            writer.write(step, {"reward/mean": step / 10})
    first, second = wandb.calls
    assert first == second
    assert first["id"] == (tmp_path / RUN_ID).read_text()
    assert (first["project"], first["name"], first["mode"], first["resume"]) == ("tests", "a-run", "offline", "allow")
    assert first["config"]["train"]["steps"] == RECIPE.train.steps
    kept = read_metrics(tmp_path / "metrics.jsonl")
    assert [{"step": step} | values for step, values in wandb.logged] == kept
    assert wandb.finished == 2
    (tmp_path / "other").mkdir()
    WandbTracker(tmp_path / "other", RECIPE)
    assert wandb.calls[2]["id"] != first["id"]


def test_a_service_that_fails_ends_no_training_but_does_not_begin_one(tmp_path, wandb, caplog):
    tracker = WandbTracker(tmp_path, RECIPE)
    wandb.failure = "no network\nat all"
    tracker.log(1, {"reward/mean": 0.0})
    tracker.log(2, {"reward/mean": 0.0})
    tracker.close()
    assert len(caplog.records) == 1
    with pytest.raises(UserError, match=r"train\.wandb: W&B does not start: no network\. .*offline"):
        WandbTracker(tmp_path, RECIPE)


def test_wandb_is_optional_and_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    check_wandb(WandbRecipe())
    with pytest.raises(UserError, match=r"ulorl\[wandb\]"):
        check_wandb(RECIPE.train.wandb)
    with pytest.raises(ValidationError, match="no effect without a project"):
        WandbRecipe(mode="offline")
    assert train_config(RECIPE) == train_config(Recipe(name="a-run"))


def identity(**train):
    config = {"train": {"steps": 10, "lr": 1, "schedule": []} | train, "model": {"path": "m"}}
    inputs = [{"input": "p", "fingerprint": "f"}]
    return {
        "format": 1,
        "stage": "train",
        "seed": 0,
        "config": config,
        "inputs": inputs,
        "fingerprint": json.dumps(train),
    }


def test_more_steps_extend_a_run_and_nothing_else_does():
    assert extends(identity(), identity(steps=11))
    phase = {"from_step": 11, "max_tokens": 64}
    assert extends(identity(), identity(steps=20, schedule=[phase]))
    assert extends(identity(schedule=[phase]), identity(steps=20, schedule=[phase]))
    for other in (
        identity(),
        identity(steps=9),
        identity(steps=11, lr=2),
        identity(steps=20, schedule=[phase | {"from_step": 10}]),
        identity(steps=11) | {"seed": 1},
        identity(steps=11) | {"inputs": []},
        identity(steps=11) | {"config": identity(steps=11)["config"] | {"mode": "debug"}},
    ):
        assert not extends(identity(), other)
    assert not extends(identity(schedule=[phase]), identity(steps=20))


def begun(path, steps, force=False):
    config = {"train": {"steps": steps, "lr": 1}}
    return artifact.begin(path, stage="train", config=config, inputs=[], seed=0, extends=extends, force=force)


def finish(path, steps, *, checkpoint=True):
    work = begun(path, steps)
    for name in ("rollouts", "tensorboard", "model", *(["checkpoints/step_000004"] if checkpoint else [])):
        (work.path / name).mkdir(parents=True)
        (work.path / name / "file").write_text(name)
    (work.path / "metrics.jsonl").write_text('{"step": 1}\n')
    return work.finish({"steps": steps})


def test_a_finished_run_is_continued_and_stays_until_the_longer_one_is_done(tmp_path):
    path = finish(tmp_path / "train", 5)
    work = begun(path, 8)
    assert not work.done
    assert adopt(work) == f"goes on from the finished run of fewer steps in {path}"
    assert not adopt(work)
    assert (work.path / "checkpoints" / "step_000004" / "file").read_text() == "checkpoints/step_000004"
    assert not (work.path / "model").exists()
    with (work.path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2}\n')
    assert (path / "metrics.jsonl").read_text() == '{"step": 1}\n'
    work.release()
    again = begun(path, 8)
    assert again.resumed
    again.finish({"steps": 8})
    assert artifact.read_manifest(path)["counts"] == {"steps": 8}
    assert not (path / "model").exists()


def test_a_kill_while_a_finished_run_is_taken_over_loses_nothing(tmp_path):
    path = finish(tmp_path / "train", 5)
    work = begun(path, 8)
    (work.path / ".rollouts.adopted~").mkdir()
    (work.path / ".rollouts.adopted~" / "half").write_text("")
    work.release()
    work = begun(path, 8)
    assert adopt(work)
    assert [one.name for one in (work.path / "rollouts").iterdir()] == ["file"]
    assert not list(work.path.glob(".*adopted~"))


def test_fewer_steps_are_refused_and_force_begins_anew(tmp_path):
    path = finish(tmp_path / "train", 5, checkpoint=False)
    with pytest.raises(UserError, match=r"train\.steps: 5 -> 4"):
        begun(path, 4)
    work = begun(path, 8)
    assert (
        adopt(work)
        == f"begins anew at step 1: the finished run of fewer steps in {path} holds no checkpoint to go on from"
    )
    assert [one.name for one in work.path.iterdir() if not one.name.startswith(".")] == []
    work.release()
    assert Path(path, "metrics.jsonl").is_file()
    assert replace(work, lock=None).identity["config"]["train"]["steps"] == 8
