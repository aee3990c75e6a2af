"""Weights from the trainer into the engine: the one place where it happens."""

from __future__ import annotations

from ulorl.engine.base import Engine
from ulorl.train.learner import Learner
from ulorl.train.ranks import Ranks


def sync_weights(learner: Learner, engine: Engine, ranks: Ranks) -> None:
    """Load the learner's weights into the engine, each rank into its own; prefix caches go with the old ones.

    The engine stamps what it samples from here on with the learner's version, never earlier.
    """
    with ranks.watch("load the weights"):
        engine.load_weights(learner.named_tensors(), learner.version)
    assert set(ranks.gather(engine.policy_version)) == {learner.version}, "an engine did not take the new version"
