"""A world of its own: no files but the interpreter's, no network, no other processes, an identity without privileges.

Needs user namespaces (most Linux systems let any user have them), or root, which is given up before the first program
comes. A keeper enters once (`enter`); every box that it starts is then cloned into process, mount and IPC namespaces of
its own, so that killing its first process ends all of it and nothing stays.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct

from . import linux
from .linux import prctl, syscall

READABLE_DEVICES = ("/dev/null", "/dev/full", "/dev/random", "/dev/urandom")
"""Not /dev/zero, of which memory can be had that counts as no process's."""
INSIDE_ID = 1000
"""User and group of programs, as they see it."""
_NEW_ROOT = "/proc"
"""A directory that every system has and in which no interpreter is; what is mounted on it is seen by us alone."""
_BIND, _RECURSIVE, _PRIVATE, _DETACH = 0x1000, 0x4000, 0x40000, 2
_NOSUID, _NODEV = 2, 4
_ATTRIBUTE_READ_ONLY, _ATTRIBUTE_NOSUID, _ATTRIBUTE_NODEV = 1, 2, 4
_AT_RECURSIVE, _HERE = 0x8000, -100
_NO_PRIVILEGES_BY_IDENTITY = 0xEF
"""Secure bits: user 0 is a user like any other, and that for ever."""
_CAPABILITY_HEADER = ctypes.create_string_buffer(struct.pack("=Ii", 0x20080522, 0), 8)
_NO_CAPABILITIES = ctypes.create_string_buffer(bytes(24), 24)


def enter(readable: list[str], identity: int) -> None:
    """Leave the system behind; afterwards this process has privileges in its own namespaces only.

    ``readable`` are the files and directories that stay. Root becomes the user ``identity``, anybody else stays who
    they are outside. OSError where the system does not allow it.
    """
    processes = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if os.geteuid() == 0:
            syscall(linux.UNSHARE, linux.NEWNS)
            _change_root(readable)
            os.setgroups([])
            os.setresgid(identity, identity, identity)
            os.setresuid(identity, identity, identity)
            prctl(linux.PR_SET_DUMPABLE, 1)  # else the files of /proc/self would still be root's
            _unshare_all(processes)
        else:
            _unshare_all(processes)
            _change_root(readable)
    finally:
        os.close(processes)
    for capability in range(64):
        try:
            prctl(linux.PR_CAPBSET_DROP, capability)
        except OSError:  # beyond the last one that this kernel has
            break
    prctl(linux.PR_SET_SECUREBITS, _NO_PRIVILEGES_BY_IDENTITY)
    prctl(linux.PR_SET_NO_NEW_PRIVS, 1)


def clone_box() -> int:
    """As fork: 0 in the new process, which is the first of a process namespace of its own."""
    flags = linux.NEWPID | linux.NEWNS | linux.NEWIPC | 17  # SIGCHLD
    return syscall(linux.CLONE, flags, None, None, None, None)


def mount_scratch(disk_mib: int, files: int) -> None:
    """An empty /tmp for this box, in memory, of limited size; it ends with the box."""
    _mount("tmpfs", "/tmp", "tmpfs", _NOSUID | _NODEV, f"size={disk_mib}m,nr_inodes={files},mode=700")
    os.chdir("/tmp")


def drop_privileges() -> None:
    """What this process and all that it starts could do more than any user; it can never be had again."""
    syscall(linux.CAPSET, _CAPABILITY_HEADER, _NO_CAPABILITIES)


def _unshare_all(processes: int) -> None:
    user, group = os.geteuid(), os.getegid()
    kinds = linux.NEWUSER | linux.NEWNS | linux.NEWNET | linux.NEWIPC | linux.NEWUTS | linux.NEWCGROUP
    syscall(linux.UNSHARE, kinds)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{INSIDE_ID} {user} 1"),
        ("gid_map", f"{INSIDE_ID} {group} 1"),
    ):
        place = os.open(f"self/{name}", os.O_WRONLY | os.O_CLOEXEC, dir_fd=processes)
        try:
            os.write(place, text.encode())
        finally:
            os.close(place)


def _change_root(readable: list[str]) -> None:
    """A root in memory with ``readable``, some devices and an empty /tmp; the old one is unreachable afterwards."""
    _mount("none", "/", None, _RECURSIVE | _PRIVATE, None)
    _mount("tmpfs", _NEW_ROOT, "tmpfs", _NOSUID, "size=1m,mode=755")
    for path in readable:
        _show(path, read_only=True)
    for path in READABLE_DEVICES:
        _show(path, read_only=False)
    for name in ("tmp", ".old"):
        os.mkdir(f"{_NEW_ROOT}/{name}", 0o755)
    _restrict(_NEW_ROOT, _ATTRIBUTE_READ_ONLY | _ATTRIBUTE_NOSUID, recursive=False)
    os.chdir(_NEW_ROOT)
    syscall(linux.PIVOT_ROOT, b".", b".old")
    os.chdir("/")
    syscall(linux.UMOUNT, b"/.old", _DETACH)


def _show(path: str, read_only: bool) -> None:
    """Binds ``path`` into the new root, under the same name; links are made again."""
    if not os.path.lexists(path):
        return
    target = _NEW_ROOT + path
    os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
    if os.path.lexists(target):
        return
    if os.path.islink(path):
        os.symlink(os.readlink(path), target)
        return
    if stat.S_ISDIR(os.stat(path).st_mode):
        os.mkdir(target, 0o755)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
    _mount(path, target, None, _BIND | _RECURSIVE, None)
    device = 0 if not read_only else _ATTRIBUTE_READ_ONLY | _ATTRIBUTE_NODEV
    _restrict(target, device | _ATTRIBUTE_NOSUID, recursive=True)


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None) -> None:
    encoded = [None if text is None else text.encode() for text in (source, target, kind, data)]
    syscall(linux.MOUNT, encoded[0], encoded[1], encoded[2], flags, encoded[3])


def _restrict(path: str, attributes: int, recursive: bool) -> None:
    packed = struct.pack("=QQQQ", attributes, 0, 0, 0)
    buffer = ctypes.create_string_buffer(packed, len(packed))
    flags = _AT_RECURSIVE if recursive else 0
    syscall(linux.MOUNT_SETATTR, _HERE, path.encode(), flags, buffer, len(packed))
