"""The evaluate stage with a scripted engine: estimates against counts by hand, resume, comparison, tables."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from ulorl import sample_store, sampling
from ulorl.engine.base import Generation
from ulorl.errors import UserError
from ulorl.evaluate import finished
from ulorl.evaluate.compare import compare
from ulorl.evaluate.finished import read_estimates
from ulorl.evaluate.rescore import rescore
from ulorl.evaluate.scores import read_scores
from ulorl.evaluate.stage import evaluate
from ulorl.recipe import EvaluateRecipe, ModelRecipe, Recipe, VerifyRecipe
from ulorl.recipe_evaluate import Benchmark
from ulorl.report.tables import comparison_table, evaluation_table

# problem: (reference, texts of four samples)
SCRIPT = {
    "one": ("7", ["\\boxed{7}", "\\boxed{7.0}", "\\boxed{8}", "no idea"]),
    "two": ("1/2", ["\\boxed{3}", "\\boxed{3}", "\\boxed{\\frac{1}{2}}", "\\boxed{4}"]),
    "three": ("5", ["\\boxed{5}", "\\boxed{5}", "\\boxed{5}", "\\boxed{5}"]),
}


class CodePoints:
    def encode(self, problem: str) -> tuple[int, ...]:
        return tuple(map(ord, problem))

    def decode(self, ids: tuple[int, ...]) -> str:
        return "".join(map(chr, ids))


class Scripted:
    """Samples what the script says; the last sample of "two" is cut short by the length limit."""

    name = "scripted"
    policy_version = 0
    max_model_len = 200

    def __init__(self, script, dies_after: int | None = None) -> None:
        self.script, self.dies_after, self.generated = script, dies_after, 0

    def generate(self, requests, on_done=None):
        done = []
        for request in requests:
            if self.generated == self.dies_after:
                raise UserError("the server died")
            problem = "".join(map(chr, request.prompt_ids))
            index = int(request.id.rpartition("#")[2])
            ids = tuple(map(ord, self.script[problem][1][index]))
            finish = "length" if (problem, index) == ("two", 3) else "stop"
            done.append(Generation(request.id, ids, (0.0,) * len(ids), finish, 0))
            self.generated += 1
            on_done(done[-1])
        return done


def recipe_of(tmp_path: Path, **changes) -> Recipe:
    source = tmp_path / "bench.jsonl"
    lines = [json.dumps({"problem": name, "answer": answer}) for name, (answer, _) in SCRIPT.items()]
    source.write_text("\n".join(lines) + "\n")
    chosen = {"samples": 4, "pass_k": (1, 2, 4), "max_tokens": 50, **changes}
    return Recipe(evaluate=EvaluateRecipe(benchmarks=(Benchmark(name="b", source=str(source)),), **chosen))


def run(recipe: Recipe, output: Path, script=SCRIPT, *, engine=None, name="m", **options) -> Path:
    return evaluate(
        recipe,
        output,
        engine=lambda: engine or Scripted(script),
        prompter=CodePoints(),
        model_name=name,
        model_fingerprint=hashlib.sha256(repr(script).encode()).hexdigest(),
        **options,
    )


def shown(table) -> str:
    console = Console(width=110, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


def test_estimates_equal_counts_by_hand(tmp_path):
    reports = []
    directory = run(recipe_of(tmp_path), tmp_path / "out", progress=lambda *report: reports.append(report))
    one = read_estimates(directory)["benchmarks"]["b"]
    assert (one["problems"], one["samples"]) == (3, 4)
    assert one["avg"] == pytest.approx((2 / 4 + 1 / 4 + 4 / 4) / 3)
    assert one["pass_at_k"] == pytest.approx({"1": one["avg"], "2": (5 / 6 + 3 / 6 + 1) / 3, "4": 1.0})
    # four votes: "one" 7, 7, 8 and an abstention -> right; "two" 3, 3, 1/2, 4 -> wrong
    assert one["maj_at_k"]["4"] == pytest.approx(2 / 3)
    assert one["truncated"] == pytest.approx(1 / 12)
    assert one["no_answer"] == pytest.approx(1 / 12)
    assert one["undecided"] == 0.0
    lengths = sorted(len(text) for _, texts in SCRIPT.values() for text in texts)
    assert one["length"]["max"] == lengths[-1]
    assert one["length"]["mean"] == pytest.approx(sum(lengths) / 12)
    these, like_these = (one["intervals"]["avg"][name] for name in ("these problems", "problems like these"))
    assert 0 <= like_these[0] < these[0] < one["avg"] < these[1] < like_these[1] <= 1
    assert one["intervals"]["pass@4"]["these problems"] is None
    assert reports[0] == ("b", 0, 12)
    assert reports[-1] == ("b", 12, 12)


def test_resumes_what_was_sampled_and_knows_what_is_finished(tmp_path):
    recipe = recipe_of(tmp_path)
    with pytest.raises(UserError, match="the server died"):
        run(recipe, tmp_path / "out", engine=Scripted(SCRIPT, dies_after=5))
    assert not (tmp_path / "out").exists()
    rest = Scripted(SCRIPT)
    directory = run(recipe, tmp_path / "out", engine=rest)
    assert rest.generated == 7
    whole = run(recipe, tmp_path / "whole")
    for name in ("estimates.json", "scores.parquet"):
        assert (directory / name).read_bytes() == (whole / name).read_bytes()
    again = Scripted(SCRIPT)
    assert run(recipe, tmp_path / "out", engine=again) == directory
    assert again.generated == 0


def test_more_samples_extend_the_same_set(tmp_path):
    run(recipe_of(tmp_path, samples=1, pass_k=(1,)), tmp_path / "out")
    engine = Scripted(SCRIPT)
    directory = run(recipe_of(tmp_path), tmp_path / "out", engine=engine)
    assert engine.generated == 3 * 3
    whole = run(recipe_of(tmp_path), tmp_path / "whole")
    for name in ("estimates.json", "scores.parquet"):
        assert (directory / name).read_bytes() == (whole / name).read_bytes()
    other_k = Scripted(SCRIPT)
    again = run(recipe_of(tmp_path, pass_k=(3,)), tmp_path / "out", engine=other_k)
    assert other_k.generated == 0
    assert list(read_estimates(again)["benchmarks"]["b"]["pass_at_k"]) == ["3"]


def test_unfinished_work_is_extended_too(tmp_path):
    with pytest.raises(UserError, match="the server died"):
        run(recipe_of(tmp_path, samples=2, pass_k=(1,)), tmp_path / "out", engine=Scripted(SCRIPT, dies_after=4))
    rest = Scripted(SCRIPT, dies_after=5)
    with pytest.raises(UserError, match="the server died"):
        run(recipe_of(tmp_path), tmp_path / "out", engine=rest)
    last = Scripted(SCRIPT)
    run(recipe_of(tmp_path), tmp_path / "out", engine=last)
    assert 4 + rest.generated + last.generated == 12


def test_more_benchmarks_extend_and_fewer_samples_are_refused(tmp_path):
    recipe = recipe_of(tmp_path)
    run(recipe, tmp_path / "out")
    second = tmp_path / "second.jsonl"
    second.write_text(json.dumps({"problem": "one", "answer": "7"}) + "\n")
    both = (*recipe.evaluate.benchmarks, Benchmark(name="c", source=str(second)))
    engine = Scripted(SCRIPT)
    wider = Recipe(evaluate=recipe.evaluate.model_copy(update={"benchmarks": both}))
    run(wider, tmp_path / "out", engine=engine)
    assert engine.generated == 4
    for fewer in (recipe, recipe_of(tmp_path, samples=2, pass_k=(1,))):
        with pytest.raises(UserError, match=r"another configuration .*--force"):
            run(fewer, tmp_path / "out")
    with pytest.raises(UserError, match=r"evaluate.temperature: 0.85 -> 0.5"):
        run(Recipe(evaluate=wider.evaluate.model_copy(update={"temperature": 0.5})), tmp_path / "out")


def test_what_determines_no_sample_does_not_matter(tmp_path):
    run(recipe_of(tmp_path), tmp_path / "out")
    engine = Scripted(SCRIPT)
    run(recipe_of(tmp_path, significance=0.01, min_effect=0.2), tmp_path / "out", engine=engine)
    assert engine.generated == 0


def test_a_full_disk_is_told_and_keeps_what_was_written(tmp_path, monkeypatch):
    written = sample_store.write_table

    def full(path, table):
        if path.name == "shard-000001.parquet":
            raise OSError(errno.ENOSPC, "No space left on device")
        written(path, table)

    monkeypatch.setattr(sample_store, "write_table", full)
    monkeypatch.setattr(sampling, "FLUSH_SAMPLES", 5)
    with pytest.raises(UserError, match=r"shard-000001.parquet: .*No space left on device; the samples written before"):
        run(recipe_of(tmp_path), tmp_path / "out")
    monkeypatch.undo()
    rest = Scripted(SCRIPT)
    run(recipe_of(tmp_path), tmp_path / "out", engine=rest)
    assert rest.generated == 12 - 5

    monkeypatch.setattr(finished, "write_table", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space")))
    with pytest.raises(UserError, match=r"whole: No space; what was finished before is kept"):
        run(recipe_of(tmp_path), tmp_path / "whole")
    monkeypatch.undo()
    rest = Scripted(SCRIPT)
    run(recipe_of(tmp_path), tmp_path / "whole", engine=rest)
    assert rest.generated == 0


def test_a_benchmark_has_its_own_text_around_problems(tmp_path):
    recipe = recipe_of(tmp_path)
    (bench,) = recipe.evaluate.benchmarks
    asked = bench.model_copy(update={"prompt": "<{problem}>"})
    recipe = Recipe(evaluate=recipe.evaluate.model_copy(update={"benchmarks": (asked,)}))
    script = {f"<{name}>": value for name, value in SCRIPT.items()}
    one = read_estimates(run(recipe, tmp_path / "out", script))["benchmarks"]["b"]
    assert one["pass_at_k"]["4"] == 1.0


def test_votes_count_equivalent_answers_and_failures_of_the_verifier_are_apart(tmp_path):
    script = {
        "one": ("7", ["\\boxed{1/2}", "\\boxed{0.5}", "\\boxed{7}", "\\boxed{7}"]),
        "two": ("1/2", ["\\boxed{\\frac12}", "\\boxed{0.50}", "\\boxed{3}", "\\boxed{6/2}"]),
        "three": ("5", ["\\boxed{5}", "\\boxed{4}", "\\boxed{x+1}", "\\boxed{1+x}"]),
    }
    directory = run(recipe_of(tmp_path), tmp_path / "out", script)
    scores = read_scores(directory)["b"]
    assert scores["other_classes"].to_pylist() == [[2], [2], [2, 1]]
    one = read_estimates(directory)["benchmarks"]["b"]
    assert one["maj_at_k"]["4"] == pytest.approx((1 / 2 + 1 / 2 + 0) / 3)
    assert (one["verifier_errors"], one["unusable_references"]) == (0.0, 0)
    assert len(one["pass_curve"]) == 4 and one["pass_curve"][3] == 1.0


def test_comparison_is_paired_and_names_gains_and_losses(tmp_path):
    recipe = recipe_of(tmp_path)
    better = SCRIPT | {
        "two": ("1/2", ["\\boxed{0.5}"] * 4),
        "three": ("5", ["\\boxed{5}"] + ["\\boxed{6}"] * 3),
    }
    before = run(recipe, tmp_path / "before", name="start")
    after = run(recipe, tmp_path / "after", better, name="trained")
    comparison = compare(before, after)
    one = comparison["benchmarks"]["b"]
    assert (len(one["gained"]), len(one["lost"])) == (1, 1)
    average = one["measures"]["avg"]
    assert average["before"] == pytest.approx(7 / 12)
    assert average["difference"] == pytest.approx((0 + 3 / 4 - 3 / 4) / 3, abs=1e-12)
    assert average["interval"][0] < 0 < average["interval"][1]
    assert one["measures"]["pass@2"]["after"] == pytest.approx((5 / 6 + 1 + 3 / 6) / 3)
    assert average["these_problems"][0] < 0 < average["these_problems"][1]
    decision = comparison["decision"]
    assert not decision["loss"] and decision["benchmarks"]["b"]["smallest_loss"] is None  # three problems
    assert set(one["measures"]) == {"avg", "truncated", "length"} | {
        f"{m}@{k}" for m in ("pass", "maj") for k in (1, 2, 4)
    }
    assert comparison["settings_differ"] == []

    text = shown(comparison_table(read_estimates(before), read_estimates(after), comparison))
    for piece in ("58.3 %", "avg@4", "pass@2", "+0.0", "problems like these", "problems gained 1, lost 1"):
        assert piece in text
    text = shown(evaluation_table(read_estimates(before)))
    for piece in ("58.3 %", "avg@4", "pass@2", "maj@4", "truncated", "undecided", "these problems"):
        assert piece in text


def test_comparison_reports_other_settings_and_refuses_other_problems(tmp_path):
    before = run(recipe_of(tmp_path), tmp_path / "before")
    shorter = run(recipe_of(tmp_path, max_tokens=40), tmp_path / "shorter")
    assert compare(before, shorter)["settings_differ"] == ["max_tokens: 50 before, 40 after"]
    limited = recipe_of(tmp_path)
    bench = limited.evaluate.benchmarks[0].model_copy(update={"limit": 2})
    limited = Recipe(evaluate=limited.evaluate.model_copy(update={"benchmarks": (bench,)}))
    fewer = run(limited, tmp_path / "fewer")
    with pytest.raises(UserError, match=r"b: the two evaluations hold different problems \(1 only before"):
        compare(before, fewer)
    with pytest.raises(UserError, match="not a finished evaluation"):
        compare(before, tmp_path)


def test_a_prompt_longer_than_the_recipe_allows_is_refused_before_sampling(tmp_path):
    recipe = Recipe(model=ModelRecipe(max_prompt_tokens=4), evaluate=recipe_of(tmp_path).evaluate)
    engine = Scripted(SCRIPT)
    with pytest.raises(UserError, match=r"has 5 tokens, more than model\.max_prompt_tokens = 4"):
        run(recipe, tmp_path / "out", engine=engine)
    assert engine.generated == 0


def test_rescoring_judges_kept_samples_by_the_new_settings_and_generates_nothing(tmp_path):
    script = SCRIPT | {"one": ("7", ["so it is 7", "well: 7", "\\boxed{8}", "no idea"])}
    directory = run(recipe_of(tmp_path), tmp_path / "out", script)
    before = read_estimates(directory)["benchmarks"]["b"]
    lenient = recipe_of(tmp_path).model_copy(update={"verify": VerifyRecipe(last_number=True)})
    elsewhere = rescore(directory, lenient, tmp_path / "new")
    assert read_estimates(directory)["benchmarks"]["b"] == before
    after = read_estimates(elsewhere)["benchmarks"]["b"]
    assert after["avg"] > before["avg"] and after["no_answer"] < before["no_answer"]
    assert after["length"] == before["length"]
    assert compare(directory, elsewhere)["settings_differ"] == ["verify.last_number: False before, True after"]

    assert rescore(directory, lenient, directory) == directory
    for name in ("scores.parquet", "estimates.json"):
        assert (directory / name).read_bytes() == (elsewhere / name).read_bytes()
    strict = recipe_of(tmp_path)
    assert read_estimates(rescore(directory, strict, directory))["benchmarks"]["b"] == before
    engine = Scripted(script)
    run(strict, directory, script, engine=engine, force=True)
    assert engine.generated == 0


def test_rescoring_in_place_leaves_unfinished_samples_alone(tmp_path):
    one = recipe_of(tmp_path, samples=1, pass_k=(1,))
    directory = run(one, tmp_path / "out")
    with pytest.raises(UserError, match="the server died"):
        run(recipe_of(tmp_path), directory, engine=Scripted(SCRIPT, dies_after=5))
    kept = sorted(path for path in (tmp_path / "out.partial").rglob("*.parquet"))
    assert kept
    with pytest.raises(UserError, match=r"out\.partial holds samples of an unfinished evaluation"):
        rescore(directory, one, directory)
    assert all(path.exists() for path in kept)
    assert rescore(directory, one, tmp_path / "elsewhere").is_dir()
    shutil.rmtree(tmp_path / "out.partial" / "samples")
    assert rescore(directory, one, directory) == directory


def test_only_a_finished_evaluation_can_be_rescored(tmp_path):
    with pytest.raises(UserError, match="not a finished evaluation"):
        rescore(tmp_path, recipe_of(tmp_path), tmp_path / "x")
    directory = run(recipe_of(tmp_path), tmp_path / "out")
    for shard in (directory / "samples" / "b").glob("*.parquet"):
        shard.unlink()
    with pytest.raises(UserError, match=r"samples of problem .* are gone"):
        rescore(directory, recipe_of(tmp_path), tmp_path / "x")
