"""What a process is given before the distributed libraries start, and seeds that follow from names."""

import os
import signal
import subprocess
import sys
import time

import pytest
from ports import free_port

from ulorl.seeds import derive_seed

CODE = """
import os
import torch
from ulorl.process import join_process_group

join_process_group(on_gpu=False)
join_process_group(on_gpu=False)
total = torch.ones(1)
torch.distributed.all_reduce(total)
print(torch.distributed.get_rank(), torch.distributed.get_world_size(), int(total), "MASTER_PORT" in os.environ)
"""
ENDED = """
import atexit
import os
from ulorl import cli
from ulorl.errors import UserError

class FallsApart:
    def __del__(self):
        os.abort()

def command():
    atexit.register(print, "tidied up")
    print("at work")
    raise {error}

kept = FallsApart() if {falls_apart} else None
cli.app.command("fail")(command)
cli.main()
"""
NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def process(code: str = CODE, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    inherited = {name: value for name, value in os.environ.items() if name not in NAMES}
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], env=inherited | environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_process_without_a_launcher_is_rank_0_of_1_and_opens_no_port():
    assert process().communicate(timeout=100)[0].split() == ["0", "1", "1", "False"]


@pytest.mark.parametrize(
    "left", [{"MASTER_PORT": "29500"}, {"MASTER_PORT": "29500", "MASTER_ADDR": "nowhere.invalid"}, {"RANK": "0"}]
)
def test_a_variable_of_a_launcher_alone_is_none(left):
    assert process(**left).communicate(timeout=100)[0].split()[:3] == ["0", "1", "1"]


def test_a_launcher_that_says_half_is_refused():
    ended = process(WORLD_SIZE="2", RANK="1", MASTER_PORT="29500")
    assert "WORLD_SIZE is 2, but MASTER_ADDR not set" in ended.communicate(timeout=100)[1]
    assert ended.returncode


def test_under_a_launcher_the_group_spans_its_ranks():
    port = str(free_port())
    ranks = [
        process(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        for rank in range(2)
    ]
    assert [rank.communicate(timeout=100)[0].split() for rank in ranks] == [
        [str(n), "2", "2", "True"] for n in range(2)
    ]


@pytest.mark.parametrize(
    ("error", "exit_code", "message"),
    [
        ("UserError('a rank is gone')", 2, "ulorl: a rank is gone\n"),
        ("KeyboardInterrupt", 130, "ulorl: interrupted; the same command goes on from what is kept\n"),
        ("SystemExit(1)", 1, ""),
        (
            "__import__('shutil').Error([('/a', '/b', 'No space: /b')])",
            2,
            "ulorl: No space: /b; what was finished before is kept (ULORL_TRACEBACK=1 shows where)",
        ),
        (
            "PermissionError(13, 'Permission denied', '/a')",
            2,
            "ulorl: /a: Permission denied; what was finished before is kept (ULORL_TRACEBACK=1 shows where)",
        ),
    ],
)
@pytest.mark.parametrize("world", ["1", "2"])
def test_a_command_ends_with_its_message_and_exit_code(error, exit_code, message, world):
    # A process of several may be unable to take itself apart; its exit code tells the launcher what happened.
    code = ENDED.format(error=error, falls_apart=world == "2")
    ended = process(code, "fail", RANK="0", WORLD_SIZE=world)
    output, errors = ended.communicate(timeout=100)
    assert (output, errors.strip(), ended.returncode) == ("at work\ntidied up\n", message.strip(), exit_code)


KEPT = "what was finished before is kept (ULORL_TRACEBACK=1 shows where)"


def test_a_pipe_that_breaks_elsewhere_is_no_success():
    ended = process(ENDED.format(error="BrokenPipeError(32, 'Broken pipe')", falls_apart=False), "fail")
    errors = ended.communicate(timeout=100)[1]
    assert ended.returncode == 1, errors


def test_errors_of_the_system_keep_their_traceback_where_it_is_asked_for():
    code = ENDED.format(error="FileNotFoundError(2, 'No such file or directory', '/a')", falls_apart=False)
    ended = process(code, "fail", ULORL_TRACEBACK="1")
    assert "Traceback" in ended.communicate(timeout=100)[1]
    assert ended.returncode == 1


@pytest.mark.parametrize(("where", "code"), [("| head -n 1", 0), ("> /dev/full", 2)])
def test_output_that_nobody_reads_is_no_failure_and_that_cannot_be_written_is(where, code):
    script = f"{sys.executable} -m ulorl show {where}; exit ${{PIPESTATUS[0]}}"
    for _ in range(3):
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
        assert done.returncode == code
        assert done.stderr == ("" if code == 0 else f"ulorl: No space left on device; {KEPT}\n")


def test_an_interrupt_at_any_time_is_one_line(tmp_path):
    for seconds in (0.5, 2.0):
        command = [sys.executable, "-m", "ulorl", "curate", "quickstart:20000", "-o", str(tmp_path / "out")]
        curating = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
        begun = curating.stderr.readline()
        time.sleep(seconds)
        os.killpg(curating.pid, signal.SIGINT)
        errors = begun + curating.communicate(timeout=60)[1]
        assert "Traceback" not in errors, errors
        assert curating.returncode == 130, errors


def test_seeds_depend_on_every_name_and_its_place():
    seeds = {
        derive_seed(0, "rollout", 1, 2),
        derive_seed(1, "rollout", 1, 2),
        derive_seed(0, "rollout", 2, 1),
        derive_seed(0, "rollout", 12),
        derive_seed(0, "rollout", "1\x1f2x"),
        derive_seed(0, "sample", 1, 2),
    }
    assert len(seeds) == 6
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert derive_seed(0, "rollout", 1, 2) == derive_seed(0, "rollout", 1, 2)
