"""Becoming the program: a fresh ``__main__``, streams of its own, and the end of a Python process.

Everything here runs in the box, after it is locked, in the same process as the program: nothing of it is trusted.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import traceback
from types import ModuleType
from typing import Any

NAME = "program.py"


def run(source: str) -> None:
    """Runs ``source`` as a script and ends the process with its exit status."""
    open_streams()
    end(call(execute, source))


def execute(source: str) -> ModuleType:
    """Runs ``source`` in a new module ``__main__``, which is returned."""
    module = ModuleType("__main__")
    sys.modules["__main__"] = module
    sys.argv = [NAME]
    exec(compile(source, NAME, "exec"), module.__dict__)  # what the box is for
    return module


def call(work: Any, *arguments: Any) -> int:
    """The exit status of a Python process that does ``work``, with what it prints about exceptions."""
    try:
        work(*arguments)
    except SystemExit as end:
        return _status(end.code)
    except BaseException:
        _print_exception()
        return 1
    return 0


def end(status: int) -> None:
    """What an interpreter does at its end, without taking itself apart, which is slow."""
    for work in (threading._shutdown, atexit._run_exitfuncs):  # type: ignore[attr-defined]
        with contextlib.suppress(BaseException):
            work()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):
            stream.flush()
    os._exit(status & 0xFF)


def open_streams() -> None:
    options: Any = {"encoding": "utf-8", "errors": "surrogateescape", "closefd": False}
    sys.stdin = sys.__stdin__ = open(0, **options)  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", **options)  # type: ignore[misc]  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", **(options | {"errors": "backslashreplace"}))  # type: ignore[misc]  # noqa: SIM115


def _status(code: Any) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    with contextlib.suppress(BaseException):
        print(code, file=sys.stderr)
    return 1


def _print_exception() -> None:
    """The last frames of the program alone; its exception may do anything when it is printed."""
    with contextlib.suppress(BaseException):
        kind, error, trace = sys.exc_info()
        while trace is not None and trace.tb_frame.f_code.co_filename != NAME:
            trace = trace.tb_next
        traceback.print_exception(kind, error, trace, limit=-8)
