"""Validation while training: what a stall is, what is kept, and that training does not notice."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from pydantic import ValidationError
from test_train_experience import CountingLearner, Engine
from test_train_pool import EOS, PROBLEMS, TextPrompter
from test_train_ranks import together

from ulorl.engine.base import Generation, Sampling
from ulorl.recipe import Recipe, VerifyRecipe
from ulorl.recipe_schedule import PhaseRecipe
from ulorl.recipe_train import ObjectiveRecipe, RolloutRecipe, TrainRecipe
from ulorl.recipe_validation import ValidationRecipe
from ulorl.train.advice import advice
from ulorl.train.checkpoint import _finish, best_checkpoint, checkpoints, pool_groups, pool_table, save_result
from ulorl.train.loop import Trainer
from ulorl.train.stall import Progress, reset_reason
from ulorl.train.state import TrainerState, read_state, write_state
from ulorl.train.step_metrics import step_metrics
from ulorl.verify import Verifier

TASKS = ("math", "logic")
VALIDATED = [replace(one, id=f"v{number}", task=TASKS[number % 2]) for number, one in enumerate(PROBLEMS)]


def recipe_of(**train):
    rollout = RolloutRecipe(prompts_per_step=3, group_size=4, max_tokens=32, segments=4)
    return Recipe(seed=5, train=TrainRecipe(**{"rollout": rollout} | train))


def seen(values, min_delta=0.0, start=Progress()):
    """After validations of these averages, at steps 10, 20, ..."""
    for number, value in enumerate(values, 1):
        start = start.seen(10 * number, value, min_delta)
    return start


# Stall and best


def test_a_stall_is_counted_from_the_last_improvement_of_more_than_the_least():
    assert seen([0.1, 0.2, 0.3]).since == 0
    assert seen([0.3, 0.3, 0.2, 0.29]).since == 3
    assert seen([0.3, 0.3, 0.2, 0.31]).since == 0
    # Small gains add up: they are held against the last improvement, not against each other.
    found = seen([0.30, 0.31, 0.315, 0.325], min_delta=0.02)
    assert (found.since, found.level) == (0, 0.325)
    assert seen([0.30, 0.31, 0.315], min_delta=0.02).since == 2


def test_the_best_is_the_earliest_of_equals_and_never_the_start_model():
    assert (seen([0.2, 0.5, 0.5, 0.4]).best, seen([0.2, 0.5, 0.5, 0.4]).best_step) == (0.5, 20)
    start = Progress().seen(0, 0.9, 0.0)
    assert (start.best, start.best_step, start.level) == (None, 0, 0.9)
    found = seen([0.3, 0.4], start=start)
    assert (found.best_step, found.since) == (20, 2)


def test_after_a_reset_improvements_are_measured_from_where_the_policy_is():
    found = seen([0.5, 0.4, 0.3]).restarted()
    assert (found.level, found.since, found.best, found.best_step) == (0.3, 0, 0.5, 10)
    assert found.seen(40, 0.35, 0.0).since == 0
    assert Progress().restarted() == Progress()


def test_why_a_reference_is_reset():
    objective = ObjectiveRecipe(
        kl=0.1, reference_reset_every=100, reference_reset_patience=2, reference_reset_min_delta=0.01
    )
    assert reset_reason(objective, 99, seen([0.5, 0.5])) is None
    assert reset_reason(objective, 100, seen([0.5, 0.5])) == "interval: 100 steps since it was set"
    stalled = "validation stalled: 2 in a row did not improve on 0.5000 by more than 0.01"
    assert reset_reason(objective, 100, seen([0.5, 0.5, 0.505], 0.01)) == stalled
    assert reset_reason(ObjectiveRecipe(kl=0.1), 10**6, seen([0.5] * 99)) is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": {"reference_reset_patience": 2, "kl": 0.1}}, "patience: needs validations"),
        ({"objective": {"reference_reset_patience": 2}, "validation": {"every": 5}}, "patience: has no effect with kl"),
        ({"objective": {"reference_reset_min_delta": 0.1, "kl": 0.1}}, "min_delta: has no effect"),
        ({"final": "best"}, "final:"),
        ({"final": "best", "validation": {"every": 5}, "keep_best": False}, "final:"),
        ({"final": "best", "steps": 9, "validation": {"every": 10}}, "final: .*every = 10 is above steps = 9"),
        ({"preset": "prorl", "steps": 19}, "patience: has no effect: .*every = 20 is above steps = 19"),
        ({"keep_best": False}, "keep_best: has no effect"),
        ({"validation": {"problems": "some.jsonl"}}, "problems: has no effect"),
        ({"validation": {"every": 5, "problems": "some.jsonl", "size": 3}}, "size: has no effect"),
        ({"preset": "prorl", "validation": {"every": 0}}, "patience: needs validations"),
    ],
)
def test_settings_without_effect_are_refused(settings, message):
    with pytest.raises(ValidationError, match=message):
        TrainRecipe.model_validate(settings)


def test_prorl_watches_a_validation_set():
    prorl = TrainRecipe.model_validate({"preset": "prorl"})
    assert prorl.validation.every and prorl.objective.reference_reset_patience
    assert TrainRecipe.model_validate({"preset": "prorl", "validation": {"every": 7}}).validation.every == 7
    TrainRecipe(steps=10, final="best", validation=ValidationRecipe(every=10))


# Checkpoints


def make_checkpoint(root, state, keep, keep_best):
    partial = root / ".partial"
    (partial / "model").mkdir(parents=True)
    (partial / "model" / "weights").write_text(str(state.step))
    _finish(partial, root / f"step_{state.step:06d}", state, keep, keep_best)
    return [int(path.name[5:]) for path in checkpoints(root)]


def test_the_best_checkpoint_outlives_the_last_ones(tmp_path):
    progress, kept = Progress(), []
    for step, average in ((10, 0.3), (20, 0.6), (30, 0.6), (40, 0.5), (50, 0.7), (60, 0.1)):
        progress = progress.seen(step, average, 0.0)
        kept.append(make_checkpoint(tmp_path, TrainerState(step, step, 0, 0, progress=progress), 2, True))
    assert kept == [[10], [10, 20], [20, 30], [20, 30, 40], [40, 50], [50, 60]]
    state = read_state(tmp_path / "step_000060")
    assert best_checkpoint(tmp_path, state) == tmp_path / "step_000050"
    assert make_checkpoint(tmp_path, replace(state, step=70), 1, False) == [70]
    assert best_checkpoint(tmp_path, state) is None


def test_the_result_is_the_last_model_or_the_best(tmp_path):
    state = TrainerState(20, 20, 0, 0, progress=seen([0.5, 0.4]))
    make_checkpoint(tmp_path, replace(state, step=10), 1, True)
    assert make_checkpoint(tmp_path, state, 1, True) == [10, 20]
    for final, step in (("best", 10), ("last", 20)):
        assert save_result(tmp_path / final, tmp_path, state, final) == step
        assert (tmp_path / final / "weights").read_text() == str(step)


def test_state_goes_through_a_checkpoint(tmp_path):
    state = TrainerState(9, 8, 70, 4, 2, 3, 2, 64, {"math": 5, "logic": 6}, seen([0.5, 0.4]))
    write_state(tmp_path, state)
    assert read_state(tmp_path) == state


# In training


@dataclass
class Validated(Engine):
    """After update n, the first ``levels[n]`` of the validation problems are solved, in every sample."""

    levels: tuple = (3, 5, 5, 5, 2, 2, 2, 8)
    validations: list = field(default_factory=list)

    def generate(self, requests, on_done=None):
        if not (requests and requests[0].id.startswith("validation")):
            return super().generate(requests, on_done)
        self.validations.append(list(requests))
        answers = []
        for request in requests:
            number = int(request.id.split(".")[1])
            right = number < self.levels[self.policy_version % len(self.levels)]
            tokens = [*map(ord, f"\\boxed{{{number + 1 if right else 99}}}"), EOS][: request.max_tokens]
            reason = "stop" if tokens[-1] == EOS else "length"
            answers.append(Generation(request.id, tuple(tokens), (0.0,) * len(tokens), reason, self.policy_version))
            if on_done:
                on_done(answers[-1])
        return answers


def trainer_of(every=1, state=None, groups=(), engine=None, **train):
    watched = {"validation": ValidationRecipe(every=every, samples=3)} if every else {}
    trainer = Trainer(
        recipe_of(**watched | train),
        PROBLEMS,
        engine=engine or Validated(),
        prompter=TextPrompter(),
        verifier=Verifier(VerifyRecipe()),
        learner=CountingLearner(),
        validation=VALIDATED if every else (),
    )
    if state is not None:
        trainer.learner.version = trainer.engine.policy_version = state.version
        trainer.restore(state, groups)
    return trainer


def steps_of(trainer, count):
    """The figures of so many steps, without what a clock or the process says, and their notes."""
    found = []
    for _ in range(count):
        result = trainer.run_step()
        values = step_metrics(result, trainer.pool, 0.2)
        plain = {name: value for name, value in values.items() if not name.startswith(("time/", "memory/"))}
        found.append((plain, result.notes, result.new_best))
    return found


def test_training_does_not_notice_a_validation():
    watched, alone = trainer_of(2), trainer_of(0)
    assert watched.validate_start() is not None
    assert alone.validate_start() is None
    for _ in range(6):
        one, other = watched.run_step(), alone.run_step()
        assert one.experience == other.experience
        assert (one.validation is not None) == (one.step % 2 == 0)
    assert watched.pool.groups == alone.pool.groups
    assert watched.learner.updates == alone.learner.updates
    assert watched.engine.seen == alone.engine.seen
    assert watched.state.drawn == alone.state.drawn


def test_a_validation_is_the_mean_over_problems_with_the_error_of_their_spread():
    trainer = trainer_of(2)
    first, again = trainer.validate_start(), trainer.validate_start()
    values = np.array([1.0] * 3 + [0.0] * 7)
    assert first.average == pytest.approx(values.mean())
    assert first.stderr == pytest.approx(values.std(ddof=1) / np.sqrt(10))
    assert first.by_task == pytest.approx({"math": values[::2].mean(), "logic": values[1::2].mean()})
    lengths = [len(f"\\boxed{{{number + 1 if number < 3 else 99}}}") + 1 for number in range(10)]
    assert first.length_mean == pytest.approx(np.mean(lengths))
    assert (first.truncated_share, first.error_share) == (0, 0)
    assert first.table == again.table
    assert first.table.num_rows == 30
    one, other = trainer.engine.validations
    assert one == other
    assert len({request.seed for request in one}) == 30


def test_truncated_samples_are_wrong_and_counted():
    settings = ValidationRecipe(every=1, samples=2, max_tokens=5, temperature=0.3, top_p=0.5)
    trainer = trainer_of(1, validation=settings)
    found = trainer.validate_start()
    assert (found.average, found.truncated_share, found.length_mean) == (0, 1, 5)
    assert trainer.engine.validations[0][0].sampling == Sampling(0.3, 0.5, 20)


def test_all_phases_validate_at_one_length():
    rollout = RolloutRecipe(prompts_per_step=3, group_size=4, max_tokens=16, segments=1)
    longer = ({"from_step": 2, "max_tokens": 32}, {"from_step": 3, "max_tokens": 8})
    trainer = trainer_of(rollout=rollout, schedule=tuple(PhaseRecipe(**entry) for entry in longer))
    trainer.learner.adopt = lambda *_: None
    trainer.validate_start()
    steps_of(trainer, 4)
    assert {request.max_tokens for asked in trainer.engine.validations for request in asked} == {32}
    assert len(trainer.engine.validations) == 5


def test_a_run_that_goes_on_with_longer_phases_validates_as_before():
    rollout = RolloutRecipe(prompts_per_step=3, group_size=4, max_tokens=16, segments=1)
    first = trainer_of(rollout=rollout)
    first.validate_start()
    steps_of(first, 2)
    longer = (PhaseRecipe(from_step=3, max_tokens=32),)
    resumed = trainer_of(rollout=rollout, schedule=longer, state=first.state, groups=list(first.pool.groups.values()))
    resumed.learner.adopt = lambda *_: None
    steps_of(resumed, 2)
    assert {request.max_tokens for asked in resumed.engine.validations for request in asked} == {16}


def test_a_stall_resets_the_reference_and_is_counted_anew():
    # Every sample ends in its step and every group trains, so that the weights change with each step.
    rollout = RolloutRecipe(prompts_per_step=3, group_size=4, max_tokens=32, segments=1, dynamic_sampling="off")
    trainer = trainer_of(objective=ObjectiveRecipe(kl=0.1, reference_reset_patience=2), rollout=rollout)
    trainer.validate_start()
    steps = steps_of(trainer, 7)
    averages = [values["validation/avg"] for values, _, _ in steps]
    assert averages == pytest.approx([0.5, 0.5, 0.5, 0.2, 0.2, 0.2, 0.8])
    # Two without an improvement on 0.5 after step 3; then 0.2 is two in a row below the level of the reset, 0.5.
    assert [values["reference/resets"] for values, _, _ in steps] == [0, 0, 1, 1, 2, 2, 2]
    assert [values["reference/age"] for values, _, _ in steps] == [1, 2, 0, 1, 0, 1, 2]
    assert trainer.learner.resets == 2
    assert [best for _, _, best in steps] == [True, False, False, False, False, False, True]
    (note,) = [line for line in steps[2][1] if "reset" in line]
    assert "step 3" in note and "stalled: 2 in a row did not improve on 0.5000" in note
    assert [values["validation/since_improvement"] for values, _, _ in steps] == [0, 1, 2, 1, 2, 1, 0]
    assert [values["validation/best"] for values, _, _ in steps] == pytest.approx([0.5] * 6 + [0.8])


@pytest.mark.parametrize("stop", [1, 2, 3, 4, 5])
def test_a_resumed_run_validates_and_resets_as_an_uninterrupted_one(stop):
    objective = ObjectiveRecipe(kl=0.1, reference_reset_patience=2)
    whole, first = trainer_of(objective=objective), trainer_of(objective=objective)
    for trainer in (whole, first):
        trainer.validate_start()
    expected = steps_of(whole, 7)
    assert steps_of(first, stop) == expected[:stop]
    groups = pool_groups(pool_table(list(first.pool.groups.values())), PROBLEMS)
    engine = Validated(wanted=first.engine.wanted)
    resumed = trainer_of(state=first.state, groups=groups, engine=engine, objective=objective)
    assert resumed.validate_start() is None
    assert steps_of(resumed, 7 - stop) == expected[stop:]


def test_several_ranks_validate_as_one():
    def play(ranks):
        trainer = trainer_of(objective=ObjectiveRecipe(kl=0.1, reference_reset_patience=2))
        trainer.ranks = ranks
        found = trainer.validate_start()
        return replace(found, seconds=0.0, table=None), found.table.num_rows, trainer.progress

    (alone,), several = together(1, play), together(3, play)
    for found, _, progress in several:
        assert (found, progress) == (alone[0], alone[2])
    assert [rows for _, rows, _ in several] == [12, 9, 9]


def test_settings_of_a_validation_that_never_happens_are_named():
    (line,) = advice(TrainRecipe(validation=ValidationRecipe(samples=8, size=9)))
    assert line == "train.validation.samples and size: no effect with every = 0"
    assert advice(TrainRecipe(validation=ValidationRecipe(every=5, samples=8))) == []
