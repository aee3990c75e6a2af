"""What runs inside a worker process: ``python -m ulorl.verify.symbolic.worker SECONDS MEMORY_MIB``.

Reads one JSON request a line, writes one JSON reply a line. Invariants: a request that takes longer than
SECONDS of processor time ends the process (the kernel's timers do it, also inside one long arithmetic
operation); so does a parent that has gone; memory is limited before the first request is read; no string
from a request can reach sympy's string parsers, which would execute it, because they refuse in this process.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

from ulorl.verify.grammar.tokens import words

WALL_FACTOR = 60
"""Wall-clock seconds for one of processor time: the parent's own clock ends a worker long before."""


def main(seconds: float, memory_mib: int) -> None:
    """Serves requests until the parent closes the pipe."""
    replies = _take_over_streams()
    _limit(memory_mib)
    sys.modules["numpy"] = sys.modules["scipy"] = None  # type: ignore[assignment] # sympy would load both, for nothing
    from ulorl.verify.symbolic.compare import compare_texts

    # Fills caches and imports what sympy imports when it is first needed; some of its own modules make their constants
    # from strings, so this comes before strings are refused.
    for warm_up in (r"\int_0^1 \int_0^x \sqrt{y} dy dx", r"\sum_{k=1}^{\infty} \frac{1}{k!}"):
        compare_texts("7", warm_up, {})
    _disarm()
    gc.freeze()
    os.dup2(1, 2)  # errors were for a start that fails; hostile input writes nowhere
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    _write(replies, {"ready": True})
    for request in _requests():
        if "ping" in request:
            _write(replies, request)
            continue
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, seconds * WALL_FACTOR)
        try:
            relation, reason = compare_texts(request["reference"], request["answer"], request["policy"])
            reply: dict[str, Any] = {"relation": relation, "reason": reason}
        except MemoryError:
            reply = {"failed": "out of memory"}
        except RecursionError:
            reply = {"relation": "undecided", "reason": "nested too deeply"}
        except Exception as error:  # whatever a library makes of hostile mathematics
            reply = {"relation": "undecided", "reason": f"{type(error).__name__} in the computer algebra system"}
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _write(replies, reply)


def _take_over_streams() -> int:
    """A private descriptor for replies: whatever a library prints goes nowhere."""
    replies = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    return replies


def _limit(memory_mib: int) -> None:
    for number in (signal.SIGPROF, signal.SIGALRM, signal.SIGXCPU):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupted parent closes the pipe
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGPROF, signal.SIGALRM, signal.SIGXCPU))
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        resource.setrlimit(kind, (memory_mib << 20, memory_mib << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _disarm() -> None:
    """Takes away every way from text to code that sympy has, and every deed that code could do."""
    import sympy.parsing.sympy_parser as parser
    from latex2sympy2_extended import latex2sympy2

    def refuse(*_: object, **__: object) -> NoReturn:
        raise TypeError("a string reached the parser of sympy")

    parser.eval_expr = parser.parse_expr = parser.stringify_expr = latex2sympy2.parse_expr = refuse
    sys.addaudithook(_refuse_deeds)


def _refuse_deeds(event: str, arguments: tuple[Any, ...]) -> None:
    """Comparing answers starts no process, opens no connection and writes no file."""
    if event in _DEEDS or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
        raise PermissionError(f"{event} in a worker")


_DEEDS = words(
    """os.system os.exec os.fork os.forkpty os.posix_spawn os.spawn subprocess.Popen pty.spawn socket.connect
    socket.bind os.remove os.rename os.mkdir os.rmdir os.chmod os.link os.symlink shutil.rmtree ctypes.dlopen"""
)


def _requests() -> Iterator[dict[str, Any]]:
    """Requests until the parent closes the pipe or dies."""
    parent, received = os.getppid(), b""
    while os.getppid() == parent:
        if not select.select([0], [], [], 2.0)[0]:
            continue
        data = os.read(0, 65_536)
        if not data:
            return
        *lines, received = (received + data).split(b"\n")
        yield from map(json.loads, lines)


def _write(replies: int, reply: dict[str, Any]) -> None:
    os.write(replies, json.dumps(reply).encode() + b"\n")


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
