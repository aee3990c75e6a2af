"""math-verify as a peer to compare with, in a process that can be killed.

Run as a script it answers one JSON line a pair; `Peer` starts it, waits at most ``seconds`` a pair, and starts it
again where it hangs or dies. Answers are wrapped in ``$`` as math-verify wants them; whole responses are not.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
from types import TracebackType
from typing import Any, Self


class Peer:
    """``accepts`` says whether math-verify calls a pair equal; None where it hung, died or raised."""

    def __init__(self, seconds: float = 10.0) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[str] | None = None
        self.killed = 0

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def accepts(self, reference: str, answer: str, *, wrap: bool = True) -> bool | None:
        process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps([reference, answer, wrap]) + "\n")
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], self._seconds)
            line = process.stdout.readline() if ready else ""
        except BrokenPipeError:
            line = ""
        if not line:
            self.killed += 1
            self._stop()
            return None
        verdict: bool | None = json.loads(line)
        return verdict

    def _start(self) -> subprocess.Popen[str]:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.accepts("1", "1") is True, "math-verify does not start"
        return self._process

    def _stop(self) -> None:
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            process.communicate()


def _serve() -> None:
    from math_verify import parse, verify

    def read(text: str, wrap: bool) -> Any:
        return parse(f"${text}$" if wrap and "$" not in text else text)

    for line in sys.stdin:
        reference, answer, wrap = json.loads(line)
        try:
            verdict = bool(verify(read(reference, True), read(answer, wrap)))
        except Exception:
            verdict = None
        sys.stdout.write(json.dumps(verdict) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
