"""``ulorl eval`` and ``ulorl compare`` as they are called: a tiny model, a served one, baselines, misuse."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from one_model_server import OneModelServer
from typer.testing import CliRunner

from ulorl.cli import app
from ulorl.engine import EngineError
from ulorl.errors import UserError

QUICK = ["--set", "engine.kind=hf", "--set", "verify.symbolic=false", "--max-tokens", "6"]


def called(*args: str, code: int = 0) -> Any:
    """The JSON that a command prints."""
    result = CliRunner().invoke(app, [*args, "--json"], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def refused(*args: str) -> str:
    result = CliRunner().invoke(app, list(args))
    assert isinstance(result.exception, UserError), result.output
    return str(result.exception)


def bench(path: Path, count: int = 3) -> str:
    path.write_text("".join(json.dumps({"problem": f"{i}+1?", "answer": str(i + 1)}) + "\n" for i in range(count)))
    return f"b={path}"


def responses(path: Path, right: int, problems: int = 30, samples: int = 4) -> Path:
    """``right`` of ``samples`` responses to each of ``problems`` problems are right."""
    rows = [
        {"problem": f"{i}+1?", "gold": str(i + 1), "response": f"\\boxed{{{i + 1 if j < right else -j}}}"}
        for i in range(problems)
        for j in range(samples)
    ]
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_model_of_ones_own_is_sampled_extended_and_rescored(tiny_model: Path, tmp_path: Path) -> None:
    command = ["eval", str(tiny_model), "--bench", bench(tmp_path / "b.jsonl"), "-o", str(tmp_path / "out"), *QUICK]
    first = called(*command, "--pass-k", "2")
    assert first["settings"]["samples"] == 2
    assert (first["settings"]["chat"], first["settings"]["instructions"]) == (True, True)
    one = first["benchmarks"]["b"]
    needed = {"problems", "samples", "avg", "pass_at_k", "maj_at_k", "intervals", "truncated", "no_answer", "undecided"}
    assert needed <= one.keys()
    assert (one["problems"], one["samples"], list(one["pass_at_k"])) == (3, 2, ["1", "2"])
    shards = {path.name for path in (tmp_path / "out/samples/b").glob("*.parquet")}
    more = called(*command, "--pass-k", "3")
    assert more["benchmarks"]["b"]["total_samples"] == 9
    kept = {path.name for path in (tmp_path / "out/samples/b").glob("*.parquet")}
    assert shards <= kept and len(kept) == len(shards) + 1
    again = called("eval", str(tmp_path / "out"), "--rescore", "--set", "verify.last_number=true")
    assert again["settings"]["verify"]["last_number"]


def test_the_longest_output_follows_from_the_models_positions(tiny_model: Path) -> None:
    def resolved(*options: str) -> Any:
        return called("eval", str(tiny_model), "--bench", "aime2025", "--dry-run", *options)["recipe"]["evaluate"]

    assert resolved()["max_tokens"] == 2048 - 1024
    assert resolved("--yarn", "4")["max_tokens"] == 4 * 2048 - 1024
    assert resolved("--set", "model.max_prompt_tokens=48")["max_tokens"] == 2000
    assert resolved("--max-tokens", "7")["max_tokens"] == 7
    paper = resolved()
    assert [paper[name] for name in ("temperature", "top_p", "top_k", "samples")] == [0.85, 0.95, 20, 32]


def test_a_baseline_fails_only_for_a_real_loss(tmp_path: Path) -> None:
    for name, right in (("good", 3), ("bad", 2), ("same", 3)):
        file = responses(tmp_path / name / "bench.jsonl", right)
        called("eval", "--responses", str(file), "-o", str(tmp_path / f"{name}.eval"), *QUICK[2:4])
    good, bad, same = (str(tmp_path / f"{name}.eval") for name in ("good", "bad", "same"))
    lost = called("compare", good, bad, "--junit", str(tmp_path / "out.xml"), code=1)
    assert lost["decision"]["benchmarks"]["bench"]["loss"]
    assert len(lost["benchmarks"]["bench"]["lost"]) == 30
    assert Xml.parse(tmp_path / "out.xml").getroot().get("failures") == "1"
    assert not called("compare", bad, good)["decision"]["loss"]
    assert not called("compare", good, same)["decision"]["loss"]
    assert not called("compare", good, bad, "--min-effect", "30")["decision"]["loss"]
    file = str(tmp_path / "bad" / "bench.jsonl")
    command = ["eval", "--responses", file, "-o", bad, "--baseline", good, *QUICK[2:4]]
    assert called(*command, code=1)["comparison"]["decision"]["loss"]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 1
    assert "a real loss" in shown.stdout and "-25.0" in shown.stdout


def test_what_a_comparison_needs_is_looked_at_before_anything_is_sampled_or_scored(tmp_path: Path) -> None:
    file = str(responses(tmp_path / "r" / "bench.jsonl", 3))
    kept = str(tmp_path / "kept")
    command = ["eval", "--responses", file, "-o", kept, *QUICK[2:4]]
    assert "not a finished evaluation" in refused(*command, "--baseline", str(tmp_path / "none"))
    called(*command)
    again = ["eval", "--responses", file, "-o", str(tmp_path / "new"), "--baseline", kept]
    assert "its directory is not there" in refused(*again, "--junit", str(tmp_path / "no" / "x.xml"))
    assert "is a directory; give a file" in refused(*again, "--junit", str(tmp_path))
    assert not list(tmp_path.glob("new*"))


def test_files_under_other_names_are_compared_under_one_and_by_the_same_references(tmp_path: Path) -> None:
    first, second = (responses(tmp_path / "r" / name, 3) for name in ("first.jsonl", "second.jsonl"))
    other = tmp_path / "r" / "other.jsonl"
    rows = [json.loads(line) for line in second.read_text().splitlines()]
    other.write_text("".join(json.dumps(row | {"gold": "77"}) + "\n" for row in rows))
    for file in (first, second, other):
        command = ["eval", "--responses", str(file), "--bench", "set", "-o", str(tmp_path / file.stem)]
        assert list(called(*command, *QUICK[2:4])["benchmarks"]) == ["set"]
    same = called("compare", str(tmp_path / "first"), str(tmp_path / "second"))
    assert same["benchmarks"]["set"]["measures"]["avg"]["difference"] == 0
    assert "before and '77' after; mend one" in refused("compare", str(tmp_path / "first"), str(tmp_path / "other"))


def test_what_is_evaluated_or_compared_is_never_replaced_by_the_result(tmp_path: Path) -> None:
    for name, right in (("a", 3), ("b", 2)):
        file = responses(tmp_path / f"of {name}" / "set.jsonl", right)
        called("eval", "--responses", str(file), "-o", str(tmp_path / name), *QUICK[2:4])
    places = [str(tmp_path / "a"), str(tmp_path / "b"), "-o", str(tmp_path / "a"), "--force"]
    assert "which it would replace" in refused("eval", "--boundary", *places)
    assert (tmp_path / "a" / "estimates.json").exists()


def test_the_quickstarts_model_brings_its_own_recipe() -> None:
    settings = json.loads(CliRunner().invoke(app, ["eval", "quickstart", "--dry-run", "--json"]).stdout)
    assert "quickstart-test" in json.dumps(settings)


class DyingServer(OneModelServer):
    """Answers ``lives`` completions, then fails."""

    lives = 0

    def do_POST(self) -> None:
        body = self.asked()
        if body["seed"]:  # not the engine's own probe
            type(self).lives -= 1
        if type(self).lives < 0:
            return self.send(500, {"error": {"message": "out of memory"}})
        logprobs = {"token_logprobs": [0.0], "tokens": ["x"], "top_logprobs": [], "text_offset": []}
        choice = {"index": 0, "text": "", "finish_reason": "stop", "token_ids": [2], "logprobs": logprobs}
        head = {"id": "c", "object": "text_completion", "created": 0, "model": "tiny"}
        return self.send(200, head | {"choices": [choice]})


@pytest.fixture
def server() -> Iterator[tuple[type[DyingServer], str]]:
    handler = type("Handler", (DyingServer,), {})
    running = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    running.daemon_threads = True
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield handler, f"http://127.0.0.1:{running.server_address[1]}/v1"
    running.shutdown()
    running.server_close()


def test_a_server_that_dies_half_way_loses_nothing(tiny_model: Path, tmp_path: Path, server: Any) -> None:
    handler, url = server
    settings = ["--set", "engine.retries=0", "--set", "engine.concurrency=1", "--set", "verify.symbolic=false"]
    source = bench(tmp_path / "b.jsonl", 5)
    command = ["eval", str(tiny_model), "--bench", source, "--pass-k", "2", "--max-tokens", "4"]
    command += ["--server", url, "-o", str(tmp_path / "out"), *settings]
    handler.lives = 7
    result = CliRunner().invoke(app, command)
    assert isinstance(result.exception, EngineError)
    assert "out of memory" in str(result.exception) and url in str(result.exception)
    handler.lives = 3
    assert called(*command)["benchmarks"]["b"]["total_samples"] == 10


def test_misuse_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    model, quick = str(tiny_model), [*QUICK, "-o", str(tmp_path / "out")]
    file = str(responses(tmp_path / "r" / "r.jsonl", 1, problems=2))
    assert "give a MODEL, or --responses FILE" in refused("eval")
    assert "give a MODEL, or --responses FILE" in refused("eval", model, "--responses", file)
    assert "--junit has no effect" in refused("eval", model, "--junit", "x.xml")
    assert "--max-tokens has no effect" in refused("eval", "--responses", file, "--max-tokens", "5")
    assert "--bench has no effect" in refused("eval", str(tmp_path), "--rescore", "--bench", "gsm8k")
    assert "is a directory; give a file" in refused("eval", "--responses", str(tmp_path))
    assert "-o DIR" in refused("eval", "--responses", file, "--baseline", str(tmp_path))
    assert "pass@5 needs 5 samples" in refused("eval", "--responses", file, "--pass-k", "5", *QUICK[2:4])
    assert "no evaluation to score again" in refused("eval", str(tmp_path), "--rescore")
    assert "no benchmark 'nope'; known are" in refused("eval", model, "--bench", "nope", *quick)
    missing = refused("eval", model, "--bench", f"b={tmp_path}/none.jsonl", *quick)
    assert "none.jsonl: no such file" in missing
    wrong = refused("eval", model, "--bench", bench(tmp_path / "b.jsonl").replace("b=", "aime2025=", 1), *quick)
    assert "has 3 problems, not 30" in wrong
    assert not list(tmp_path.glob("out*"))  # nothing is begun that would be in the way of the mended command
    assert "not a finished evaluation" in refused("compare", str(tmp_path), str(tmp_path))


def test_a_directory_that_is_no_model_ends_with_code_2_in_one_line(tiny_model: Path, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(tiny_model, tmp_path / "broken"))
    (broken / "model.safetensors").write_bytes(b"x" * 100)
    for directory, message in ((tmp_path, "has no config.json"), (broken, "damaged: no safetensors header")):
        done = subprocess.run(
            [sys.executable, "-m", "ulorl", "eval", str(directory), "--bench", "aime2025"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert done.stderr.startswith("ulorl: ") and message in done.stderr and "Traceback" not in done.stderr
        assert done.stdout == ""
