"""The learning rate of each update.

It follows from the count of updates alone, which checkpoints hold: nothing else needs to be saved.
"""

from __future__ import annotations

import math

from ulorl.recipe_train import LearnerRecipe


def learning_rate(recipe: LearnerRecipe, update: int, planned: int) -> float:
    """The rate of update number ``update`` (from 0) of ``planned``: warm-up to ``lr``, then constant or down.

    Linear warm-up reaches ``lr`` at the last of its updates. The decay begins after it and would reach
    ``lr_min_ratio`` times ``lr`` at update number ``planned``, behind the last one; updates beyond keep that rate.
    """
    if update < recipe.warmup_steps:
        return recipe.lr * (update + 1) / recipe.warmup_steps
    if recipe.lr_schedule == "constant":
        return recipe.lr
    done = min(1.0, (update - recipe.warmup_steps) / (planned - recipe.warmup_steps))
    left = 1 - done if recipe.lr_schedule == "linear" else (1 + math.cos(math.pi * done)) / 2
    return recipe.lr * (recipe.lr_min_ratio + (1 - recipe.lr_min_ratio) * left)
