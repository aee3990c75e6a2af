"""Saved rollouts give back what was trained on; steps on show hold nothing that a terminal would obey."""

import unicodedata
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from test_train_experience import CountingLearner, trainer_of
from test_train_pool import TextPrompter
from test_train_ranks import ThreadRanks, together

from ulorl.errors import UserError
from ulorl.files import write_table
from ulorl.problem import ROLLOUT_SCHEMA, SAMPLE_SCHEMA
from ulorl.train.debug import _FromRollouts
from ulorl.train.ranks import Ranks
from ulorl.train.replay import SavedRollouts, drop_steps, rollout_table, rollouts_in, write_rollouts
from ulorl.train.watch import shown_text, watched


def sampled(directory, steps, ranks, **settings):
    """Steps of a run that keeps its rollouts; what its learner got, and the recipe."""
    directory.mkdir(exist_ok=True)
    trainer = trainer_of(**settings)
    trainer.ranks = ranks
    for _ in range(steps):
        result = trainer.run_step()
        table = rollout_table(result.experience.all(), trainer.prompter)
        write_rollouts(directory, result.step, table, ranks)
    return trainer.learner.updates, trainer.recipe


def replayed(directory, steps, ranks, recipe):
    learner = CountingLearner()
    trainer = _FromRollouts(recipe, SavedRollouts(directory / "rollouts", ranks, 256), learner, TextPrompter(), ranks)
    results = [trainer.run_step() for _ in range(steps)]
    return learner.updates, results


def rounded(updates):
    """Trajectories as the learner puts them into tensors: log-probs in float32."""
    return [
        [replace(one, logprobs=tuple(np.float32(one.logprobs).tolist())) for one in trajectories]
        for trajectories in updates
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"group_policy": "sample"},
        {"dynamic_sampling": "off"},
        {"dynamic_sampling": "refill", "max_rounds": 30},
        {"max_age": 2, "segments": 1},
    ],
)
def test_saved_rollouts_give_back_every_update(tmp_path, settings):
    before, recipe = sampled(tmp_path, 10, Ranks(), **settings)
    after, results = replayed(tmp_path, 10, Ranks(), recipe)
    assert rounded(before) == after
    assert sum(map(len, before)) > 10
    assert [result.step for result in results] == list(range(1, 11))


class TwiceUpdating(CountingLearner):
    """Makes two updates of a step."""

    def update(self, trajectories):
        super().update(trajectories)
        self.version += 1


def test_tokens_are_as_many_steps_old_as_they_were_under_more_updates(tmp_path):
    before, recipe = sampled(tmp_path, 8, Ranks(), dynamic_sampling="off")
    learner = TwiceUpdating()
    saved = SavedRollouts(tmp_path / "rollouts", Ranks(), 256)
    trainer = _FromRollouts(recipe, saved, learner, TextPrompter(), Ranks())
    for _ in range(8):
        trainer.run_step()
    assert learner.version == 2 * len(before) > 4
    versions = [version for one in before for trajectory in one for version in trajectory.versions]
    assert len(set(versions)) > 2
    # The learner of the run that sampled made one update where this one makes two.
    assert [version for one in learner.updates for trajectory in one for version in trajectory.versions] == [
        2 * version for version in versions
    ]


def test_rollouts_of_several_processes_train_in_any_number_of_them(tmp_path, monkeypatch):
    monkeypatch.setattr(ThreadRanks, "suffix", property(lambda ranks: f"_rank_{ranks.rank}"))
    settings = {"prompts_per_step": 6, "group_policy": "sample"}
    (_, recipe), *_ = together(3, lambda ranks: sampled(tmp_path, 6, ranks, **settings))
    alone, _ = sampled(tmp_path / "alone", 6, Ranks(), **settings)
    for world in (1, 2):
        parts = together(world, lambda ranks: replayed(tmp_path, 6, ranks, recipe)[0])
        for step, expected in enumerate(rounded(alone)):
            found = [one for updates in parts for one in updates[step]]
            assert sorted(found, key=repr) == sorted(expected, key=repr)


def test_a_step_without_the_samples_of_a_process_is_not_trained_on(tmp_path, monkeypatch):
    monkeypatch.setattr(ThreadRanks, "suffix", property(lambda ranks: f"_rank_{ranks.rank}"))
    together(2, lambda ranks: sampled(tmp_path, 4, ranks, prompts_per_step=4))
    folder = tmp_path / "rollouts"

    def steps():
        found = together(2, lambda ranks: (len(saved := SavedRollouts(folder, ranks, 256)), saved.note))
        assert found[0] == found[1]
        return found[0]

    assert steps() == (4, "")
    (folder / "step_000004_rank_1.parquet").unlink()
    assert steps() == (3, f"{folder}: step 4 is left out, since it lacks step_000004_rank_1.parquet")
    (folder / "step_000002_rank_0.parquet").rename(folder / "step_000004_rank_1.parquet")
    with pytest.raises(UserError, match=r"step 2 lacks step_000002_rank_0\.parquet, which other steps have"):
        SavedRollouts(folder, Ranks(), 256)
    drop_steps([folder], after=1)
    assert steps() == (1, "")
    (folder / "step_000001_rank_1.parquet").unlink()
    with pytest.raises(UserError, match=r"no whole step, step 1 lacks step_000001_rank_1\.parquet"):
        SavedRollouts(folder, Ranks(), 256)


def test_the_recipe_that_trains_decides_about_uniform_groups(tmp_path):
    sampled(tmp_path, 6, Ranks())
    saved = SavedRollouts(tmp_path / "rollouts", Ranks(), 256)
    dropped = [saved.experience(step, uniform_train=False, version=step - 1) for step in range(1, 7)]
    saved = SavedRollouts(tmp_path / "rollouts", Ranks(), 256)
    kept = [saved.experience(step, uniform_train=True, version=step - 1) for step in range(1, 7)]
    assert all(not one.uniform for one in kept)
    assert sum(len(one.uniform) for one in dropped) > 0
    assert [len(one.all()) for one in dropped] == [len(one.all()) for one in kept]


def test_what_is_no_rollout_is_refused_by_name(tmp_path):
    sampled(tmp_path, 3, Ranks())
    folder = tmp_path / "rollouts"
    assert rollouts_in(tmp_path) == rollouts_in(folder) == folder
    (tmp_path / "run.partial" / "rollouts").mkdir(parents=True)
    (folder / "step_000003.parquet").rename(tmp_path / "run.partial" / "rollouts" / "step_000003.parquet")
    assert rollouts_in(tmp_path / "run") == tmp_path / "run.partial" / "rollouts"
    with pytest.raises(UserError, match="step 1 are missing"):
        SavedRollouts(tmp_path / "run.partial" / "rollouts", Ranks(), 256).experience(1, uniform_train=True, version=0)
    with pytest.raises(UserError, match=r"no step_\*\.parquet"):
        rollouts_in(tmp_path / "nowhere")

    def experience(vocabulary=256):
        return SavedRollouts(folder, Ranks(), vocabulary).experience(1, uniform_train=True, version=0)

    (folder / "step_000001.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(UserError, match=r"step_000001\.parquet: not a readable"):
        experience()
    rows = [dict.fromkeys(SAMPLE_SCHEMA.names)]
    old = pa.Table.from_pylist(rows, pa.schema([field.with_nullable(True) for field in SAMPLE_SCHEMA]))
    write_table(folder / "step_000001.parquet", old)
    with pytest.raises(UserError, match="without born_step, finished_step, group, prompt_ids, task"):
        experience()
    trainer = trainer_of()
    while not (entries := trainer.run_step().experience.all()):
        pass
    rows = rollout_table(entries, trainer.prompter).to_pylist()
    rows[1]["logprobs"] = rows[1]["logprobs"][:-1]
    write_table(folder / "step_000001.parquet", pa.Table.from_pylist(rows, ROLLOUT_SCHEMA))
    with pytest.raises(UserError, match="row 2: tokens, log-probs and segments do not agree"):
        experience()
    rows = rollout_table(entries, trainer.prompter).to_pylist()
    write_table(folder / "step_000001.parquet", pa.Table.from_pylist(rows, ROLLOUT_SCHEMA))
    assert experience().all()
    with pytest.raises(UserError, match="row 1: its tokens are not of this model"):
        experience(vocabulary=50)
    for name, value, words in (("reward", float("nan"), "reward no number"), ("prompt_ids", [], "prompt is empty")):
        damaged = [rows[0], {**rows[1], name: value}]
        write_table(folder / "step_000001.parquet", pa.Table.from_pylist(damaged, ROLLOUT_SCHEMA))
        with pytest.raises(UserError, match=f"row 2: .*{words}"):
            experience()


def test_rollouts_of_steps_that_are_done_again_go(tmp_path):
    sampled(tmp_path, 4, Ranks())
    drop_steps([tmp_path / "rollouts"], after=2)
    assert sorted(path.name for path in (tmp_path / "rollouts").iterdir()) == [
        "step_000001.parquet",
        "step_000002.parquet",
    ]
    drop_steps([tmp_path / "nothing"], after=0)


def test_one_sample_of_each_kind_is_on_show():
    trainer, lines = trainer_of(max_tokens=32), []
    for _ in range(8):
        lines += watched(trainer.run_step().experience.all(), trainer.prompter)
    heads = [line for line in lines if not line.startswith(" ")]
    assert {head.split(":")[0] for head in heads} == {"right", "wrong", "truncated"}
    right = next(place for place, line in enumerate(lines) if line.startswith("right"))
    assert "reward 1, " in lines[right]
    assert " tokens, " in lines[right]
    assert " segment" in lines[right]
    assert lines[right + 1].startswith("  prompt    ")
    assert "\\boxed{" in lines[right + 2]
    assert watched([], trainer.prompter) == []


def test_what_is_on_show_cannot_steer_a_terminal():
    hostile = "\x1b[2J\x1b]0;owned\x07\r\b\x00\x9b31m\u202eright\u2066\u200b\ud800\ue000\u2028[bold red]x[/]"
    shown = shown_text(hostile + "\nnext\ttab")
    assert all(unicodedata.category(one) not in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"} for one in shown)
    assert "[bold red]x[/]⏎next" in shown
    assert shown_text("x² ≤ 3, né, 数学, 🙂 \\frac{1}{2}") == "x² ≤ 3, né, 数学, 🙂 \\frac{1}{2}"
    trainer = trainer_of()
    while not (entries := trainer.run_step().experience.all()):
        pass
    sample = entries[0].samples[0]
    sample.token_ids = list(map(ord, ("\x1b[31m" + "a" * 100) * 10))
    sample.verdict = replace(sample.verdict, answer="\x1b[5m" + "9" * 500, reason="bad\x1b\nreason")
    lines = watched(entries, trainer.prompter)
    assert not any("\x1b" in line or "\n" in line for line in lines)
    assert max(map(len, lines)) < 300
