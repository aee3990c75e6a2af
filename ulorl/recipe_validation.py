"""Settings of validation during training: ``[train.validation]``.

Part of the train section of ``ulorl.recipe``.
"""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from ulorl.recipe_engine import Section

HELD_OUT_SHARE, MOST_HELD_OUT = 10, 128
"""Without a size, one problem in ``HELD_OUT_SHARE`` is held out, ``MOST_HELD_OUT`` at most."""


class ValidationRecipe(Section):
    """Validation while training: problems that are never trained on, sampled with the weights as they are. The same
    problems and seeds each time, so that validations are comparable."""

    every: int = Field(default=0, ge=0)
    """Steps between validations, beside the one before the first step; 0 is none at all."""
    problems: str = ""
    """An input as in `data.inputs`, whose problems are not trained on; empty holds some of the training data out."""
    size: int = Field(default=0, ge=0)
    """Problems to hold out, of every task its share; 0 takes a tenth of the data, at most 128."""
    samples: int = Field(default=4, ge=1)
    """Samples a problem."""
    max_tokens: int = Field(default=0, ge=0)
    """Longest output; 0 takes that of training, the longest of all phases, so that validations are comparable."""
    temperature: float = Field(default=0.0, ge=0)
    """Sampling temperature; 0 takes that of training."""
    top_p: float = Field(default=0.95, gt=0, le=1)
    """Nucleus; 1 is off."""
    top_k: int = Field(default=20, ge=0)
    """Most likely tokens to draw from; 0 is off."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.problems and not self.every:
            raise ValueError("problems: has no effect with every = 0")
        if self.problems and self.size:
            raise ValueError("size: has no effect with problems, of which all are taken")
        return self
