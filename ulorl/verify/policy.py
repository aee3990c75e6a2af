"""What a verdict depends on beyond mathematics, each with a stated default.

Invariants: every policy is a field here; a verdict depends on nothing else but the two texts. The defaults
are those of `VerifyRecipe`; an item may bring its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from ulorl.errors import UserError

if TYPE_CHECKING:
    from ulorl.recipe import VerifyRecipe


@dataclass(frozen=True)
class Policy:
    """See the fields of the same names in `VerifyRecipe`."""

    relative_tolerance: Fraction = Fraction(0)
    rounding: Literal["reference", "never"] = "reference"
    missing_unit: Literal["accept", "reject"] = "accept"
    percent: Literal["either", "value", "strict"] = "either"
    order: Literal["free", "strict"] = "free"


DEFAULT = Policy()


def policy_of(config: VerifyRecipe, overrides: Mapping[str, Any] | None = None) -> Policy:
    """The policy of a recipe, with an item's own settings; raises `UserError` for an unknown name or value."""
    names = tuple(Policy.__dataclass_fields__)
    if overrides:
        unknown = [name for name in overrides if name not in names]
        if unknown:
            raise UserError(f"policy: no such setting {unknown[0]!r}; there are {', '.join(names)}")
        config = type(config).model_validate(config.model_dump() | dict(overrides))
    values = {name: getattr(config, name) for name in names}
    return replace(DEFAULT, **values | {"relative_tolerance": Fraction(config.relative_tolerance)})
