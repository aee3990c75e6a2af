"""Runs of `ulorl` without the seconds of importing: one process imports what training does, and forks for each of them.

It prints "ready", then for every line on standard input, [arguments, file for standard error], the process id of a run
and, when that run has ended, its exit code.
"""

import importlib
import json
import os
import sys

LIBRARIES = (
    "deepspeed",
    "torch.utils.tensorboard",
    "transformers.models.auto.modeling_auto",
    "vllm.v1.engine.llm_engine",
    "ulorl.train.stage",
)


def serve() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries greet on standard output
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    from ulorl.cli import main
    from ulorl.process import quiet_libraries

    quiet_libraries()
    for library in LIBRARIES:
        importlib.import_module(library)
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        arguments, errors = json.loads(line)
        child = os.fork()
        if child == 0:
            sys.argv = ["ulorl", *arguments]
            for number, path, mode in ((0, os.devnull, os.O_RDONLY), (1, os.devnull, os.O_WRONLY)):
                os.dup2(os.open(path, mode), number)
            os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            main()
        print(child, file=answers, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=answers, flush=True)


serve()
