"""Stage directories: whole or absent under kill -9, recognised, refused, locked, and their lineage."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ulorl import artifact
from ulorl.artifact import Work, begin, read_manifest
from ulorl.errors import UserError
from ulorl.files import write_atomic, write_table
from ulorl.fingerprint import fingerprint_of, hash_path
from ulorl.lineage import lineage, render_lineage

STAGE = """
import json, os, signal, sys, time
from pathlib import Path
from ulorl import artifact, files, provenance

calls = 0
provenance.git_commit = lambda root: None

def counted(function, fatal_call):
    def call(*arguments, **keywords):
        global calls
        calls += 1
        if calls == fatal_call:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **keywords)
    return call

def stage(target, fatal_call, force):
    for name in ("replace", "rename", "unlink", "rmdir"):
        setattr(os, name, counted(getattr(os, name), fatal_call))
    # A kill, unlike a power cut, loses nothing that was written: the tests need not wait for the disk.
    os.fsync = counted(lambda descriptor: None, fatal_call)
    config = {"parts": 6}
    work = artifact.begin(target, stage="test", config=config, inputs=["quickstart:6"], seed=1, force=force)
    if work.done:
        return
    (work.path / "parts").mkdir(exist_ok=True)
    for part in range(6):
        path = work.path / "parts" / f"{part}.txt"
        if not path.exists():
            files.write_atomic(path, f"part {part}\\n" * 2000)
        time.sleep(0.002)
    work.finish({"parts": 6})

for line in sys.stdin:
    job = json.loads(line)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            stage(Path(job["target"]), job["fatal_call"], job["force"])
            os.write(writer, str(calls).encode())
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
        os._exit(0)
    os.close(writer)
    if job["kill_after"] is not None:
        time.sleep(job["kill_after"])
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    print(json.dumps([os.waitstatus_to_exitcode(status), int(os.read(reader, 20) or 0)]), flush=True)
    os.close(reader)
"""
EXPECTED = {f"parts/{part}.txt": f"part {part}\n" * 2000 for part in range(6)}


class Stages:
    """Runs each stage in a process of its own (forked: starting Python takes longer than the stage)."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", STAGE]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(
        self, target: Path, fatal_call: int = 0, force: bool = False, kill_after: float | None = None
    ) -> tuple[int, int]:
        """(exit code, negative for a signal; durable calls made by a stage that ended by itself)."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        job = {"target": str(target), "fatal_call": fatal_call, "force": force, "kill_after": kill_after}
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        code, calls = json.loads(self.process.stdout.readline())
        return code, calls

    def run_to_the_end(self, target: Path, force: bool = False) -> int:
        code, calls = self.run(target, force=force)
        assert code == 0
        return calls


@pytest.fixture(scope="module")
def stages() -> Iterator[Stages]:
    runner = Stages()
    yield runner
    assert runner.process.stdin is not None
    runner.process.stdin.close()
    runner.process.wait(timeout=10)


def data_of(directory: Path) -> dict[str, str]:
    files = [path for path in directory.rglob("*") if path.is_file() and not path.name.startswith(".")]
    found = {path.relative_to(directory).as_posix(): path.read_text() for path in files}
    assert json.loads(found.pop("manifest.json"))["counts"]["parts"] == 6
    return found


def test_kill_at_random_moments_leaves_nothing_or_everything(tmp_path: Path, stages: Stages) -> None:
    chance = random.Random(7)
    target = tmp_path / "stage"
    killed = finished = 0
    while killed < 30:
        code, _ = stages.run(target, kill_after=chance.uniform(0, 0.04))
        assert code in (0, -signal.SIGKILL)
        killed += code == -signal.SIGKILL
        if target.exists():
            finished += 1
            assert data_of(target) == EXPECTED
            os.rename(target, tmp_path / f"finished-{finished}")
    stages.run_to_the_end(target)
    assert data_of(target) == EXPECTED
    assert not target.with_name("stage.partial").exists()


def test_kill_at_every_durable_step(tmp_path: Path, stages: Stages) -> None:
    """Dies at the n-th fsync, replace, rename, unlink or rmdir of beginning and of finishing."""
    calls = stages.run_to_the_end(tmp_path / "whole")
    for fatal_call in [*range(1, 8), *range(calls - 10, calls + 1)]:
        target = tmp_path / f"stage{fatal_call}"
        assert stages.run(target, fatal_call)[0] == -signal.SIGKILL
        if target.exists():
            assert data_of(target) == EXPECTED
        stages.run_to_the_end(target)
        assert data_of(target) == EXPECTED
        assert not target.with_name(f"{target.name}.partial").exists()


def test_kill_while_a_finished_artifact_is_replaced(tmp_path: Path, stages: Stages) -> None:
    target = tmp_path / "stage"
    stages.run_to_the_end(target)
    calls = stages.run_to_the_end(target, force=True)
    for fatal_call in range(calls - 12, calls + 1):
        assert stages.run(target, fatal_call, force=True)[0] == -signal.SIGKILL
        if target.exists():
            assert data_of(target) == EXPECTED
        stages.run_to_the_end(target, force=True)
        assert data_of(target) == EXPECTED
        assert [path.name for path in tmp_path.iterdir()] == ["stage"]


def make(path: Path, config: dict[str, Any] | None = None, **more: Any) -> Work:
    arguments: dict[str, Any] = {"stage": "curate", "inputs": ["quickstart:5"], "seed": 3} | more
    return begin(path, config=config or {"words": 0.5, "steps": ["a", "b"]}, **arguments)


def finished(path: Path, config: dict[str, Any] | None = None, **more: Any) -> Path:
    work = make(path, config, **more)
    write_atomic(work.path / "data.txt", "data")
    return work.finish({"rows": 1})


def test_manifest_says_what_determined_the_artifact(tmp_path: Path) -> None:
    raw = tmp_path / "raw.jsonl"
    raw.write_text("{}\n")
    manifest = read_manifest(finished(tmp_path / "a", inputs=[raw, "hub:owner/name", "quickstart:5"]))
    assert manifest["config"] == {"words": 0.5, "steps": ["a", "b"]}
    assert (manifest["stage"], manifest["seed"], manifest["counts"]) == ("curate", 3, {"rows": 1})
    assert [record["kind"] for record in manifest["inputs"]] == ["file", "hub", "generated"]
    digest = subprocess.run(["sha256sum", str(raw)], capture_output=True, text=True, check=True).stdout
    assert manifest["inputs"][0]["fingerprint"] == digest.split()[0]
    assert manifest["packages"].keys() >= {"ulorl", "pyarrow"}
    assert manifest["started"] <= manifest["finished"]
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"data.txt", "manifest.json"}


def test_fingerprint_depends_on_what_matters_and_on_nothing_else(tmp_path: Path) -> None:
    raw, moved = tmp_path / "raw.jsonl", tmp_path / "elsewhere.jsonl"
    raw.write_text("1\n")
    moved.write_text("1\n")
    same = {"words": 0.5, "steps": ("a", "b")}
    base = read_manifest(finished(tmp_path / "a", inputs=[raw]))["fingerprint"]
    assert read_manifest(finished(tmp_path / "b", same, inputs=[moved]))["fingerprint"] == base
    for number, change in enumerate(
        ({"seed": 4}, {"stage": "train"}, {"inputs": [raw, raw]}, {"inputs": []}, {"config": {"words": 0.6}})
    ):
        other = finished(tmp_path / f"c{number}", **({"inputs": [raw]} | change))
        assert read_manifest(other)["fingerprint"] != base, change


def test_done_is_a_no_op_and_force_is_not(tmp_path: Path) -> None:
    path = finished(tmp_path / "a")
    before = (path / "manifest.json").read_bytes()
    work = make(path)
    assert (work.done, work.path) == (True, path)
    assert not (tmp_path / "a.partial").exists()
    assert (path / "manifest.json").read_bytes() == before
    forced = make(path, force=True)
    assert (forced.done, forced.resumed) == (False, False)
    assert (path / "data.txt").exists(), "the old artifact must stay until the new one takes its place"
    write_atomic(forced.path / "new.txt", "")
    forced.finish({})
    assert {entry.name for entry in path.iterdir()} == {"new.txt", "manifest.json"}
    assert {entry.name for entry in tmp_path.iterdir()} == {"a"}


def test_another_configuration_is_refused_by_naming_the_difference(tmp_path: Path) -> None:
    finished(tmp_path / "a")
    with pytest.raises(UserError, match=r"words: 0\.5 -> 0\.6.*--force"):
        make(tmp_path / "a", {"words": 0.6, "steps": ["a", "b"]})
    with pytest.raises(UserError, match=r"seed: 3 -> 4"):
        make(tmp_path / "a", seed=4)
    with pytest.raises(UserError, match=r"input 1: quickstart:5.* -> quickstart:6"):
        make(tmp_path / "a", inputs=["quickstart:6"])


def test_a_refused_beginning_is_not_in_the_way_of_the_mended_command(tmp_path: Path) -> None:
    work = make(tmp_path / "a")
    write_atomic(work.path / "recipe.toml", "")
    work.release()
    mended = make(tmp_path / "a", {"words": 0.5, "steps": []})
    assert not mended.resumed
    assert sorted(entry.name for entry in mended.path.iterdir()) == [".begun.json", ".lock"]


def test_a_result_never_replaces_what_it_is_made_of(tmp_path: Path) -> None:
    path = finished(tmp_path / "a")
    unfinished = tmp_path / "a.partial" / "checkpoint"
    unfinished.mkdir(parents=True)
    for source in (path, path / "data.txt", unfinished):
        with pytest.raises(UserError, match="which it would replace"):
            make(path, inputs=[source], force=True)
    assert (path / "data.txt").exists() and unfinished.exists()


def test_unfinished_work_is_resumed_or_refused(tmp_path: Path) -> None:
    work = make(tmp_path / "a")
    write_atomic(work.path / "half.txt", "half")
    (work.path / ".other.txt.tmp~").write_text("killed while writing")
    work.release()
    with pytest.raises(UserError, match=r"a\.partial: holds unfinished work.*steps: \[.*\] -> \[\]"):
        make(tmp_path / "a", {"words": 0.5, "steps": []})
    again = make(tmp_path / "a")
    assert again.resumed
    assert sorted(entry.name for entry in again.path.iterdir()) == [".begun.json", ".lock", "half.txt"]
    again.release()
    forced = make(tmp_path / "a", {"words": 0.5, "steps": []}, force=True)
    assert not forced.resumed
    assert not (forced.path / "half.txt").exists()
    forced.release()
    resumed = make(tmp_path / "a", {"words": 0.5, "steps": []}, force=True)
    assert resumed.resumed, "the same forced command goes on after a kill"
    resumed.release()


def test_forced_work_over_another_artifact_resumes_without_force_too(tmp_path: Path) -> None:
    finished(tmp_path / "a")
    make(tmp_path / "a", {"words": 0.9}, force=True).release()
    work = make(tmp_path / "a", {"words": 0.9})
    assert work.resumed
    work.finish({})
    assert read_manifest(tmp_path / "a")["config"] == {"words": 0.9}


def test_two_processes_do_not_share_a_directory(tmp_path: Path) -> None:
    work = make(tmp_path / "a")
    with pytest.raises(UserError, match=f"process {os.getpid()} is working in it"):
        make(tmp_path / "a")
    work.release()
    make(tmp_path / "a").release()


def test_what_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("cat")
    with pytest.raises(UserError, match="is no stage directory"):
        make(tmp_path / "photos", force=True)
    (tmp_path / "a.partial").mkdir()
    (tmp_path / "a.partial" / "cat.jpg").write_text("cat")
    with pytest.raises(UserError, match="remove it"):
        make(tmp_path / "a")
    assert (tmp_path / "photos" / "cat.jpg").exists()
    (tmp_path / "empty").mkdir()
    assert finished(tmp_path / "empty") == tmp_path / "empty"


def test_missing_input_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone\.jsonl: no such file"):
        make(tmp_path / "a", inputs=[tmp_path / "gone.jsonl"])
    assert list(tmp_path.iterdir()) == []


def test_an_artifact_as_input_is_its_own_fingerprint(tmp_path: Path) -> None:
    first = finished(tmp_path / "a")
    own = read_manifest(first)["fingerprint"]
    assert fingerprint_of(first) == own
    assert fingerprint_of(first / "data.txt") == f"{own}/data.txt"
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x").write_text("1")
    before = hash_path(tmp_path / "folder")
    (tmp_path / "folder" / "x").rename(tmp_path / "folder" / "y")
    assert hash_path(tmp_path / "folder") != before


def test_lineage_reaches_the_raw_files_and_tells_what_changed(tmp_path: Path) -> None:
    raw, other = tmp_path / "raw.jsonl", tmp_path / "other.jsonl"
    raw.write_text("1\n")
    other.write_text("2\n")
    curated = finished(tmp_path / "curate", inputs=[raw, other, "quickstart:5"])
    finished(tmp_path / "train", stage="train", inputs=[curated / "data.txt"])
    tree = lineage(tmp_path / "train")
    assert [node.status for node in tree.inputs[0].inputs] == ["same", "same", "unchecked"]
    assert tree.inputs[0].stage == "curate"
    raw.write_text("changed\n")
    other.unlink()
    tree = lineage(tmp_path / "train" / "data.txt")
    assert [node.status for node in tree.inputs[0].inputs] == ["changed", "missing", "unchecked"]
    text = render_lineage(tmp_path / "train")
    assert "raw.jsonl  file" in text
    assert "CHANGED SINCE" in text
    assert "MISSING" in text
    assert len(text.splitlines()) == 5
    finished(tmp_path / "curate", {"words": 0.1}, inputs=[raw], force=True)
    assert lineage(tmp_path / "train").inputs[0].status == "changed"


def test_lineage_and_manifest_of_something_else(tmp_path: Path) -> None:
    for function in (lineage, read_manifest):
        with pytest.raises(UserError, match="not a finished stage directory"):
            function(tmp_path)


def test_writes_replace_whole_files_and_failures_leave_the_old(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    write_atomic(path, "old\r\n")
    with pytest.raises(UnicodeEncodeError):
        write_atomic(path, "\ud800")
    assert path.read_bytes() == b"old\r\n"
    assert list(tmp_path.iterdir()) == [path]


def test_equal_tables_give_equal_bytes(tmp_path: Path) -> None:
    values = [f"text {number}" for number in range(1000)]
    whole = pa.table({"a": values})
    pieces = pa.concat_tables([pa.table({"a": values[:300]}), pa.table({"a": values[300:]})])
    write_table(tmp_path / "whole.parquet", whole)
    write_table(tmp_path / "pieces.parquet", pieces)
    assert (tmp_path / "whole.parquet").read_bytes() == (tmp_path / "pieces.parquet").read_bytes()


def test_importing_the_module_is_light() -> None:
    slow = "{'pyarrow', 'pydantic', 'torch', 'numpy'}"
    command = f"import sys, ulorl.artifact, ulorl.lineage; print(sorted({slow} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
    assert artifact.LOCK.startswith(".")
