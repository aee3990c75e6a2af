"""The three-valued result of comparing two answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Outcome:
    """``relation`` of two answers; ``reason`` where it is undecided."""

    relation: Literal["equal", "different", "undecided"]
    reason: str = ""


EQUAL = Outcome("equal")
DIFFERENT = Outcome("different")


def undecided(reason: str) -> Outcome:
    return Outcome("undecided", reason)
