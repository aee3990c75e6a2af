"""Settings of the `code` task and of the sandbox in which its programs run.

Part of ``ulorl.recipe``, which re-exports what is here.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from ulorl.recipe_engine import Section


class SandboxRecipe(Section):
    """Where programs run, and what one run of a program may use."""

    backend: Literal["auto", "process", "bubblewrap", "nsjail"] = "auto"
    """`process`: our own, with what the kernel allows (namespaces, else Landlock and seccomp); `bubblewrap` and
    `nsjail`: those commands, which must be installed; `auto`: the first of namespaces, bubblewrap, nsjail and Landlock
    that works here."""
    allow_weak: bool = False
    """Run programs also where nothing keeps them from reading and writing this user's files; else that is refused."""
    workers: int = Field(default=0, ge=0)
    """Programs that run at the same time; 0 takes one a core that the process may use."""
    interpreter: str = ""
    """Python (3.11 or later) that runs the programs, with its standard library alone; empty for this one."""
    cpu_s: float = Field(default=4.0, gt=0, le=600)
    """Processor time of one test, in seconds; a problem's own `timeout_s` takes its place, up to `total_s`."""
    wall_s: float = Field(default=10.0, gt=0, le=3600)
    """Wall-clock time of one test, in seconds; up to four times that for one that waits for a processor."""
    total_s: float = Field(default=60.0, gt=0, le=36000)
    """Wall-clock time of all tests of one response, in seconds; those that are left then are failed."""
    memory_mib: int = Field(default=512, ge=64)
    """Memory of one program, in MiB: the address space of each process, and what all of them hold together."""
    disk_mib: int = Field(default=16, ge=1)
    """Size of its temporary directory, and the longest file, in MiB."""
    processes: int = Field(default=16, ge=4)
    """Processes and threads of one program; the sandbox itself needs two or three of them."""
    output_kib: int = Field(default=1024, ge=1, le=65536)
    """Longest standard output and longest standard error, in KiB; a program that writes more is ended and fails."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.wall_s > self.total_s:
            raise ValueError(f"wall_s: {self.wall_s:g} for one test is more than total_s, {self.total_s:g}, for all")
        return self


class CodeRecipe(Section):
    """What a program's tests are worth."""

    reward: Literal["all", "share"] = "all"
    """`all`: 1 where every test passes, else 0, and the first failure ends the run; `share`: the share of the tests
    that pass."""
    relative_tolerance: float = Field(default=1e-6, ge=0, lt=0.1)
    """Largest relative or absolute difference of a printed number from an expected one that has a decimal point or an
    exponent; 0 compares as text."""
