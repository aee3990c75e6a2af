"""Settings of Weights & Biases. Part of the train section of ``ulorl.recipe``; none has an effect on the result."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from ulorl.recipe_engine import Section


class WandbRecipe(Section):
    """The metrics of training on Weights & Biases too; needs the extra `wandb`."""

    project: str = ""
    """Project that the run is shown in; empty is off."""
    mode: Literal["online", "offline"] = "online"
    """`offline` writes into the run's directory, for `wandb sync` later."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.mode != "online" and not self.project:
            raise ValueError("mode: has no effect without a project")
        return self
