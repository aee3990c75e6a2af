"""Weights from the trainer into the engine: the one place where it happens."""

from __future__ import annotations

from ulorl.engine.base import Engine
from ulorl.train.learner import Learner


def sync_weights(learner: Learner, engine: Engine) -> None:
    """Load the learner's weights into the engine, whose prefix cache is dropped with the old ones.

    The engine stamps what it samples from here on with the learner's version, never earlier.
    """
    engine.load_weights(learner.named_tensors(), learner.version)
    assert engine.policy_version == learner.version, "the engine did not take the new version"
