"""What tests/test_train_ranks.py runs to lose a process in the middle of an update.

Usage: lost_rank_worker.py MODEL SIGNAL RANK ZERO_STAGE. That rank sends itself the signal in its third backward pass.
"""

from __future__ import annotations

import os
import signal
import sys

from test_train_learner import trajectories

from ulorl.cli import guarded
from ulorl.process import quiet_libraries
from ulorl.recipe import ModelRecipe
from ulorl.recipe_train import LearnerRecipe, ObjectiveRecipe
from ulorl.train.learner import Learner
from ulorl.train.ranks import open_ranks


def main():
    model, name, lost, stage = sys.argv[1:]
    quiet_libraries()
    ranks = open_ranks(4)
    recipe = LearnerRecipe(zero_stage=int(stage), micro_batch_tokens=60)
    learner = Learner(model, ModelRecipe(), recipe, ObjectiveRecipe(), 0.8, 64, ranks)
    ranks.bound_waits()
    ranks.step = 7
    backward, passes = learner.engine.backward, []

    def lose(loss):
        passes.append(loss)
        if len(passes) == 3 and ranks.rank == int(lost):
            os.kill(os.getpid(), getattr(signal, name))
        backward(loss)

    learner.engine.backward = lose
    for _ in range(3):
        learner.update(trajectories(16) if ranks.first else [])


if __name__ == "__main__":
    guarded(main)
