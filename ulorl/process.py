"""What a process needs before torch.distributed, vLLM or DeepSpeed start in it. Imports none of them.

What the user or a launcher set stays as it is.
"""

from __future__ import annotations

import logging
import os
import socket
import warnings


def set_launcher_defaults() -> None:
    """The environment of a launcher for a process that was started without one: rank 0 of 1, on a free port."""
    for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}.items():
        os.environ.setdefault(name, value)
    if "MASTER_PORT" not in os.environ:
        os.environ["MASTER_PORT"] = str(free_port())


def free_port() -> int:
    """A TCP port of this machine that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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
