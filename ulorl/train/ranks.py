"""The processes that train together, and everything they say to each other outside DeepSpeed and vLLM.

``Ranks`` is a run of one process; ``LaunchedRanks`` one of several under a launcher. Nothing else asks how many there
are.

Invariants:
- whatever is decided for the whole run is decided from values that every rank has, so all ranks take the same
  branches and meet in the same order;
- no wait is longer than the stated time: a rank that is gone or late ends the run with a message that names it and the
  step. What was finished is in the latest checkpoint.

A rank that is gone is noticed at once (its connections close), a late one after the time-out. Late inside a GPU
collective it is NCCL's own watchdog that ends the process, after the same time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

from ulorl.errors import ReportedError, UserError
from ulorl.process import join_process_group, launched_processes

T = TypeVar("T")
Number = TypeVar("Number", int, float)

GRACE_S = 10.0
"""Seconds in which the others report after a connection broke, so that the missing rank can be named."""
_LOST = ("gloo", "nccl", "connection closed", "connection reset", "broken pipe", "timed out")


class Ranks:
    """One process: it owns every group, and what it says it hears."""

    rank = 0
    world = 1
    step = 0
    """The step that messages name."""

    @property
    def first(self) -> bool:
        """Whether this is the process that writes and shows what is of the whole run."""
        return self.rank == 0

    @property
    def suffix(self) -> str:
        """What sets the names of this rank's files apart; empty in a run of one."""
        return ""

    def owns(self, number: int) -> bool:
        """Whether the group of this number is this rank's."""
        return number % self.world == self.rank

    def gather(self, value: T) -> list[T]:
        """Every rank's ``value``, by rank, on every rank."""
        return [value]

    def total(self, value: Number) -> Number:
        """Sum of every rank's ``value``."""
        return sum(self.gather(value))

    def exchange(self, outgoing: Sequence[T]) -> list[T]:
        """Send ``outgoing[r]`` to rank r; what each rank sent to this one, by rank."""
        return list(outgoing)

    def once(self, function: Callable[[], T]) -> T:
        """Do it on the first rank alone; its result, or its UserError, on every rank."""
        return function()

    def meet(self, what: str) -> None:
        """Wait until every rank is here; ``what`` is what they are about to do."""

    @contextmanager
    def watch(self, what: str) -> Iterator[None]:
        """Around collectives that are not ours: a rank that is lost in them is named."""
        yield

    def bound_waits(self) -> None:
        """Make the time-out hold in the process groups that libraries have made by now, with torch's default."""


class LaunchedRanks(Ranks):
    """The processes of a launcher (torchrun, DeepSpeed), over gloo."""

    def __init__(self, timeout_s: float) -> None:
        import torch
        from torch import distributed

        self._distributed, self._timeout_s = distributed, timeout_s
        join_process_group(torch.cuda.is_available(), timeout_s)
        self.rank, self.world = distributed.get_rank(), distributed.get_world_size()
        self._group = distributed.new_group(backend="gloo", timeout=timedelta(seconds=timeout_s))

    @property
    def suffix(self) -> str:
        return f"_rank_{self.rank}"

    def gather(self, value: T) -> list[T]:
        found: list[Any] = [None] * self.world
        self.meet("compare figures")
        with self.watch("compare figures"):
            self._distributed.all_gather_object(found, value, group=self._group)
        return found

    def exchange(self, outgoing: Sequence[T]) -> list[T]:
        assert len(outgoing) == self.world
        found = []
        for source in range(self.world):
            received: list[Any] = [None]
            self.meet("exchange samples")
            with self.watch("exchange samples"):
                self._distributed.scatter_object_list(
                    received, list(outgoing) if source == self.rank else None, src=source, group=self._group
                )
            found.append(received[0])
        return found

    def once(self, function: Callable[[], T]) -> T:
        result: list[Any] = [None, None]
        failure: UserError | None = None
        if self.first:
            try:
                result[0] = function()
            except UserError as error:
                failure, result[1] = error, str(error)
        sent = list(result)
        self.meet("hear from rank 0")
        with self.watch("hear from rank 0"):
            self._distributed.broadcast_object_list(sent, src=0, group=self._group)
        if failure is not None:
            raise failure
        if sent[1] is not None:
            raise ReportedError(sent[1])
        value: T = result[0] if self.first else sent[0]
        return value

    def meet(self, what: str) -> None:
        self._meet(what, self._timeout_s)

    @contextmanager
    def watch(self, what: str) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            # Anything else (no memory left, a bug) is this rank's own and keeps its traceback.
            if not any(word in str(error).lower() for word in _LOST):
                raise
            self._meet(what, min(GRACE_S, self._timeout_s))
            raise

    def bound_waits(self) -> None:
        c10d = self._distributed.distributed_c10d
        for group in list(c10d._world.pg_map):
            c10d._set_pg_timeout(timedelta(seconds=self._timeout_s), group)

    def _meet(self, what: str, timeout_s: float) -> None:
        started = time.monotonic()
        try:
            self._distributed.monitored_barrier(
                self._group, timeout=timedelta(seconds=timeout_s), wait_all_ranks=self.first
            )
        except RuntimeError as error:
            late = time.monotonic() - started >= timeout_s
            raise UserError(
                f"step {self.step}: {self._missing(str(error))} to {what}: "
                + (f"not there within {self._timeout_s:g} s (train.timeout_s)" if late else "gone")
                + ". The run ends; the same command continues from the latest checkpoint"
            ) from error

    def _missing(self, message: str) -> str:
        """Which ranks a failed barrier reports. Only the first rank knows; the others know whether it answered."""
        if not self.first:
            return "rank 0 (which names another rank itself, if it waited for one) did not come"
        found = re.search(r"[Rr]anks? ([\d, ]+?) failed to pass", message)
        numbers = found.group(1) if found else ", ".join(map(str, self._closed())) or "(unknown)"
        return f"rank{'s' if ',' in numbers else ''} {numbers} did not come"

    def _closed(self) -> list[int]:
        """Ranks to which the connection is closed already: a barrier fails at the first of them, without its number."""
        import torch

        closed = []
        for rank in range(1, self.world):
            try:
                self._distributed.isend(torch.zeros(1), group=self._group, group_dst=rank)
            except RuntimeError:
                closed.append(rank)
        return closed


def open_ranks(timeout_s: float) -> Ranks:
    """The processes of this run: those of the launcher that started this one, or this one alone."""
    return LaunchedRanks(timeout_s) if launched_processes() > 1 else Ranks()
