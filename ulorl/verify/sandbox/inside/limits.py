"""What one box may use, and the kernel's own limits for it."""

from __future__ import annotations

import resource
from dataclasses import dataclass

MIB = 1 << 20
FILES_OPEN = 64
FILES_WRITTEN = 1024
FRAMES_MIB = 64
"""Of a stack."""


@dataclass(frozen=True)
class Limits:
    """Of one run of a program, or of one group of assertions; times in seconds.

    ``cpu_s`` and ``wall_s`` are for one test, ``total_s`` (wall-clock) for everything that one message asks for.
    """

    cpu_s: float
    wall_s: float
    total_s: float
    memory_mib: int
    disk_mib: int
    processes: int
    output_kib: int


def apply(limits: Limits, cpu_s: float, alone: bool = False) -> None:
    """Sets the limits of this process for ever; what it starts has them too, each for itself.

    ``alone``: without a user namespace, processes would be counted together with all others of the user; there, none
    may be started, and threads are bounded by memory.
    """
    seconds = int(cpu_s) + 1
    for kind, amount in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, limits.memory_mib * MIB),
        (resource.RLIMIT_FSIZE, limits.disk_mib * MIB),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_NOFILE, FILES_OPEN),
        (resource.RLIMIT_STACK, FRAMES_MIB * MIB),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_SIGPENDING, 64),
        (resource.RLIMIT_NICE, 0),
        (resource.RLIMIT_RTPRIO, 0),
    ):
        if alone and kind == resource.RLIMIT_NPROC:
            continue
        _, most = resource.getrlimit(kind)
        value = amount if most == resource.RLIM_INFINITY else min(amount, most)
        resource.setrlimit(kind, (value, value))
