"""Phases of a run: what a schedule may say, what it does to prompts and samples, and that resuming changes nothing."""

from collections import Counter
from dataclasses import dataclass, field

import pytest
from pydantic import ValidationError
from test_train_experience import CountingLearner, Engine
from test_train_pool import TextPrompter

from ulorl.errors import UserError
from ulorl.problem import Problem
from ulorl.recipe import Recipe, VerifyRecipe
from ulorl.recipe_file import dump_recipe, load_recipe, render_recipe
from ulorl.recipe_schedule import changes, phase_at, phases, settings_in
from ulorl.recipe_train import TrainRecipe
from ulorl.sizes import derived_sizes
from ulorl.train.checkpoint import pool_groups, pool_table
from ulorl.train.loop import Trainer
from ulorl.train.rollout import PromptStream, check_shares
from ulorl.train.step_metrics import step_metrics
from ulorl.verify import Verifier

PROBLEMS = [
    Problem(f"{task}{number}", f"{number}+1", str(number + 1), task=task)
    for task, count in (("math", 6), ("logic", 3), ("code", 1))
    for number in range(count)
]
LONGER = {"from_step": 4, "max_tokens": 48}


def train_of(*schedule, **settings):
    rollout = {"prompts_per_step": 3, "group_size": 4, "max_tokens": 32, "segments": 4}
    return TrainRecipe.model_validate({"steps": 20, "rollout": rollout, "schedule": schedule} | settings)


# The recipe


def test_the_phase_follows_from_the_step_and_keeps_what_is_not_given():
    kl = {"objective": {"kl": 0.1, "minibatches": 2}}
    train = train_of(
        LONGER,
        {"from_step": 9, "tasks": {"math": 1.0}, "clip_high": 0.4, "lr_factor": 0.5},
        {"from_step": 20, "tasks": {}, "kl": 0.0, "max_tokens": 8},
        **kl,
    )
    found = phases(train)
    assert [phase_at(found, step).number for step in (0, 1, 3, 4, 8, 9, 19, 20)] == [1, 1, 1, 2, 2, 3, 3, 4]
    assert [(phase.max_tokens, dict(phase.tasks), phase.clip_high, phase.kl, phase.lr_factor) for phase in found] == [
        (32, {}, 0.2, 0.1, 1.0),
        (48, {}, 0.2, 0.1, 1.0),
        (48, {"math": 1.0}, 0.4, 0.1, 0.5),
        (8, {}, 0.4, 0.0, 0.5),
    ]
    assert changes(found[1], found[2]) == "tasks math 1, clip_high 0.2 to 0.4, lr_factor 1 to 0.5"
    assert changes(found[2], found[3]) == "max_tokens 48 to 8, tasks as in the data, kl 0.1 to 0"
    settings = settings_in(found[3], train)
    assert (settings.objective.clip_high, settings.objective.kl, settings.objective.minibatches) == (0.4, 0.0, 2)
    assert (settings.learner.lr, settings.rollout.max_tokens) == (5e-7, 8)
    assert (train.longest_trained, Recipe(train=train).longest_sequence) == (48, 1024 + 1024)


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ([{"from_step": 1, "max_tokens": 48}], "greater than or equal to 2"),
        ([{"from_step": 21, "max_tokens": 48}], r"schedule\[0\].from_step: 21 is after the last step, 20"),
        ([LONGER, {"from_step": 4, "max_tokens": 64}], r"schedule\[1\].from_step: 4 is not after"),
        ([{"from_step": 4}], "changes nothing"),
        ([{"from_step": 4, "max_tokens": 32}], r"schedule\[0\].max_tokens: is what it was before"),
        ([LONGER, {"from_step": 5, "max_tokens": 48}], r"schedule\[1\].max_tokens: is what it was before"),
        ([{"from_step": 4, "tasks": {}}], "tasks: is what it was before"),
        ([{"from_step": 4, "tasks": {"math": 0.0}}], "greater than 0"),
        ([{"from_step": 4, "max_tokens": 50}], "must be a multiple of rollout.segments"),
        ([{"from_step": 4, "lr_factor": 1.0}], "lr_factor: is what it was before"),
        ([{"from_step": 4, "clip_high": 0.3}], "clip_high: has no effect with one update a step"),
        ([{"from_step": 4, "kl": 0.1}], "kl: goes with objective.kl > 0"),
        ([{"from_step": 4, "reset_reference": True}], "reset_reference: has no effect with kl = 0"),
        ([{"from_step": 4, "temperature": 1.0}], "Extra inputs"),
    ],
)
def test_what_cannot_be_followed_is_refused(schedule, message):
    with pytest.raises(ValidationError, match=message):
        train_of(*schedule)


def test_a_schedule_goes_through_toml(tmp_path):
    entry = "train.schedule=[{from_step=5, max_tokens=256}, {from_step=9, tasks={math=2, logic=1}, lr_factor=0.5}]"
    recipe = load_recipe(None, [entry, "train.validation.every=5"])
    assert recipe.train.schedule[1].tasks == {"math": 2.0, "logic": 1.0}
    for text in (dump_recipe(recipe), render_recipe(recipe)):
        (tmp_path / "recipe.toml").write_text(text)
        assert load_recipe(tmp_path / "recipe.toml") == recipe
    sizes = {size.name: size for size in derived_sizes(recipe, None)}
    assert sizes["phase 2, from step 5: segment length"].value == 64
    assert (sizes["phase 2, from step 5: steps"].value, sizes["phase 3, from step 9: steps"].value) == (4, 52)
    assert sizes["phase 3, from step 9: steps"].formula == "tasks math 2 logic 1, lr_factor 1 to 0.5"
    assert sizes["validations"].value == 13
    assert sizes["samples of a validation, at most"].value == 512


# Prompts


def test_tasks_are_drawn_by_their_shares_at_every_stretch():
    stream = PromptStream(PROBLEMS, 7, tasks={"math": 0.5, "logic": 0.3, "code": 0.2})
    drawn = [problem.task for problem in stream.take(1000)]
    for length in (10, 50, 200):
        for start in range(0, 1000 - length, 7):
            found = Counter(drawn[start : start + length])
            for task, share in stream.tasks.items():
                assert abs(found[task] - share * length) <= 2
    assert stream.drawn == sum(stream.by_task.values()) == 1000


def test_problems_of_a_task_come_round_once_an_epoch_beside_those_of_the_whole_data():
    stream = PromptStream(PROBLEMS, 7)
    plain = [problem.id for problem in PromptStream(PROBLEMS, 7).take(20)]
    assert [problem.id for problem in stream.take(5)] == plain[:5]
    stream.tasks = {"math": 1.0, "logic": 1.0}
    mixed = stream.take(40)
    for task, count in (("math", 6), ("logic", 3)):
        of_task = [problem.id for problem in mixed if problem.task == task]
        for start in range(0, len(of_task) - count + 1, count):
            assert len(set(of_task[start : start + count])) == count
    stream.tasks = {}
    assert [problem.id for problem in stream.take(15)] == plain[5:]


@pytest.mark.parametrize("stop", range(0, 30, 4))
def test_the_cursor_of_a_mix_resumes(stop):
    whole = PromptStream(PROBLEMS, 7, tasks={"math": 2.0, "code": 1.0})
    drawn = whole.take(30)
    first = PromptStream(PROBLEMS, 7, tasks=whole.tasks)
    first.take(stop)
    resumed = PromptStream(PROBLEMS, 7, first.drawn, dict(first.by_task), whole.tasks)
    assert resumed.take(30 - stop) == drawn[stop:]


# Training


@dataclass
class Learner(CountingLearner):
    settings: list = field(default_factory=list)

    def adopt(self, objective, recipe, max_tokens):
        self.settings.append((objective.kl, objective.clip_high, recipe.lr, max_tokens))


def trainer_of(*schedule, problems=PROBLEMS, **settings):
    return Trainer(
        Recipe(seed=5, train=train_of(*schedule, **settings)),
        problems,
        engine=Engine(longest=60),
        prompter=TextPrompter(),
        verifier=Verifier(VerifyRecipe()),
        learner=Learner(),
    )


def all_steps(trainer, count):
    """Groups as they leave, and the phase and notes of every step."""
    left, told = [], []
    for _ in range(count):
        result = trainer.run_step()
        left += [entry.group for entry in result.experience.all()]
        told.append((step_metrics(result, trainer.pool, 0.2)["run/phase"], result.notes))
    return left, told


@pytest.mark.parametrize(("maximum", "segment"), [(48, 12), (16, 4)])
def test_groups_in_flight_keep_the_maximum_they_entered_with(maximum, segment):
    trainer = trainer_of({"from_step": 4, "max_tokens": maximum})
    left, told = all_steps(trainer, 10)
    assert [phase for phase, _ in told] == [1] * 3 + [2] * 7
    assert told[3][1] == [f"step 4: phase 2 begins: max_tokens 32 to {maximum}"]
    assert not any(notes for number, (_, notes) in enumerate(told, 1) if number != 4)
    assert trainer.learner.settings == [(0.0, 0.2, 1e-6, maximum)]
    longest = Counter()
    for group in left:
        own, piece = (maximum, segment) if group.born_step >= 4 else (32, 8)
        for sample in group.samples:
            assert all(length == piece for length in sample.segment_lengths[:-1])
            assert (sample.finish_reason == "length") == (len(sample.token_ids) == own and sample.token_ids[-1] != 0)
            assert len(sample.token_ids) <= own
            longest[own] = max(longest[own], len(sample.token_ids))
    assert longest == {32: 32, maximum: maximum}
    assert sorted([group.number for group in left] + list(trainer.pool.groups)) == list(range(30))


def test_a_phase_changes_the_settings_of_the_update_and_resets_the_reference():
    trainer = trainer_of(
        {"from_step": 3, "kl": 0.05, "lr_factor": 0.5, "reset_reference": True},
        {"from_step": 5, "clip_high": 0.4},
        objective={"kl": 0.1, "minibatches": 2, "reference_reset_every": 4},
    )
    results = [trainer.run_step() for _ in range(7)]
    assert [result.reference_age for result in results] == [1, 2, 1, 2, 3, 0, 1]
    assert [result.reference_resets for result in results] == [0, 0, 1, 1, 1, 2, 2]
    assert results[2].notes[0] == "step 3: phase 2 begins: kl 0.1 to 0.05, lr_factor 1 to 0.5, reference reset"
    assert "phase 2 begins" in results[2].notes[1]
    assert trainer.learner.settings == [(0.05, 0.2, 5e-7, 32), (0.05, 0.4, 5e-7, 32)]


@pytest.mark.parametrize("stop", range(1, 9))
def test_a_resumed_run_is_in_the_phase_of_its_step(stop):
    schedule = [
        {"from_step": 3, "tasks": {"math": 1.0, "logic": 1.0}, "max_tokens": 48, "reset_reference": True},
        {"from_step": 6, "tasks": {}, "max_tokens": 16, "kl": 0.3},
    ]
    settings = {"objective": {"kl": 0.1}}
    whole, first = trainer_of(*schedule, **settings), trainer_of(*schedule, **settings)
    expected, told = all_steps(whole, 9)
    before, _ = all_steps(first, stop)
    resumed = trainer_of(*schedule, **settings)
    resumed.engine.wanted = first.engine.wanted
    resumed.engine.policy_version = resumed.learner.version = first.learner.version
    resumed.restore(first.state, pool_groups(pool_table(list(first.pool.groups.values())), PROBLEMS))
    after, told_after = all_steps(resumed, 9 - stop)
    assert before + after == expected
    assert told_after == told[stop:]
    assert resumed.state == whole.state
    assert (resumed.learner.settings[-1] if stop < 9 else None) == whole.learner.settings[-1]
    assert first.state.phase == (1 if stop < 3 else 2 if stop < 6 else 3)
    tasks = {group.problem.task for group in expected if 3 <= group.born_step < 6}
    assert tasks == {"math", "logic"}


def test_a_task_without_problems_is_refused_before_training():
    found = phases(train_of({"from_step": 4, "tasks": {"math": 1.0, "poetry": 1.0}}))
    with pytest.raises(UserError, match=r"from step 4: no problem.*task poetry; there are code, logic, math"):
        check_shares(found, PROBLEMS)


def test_no_reference_is_reset_while_nothing_pulls_towards_it():
    trainer = trainer_of(
        {"from_step": 3, "kl": 0.0}, {"from_step": 7, "kl": 0.1}, objective={"kl": 0.1, "reference_reset_every": 2}
    )
    assert [trainer.run_step().reference_resets for _ in range(8)] == [0, 1, 1, 1, 1, 1, 2, 2]
