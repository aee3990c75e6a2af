"""How many CPU threads this process takes. Sets nothing."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Cores the process may run on."""
    return len(os.sched_getaffinity(0))


def thread_count(threads: int) -> int:
    """``engine.threads``, or for 0 what OMP_NUM_THREADS says, or every core the process may use."""
    if threads:
        return threads
    stated = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(stated) if stated.isdigit() and int(stated) > 0 else usable_cores()
