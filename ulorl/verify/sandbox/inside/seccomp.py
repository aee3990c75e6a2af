"""The system calls that a program may make; all others fail, also those that a later kernel will have.

Not on the list: sockets (but for a pair within the program), other processes' memory, limits and priorities, mounts,
namespaces, identities, devices' commands, kernel keys, shared memory without a file (it can be held without counting as
any process's), modules, tracing, io_uring. Where a box has no process namespace (``alone``), a program may not start
processes, nor signal any but itself.
"""

from __future__ import annotations

import ctypes
import struct
from functools import cache

from .linux import COLUMN, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, prctl

_NONE = -1
# fmt: off
ALLOWED = {
    # name: number on (x86_64, aarch64)
    "read": (0, 63), "write": (1, 64), "open": (2, _NONE), "close": (3, 57), "stat": (4, _NONE), "fstat": (5, 80),
    "lstat": (6, _NONE), "newfstatat": (262, 79), "statx": (332, 291), "poll": (7, _NONE), "ppoll": (271, 73),
    "select": (23, _NONE), "pselect6": (270, 72), "lseek": (8, 62), "mprotect": (10, 226),
    "munmap": (11, 215), "brk": (12, 214), "mremap": (25, 216), "msync": (26, 227), "mincore": (27, 232),
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139),
    "rt_sigpending": (127, 136), "rt_sigtimedwait": (128, 137), "rt_sigsuspend": (130, 133), "sigaltstack": (131, 132),
    "pread64": (17, 67), "pwrite64": (18, 68), "readv": (19, 65), "writev": (20, 66), "preadv": (295, 69),
    "pwritev": (296, 70), "preadv2": (327, 286), "pwritev2": (328, 287), "access": (21, _NONE), "faccessat": (269, 48),
    "faccessat2": (439, 439), "pipe": (22, _NONE), "pipe2": (293, 59), "sched_yield": (24, 124), "dup": (32, 23),
    "dup2": (33, _NONE), "dup3": (292, 24), "pause": (34, _NONE), "nanosleep": (35, 101), "getitimer": (36, 102),
    "alarm": (37, _NONE), "setitimer": (38, 103), "getpid": (39, 172), "sendfile": (40, 71),
    "sendto": (44, 206), "recvfrom": (45, 207), "sendmsg": (46, 211), "recvmsg": (47, 212), "shutdown": (48, 210),
    "getsockname": (51, 204), "getpeername": (52, 205), "setsockopt": (54, 208), "getsockopt": (55, 209),
    "exit": (60, 93), "wait4": (61, 260), "waitid": (247, 95), "uname": (63, 160), "flock": (73, 32), "fsync": (74, 82),
    "fdatasync": (75, 83), "truncate": (76, 45), "ftruncate": (77, 46), "fallocate": (285, 47),
    "getdents": (78, _NONE), "getdents64": (217, 61), "getcwd": (79, 17), "chdir": (80, 49), "fchdir": (81, 50),
    "rename": (82, _NONE), "renameat": (264, 38), "renameat2": (316, 276), "mkdir": (83, _NONE), "mkdirat": (258, 34),
    "rmdir": (84, _NONE), "creat": (85, _NONE), "link": (86, _NONE), "linkat": (265, 37), "unlink": (87, _NONE),
    "unlinkat": (263, 35), "symlink": (88, _NONE), "symlinkat": (266, 36), "readlink": (89, _NONE),
    "readlinkat": (267, 78), "umask": (95, 166), "gettimeofday": (96, 169), "getrlimit": (97, 163),
    "getrusage": (98, 165), "sysinfo": (99, 179), "times": (100, 153), "getuid": (102, 174), "getgid": (104, 176),
    "geteuid": (107, 175), "getegid": (108, 177), "getppid": (110, 173), "getpgrp": (111, _NONE), "getpgid": (121, 155),
    "setpgid": (109, 154), "setsid": (112, 157), "getsid": (124, 156), "getgroups": (115, 158), "getresuid": (118, 148),
    "getresgid": (120, 150), "getpriority": (140, 141), "statfs": (137, 43), "fstatfs": (138, 44),
    "sched_getaffinity": (204, 123), "sched_getparam": (143, 121), "sched_getscheduler": (145, 120),
    "sched_get_priority_max": (146, 125), "sched_get_priority_min": (147, 126), "arch_prctl": (158, _NONE),
    "gettid": (186, 178), "futex": (202, 98), "time": (201, _NONE), "timer_create": (222, 107),
    "timer_settime": (223, 110), "timer_gettime": (224, 108), "timer_getoverrun": (225, 109),
    "timer_delete": (226, 111), "clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115),
    "exit_group": (231, 94),
    "epoll_create": (213, _NONE), "epoll_create1": (291, 20), "epoll_ctl": (233, 21), "epoll_wait": (232, _NONE),
    "epoll_pwait": (281, 22), "epoll_pwait2": (441, 441), "openat": (257, 56), "set_tid_address": (218, 96),
    "restart_syscall": (219, 128), "fadvise64": (221, 223), "set_robust_list": (273, 99), "eventfd": (284, _NONE),
    "eventfd2": (290, 19), "getcpu": (309, 168), "getrandom": (318, 278), "membarrier": (324, 283), "rseq": (334, 293),
    "close_range": (436, 436), "execve": (59, 221), "setrlimit": (160, 164),
}
WITH_NAMESPACES = {
    # harmless where there is nobody else to signal, and where the only writable files vanish with the program
    "fork": (57, _NONE), "vfork": (58, _NONE), "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131),
    "chmod": (90, _NONE), "fchmod": (91, 52), "fchmodat": (268, 53), "utime": (132, _NONE), "utimes": (235, _NONE),
    "utimensat": (280, 88),
}
_MMAP, _MADVISE = (9, 222), (28, 233)
_KILL, _TGKILL, _CLONE, _PRCTL, _PRLIMIT, _FCNTL, _IOCTL, _SOCKETPAIR = (
    (62, 129), (234, 131), (56, 220), (157, 167), (302, 261), (72, 25), (16, 29), (53, 199),
)
ONE_OF = {
    # number: which argument, and its values
    _PRCTL: (0, (3, 15, 16, 23, 0x53564D41)),  # names, and reading what one is
    _PRLIMIT: (0, (0,)),  # of this process
    _FCNTL: (1, (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032)),  # not: signals to an owner, larger pipes
    _IOCTL: (1, (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),  # is it a terminal, how much is there to read, ...
    _SOCKETPAIR: (0, (1,)),  # AF_UNIX
    # not: writing pages out to where they do not count as memory
    _MADVISE: (2, (0, 1, 2, 3, 4, 8, 10, 11, 14, 15, 16, 17, 18, 19)),
}
# fmt: on
NEW_NAMESPACES, THREAD = 0x7E020080, 0x00010000
_MAP_SHARED, _MAP_ANONYMOUS = 1, 0x20
LAST_OF_OLD = 423
"""Calls with higher numbers are the same on every machine, and libraries try them before older ones: for those,
ENOSYS."""
_ARCHITECTURE = (0xC000003E, 0xC00000B7)
_ALLOW, _KILL_PROCESS, _EPERM, _ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
_LOAD, _EQUAL, _GREATER, _ANY_BIT, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16
Instruction = tuple[int, int, int, int]


def install(alone: bool, pid: int) -> None:
    """Locks this process and all that it starts; ``pid`` is this process, as it calls itself. Cannot be undone."""
    if COLUMN < 0:
        raise OSError("no list of system calls for this machine")
    program = assembled(alone, pid if alone else 0)
    code = ctypes.create_string_buffer(program, len(program))
    head = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(code)))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(PR_SET_SECCOMP, 2, head)


@cache
def assembled(alone: bool, pid: int) -> bytes:
    """The filter for this machine as the kernel wants it."""
    return b"".join(struct.pack("=HBBI", *one) for one in instructions(alone, pid, COLUMN))


def instructions(alone: bool, pid: int, column: int) -> list[Instruction]:
    """The filter as classic BPF: (code, jump if true, jump if false, constant)."""
    code: list[Instruction] = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, _ARCHITECTURE[column]),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER),
    ]
    simple = ALLOWED if alone else ALLOWED | WITH_NAMESPACES
    for number in sorted(numbers[column] for numbers in simple.values() if numbers[column] != _NONE):
        code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    arguments = dict(ONE_OF)
    if alone:
        arguments |= {_KILL: (0, (pid,)), _TGKILL: (0, (pid,))}
    for numbers, (index, values) in arguments.items():
        check = [(_LOAD, 0, 0, _FIRST_ARGUMENT + 8 * index)]
        for value in values:
            check += [(_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ALLOW)]
        code += _where(numbers[column], [*check, (_RETURN, 0, 0, _EPERM)])
    flags = [(_LOAD, 0, 0, _FIRST_ARGUMENT), (_ANY_BIT, 0, 1, NEW_NAMESPACES), (_RETURN, 0, 0, _EPERM)]
    if alone:
        flags += [(_ANY_BIT, 1, 0, THREAD), (_RETURN, 0, 0, _EPERM)]
    code += _where(_CLONE[column], [*flags, (_RETURN, 0, 0, _ALLOW)])
    shared = [
        (_LOAD, 0, 0, _FIRST_ARGUMENT + 8 * 3),
        *((_ANY_BIT, 0, 2, _MAP_SHARED), (_ANY_BIT, 0, 1, _MAP_ANONYMOUS), (_RETURN, 0, 0, _EPERM)),
        (_RETURN, 0, 0, _ALLOW),
    ]
    code += _where(_MMAP[column], shared)
    return [*code, (_GREATER, 0, 1, LAST_OF_OLD), (_RETURN, 0, 0, _ENOSYS), (_RETURN, 0, 0, _EPERM)]


def _where(number: int, then: list[Instruction]) -> list[Instruction]:
    """``then`` (which returns) for one system call."""
    return [(_EQUAL, 0, len(then), number), *then]
