"""Where there are no namespaces: a process that can read the interpreter and nothing else, and write nothing.

Landlock is a kernel feature that needs no privilege; from Linux 6.2 on it also keeps files from being cut off. What it
does not cover (the existence, size and dates of files, working directories) stays visible.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct

from .linux import LANDLOCK_ADD, LANDLOCK_CREATE, LANDLOCK_RESTRICT, PR_SET_NO_NEW_PRIVS, prctl, syscall

_EXECUTE, _WRITE, _READ, _LIST = 1, 2, 4, 8
_LEAST = 3
_RIGHTS = {3: 15, 4: 15}
"""Rights on files that a version of the interface knows, counted from bit 0; 16 from version 5 on."""
_BIND_AND_CONNECT, _ABSTRACT_SOCKETS_AND_SIGNALS = 3, 3


def version() -> int:
    """Version of the kernel's interface. OSError where there is none, or one in which truncating a file is free."""
    found = syscall(LANDLOCK_CREATE, None, 0, 1)
    if found < _LEAST:
        raise OSError(f"version {found} of Landlock, {_LEAST} is needed (Linux 6.2)")
    return found


def restrict(readable: list[str]) -> None:
    """This process may read ``readable`` (files and whole directories) and write to /dev/null; cannot be undone."""
    known = version()
    handled = (1 << _RIGHTS.get(known, 16)) - 1
    network = _BIND_AND_CONNECT if known >= 4 else 0
    scope = _ABSTRACT_SOCKETS_AND_SIGNALS if known >= 6 else 0
    attributes = struct.pack("=QQQ", handled, network, scope)
    size = 24 if known >= 6 else 16 if known >= 4 else 8
    rules = syscall(LANDLOCK_CREATE, ctypes.create_string_buffer(attributes[:size], size), size, 0)
    try:
        for path in readable:
            _allow(rules, path, _EXECUTE | _READ | _LIST)
        _allow(rules, "/dev/null", _READ | _WRITE)
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        syscall(LANDLOCK_RESTRICT, rules, 0)
    finally:
        os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= ~_LIST
        rule = struct.pack("=Qi", rights, place)
        syscall(LANDLOCK_ADD, rules, 1, ctypes.create_string_buffer(rule, len(rule)), 0)
    finally:
        os.close(place)
