"""Settings of the tasks that are not mathematics: ``[verify.tasks.NAME]``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ulorl.recipe_engine import Section
from ulorl.recipe_sandbox import CodeRecipe


class LogicRecipe(Section):
    """Puzzles of reasoning-gym, whose scorers run in worker processes."""

    workers: int = Field(default=0, ge=0)
    """Worker processes; 0 takes one a core that the process may use, at most 2."""
    seconds: float = Field(default=5.0, gt=0)
    """Processor time of one answer, in seconds; beyond it the reward is an error."""
    memory_mib: int = Field(default=2048, ge=512)
    """Memory of one worker process, in MiB."""


class InstructionRecipe(Section):
    """Verifiable constraints on a response."""

    reward: Literal["all", "share"] = "all"
    """`all`: 1 where every constraint is kept, else 0; `share`: the share of the constraints that are kept."""
    strict: bool = True
    """Judge the response as it is; off, also without its first line, its last line and its asterisks, the best counting
    (the loose accuracy of IFEval)."""


class TasksRecipe(Section):
    """Tasks other than mathematics."""

    code: CodeRecipe = CodeRecipe()
    """Task `code`."""
    logic: LogicRecipe = LogicRecipe()
    """Task `logic`."""
    ifollow: InstructionRecipe = InstructionRecipe()
    """Task `ifollow`."""
