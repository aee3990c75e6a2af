"""What the train stage says and refuses before it trains."""

import math

import pytest

from ulorl.errors import UserError
from ulorl.problem import Problem
from ulorl.recipe import ModelRecipe, Recipe, VerifyRecipe
from ulorl.recipe_train import ObjectiveRecipe, RolloutRecipe, TrainRecipe
from ulorl.train.advice import advice
from ulorl.train.record import warn_when_barren, warn_when_mismatched
from ulorl.train.stage import check_problems
from ulorl.verify.tasks.scorer import Scorer


def test_settings_without_effect_are_named():
    assert advice(TrainRecipe()) == []
    (line,) = advice(TrainRecipe(objective=ObjectiveRecipe(clip_high=0.28)))
    assert "clip_high" in line
    assert "clip_low" not in line
    assert advice(TrainRecipe(objective=ObjectiveRecipe(clip_high=0.28, epochs=2))) == []
    (line,) = advice(TrainRecipe(objective=ObjectiveRecipe(mastered="never", sigma=0.1)))
    assert "sigma" in line
    (line,) = advice(TrainRecipe(rollout=RolloutRecipe(top_p=0.9)))
    assert "top_p" in line


class Characters:
    """One token a character."""

    def encode(self, text):
        return tuple(map(ord, text))


def test_problems_that_cannot_be_trained_on_are_refused_by_name():
    recipe = Recipe(model=ModelRecipe(max_prompt_tokens=10))
    verifier = Scorer(VerifyRecipe())
    check_problems([Problem("good", "1+1", "2")], Characters(), verifier, recipe)
    with pytest.raises(UserError, match=r"bad.*cannot be verified"):
        check_problems([Problem("bad", "1+1", "\\frac{")], Characters(), verifier, recipe)
    with pytest.raises(UserError, match=r"long.*11 tokens.*max_prompt_tokens"):
        check_problems([Problem("long", "1" * 11, "2")], Characters(), verifier, recipe)
    with pytest.raises(UserError, match="no problem"):
        check_problems([], Characters(), verifier, recipe)


class Log(list):
    log = list.append

    def step(self, *_):
        raise AssertionError


def test_steps_without_anything_to_learn_are_reported_every_tenth_time():
    display, barren = Log(), 0
    values = {"reward/groups_all_right": 0.25, "reward/groups_all_wrong": 0.75}
    for _ in range(25):
        barren = warn_when_barren(barren, True, values, display)
    assert len(display) == 2
    assert "10 steps" in display[0]
    assert "all right 25%, all wrong 75%" in display[0]
    assert warn_when_barren(barren, False, values, display) == 0


def test_an_engine_that_samples_otherwise_is_reported_at_once_and_then_every_tenth_time():
    display, mismatched = Log(), 0
    for mean in (0.02, math.nan, 0.3, 0.4, math.nan, *[0.5] * 8):
        mismatched = warn_when_mismatched(mismatched, {"mismatch/mean": mean}, display)
    assert mismatched == warn_when_mismatched(mismatched, {}, display) == 10
    assert len(display) == 1
    assert "mismatch/mean is 0.3 nats" in display[0]
    assert "train.rollout.top_p" in display[0]
    assert warn_when_mismatched(mismatched, {"mismatch/mean": 0.5}, display) == 11
    assert len(display) == 2
    assert warn_when_mismatched(11, {"mismatch/mean": 0.1}, display) == 0
