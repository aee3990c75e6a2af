"""The learning rate against the schedules of transformers, which count from the step before."""

import pytest
import torch
from test_train_learner import learner_of, trajectories
from transformers import get_cosine_with_min_lr_schedule_with_warmup, get_polynomial_decay_schedule_with_warmup

from ulorl.recipe_train import LearnerRecipe, ObjectiveRecipe, TrainRecipe
from ulorl.train.extend import extends
from ulorl.train.lr import learning_rate


def rates_of_transformers(schedule, warmup, updates, ratio):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2e-3)
    if schedule == "cosine":
        other = get_cosine_with_min_lr_schedule_with_warmup(optimizer, warmup, updates, min_lr_rate=ratio)
    else:
        other = get_polynomial_decay_schedule_with_warmup(optimizer, warmup, updates, lr_end=2e-3 * ratio, power=1.0)
    rates = []
    for _ in range(updates):
        rates.append(other.get_last_lr()[0])
        optimizer.step()
        other.step()
    return rates


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
@pytest.mark.parametrize("warmup", [0, 1, 7])
@pytest.mark.parametrize("ratio", [0.0, 0.1])
def test_decay_equals_that_of_transformers(schedule, warmup, ratio):
    recipe = LearnerRecipe(lr=2e-3, warmup_steps=warmup, lr_schedule=schedule, lr_min_ratio=ratio)
    expected = rates_of_transformers(schedule, warmup, 30, ratio)
    found = [learning_rate(recipe, update, 30) for update in range(34)]
    assert found[warmup:30] == pytest.approx(expected[warmup:], abs=1e-12)
    # Theirs warms up from a rate of 0, with which nothing would be learnt from the first step's samples.
    assert found[:warmup] == pytest.approx(expected[1 : warmup + 1], abs=1e-12)
    assert found[30:] == pytest.approx([2e-3 * ratio] * 4)


def test_without_decay_the_rate_stays():
    recipe = LearnerRecipe(lr=1.0, warmup_steps=4)
    assert [learning_rate(recipe, update, 0) for update in range(7)] == [0.25, 0.5, 0.75, 1, 1, 1, 1]
    assert learning_rate(LearnerRecipe(lr=1.0), 0, 0) == 1


def test_settings_that_decay_nothing_are_refused():
    with pytest.raises(ValueError, match="lr_min_ratio: has no effect"):
        LearnerRecipe(lr_min_ratio=0.1)
    with pytest.raises(ValueError, match=r"warmup_steps: leaves nothing of the 20 updates"):
        TrainRecipe(steps=10, objective={"epochs": 2}, learner={"lr_schedule": "linear", "warmup_steps": 20})
    assert TrainRecipe(steps=10, objective={"epochs": 2, "minibatches": 3}).updates == 60


def test_a_run_whose_rate_falls_is_not_trained_for_longer():
    def identity(steps, schedule):
        train = {"steps": steps, "learner": {"lr_schedule": schedule}}
        return {"format": 1, "stage": "train", "seed": 0, "config": {"train": train}, "inputs": []}

    assert extends(identity(10, "constant"), identity(20, "constant"))
    assert not extends(identity(10, "cosine"), identity(20, "cosine"))


@pytest.mark.engine
def test_the_rate_goes_on_from_a_checkpoint(tiny_model, tmp_path):
    settings = {"lr_schedule": "cosine", "warmup_steps": 2, "lr_min_ratio": 0.1}
    recipe = LearnerRecipe(lr=1e-3, **settings)
    items = trajectories()
    first, second = (learner_of(tiny_model, ObjectiveRecipe(), updates=8, **settings) for _ in range(2))
    rates = [first.update(items).metrics()["objective/lr"] for _ in range(3)]
    first.save(tmp_path)
    second.load(tmp_path)
    rates += [second.update(items).metrics()["objective/lr"] for _ in range(2)]
    assert rates == [learning_rate(recipe, update, 8) for update in range(5)]
