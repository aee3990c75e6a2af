"""The command line on the real vLLM and DeepSpeed: a whole run, killed and resumed, and users' mistakes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ulorl.recipe_file import load_recipe

SETTINGS = {
    "data.inputs": '["quickstart:60"]',
    "curate.benchmarks": "[]",
    "curate.difficulty.samples": "2",
    "curate.difficulty.max_tokens": "64",
    "evaluate.benchmarks": '[{name = "test", source = "quickstart-test:4"}]',
    "evaluate.samples": "4",
    "evaluate.pass_k": "[1, 4]",
    "evaluate.max_tokens": "64",
    "train.steps": "6",
    "train.checkpoint_every": "2",
    "train.rollout.prompts_per_step": "4",
    "train.rollout.group_size": "4",
    "train.rollout.max_tokens": "64",
    "train.rollout.segments": "4",
    "engine.threads": "1",
    "engine.kv_cache_gib": "0.5",
}


def ulorl(*arguments: str, **options):
    return subprocess.run(
        [sys.executable, "-m", "ulorl", *arguments], capture_output=True, text=True, timeout=300, check=False, **options
    )


def settings(output: Path, **changes: str) -> list[str]:
    merged = SETTINGS | {"output": str(output)} | changes
    return [part for key, value in merged.items() for part in ("--set", f"{key}={value}")]


def metrics(directory: Path) -> list[dict]:
    """The lines of metrics.jsonl without what a clock or the process says."""
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if not key.startswith(("time/", "memory/"))} for line in lines]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> tuple[Path, dict]:
    """A whole run that nobody interrupted."""
    output = tmp_path_factory.mktemp("run") / "whole"
    done = ulorl("run", "--json", *settings(output))
    assert done.returncode == 0, done.stderr[-3000:]
    return output, json.loads(done.stdout)


@pytest.mark.engine
def test_a_run_goes_through_all_stages(finished):
    output, summary = finished
    assert sorted(path.name for path in output.iterdir()) == ["after", "before", "curate", "summary.json", "train"]
    counts = json.loads((output / "train" / "manifest.json").read_text())["counts"]
    assert counts["steps"] == 6
    assert 1 <= counts["updates"] <= 6
    steps = metrics(output / "train")
    assert [line["step"] for line in steps] == [1, 2, 3, 4, 5, 6]
    assert all(line["mismatch/max"] < 1e-3 for line in steps if "mismatch/max" in line)
    assert any(line["segment/age_0_share"] < 1 for line in steps if "objective/tokens" in line)
    assert set(summary["after"]["benchmarks"]) == {"test"}
    assert (output / "train" / "model" / "model.safetensors").is_file()
    rollouts = pq.read_table(output / "train" / "rollouts")
    assert set(rollouts["finish_reason"].to_pylist()) <= {"stop", "length"}


@pytest.mark.engine
def test_running_again_does_nothing_and_says_so(finished):
    output, summary = finished
    before = (output / "train" / "model" / "model.safetensors").stat().st_mtime_ns
    again = ulorl("run", "--json", *settings(output))
    assert again.returncode == 0
    assert again.stderr.count("nothing to do") == 4
    assert json.loads(again.stdout) == summary
    assert (output / "train" / "model" / "model.safetensors").stat().st_mtime_ns == before


@pytest.mark.engine
def test_lineage_reaches_from_the_evaluation_to_the_generated_problems(finished):
    output, _ = finished
    done = ulorl("lineage", str(output / "after"))
    assert done.returncode == 0
    for part in ("evaluate", "train", "curate", "quickstart:60"):
        assert part in done.stdout
    tree = json.loads(ulorl("lineage", str(output / "after"), "--json").stdout)
    assert [tree["stage"], tree["inputs"][0]["stage"]] == ["evaluate", "train"]


@pytest.mark.engine
def test_a_trained_run_is_evaluated_by_its_own_recipe(finished, tmp_path):
    output, _ = finished
    done = ulorl("eval", str(output / "train"), "--pass-k", "6", "-o", str(tmp_path / "more"), "--json")
    assert done.returncode == 0, done.stderr[-3000:]
    more = json.loads(done.stdout)["benchmarks"]["test"]
    assert more["samples"] == 6
    assert list(more["pass_at_k"]) == ["1", "2", "4", "6"]
    samples = [
        pa.concat_tables(pq.read_table(shard) for shard in (path / "samples" / "test").glob("*.parquet"))
        for path in (output / "after", tmp_path / "more")
    ]
    kept, extended = ({(row["problem_id"], row["sample_index"]): row["text"] for row in t.to_pylist()} for t in samples)
    assert len(kept) == 16
    assert kept.items() <= extended.items()


@pytest.mark.engine
def test_compare_says_by_its_exit_code_whether_the_second_is_worse(finished):
    output, summary = finished
    low, high = summary["comparison"]["benchmarks"]["test"]["measures"]["avg"]["interval"] or (0, 0)
    done = ulorl("compare", str(output / "before"), str(output / "after"))
    assert done.returncode == int(high < 0), done.stderr
    back = ulorl("compare", str(output / "after"), str(output / "before"), "--json")
    assert back.returncode == int(low > 0), back.stderr
    assert json.loads(back.stdout)["benchmarks"]["test"]["problems"] == 4


@pytest.mark.engine
def test_a_killed_training_continues_with_the_same_tokens_and_losses(finished, tmp_path):
    whole, _ = finished
    output = tmp_path / "killed"
    command = ["train", "--problems", str(whole / "curate"), "-o", str(output), *settings(tmp_path)]
    for step in (1, 3, 5):
        process = subprocess.Popen(
            [sys.executable, "-m", "ulorl", *command], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        wait_for_step(step, process, tmp_path / "killed.partial" / "metrics.jsonl")
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert not output.exists()
    done = ulorl(*command)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "resuming after step 4" in done.stderr
    assert metrics(output) == metrics(whole / "train")
    for step in range(1, 7):
        name = f"rollouts/step_{step:06d}.parquet"
        assert pq.read_table(output / name).equals(pq.read_table(whole / "train" / name))
    trained = [path / "model" / "model.safetensors" for path in (output, whole / "train")]
    assert trained[0].read_bytes() == trained[1].read_bytes()


@pytest.mark.engine
def test_updates_from_saved_rollouts_are_those_of_the_run(finished, tmp_path):
    whole, _ = finished
    output = tmp_path / "updates"
    command = ["train", "--from-rollouts", str(whole / "train"), "-o", str(output), *settings(tmp_path)]
    done = ulorl(*command, "--watch")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "samples of step 1" in done.stderr
    assert "reward 1, " in done.stderr
    for one, other in zip(metrics(whole / "train"), metrics(output), strict=True):
        assert other == {name: one[name] for name in other}
        assert {"reward/mean", "length/mean"} <= other.keys() or "reward/mean" not in one
        assert {name for name in one if name.startswith(("objective/", "entropy/", "mismatch/"))} <= other.keys()
    assert weights(output) == weights(whole / "train")
    assert not (output / "rollouts").exists()
    assert "goes without" in ulorl(*command, "--rollout-only").stderr


@pytest.mark.engine
def test_rollouts_without_updates_begin_as_the_run_does(finished, tmp_path):
    whole, _ = finished
    output = tmp_path / "rollouts"
    command = ["train", "--rollout-only", "--problems", str(whole / "curate"), "-o", str(output)]
    done = ulorl(*command, *settings(tmp_path, **{"train.steps": "3"}), "--json")
    assert done.returncode == 0, done.stderr[-3000:]
    assert set(json.loads(done.stdout)) == {"directory", "rollouts"}
    first, *later = (pq.read_table(output / f"rollouts/step_{step:06d}.parquet") for step in (1, 2, 3))
    assert first.equals(pq.read_table(whole / "train" / "rollouts/step_000001.parquet"))
    assert {version for table in later for row in table["segment_versions"].to_pylist() for version in row} == {0}
    counts = json.loads((output / "manifest.json").read_text())["counts"]
    assert counts["samples"] == sum(table.num_rows for table in (first, *later)) > 0
    assert not any("objective/loss" in line for line in metrics(output))


@pytest.mark.engine
@pytest.mark.slow
def test_a_run_is_trained_for_longer(finished, tmp_path):
    whole, _ = finished
    output = tmp_path / "longer"
    command = ["train", "--problems", str(whole / "curate"), "-o", str(output)]
    done = ulorl(*command, *settings(tmp_path, **{"train.steps": "5"}))
    assert done.returncode == 0, done.stderr[-3000:]
    done = ulorl(*command, *settings(tmp_path))
    assert done.returncode == 0, done.stderr[-3000:]
    assert "resuming after step 5 of 6" in done.stderr
    assert metrics(output) == metrics(whole / "train")
    assert weights(output) == weights(whole / "train")
    manifests = [json.loads((path / "manifest.json").read_text()) for path in (output, whole / "train")]
    assert [manifest["config"] for manifest in manifests[:1]] == [manifests[1]["config"]]
    again = ulorl(*command, *settings(tmp_path, **{"train.steps": "3"}))
    assert again.returncode == 2
    assert "train.steps: 6 -> 3" in again.stderr


def weights(directory: Path) -> bytes:
    return (directory / "model" / "model.safetensors").read_bytes()


@pytest.mark.engine
def test_two_processes_sample_what_one_samples_also_after_one_of_them_was_lost(finished, tmp_path):
    whole, _ = finished
    output = tmp_path / "two"
    command = ["train", "--nproc", "2", "--problems", str(whole / "curate"), "-o", str(output), *settings(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "ulorl", *command], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    wait_for_step(3, process, tmp_path / "two.partial" / "metrics.jsonl")
    (victim,) = [one for one in psutil.Process(process.pid).children() if one.environ().get("RANK") == "1"]
    victim.kill()
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "rank 1 " in errors.splitlines()[-1]
    assert "same command continues" in errors.splitlines()[-1]
    done = ulorl(*command)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "resuming after step 2" in done.stderr
    for one, two in zip(metrics(whole / "train"), metrics(output), strict=True):
        assert one.keys() == two.keys()
        assert two == pytest.approx(one, rel=1e-4, abs=1e-5)
    columns = ["problem_id", "sample_index", "token_ids", "segment_versions", "reward"]
    for step in range(1, 7):
        one = pq.read_table(whole / "train" / f"rollouts/step_{step:06d}.parquet", columns=columns)
        ranks = sorted((output / "rollouts").glob(f"step_{step:06d}_rank_?.parquet"))
        both = pa.concat_tables(pq.read_table(path, columns=columns) for path in ranks)
        assert len(ranks) == 2
        assert sorted(map(str, both.to_pylist())) == sorted(map(str, one.to_pylist()))


def wait_for_step(step: int, process: subprocess.Popen, file: Path) -> None:
    """Until the process has written this step; the next one is then under way."""
    deadline = time.monotonic() + 200
    while process.poll() is None and time.monotonic() < deadline:
        if file.exists() and len(file.read_text().splitlines()) >= step:
            return
        time.sleep(0.002)
    raise AssertionError(f"step {step} was not seen; the process ended with {process.poll()}")


def test_help_answers_without_the_gpu_stack():
    code = "import sys, ulorl.cli; print(sorted({'torch', 'vllm', 'deepspeed', 'transformers'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
    assert "curate" in ulorl("--help").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--set", "train.rollout.grup_size=4"], ["train.rollout.grup_size", "train.rollout.group_size"]),
        (["run", "missing.toml"], ["missing.toml"]),
        (["run", "--set", "train.rollout.segments=7"], ["train.rollout", "multiple of segments"]),
        (["curate", "missing.jsonl", "-o", "out"], ["missing.jsonl"]),
        (["train", "--problems", "nowhere"], ["nowhere", "ulorl curate"]),
        (["eval", "no-such-directory"], ["no-such-directory"]),
        (["eval", "quickstart", "--bench", "aime1066"], ["aime1066", "aime2025"]),
        (["verify", "--ref", "5"], ["--answer"]),
        (["lineage", "."], ["."]),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(arguments, words, tmp_path):
    done = ulorl(*arguments, cwd=tmp_path, env=os.environ | {"HF_HUB_OFFLINE": "1"})
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("ulorl:")]
    assert len(lines) == 1
    for word in words:
        assert word in lines[0]


def test_verify_explains_and_curate_cleans(tmp_path):
    done = ulorl("verify", "--ref", "1/2", "--answer", "0.5")
    assert done.returncode == 0
    assert "verdict: equivalent" in done.stdout
    rows = [{"question": "What is 2+3?", "answer": "#### 5"}, {"question": "What is 2+3?", "answer": "5"}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "{broken\n")
    done = ulorl("curate", str(tmp_path / "rows.jsonl"), "-o", str(tmp_path / "out"), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["directory"].endswith("out")
    assert pq.read_table(tmp_path / "out" / "problems.parquet")["answer"].to_pylist() == ["5"]
    dropped = pq.read_table(tmp_path / "out" / "dropped.parquet").to_pylist()
    assert sorted(row["reason"] for row in dropped) == ["exact_duplicate", "malformed_row"]


def test_dry_run_prints_a_recipe_that_loads(tmp_path):
    done = ulorl("run", "--dry-run", "--set", "train.steps=7")
    assert done.returncode == 0
    (tmp_path / "recipe.toml").write_text(done.stdout)
    assert load_recipe(tmp_path / "recipe.toml").train.steps == 7
