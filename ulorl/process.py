"""What a process needs before vLLM or DeepSpeed start in it: a process group, and quiet.

What the user or a launcher set stays as it is. torch is imported only when the group is joined.
"""

from __future__ import annotations

import logging
import os
import warnings


def join_process_group(on_gpu: bool) -> None:
    """Initialise torch's default process group, unless somebody in this process has.

    Under a launcher (torchrun, DeepSpeed) it spans the launcher's ranks. Alone, the process is rank 0 of 1 and
    opens no port: runs side by side, and subprocesses that inherit the environment, cannot collide.
    """
    import torch

    if torch.distributed.is_initialized():
        return
    backend = "cpu:gloo,cuda:nccl" if on_gpu else "gloo"
    if "MASTER_PORT" in os.environ:
        torch.distributed.init_process_group(backend)
        return
    for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}.items():
        os.environ[name] = value
    torch.distributed.init_process_group(backend, store=torch.distributed.HashStore(), rank=0, world_size=1)


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
