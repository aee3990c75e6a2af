"""What a checkpoint remembers beside weights, optimizer and samples: counters, the data cursor, validations."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ulorl.train.stall import Progress

FILE = "trainer.json"


@dataclass(frozen=True)
class TrainerState:
    """A run at the end of ``step``.

    ``version``: that of the weights; ``drawn`` and ``by_task``: the prompts drawn so far (``PromptStream``);
    ``reference_step``: the step at which the reference was last set, after ``resets`` resets; ``processes``: the number
    of processes; ``phase``: that of the step, for readers alone, since it follows from the recipe;
    ``validation_tokens``: the longest output of validations, which stays when a run goes on with longer phases.
    """

    step: int
    version: int
    drawn: int
    reference_step: int
    processes: int = 1
    resets: int = 0
    phase: int = 1
    validation_tokens: int = 0
    by_task: dict[str, int] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)


def write_state(directory: Path, state: TrainerState) -> None:
    """Write it into a checkpoint that is being made."""
    (directory / FILE).write_text(json.dumps(asdict(state), indent=1))


def read_state(directory: Path) -> TrainerState:
    """Undo ``write_state``."""
    found = json.loads((directory / FILE).read_text())
    return TrainerState(**found | {"progress": Progress(**found["progress"])})
