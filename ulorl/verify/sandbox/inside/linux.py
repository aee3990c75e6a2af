"""System calls that Python does not have, by number, with errors as OSError."""

from __future__ import annotations

import ctypes
import os
import platform
from typing import Any

MACHINE = platform.machine()
COLUMN = {"x86_64": 0, "aarch64": 1}.get(MACHINE, -1)
"""Which of a pair of numbers is this machine's; negative where none is."""
CLONE, PIVOT_ROOT, UNSHARE, CAPSET, UMOUNT, MOUNT = (56, 220), (155, 41), (272, 97), (126, 91), (166, 39), (165, 40)
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT, MOUNT_SETATTR = 444, 445, 446, 442
NEWNS, NEWCGROUP, NEWUTS, NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
NEWUSER, NEWPID, NEWNET = 0x10000000, 0x20000000, 0x40000000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 4, 22, 24
PR_SET_SECUREBITS, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 28, 38, 47

# PyDLL keeps the interpreter's lock, so that a process made by `clone` has it too.
_libc = ctypes.PyDLL(None, use_errno=True)


def syscall(number: int | tuple[int, int], *arguments: Any) -> int:
    """The result of a system call; a pair of numbers is for x86_64 and aarch64. OSError where it fails."""
    if COLUMN < 0:
        raise OSError(f"no system call numbers for {MACHINE}")
    chosen = number[COLUMN] if isinstance(number, tuple) else number
    wide = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    return _checked(_libc.syscall(ctypes.c_long(chosen), *wide), f"system call {chosen}")


def prctl(option: int, *arguments: Any) -> int:
    """As prctl(2)."""
    wide = [ctypes.c_ulong(one) if isinstance(one, int) else one for one in (*arguments, 0, 0, 0, 0)[:4]]
    return _checked(_libc.prctl(option, *wide), f"prctl {option}")


def _checked(result: int, what: str) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result
