"""What every step of curation returns."""

from __future__ import annotations

from dataclasses import dataclass, field

from ulorl.problem import Dropped, Problem


@dataclass(frozen=True)
class StepResult:
    """Rows that go on, rows that do not, and what the step found.

    ``len(kept) + len(dropped)`` is the number of rows that went in; ``kept`` keeps their order. ``conflicts``
    maps the id of every member of a group of duplicates with different references to the id of the group's
    first row. ``notes`` counts things worth telling that dropped nothing.
    """

    kept: list[Problem]
    dropped: list[Dropped] = field(default_factory=list)
    conflicts: dict[str, str] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
