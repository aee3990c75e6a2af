"""What tests/test_train_ranks.py runs in one process and in several: updates on the same samples, however divided.

Usage: ranks_worker.py MODEL OUTPUT. The first rank writes, by case, the figures and weights after each update.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from test_train_learner import trajectories

from ulorl.process import quiet_libraries
from ulorl.recipe import ModelRecipe
from ulorl.recipe_train import LearnerRecipe, ObjectiveRecipe
from ulorl.train.checkpoint import TrainerState, load_checkpoint, save_checkpoint
from ulorl.train.learner import Learner
from ulorl.train.ranks import open_ranks

FIGURES = (
    "objective/loss",
    "objective/grad_norm",
    "objective/tokens",
    "objective/samples",
    "objective/kl",
    "objective/clipped_share",
    "objective/masked_share",
    "entropy/mean",
    "mismatch/mean",
    "mismatch/max",
)
DYNAMIC = ObjectiveRecipe(tau=0.02, sigma=4.0)
SEVERAL = ObjectiveRecipe(
    minibatches=3, epochs=2, kl=0.1, entropy_bonus=0.01, entropy_scope="batch", tau=0.02, sigma=4.5, clip_high=0.001,
    aggregation="sequence",
)  # fmt: skip
EVEN, FIRST_ALONE, FEW = "even", "the first rank has all", "fewer samples than ranks"


def cases():
    for stage in (0, 1, 2, 3):
        yield f"zero {stage}", EVEN, DYNAMIC, {"zero_stage": stage, "micro_batch_tokens": 100}
    for stage in (0, 3):
        yield f"first alone, zero {stage}", FIRST_ALONE, DYNAMIC, {"zero_stage": stage, "micro_batch_tokens": 60}
        yield f"few, zero {stage}", FEW, DYNAMIC, {"zero_stage": stage}
    yield "several updates", EVEN, SEVERAL, {"zero_stage": 2, "micro_batch_tokens": 100}


def own(kind, ranks, seed):
    """This rank's samples: groups of 4, numbered, dealt out by number."""
    items = trajectories(4 if kind == FEW else 16, seed)[: 1 if kind == FEW else None]
    numbered = [type(item)(**vars(item) | {"group": place // 4}) for place, item in enumerate(items)]
    if kind == FIRST_ALONE:
        return numbered if ranks.first else []
    return [item for item in numbered if ranks.owns(item.group)]


def main(model, output):
    quiet_libraries()
    ranks, found = open_ranks(60), {}
    for name, kind, objective, settings in cases():
        recipe = LearnerRecipe(lr=1e-3, max_grad_norm=0.5, **settings)
        learner = Learner(model, ModelRecipe(), recipe, objective, 0.8, 64, ranks)
        steps = []
        for seed in (1, 2):
            metrics = learner.update(own(kind, ranks, seed)).metrics()
            steps.append({figure: metrics[figure] for figure in FIGURES})
        weights = {key: tensor.clone() for key, tensor in learner.named_tensors()}
        found[name] = {"steps": steps, "weights": weights}
        if name in ("zero 1", "zero 3"):
            found[f"resumed, {name}"] = resumed(
                output.parent / f"{name} of {ranks.world}", model, learner, recipe, ranks
            )
    if ranks.first:
        torch.save(found, output)
    ranks.meet("end")


def resumed(root, model, learner, recipe, ranks):
    """The figures of an update after a checkpoint, by the learner that wrote it and by one that read it."""
    path = save_checkpoint(root, learner, TrainerState(2, learner.version, 0, 0), [], model, keep=1)
    other = Learner(model, ModelRecipe(), recipe, DYNAMIC, 0.8, 64, ranks)
    state, _ = load_checkpoint(path, other, [])
    assert state.processes == ranks.world
    return [one.update(own(EVEN, ranks, 3)).metrics() for one in (learner, other)]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
