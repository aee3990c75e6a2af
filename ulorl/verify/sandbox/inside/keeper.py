"""One worker process: takes jobs from its standard input, one at a time, and answers on its standard output.

Invariants: never runs what it is given, and is never what a box is cloned from (`zygote`), since programs, outputs and
tests pass through its memory; between two jobs no process of an earlier one is left; ends with its caller. Expected
outputs of scripts never come here.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
from typing import Any

from . import landlock, link, namespaces, supervise
from .box import LOCKED, Job, Maker, job_file, sealed
from .limits import Limits
from .supervise import Ended, Stream, Watch
from .zygote import Zygote

PRELOADED = (
    *("abc", "array", "ast", "bisect", "calendar", "cmath", "collections", "collections.abc", "contextlib", "copy"),
    *("datetime", "decimal", "enum", "fractions", "functools", "heapq", "io", "itertools", "json", "math", "numbers"),
    *("operator", "queue", "random", "re", "statistics", "string", "struct", "textwrap", "threading", "time", "typing"),
    *("types", "unicodedata"),
)
"""Modules that programs often import: read once a keeper, not once a program."""
_RESULTS_MOST = 4 << 20
_CALLER, _ANSWERS = 0, 1


def main(mode: str, identity: int, command: list[str]) -> None:
    """Serves until the caller closes the pipe. ``command`` builds the box, in modes that have one."""
    try:
        keeper = Keeper(mode, identity, command)
    except Exception as error:
        link.send(
            _ANSWERS, {"failed": f"{type(error).__name__}: {error}" if not isinstance(error, OSError) else str(error)}
        )
        return
    link.send(_ANSWERS, {"ready": True, "zygote": keeper.zygote.pid})
    with contextlib.suppress(link.Closed, supervise.CallerGone):
        while True:
            link.send(_ANSWERS, keeper.answer(link.receive(_CALLER)))


class Keeper:
    """Enters the world in which boxes are made, and makes them."""

    def __init__(self, mode: str, identity: int, command: list[str]) -> None:
        try:
            self._processes = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            self._processes = -1
        with contextlib.suppress(OSError):
            place = os.open("self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC, dir_fd=self._processes)
            os.write(place, b"1000")  # programs are ended before anything else of the user's when memory is short
            os.close(place)
        for name in PRELOADED:
            __import__(name)
        readable = readable_places({sys.base_prefix, sys.base_exec_prefix}, os.path.realpath(sys.executable))
        if mode == "namespaces":
            namespaces.enter(readable, identity)
        elif os.geteuid() == 0:
            _become(identity)
        if mode == "landlock":
            landlock.version()
        if mode in ("landlock", "weak"):
            _enter_nowhere()
        maker = Maker(mode, readable, command)
        gc.collect()
        gc.freeze()
        self.zygote = Zygote(maker, self._processes)

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """The result of one message: of a script on one input, or of tests."""
        limits = Limits(**message["limits"])
        if message["kind"] == "script":
            return self._script(message, limits)
        return self._tests(message, limits)

    def _script(self, message: dict[str, Any], limits: Limits) -> dict[str, Any]:
        given = sealed(message["input"].encode("utf-8", "surrogateescape"))
        job: Job = {"kind": "script", "source": message["source"]}
        with _Pipes() as pipes:
            locked = pipes.one_way()
            pipes.ours.append(given)
            output, errors = (
                pipes.stream(limits.output_kib << 10),
                pipes.stream(limits.output_kib << 10, supervise.STDERR_KEPT),
            )
            box = self.zygote.start(limits, limits.cpu_s, [given, output, errors, locked[1], pipes.job(job)])
            pipes.close_theirs()
            ended = self._watch([box], pipes, limits).run()
            if not _was_locked(locked[0]):
                return _never_began(ended, pipes.kept[1])
            return _result(ended) | {"output": _text(pipes.kept[0]), "errors": _text(pipes.kept[1])}

    def _tests(self, message: dict[str, Any], limits: Limits) -> dict[str, Any]:
        program: Job = {"kind": "served", "source": message["source"]}
        tests: Job = {name: message[name] for name in ("code", "entry_point", "done")} | {"kind": "tests"}
        results: list[Any] = []
        with _Pipes() as pipes:
            nothing, locked = pipes.nothing(), (pipes.one_way(), pipes.one_way())
            requests, replies = pipes.pair(), pipes.pair()
            most = limits.output_kib << 10
            streams = [pipes.stream(most, supervise.STDERR_KEPT) for _ in range(4)]
            result = pipes.stream(_RESULTS_MOST)
            cpu_s = min(limits.total_s, limits.cpu_s * 1000)
            of_tests = [nothing, *streams[:2], replies[0], requests[1], result, locked[0][1], pipes.job(tests)]
            of_program = [nothing, *streams[2:], requests[0], replies[1], locked[1][1], pipes.job(program)]
            boxes = [self.zygote.start(limits, cpu_s, files) for files in (of_tests, of_program)]
            pipes.close_theirs()
            watch = self._watch(boxes, pipes, limits)
            pipes.kept[4].on_data = _lines(results, watch)
            ended = watch.run()
            if not _was_locked(locked[0][0]):
                return _never_began(ended, pipes.kept[1])
            # Tests that cannot be read end without waiting for the program.
            if not _was_locked(locked[1][0]) and not any("broken" in one for one in results):
                return _never_began(ended, pipes.kept[3])
            return _result(ended) | {
                "results": results,
                "errors": _text(pipes.kept[3]),
                "test_errors": _text(pipes.kept[1]),
            }

    def _watch(self, boxes: list[int], pipes: _Pipes, limits: Limits) -> Watch:
        return Watch(boxes, pipes.streams, limits, self._processes, _CALLER, self.zygote.end)


def readable_places(prefixes: set[str], executable: str) -> list[str]:
    """What an interpreter needs: its standard library, and the system's shared libraries."""
    places = {f"{prefix}/{name}" for prefix in prefixes for name in ("lib", "lib64")}
    places |= {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/usr/share/zoneinfo", executable}
    return sorted(place for place in places if os.path.lexists(place))


def _become(identity: int) -> None:
    """Root becomes a user without privileges, which has to be able to read the interpreter."""
    os.setgroups([])
    os.setresgid(identity, identity, identity)
    os.setresuid(identity, identity, identity)
    if not os.access(os.__file__, os.R_OK):
        raise PermissionError(f"other users than root cannot read {os.path.dirname(os.__file__)}")


def _enter_nowhere() -> None:
    """An empty current directory in which nothing can be made: one that is removed already."""
    import tempfile

    place = tempfile.mkdtemp()
    os.chdir(place)
    os.rmdir(place)


def _result(ended: Ended) -> dict[str, Any]:
    return {"how": ended.how, "status": ended.status, "cpu_s": round(ended.cpu_s, 4), "wall_s": round(ended.wall_s, 4)}


def _was_locked(reader: int) -> bool:
    """Whether a box, which has ended, said so before it did its job."""
    os.set_blocking(reader, False)
    return os.read(reader, 1) == LOCKED


def _never_began(ended: Ended, errors: Stream) -> dict[str, Any]:
    """The answer for a box that failed, or was ended, before the program began: no fault of the program's."""
    return {
        "unlocked": f"a box ended before the program began ({ended.how} {ended.status}) {_text(errors)[-200:].strip()}"
    }


def _text(stream: Stream) -> str:
    return stream.data().decode("utf-8", "surrogateescape")


def _lines(results: list[Any], watch: Watch) -> Any:
    """Collects results as they come; each begins a new test."""
    rest = b""

    def add(data: bytes) -> None:
        nonlocal rest
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError):
                results.append(json.loads(line))
        if lines:
            watch.progressed()

    return add


class _Pipes:
    """Descriptors of one job; all are closed at its end."""

    def __init__(self) -> None:
        self.ours: list[int] = []
        self._theirs: list[int] = []
        self.streams: dict[int, Stream] = {}
        self.kept: list[Stream] = []

    def __enter__(self) -> _Pipes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_theirs()
        for place in self.ours:
            os.close(place)

    def stream(self, most: int, kept: int = 0) -> int:
        """The end into which a box writes; what it writes is in ``kept`` and ``streams``."""
        reader, writer = self.one_way()
        self.streams[reader] = stream = Stream(most, kept or most)
        self.kept.append(stream)
        return writer

    def pair(self) -> tuple[int, int]:
        """A pipe between two boxes."""
        ends = os.pipe()
        self._theirs += ends
        return ends

    def one_way(self) -> tuple[int, int]:
        """A pipe from a box to the keeper that nobody watches."""
        reader, writer = os.pipe()
        self.ours.append(reader)
        self._theirs.append(writer)
        return reader, writer

    def job(self, job: Job) -> int:
        """Where a box reads its job."""
        place = job_file(job)
        self._theirs.append(place)
        return place

    def nothing(self) -> int:
        """An empty standard input."""
        place = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        self._theirs.append(place)
        return place

    def close_theirs(self) -> None:
        for place in self._theirs:
            os.close(place)
        self._theirs.clear()
