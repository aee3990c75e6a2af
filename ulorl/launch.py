"""Starting the processes of `ulorl train --nproc N`, and refusing a launcher where one process is meant.

The processes are torchrun's (``torch.distributed.run``, standalone: one machine), each running the same command line.
Several machines, or another launcher, start the command themselves.
"""

from __future__ import annotations

import logging
import os
import signal
import sys

from ulorl.engine.threads import usable_cores
from ulorl.errors import ReportedError, UserError
from ulorl.process import launched_processes, quiet_libraries

CHECKED_EVERY_S = 0.5
"""Seconds after which the death of a process is noticed; the others need the time to say what they saw."""
SHUTDOWN_S = 10
"""Seconds that a process is given to end before it is killed."""


def needs_launch(nproc: int) -> bool:
    """Whether this process is to start ``nproc`` others; not when it is one of them. Raises UserError."""
    if nproc < 0:
        raise UserError(f"--nproc: {nproc} is not a number of processes")
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if launched_processes() > 1:
        if nproc not in {0, local}:
            raise UserError(f"--nproc {nproc}: a launcher has started {local} processes here already; leave it out")
        return False
    return nproc > 1


def launch(nproc: int) -> None:
    """Run this very command line in ``nproc`` processes and wait. Raises UserError when one failed."""
    quiet_libraries()
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, usable_cores() // nproc)))
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    options = ["--standalone", "--nproc-per-node", str(nproc), "--monitor-interval", str(CHECKED_EVERY_S)]
    options += ["--shutdown-timeout", str(SHUTDOWN_S)]
    logging.getLogger("torch.distributed").setLevel(logging.CRITICAL)
    try:
        run.run(run.parse_args([*options, "-m", "--", "ulorl", *sys.argv[1:]]))
    except SignalException as error:
        if error.sigval == signal.SIGINT:
            raise KeyboardInterrupt from None
        raise UserError(f"train: ended by {error.sigval.name}; the same command continues where it stopped") from None
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        if failure.exitcode > 0:  # the process has said what went wrong
            raise ReportedError(str(error)) from None
        raise UserError(
            f"train: rank {rank} (process {failure.pid}) was ended by signal {-failure.exitcode}, and the run with it. "
            "The same command continues from the latest checkpoint"
        ) from None


def refuse_launcher(command: str) -> None:
    """Raise UserError under a launcher of several processes, for what is done by one."""
    if (count := launched_processes()) > 1:
        raise UserError(
            f"{command}: a launcher has started {count} processes (WORLD_SIZE); only `ulorl train` runs in several. "
            f"Start `ulorl {command}` without it"
        )
