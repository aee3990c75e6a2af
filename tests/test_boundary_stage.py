"""`ulorl eval --boundary` as it is called: models, evaluations, responses; what is refused; the artifact."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from ulorl.cli import app
from ulorl.errors import UserError
from ulorl.evaluate.boundary.luck import gain_chances
from ulorl.evaluate.boundary.stage import read_boundary, read_boundary_problems

PLAIN = ["--set", "verify.symbolic=false"]
QUICK = ["--set", "engine.kind=hf", *PLAIN, "--max-tokens", "4"]


def called(*args: str) -> Any:
    """The JSON that a command prints."""
    result = CliRunner().invoke(app, [*args, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(*args: str) -> str:
    result = CliRunner().invoke(app, list(args))
    assert isinstance(result.exception, UserError), result.output
    return str(result.exception)


def responses(path: Path, right: list[int], samples: int = 8, answers: str = "{}") -> str:
    """``right[i]`` of ``samples`` responses to problem i are right."""
    rows = [
        {
            "problem": f"{i}+1?",
            "gold": answers.format(i + 1),
            "response": f"\\boxed{{{i + 1 if j < count else -1 - j}}}",
        }
        for i, count in enumerate(right)
        for j in range(samples)
    ]
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


BASE, TRAINED = [0, 0, 0, 3, 4, 8, 1, 0], [8, 1, 0, 5, 4, 8, 0, 0]


@pytest.fixture
def sides(tmp_path: Path) -> tuple[str, str]:
    return responses(tmp_path / "base.jsonl", BASE), responses(tmp_path / "trained.jsonl", TRAINED)


def test_two_files_of_responses(sides: tuple[str, str], tmp_path: Path) -> None:
    place = tmp_path / "out" / "boundary"
    found = called("eval", "--boundary", *sides, "-o", str(place), *PLAIN)
    assert found["directory"] == str(place)
    one = found["benchmarks"]["responses"]
    assert one["kinds"] == {"both": 3, "gained": 2, "lost": 1, "never": 2}
    assert (one["problems"], one["samples"]) == (8, 8)
    base, trained = np.array(BASE), np.array(TRAINED)
    assert one["curves"]["base"][0] == pytest.approx(base.mean() / 8)
    assert one["curves"]["trained"][-1] == pytest.approx(np.mean(trained > 0))
    chances = gain_chances(8)[base + trained]
    assert one["luck"]["gained"]["expected"] == pytest.approx(chances.sum())
    assert one["luck"]["gained"]["beyond"] == 1 and one["luck"]["lost"]["beyond"] == 0
    assert one["luck"]["gained"]["p_holm"] == one["luck"]["gained"]["p"]
    problems = {row["problem"]: row for row in read_boundary_problems(place).to_pylist()}
    first, second = problems["0+1?"], problems["1+1?"]
    assert (first["kind"], first["base_correct"], first["trained_correct"]) == ("gained", 0, 8)
    assert first["luck"] == pytest.approx(1 / 12870) and second["luck"] == pytest.approx(0.5)
    assert second["luck_any"] == pytest.approx(min(1.0, chances.sum()))
    assert first["unsolved_rate_at_most"] == pytest.approx(1 - 0.05 ** (1 / 8))
    assert problems["3+1?"]["luck"] is None and problems["3+1?"]["unsolved_rate_at_most"] is None
    assert {path.name for path in place.parent.iterdir()} == {"boundary", "boundary-base", "boundary-trained"}
    assert {path.name for path in place.iterdir()} == {"boundary.json", "problems.parquet", "manifest.json"}
    before = {path: path.stat().st_mtime_ns for path in place.iterdir()}
    called("eval", "--boundary", *sides, "-o", str(place), *PLAIN)
    assert before == {path: path.stat().st_mtime_ns for path in place.iterdir()}  # nothing to do


def test_tables_and_report(sides: tuple[str, str], tmp_path: Path) -> None:
    place = tmp_path / "b"
    result = CliRunner().invoke(app, ["eval", "--boundary", *sides, "-o", str(place), *PLAIN], catch_exceptions=False)
    assert result.exit_code == 0
    for text in (
        "pass@k in per cent",
        "gains by the base's pass rate",
        "2 gained; if nothing had changed",
        "not of zero",
    ):
        assert text in " ".join(result.stdout.split()), text
    page = called("report", str(place), "-o", str(tmp_path / "page.html"), "--plots", str(tmp_path / "plots"))
    html = (tmp_path / "page.html").read_text()
    assert 'id="boundary"' in html and "trained only" in html and "Before and after" in html
    plots = {Path(one).name for one in page["plots"]}
    assert {"b-pass-responses.svg", "b-change-responses.svg", "b-gained-responses.svg"} <= plots
    assert page["boundaries"]["b"]["benchmarks"]["responses"]["kinds"]["gained"] == 2
    assert not page["troubles"]
    other = CliRunner().invoke(app, ["report", str(tmp_path / "b-base"), "-o", str(tmp_path / "two.html")])
    assert other.exit_code == 0
    assert 'id="boundary"' not in (tmp_path / "two.html").read_text()


def test_models_are_sampled_alike_resumed_and_extended(tiny_model: Path, tmp_path: Path) -> None:
    import shutil

    trained = shutil.copytree(tiny_model, tmp_path / "trained")
    config = json.loads((trained / "generation_config.json").read_text())
    (trained / "generation_config.json").write_text(json.dumps(config | {"note": 1}))  # another fingerprint
    bench = tmp_path / "b.jsonl"
    bench.write_text("".join(json.dumps({"problem": f"{i}+1?", "answer": str(i + 1)}) + "\n" for i in range(3)))
    place = tmp_path / "x"
    command = ["eval", "--boundary", str(tiny_model), str(trained), "--bench", f"b={bench}", "-o", str(place), *QUICK]
    found = called(*command, "--pass-k", "2")
    assert found["benchmarks"]["b"]["samples"] == 2 and not found["settings_differ"]
    assert found["base"]["model"] == str(tiny_model) and found["trained"]["model"] == str(trained)
    manifests = [json.loads((tmp_path / f"x-{side}" / "manifest.json").read_text()) for side in ("base", "trained")]
    assert manifests[0]["config"]["evaluate"] == manifests[1]["config"]["evaluate"]
    shards = sorted(path.name for path in (tmp_path / "x-base/samples/b").glob("*.parquet"))
    more = called(*command, "--pass-k", "4")
    assert more["benchmarks"]["b"]["samples"] == 4
    assert set(shards) < {path.name for path in (tmp_path / "x-base/samples/b").glob("*.parquet")}
    # An evaluation on one side: the other model is sampled as it was.
    mixed = called("eval", "--boundary", str(tmp_path / "x-base"), str(trained), "-o", str(tmp_path / "y"))
    assert mixed["benchmarks"]["b"]["samples"] == 4
    rows = [
        pq.read_table(tmp_path / f"{name}-trained" / "scores.parquet")["correct"].to_pylist() for name in ("x", "y")
    ]
    assert rows[0] == rows[1]
    assert "has 4 samples a problem, not 8" in refused(
        "eval", "--boundary", str(tmp_path / "x-base"), str(trained), "--pass-k", "8", "-o", str(tmp_path / "z")
    )
    dry = called("eval", "--boundary", str(tiny_model), str(trained), "--bench", f"b={bench}", "--dry-run", *QUICK)
    assert dry["recipe"]["evaluate"]["samples"] == 256
    same = [str(tiny_model) if one == str(trained) else one for one in command]
    assert "BASE and TRAINED are the same model" in refused(*same)


def test_what_cannot_be_compared_is_refused(sides: tuple[str, str], tmp_path: Path) -> None:
    base, trained = sides
    out = ["-o", str(tmp_path / "out"), *PLAIN]
    few = responses(tmp_path / "few.jsonl", TRAINED, samples=4)
    assert "8 samples a problem of the base and 4 of the trained model" in refused(
        "eval", "--boundary", base, few, *out
    )
    other = responses(tmp_path / "other.jsonl", TRAINED[:-1])
    assert "different problems (1 only the base" in refused("eval", "--boundary", base, other, *out, "--force")
    keys = responses(tmp_path / "keys.jsonl", TRAINED, answers="0{}")
    assert "has the reference" in refused("eval", "--boundary", base, keys, *out, "--force")
    uneven = tmp_path / "uneven.jsonl"
    uneven.write_text("".join(Path(trained).read_text().splitlines(keepends=True)[:-1]))
    assert "every problem needs the same number" in refused("eval", "--boundary", base, str(uneven), *out, "--force")
    assert "pass@9 needs 9 samples" in refused("eval", "--boundary", base, trained, "--pass-k", "9", *out, "--force")
    assert "same model with the same seed" in refused("eval", "--boundary", base, base, *out, "--force")
    assert not (tmp_path / "out").exists() and not (tmp_path / "out.partial").exists()


def test_options_without_effect_are_refused(sides: tuple[str, str], tmp_path: Path) -> None:
    pair = ["eval", "--boundary", *sides]
    assert "--bench has no effect where nothing is sampled" in refused(*pair, "--bench", "gsm8k")
    assert "--baseline has no effect with --boundary" in refused(*pair, "--baseline", str(tmp_path))
    assert "--responses has no effect with --boundary" in refused(*pair, "--responses", sides[0])
    assert "MODEL has no effect with --boundary" in refused(*pair, "quickstart")
    assert "evaluate.samples has no effect with --boundary" in refused(*pair, "--set", "evaluate.samples=4")
    assert "a server has one model" in refused(
        "eval",
        "--boundary",
        "quickstart",
        sides[0],
        "--server",
        "http://127.0.0.1:9/v1",
        "--bench",
        "b=quickstart-test:2",
    )
    (tmp_path / "e.partial").mkdir()
    assert "is not finished" in refused("eval", "--boundary", str(tmp_path / "e"), sides[1])
    place = tmp_path / "b"
    called(*pair, "-o", str(place), *PLAIN)
    assert "is a stage of kind boundary" in refused("eval", "--boundary", str(place), sides[1])
    with pytest.raises(UserError, match="not a finished boundary"):
        read_boundary(tmp_path)
    with pytest.raises(UserError, match="not a finished boundary"):
        read_boundary_problems(tmp_path)


def test_several_benchmarks_share_the_corrections(tmp_path: Path) -> None:
    from ulorl.evaluate.boundary.measured import boundary_of, paired
    from ulorl.evaluate.scores import SCORES_SCHEMA

    def scores(name: str, right: list[int]) -> Any:
        import pyarrow as pa

        rows = [
            {
                "benchmark": name,
                "problem_id": f"{name}{i}",
                "problem": "?",
                "reference": "1",
                "samples": 16,
                "correct": c,
            }
            | {"undecided": 0, "no_answer": 0, "verifier_errors": 0, "truncated": None, "mean_length": None}
            | {"other_classes": [16 - c]}
            for i, c in enumerate(right)
        ]
        return pa.Table.from_pylist(rows, schema=SCORES_SCHEMA)

    base, trained = {"a": [0, 0, 5], "b": [0, 2, 0]}, {"a": [16, 1, 5], "b": [6, 0, 4]}
    pairs = {name: paired(name, scores(name, base[name]), scores(name, trained[name])) for name in base}
    found, problems = boundary_of(pairs, 0, 0.05)
    rows = {row["problem_id"]: row for row in problems.to_pylist()}
    chances = gain_chances(16)[[16, 1, 10, 6, 2, 4]]
    assert rows["b0"]["luck_any"] == pytest.approx(chances[[0, 2, 3]].sum())  # all at most as probable, of both
    assert rows["a0"]["luck_any"] == pytest.approx(chances[0])
    p = {name: found[name]["luck"]["gained"]["p"] for name in found}
    least = min(p, key=lambda name: p[name])
    assert found[least]["luck"]["gained"]["p_holm"] == pytest.approx(min(1.0, 2 * p[least]))
    assert found["a"]["unsolved_samples"]["gained"] == {"truncated": None, "no_answer": 0.0, "undecided": 0.0}
    assert found["a"]["unsolved_samples"]["lost"] is None
    with pytest.raises(UserError, match="pass@17 needs 17 samples a problem, there are 16"):
        boundary_of(pairs, 17, 0.05)
