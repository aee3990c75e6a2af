"""What a process needs before vLLM or DeepSpeed start in it: a process group, and quiet.

What the user or a launcher set stays as it is. torch is imported only when the group is joined.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
import threading
import warnings
from datetime import timedelta
from typing import NoReturn

from ulorl.errors import UserError

LAUNCHER = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""What every launcher (torchrun, DeepSpeed) sets. One alone may be left from something else."""


def launched_processes() -> int:
    """Processes of the launcher that started this one; 1 without a launcher."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_first_process() -> bool:
    """Whether this process speaks for the run: the launcher's rank 0, or the only one."""
    return os.environ.get("RANK", "0") == "0"


def join_process_group(on_gpu: bool, timeout_s: float | None = None) -> None:
    """Initialise torch's default process group, unless somebody in this process has.

    Under a launcher (torchrun, DeepSpeed) it spans the launcher's ranks. Alone, the process is rank 0 of 1 and
    opens no port: runs side by side, and subprocesses that inherit the environment, cannot collide. ``timeout_s``
    bounds every collective; None is torch's default. UserError where there are to be several processes, but not all
    that a launcher sets is there.
    """
    import torch

    if torch.distributed.is_initialized():
        return
    backend = "cpu:gloo,cuda:nccl" if on_gpu else "gloo"
    missing = [name for name in LAUNCHER if name not in os.environ]
    if missing and launched_processes() > 1:
        raise UserError(
            f"WORLD_SIZE is {launched_processes()}, but {', '.join(missing)} not set; a launcher sets them all: start "
            "with --nproc N, torchrun or deepspeed, or unset WORLD_SIZE"
        )
    if not missing:
        if on_gpu:
            local_rank, devices = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
            if local_rank >= devices:
                raise UserError(f"process {local_rank + 1} of this machine has no GPU of its own: it has {devices}")
            torch.cuda.set_device(local_rank)
        timeout = None if timeout_s is None else timedelta(seconds=timeout_s)
        torch.distributed.init_process_group(backend, timeout=timeout)
        return
    for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}.items():
        os.environ[name] = value
    torch.distributed.init_process_group(backend, store=torch.distributed.HashStore(), rank=0, world_size=1)


def leave_at_once(code: int) -> NoReturn:
    """End the process as an interpreter does, but without taking itself apart.

    A process of several may leave while another's part of a collective is missing. Taking torch apart then has been
    seen to abort the process: its exit code was that of a crash, for which a launcher names the wrong rank.
    """
    for work in (threading._shutdown, atexit._run_exitfuncs):  # type: ignore[attr-defined]
        with contextlib.suppress(BaseException):
            work()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def quiet_libraries() -> None:
    """Keep messages that no user can act on out of the terminal: deprecations inside libraries, missing GPUs."""
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"(torch|vllm|deepspeed)\..*")
    warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"(torch|vllm|deepspeed)\..*")
    for name in ("torch._library.triton", "DeepSpeed"):
        logging.getLogger(name).setLevel(logging.ERROR)
    for name, value in {
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "TORCH_CPP_LOG_LEVEL": "ERROR",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_NO_USAGE_STATS": "1",
    }.items():
        os.environ.setdefault(name, value)
