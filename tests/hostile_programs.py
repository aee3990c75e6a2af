"""Programs that try to get out of the sandbox, hang it, fill it or deceive it; also for `benchmarks/sandbox.py`.

Each gets what it attacks as JSON on its standard input (`Canary.facts`) and prints ESCAPED where an attack works, so
that a test needs to know nothing of how it is done. Never run one outside the sandbox.
"""

from __future__ import annotations

from dataclasses import dataclass

from hostile_escapes import ESCAPES
from hostile_use import USE

HEAD = """
import ctypes, errno, gc, json, mmap, os, resource, signal, socket, stat, struct, subprocess, sys, threading, time
C = json.loads(sys.stdin.readline() or "{}")
def libc():
    return ctypes.CDLL(None, use_errno=True)
def escaped(what):
    print("ESCAPED", what, flush=True)
def attempt(what, work):
    try:
        result = work()
    except BaseException as error:
        return error
    escaped(f"{what}: {result!r:.200}")
"""


@dataclass(frozen=True)
class Hostile:
    """``how``: ways to end that are right for it; empty for any."""

    name: str
    kind: str
    source: str
    how: tuple[str, ...] = ()


def _hostile(name: str, kind: str, program: str | tuple[str, tuple[str, ...]]) -> Hostile:
    source, how = program if isinstance(program, tuple) else (program, ())
    return Hostile(name, kind, HEAD + source, how)


PROGRAMS = [
    _hostile(name, kind, program) for kind, programs in (USE | ESCAPES).items() for name, program in programs.items()
]
