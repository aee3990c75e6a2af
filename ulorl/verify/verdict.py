"""What goes into the verifier and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Item:
    """One thing to judge: is the final answer of ``response`` equivalent to ``reference``?

    ``is_answer`` says that ``response`` is the bare final answer, not a text to extract one from.
    ``policy`` holds settings of `Policy` for this item alone.
    """

    reference: str
    response: str
    problem: str | None = None
    is_answer: bool = False
    policy: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Verdict:
    """``equivalent`` is None when undecided, with the ``reason``; ``rule`` names what decided.

    Callers that need a reward count None apart: it is never silently "wrong".
    """

    equivalent: bool | None
    answer: str | None
    rule: str
    reason: str = ""
