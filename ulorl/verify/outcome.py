"""The three-valued result of comparing two answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Relation = Literal["equal", "different", "undecided"]


@dataclass(frozen=True)
class Outcome:
    """``relation`` of two answers; ``reason`` where it is undecided.

    ``rule`` is what verdicts report instead of the tier's name, where a tier knows better ("units").
    """

    relation: Relation
    reason: str = ""
    rule: str = ""


EQUAL = Outcome("equal")
DIFFERENT = Outcome("different")


def undecided(reason: str) -> Outcome:
    return Outcome("undecided", reason)
