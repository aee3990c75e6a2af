"""Who leaves the pool when, with an engine that answers by rule; the step itself with a learner that only counts."""

import random
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest
from pydantic import ValidationError
from test_train_pool import EOS, PROBLEMS, LengthEngine, TextPrompter

from ulorl.engine.base import Generation
from ulorl.problem import Problem
from ulorl.recipe import Recipe, VerifyRecipe
from ulorl.recipe_train import ObjectiveRecipe, RolloutRecipe, TrainRecipe
from ulorl.sizes import derived_sizes
from ulorl.train.checkpoint import pool_groups, pool_table
from ulorl.train.experience import accepted, histogram, take
from ulorl.train.loop import Trainer
from ulorl.train.pool import Group, Sample, UnfinishedPool
from ulorl.train.record import exhaustion
from ulorl.train.replay import rollout_table
from ulorl.train.step_metrics import step_metrics
from ulorl.verify import Verdict, Verifier


@dataclass
class CountingLearner:
    """Records what it would train on; every update is a new version."""

    version: int = 0
    updates: list = field(default_factory=list)
    resets: int = 0

    def update(self, trajectories):
        self.updates.append(trajectories)
        self.version += 1

    def named_tensors(self):
        return iter(())

    def reset_reference(self):
        self.resets += 1


@dataclass
class Engine(LengthEngine):
    def sleep(self):
        pass

    def wake(self):
        pass

    def load_weights(self, tensors, version):
        self.policy_version = version


def trainer_of(problems=PROBLEMS, objective=ObjectiveRecipe(), **rollout):
    settings = {"prompts_per_step": 3, "group_size": 4, "max_tokens": 32, "segments": 4} | rollout
    recipe = Recipe(seed=5, train=TrainRecipe(rollout=RolloutRecipe(**settings), objective=objective))
    return Trainer(
        recipe,
        problems,
        engine=Engine(),
        prompter=TextPrompter(),
        verifier=Verifier(VerifyRecipe()),
        learner=CountingLearner(),
    )


def scored(number, rewards, problem=PROBLEMS[0], born=1):
    """A group whose members have ``rewards``; None is unfinished."""
    samples = [
        Sample(index, index)
        if reward is None
        else Sample(index, index, [1], [0.0], [1], [0], "stop", 1, None, Verdict(bool(reward), "", "exact"), reward)
        for index, reward in enumerate(rewards)
    ]
    return Group(number, problem, (1,), samples, born)


def members(entries):
    return [(entry.group.number, [s.index for s in entry.samples], [s.index for s in entry.peers]) for entry in entries]


def test_whole_groups_leave_together_and_uniform_ones_untrained():
    pool = UnfinishedPool(8, [scored(0, [1, 0]), scored(1, [1, None]), scored(2, [1, 1]), scored(3, [0, 0])])
    found = take(pool, RolloutRecipe(group_size=2), 1)
    assert members(found.trained) == [(0, [0, 1], [0, 1])]
    assert members(found.uniform) == [(2, [0, 1], [0, 1]), (3, [0, 1], [0, 1])]
    assert list(pool.groups) == [1]
    assert histogram(found.all()) == "0/2: 1, 1/2: 1, 2/2: 1"


def test_uniform_groups_train_where_dynamic_sampling_is_off():
    pool = UnfinishedPool(8, [scored(0, [1, 0]), scored(1, [1, 1])])
    found = take(pool, RolloutRecipe(group_size=2, dynamic_sampling="off"), 1)
    assert [entry.group.number for entry in found.trained] == [0, 1]
    assert found.uniform == []


def test_surplus_stays_for_the_next_step():
    rollout = RolloutRecipe(group_size=2, prompts_per_step=2, dynamic_sampling="refill")
    pool = UnfinishedPool(8, [scored(n, rewards) for n, rewards in enumerate([[1, 0], [1, 1], [0, 1], [1, 0], [0, 0]])])
    assert accepted(pool, rollout) == 3
    first = take(pool, rollout, 1)
    assert ([e.group.number for e in first.trained], [e.group.number for e in first.uniform]) == ([0, 2], [1, 4])
    assert [entry.group.number for entry in take(pool, rollout, 2).trained] == [3]
    assert not pool.groups


def test_single_samples_leave_as_soon_as_there_is_something_to_compare():
    rollout = RolloutRecipe(group_size=4, group_policy="sample")
    group = scored(0, [1, None, 1, None])
    pool = UnfinishedPool(8, [group])
    assert take(pool, rollout, 1).all() == []
    done = scored(0, [1, 0, 1, None]).samples[1]
    group.samples[1] = done
    assert members(take(pool, rollout, 2).trained) == [(0, [0, 1, 2], [0, 1, 2])]
    assert [sample.left_step for sample in group.samples] == [2, 2, 2, None]
    assert take(pool, rollout, 3).all() == []
    pool.check(4)
    restored = UnfinishedPool(8, pool_groups(pool_table(list(pool.groups.values())), PROBLEMS))
    assert restored.groups == pool.groups
    group.samples[3] = scored(0, [1, 0, 1, 0]).samples[3]
    assert members(take(pool, rollout, 4).trained) == [(0, [3], [0, 1, 2, 3])]
    assert not pool.groups


def test_every_sample_leaves_once_whatever_the_policy():
    for policy in ("group", "sample"):
        trainer, left = trainer_of(group_policy=policy), []
        for _ in range(12):
            result = trainer.run_step()
            left += [(e.group.number, s.index) for e in result.experience.all() for s in e.samples]
            step_metrics(result, trainer.pool, 0.2)
            assert rollout_table(result.experience.all(), trainer.prompter).num_rows == sum(
                len(e.samples) for e in result.experience.all()
            )
        inside = [
            (group.number, sample.index)
            for group in trainer.pool.groups.values()
            for sample in group.samples
            if sample.left_step is None
        ]
        assert len(set(left)) == len(left)
        assert sorted(left + inside) == [(group, index) for group in range(36) for index in range(4)]


def test_the_sample_policy_trains_earlier_than_the_group_policy():
    steps = {}
    for policy in ("group", "sample"):
        trainer = trainer_of(group_policy=policy)
        for _ in range(4):
            trainer.run_step()
        steps[policy] = sum(len(update) for update in trainer.learner.updates)
    assert steps["sample"] > steps["group"]


def test_advantages_compare_with_those_done_so_far():
    trainer = trainer_of(group_policy="sample", objective=ObjectiveRecipe(advantage="centred"))
    group = scored(0, [1, 0, 1, None])
    trainer.pool.add([group])
    found = trainer._trajectories(take(trainer.pool, trainer.rollout, 1).trained)
    np.testing.assert_allclose([item.advantage for item in found], [1 / 3, -2 / 3, 1 / 3])


def test_a_step_is_refilled_and_its_effort_is_bounded():
    trainer = trainer_of(dynamic_sampling="refill", max_rounds=30)
    for _ in range(5):
        result = trainer.run_step()
        assert len(result.experience.trained) == 3
        assert not result.exhausted
    assert result.rounds >= 1
    # Answers that are never right: nothing to learn, said with the pass rates, and the run goes on.
    hopeless = trainer_of([Problem("p", "1+1", "77")], dynamic_sampling="refill", max_rounds=6)
    result = hopeless.run_step()
    assert (result.exhausted, result.rounds, result.tally) == (True, 6, None)
    message = exhaustion(result, hopeless.rollout)
    assert "0 of 3 groups" in message
    assert f"0/4: {len(result.experience.uniform)}" in message


class Halves(Engine):
    """Right or wrong by a coin, in one segment."""

    def generate(self, requests, on_done=None):
        answers = []
        for request in requests:
            number = int("".join(map(chr, request.prompt_ids)).split("+")[0])
            text = f"\\boxed{{{number + random.Random(request.seed).randint(1, 2)}}}"
            tokens = (*map(ord, text), EOS)
            answers.append(Generation(request.id, tokens, (-0.5,) * len(tokens), "stop", self.policy_version))
            on_done(answers[-1])
        return answers


SURPLUS = {"segments": 1, "dynamic_sampling": "refill", "prompts_per_step": 3}


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({"segments": 1}, False),
        ({"segments": 1, "in_flight": 40}, False),
        ({"segments": 1, "in_flight": 40, "dynamic_sampling": "off", "group_policy": "sample", "max_age": 1}, False),
        (SURPLUS, False),
        (SURPLUS | {"group_policy": "sample", "max_rounds": 30}, False),
        (SURPLUS | {"in_flight": 4, "max_rounds": 30}, False),
        (SURPLUS | {"in_flight": 12, "max_rounds": 1}, False),
        (SURPLUS | {"in_flight": 16, "max_rounds": 1}, True),
        (SURPLUS | {"in_flight": 8, "max_rounds": 2}, True),
        (SURPLUS | {"in_flight": 40}, True),
        (SURPLUS | {"in_flight": 40, "group_policy": "sample"}, True),
    ],
)
def test_true_on_policy_training_is_refused_where_older_samples_may_train(settings, refused):
    trainer = trainer_of(**settings)
    trainer.engine, ages = Halves(), set()
    for _ in range(30):
        result = trainer.run_step()
        ages |= {result.step - entry.group.born_step for entry in result.experience.trained}
    assert (ages > {0}) == refused, ages
    recipe = {"objective": ObjectiveRecipe(ratio="tois"), "rollout": trainer.rollout}
    if not refused:
        TrainRecipe(**recipe)
        return
    with pytest.raises(ValidationError, match=r"ratio: tois needs rollout\.in_flight = 0"):
        TrainRecipe(**recipe)


def test_samples_in_flight_are_kept_at_their_number():
    trainer = trainer_of(in_flight=40)
    for _ in range(6):
        before = sum(1 for _ in trainer.pool.unfinished())
        result = trainer.run_step()
        assert 40 <= before + 4 * result.new_prompts < 44


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"max_age": 2},
        {"in_flight": 40},
        {"in_flight": 12, "segments": 1},
        {"dynamic_sampling": "refill", "max_rounds": 5},
        {"dynamic_sampling": "refill", "max_rounds": 7, "in_flight": 20, "group_policy": "sample"},
        {"dynamic_sampling": "refill", "segments": 1},
    ],
)
def test_no_step_exceeds_the_sizes_that_a_dry_run_shows(settings):
    trainer = trainer_of(**settings)
    sizes = {size.name: size.value for size in derived_sizes(trainer.recipe, None)}
    bounds = {name.removesuffix(", at most"): value for name, value in sizes.items()}
    most = Counter()

    def seen(name, value):
        most[name] = max(most[name], value)

    generate = trainer.engine.generate
    for _ in range(40):
        samples, calls = set(), []

        def watched(requests, on_done=None, samples=samples, calls=calls):
            calls.append(len(requests))
            samples |= {request.id.rpartition(".")[0] for request in requests}
            return generate(requests, on_done)

        trainer.engine.generate = watched
        result = trainer.run_step()
        seen("new prompts a step", result.new_prompts)
        seen("new samples a step", result.new_prompts * 4)
        seen("unfinished samples carried over", sum(1 for _ in trainer.pool.unfinished()))
        seen("samples decoded at once", max(calls, default=0))
        seen("samples decoded in a step", len(samples))
        seen("tokens decoded in a step", result.grown_tokens)
    assert all(value <= bounds[name] for name, value in most.items()), (most, bounds)
    assert most["new prompts a step"] == sizes.get("new prompts a step", most["new prompts a step"])
    assert most["samples decoded at once"] * 2 >= bounds["samples decoded at once"], "the bounds are near"
    assert bounds["prompts in all"] == trainer.recipe.train.steps * bounds["new prompts a step"]


def test_old_groups_hold_back_new_prompts_and_nothing_is_thrown_away():
    trainer, ages = trainer_of(max_age=2), []
    entered = 0
    for _ in range(20):
        result = trainer.run_step()
        entered += result.new_prompts
        oldest = trainer.pool.oldest()
        ages.append(0 if oldest is None else trainer.step - oldest)
    free = trainer_of()
    assert entered < sum(free.run_step().new_prompts for _ in range(20))
    assert max(ages) <= 3
    assert trainer.stream.drawn == entered


def test_the_reference_is_reset_by_interval():
    trainer = trainer_of(objective=ObjectiveRecipe(kl=0.1, reference_reset_every=3))
    ages = [trainer.run_step().reference_age for _ in range(8)]
    assert ages == [1, 2, 0, 1, 2, 0, 1, 2]
    assert trainer.learner.resets == 2


def test_truncated_samples_can_be_masked_or_punished():
    sample = Sample(0, 0, [1] * 32, [0.0] * 32, [32], [0], "length", 1, None, Verdict(None, None, "undecided"), 0.0)
    short = Sample(1, 1, [1] * 16, [0.0] * 16, [16], [0], "stop", 1, None, Verdict(True, "1", "exact"), 1.0)
    for kind, rows, shaped in (("wrong", 2, 0.0), ("masked", 1, 0.0), ("soft", 2, -1.0)):
        trainer = trainer_of(
            group_size=2,
            objective=ObjectiveRecipe(truncated=kind, soft_buffer=8 if kind == "soft" else 0, advantage="centred"),
        )
        trainer.pool.add([Group(0, PROBLEMS[0], (1,), [sample, short], 1)])
        sample.left_step = short.left_step = None
        found = trainer._trajectories(take(trainer.pool, trainer.rollout, 1).trained)
        assert len(found) == rows
        assert found[-1].advantage == pytest.approx((1.0 - shaped) / 2)


def test_in_flight_counts_whole_groups():
    with pytest.raises(ValidationError, match="multiple of group_size"):
        RolloutRecipe(in_flight=30, group_size=8)
