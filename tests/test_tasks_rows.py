"""Rows of all tasks through reading, curation, evaluation, rescoring, responses and `ulorl verify`."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from scripted_engine import Letters, Scripted

from ulorl.curate.stage import curate
from ulorl.errors import UserError
from ulorl.evaluate.compare import compare
from ulorl.evaluate.finished import read_estimates
from ulorl.evaluate.rescore import rescore
from ulorl.evaluate.responses import score_responses
from ulorl.evaluate.scores import read_scores
from ulorl.evaluate.stage import evaluate
from ulorl.recipe import CurateRecipe, DataRecipe, EvaluateRecipe, FieldNames, Recipe, VerifyRecipe
from ulorl.recipe_evaluate import Benchmark
from ulorl.recipe_tasks import InstructionRecipe, TasksRecipe
from ulorl.report.page.build import build_page
from ulorl.report.run_data import read_run
from ulorl.report.tables import comparison_table
from ulorl.rows import read_problems
from ulorl.train.figures import combine, mean
from ulorl.verify.scoring.files import verify_file

RULES = VerifyRecipe(symbolic=False)
SHARES = RULES.model_copy(update={"tasks": TasksRecipe(ifollow=InstructionRecipe(reward="share"))})
FOLLOW = {
    "task": "ifollow",
    "prompt": "Write small,  without a comma.",
    "instruction_id_list": ["change_case:english_lowercase", "punctuation:no_comma"],
    "kwargs": [{}, {}],
}
CHOICE = {"task": "stem", "problem": "Largest planet?", "choices": ["Mars", "Jupiter"], "answer": "B"}
MATH = {"problem": "What is 1+1?", "answer": "2"}


def written(path: Path, *rows: dict) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_rows_of_other_tasks_need_no_answer_and_keep_their_columns(tmp_path):
    source = written(tmp_path / "a.jsonl", FOLLOW, CHOICE, MATH, {"problem": "What?", "task": "math"})
    problems, bad = read_problems([source], FieldNames())
    assert [one.task for one in problems] == ["ifollow", "stem", "math"]
    assert [one.answer for one in problems] == ["", "B", "2"]
    assert problems[0].extra["kwargs"] == [{}, {}]
    assert "no column for the answer" in bad[0].reason
    named, _ = read_problems([written(tmp_path / "b.jsonl", {**FOLLOW, "task": None})], FieldNames(task="ifollow"))
    assert named[0].task == "ifollow"


def test_curation_leaves_other_tasks_as_they_are_but_for_copies_and_broken_rows(tmp_path):
    puzzle = {
        **FOLLOW,
        "prompt": "Write small,  without a comma!",
        "instruction_id_list": ["punctuation:no_coma"],
        "kwargs": [{}],
    }
    similar = {**FOLLOW, "prompt": "Write small,  without any comma."}
    source = written(
        tmp_path / "a.jsonl", FOLLOW, CHOICE, {**CHOICE, "choices": ["Venus", "Jupiter"]}, MATH, FOLLOW, puzzle, similar
    )
    steps = ("normalise", "answers", "kinds", "rewrite", "duplicates", "references")
    recipe = Recipe(verify=RULES, data=DataRecipe(inputs=(source,)), curate=CurateRecipe(steps=steps, workers=1))
    out = curate(recipe, tmp_path / "out", engine_factory=None)
    kept = pq.read_table(out / "problems.parquet").to_pylist()
    assert [row["task"] for row in kept] == ["ifollow", "stem", "stem", "math", "ifollow"]
    assert [row["multiplicity"] for row in kept] == [2, 1, 1, 1, 1]
    assert kept[0]["problem"] == FOLLOW["prompt"]
    assert kept[0]["kind"] is None
    lost = {row["reason"]: row["detail"] for row in pq.read_table(out / "dropped.parquet").to_pylist()}
    assert set(lost) == {"exact_duplicate", "unverifiable_reference"}
    assert "do you mean punctuation:no_comma" in lost["unverifiable_reference"]


def reply(prompt: str) -> str:
    if "comma" in prompt:
        return "all small" if "Twice" in prompt else "Half kept"
    if "planet" in prompt:
        return "It is \\boxed{Jupiter}."
    return "\\boxed{3}"


@pytest.fixture
def evaluated(tmp_path):
    """An evaluation of all tasks together, and its recipe."""
    twice = {**FOLLOW, "prompt": "Twice: small, without a comma."}
    source = written(tmp_path / "bench.jsonl", FOLLOW, CHOICE, MATH, twice)
    recipe = Recipe(
        verify=SHARES,
        evaluate=EvaluateRecipe(
            benchmarks=(Benchmark(name="b", source=source),), samples=2, pass_k=(1, 2), max_tokens=50
        ),
    )
    engine = Scripted(reply)
    directory = evaluate(
        recipe, tmp_path / "out", engine=lambda: engine, prompter=Letters(), model_name="m", model_fingerprint="f"
    )
    return directory, recipe, engine


def test_an_evaluation_averages_rewards_and_counts_what_is_solved(evaluated):
    directory, _, engine = evaluated
    one = read_estimates(directory)["benchmarks"]["b"]
    assert one["avg"] == pytest.approx((0.5 + 1 + 0 + 1) / 4)
    assert one["pass_at_k"] == {"1": 0.5, "2": 0.5}
    assert one["accepted"] == 0.5
    assert {task: part["avg"] for task, part in one["by_task"].items()} == {"ifollow": 0.75, "math": 0.0, "stem": 1.0}
    assert one["by_task"]["ifollow"]["pass_at_k"]["1"] == 0.5
    assert one["unusable_references"] == one["no_answer"] == one["verifier_errors"] == 0
    assert any("\nA. " in prompt for prompt in engine.asked)  # the options are shown
    scores = read_scores(directory)["b"].to_pylist()
    assert [row["reward"] for row in scores] == [0.5, None, None, None]
    assert scores[0]["correct"] == 0


def test_rescoring_knows_the_rows_of_every_task(evaluated, tmp_path):
    directory, recipe, engine = evaluated
    asked = len(engine.asked)
    again = read_estimates(rescore(directory, recipe, tmp_path / "same"))["benchmarks"]["b"]
    assert again == read_estimates(directory)["benchmarks"]["b"]
    strict = recipe.model_copy(update={"verify": RULES})
    assert read_estimates(rescore(directory, strict, tmp_path / "new"))["benchmarks"]["b"]["avg"] == pytest.approx(0.5)
    assert len(engine.asked) == asked


def test_a_changed_row_is_judged_again_without_sampling(evaluated, tmp_path):
    directory, recipe, engine = evaluated
    asked = len(engine.asked)
    changed = {**FOLLOW, "instruction_id_list": ["change_case:english_capital", "punctuation:no_comma"]}
    twice = {**FOLLOW, "prompt": "Twice: small, without a comma."}
    written(tmp_path / "bench.jsonl", changed, CHOICE, MATH, twice)
    again = evaluate(
        recipe,
        directory,
        engine=lambda: engine,
        prompter=Letters(),
        model_name="m",
        model_fingerprint="f",
        force=True,
    )
    assert len(engine.asked) == asked
    assert read_scores(again)["b"].to_pylist()[0]["reward"] == 0.5
    assert read_estimates(again)["benchmarks"]["b"]["avg"] == pytest.approx(2.5 / 4)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (
            {**MATH, "problem": "2?", "task": "matt"},
            r"benchmark b: problem \w{16} \(bench\.jsonl\), task matt: no task 'matt'; there are",
        ),
        ({**CHOICE, "answer": "Z", "id": "q7"}, r"problem \w{16} \(bench\.jsonl, q7\), task stem: the answer 'Z'"),
    ],
)
def test_a_row_that_cannot_be_judged_is_named_before_anything_is_sampled(tmp_path, row, why):
    source = written(tmp_path / "bench.jsonl", MATH, row)
    chosen = EvaluateRecipe(benchmarks=(Benchmark(name="b", source=source),), samples=1, pass_k=(1,))
    with pytest.raises(UserError, match=why):
        evaluate(
            Recipe(verify=RULES, evaluate=chosen),
            tmp_path / "out",
            engine=lambda: pytest.fail("the engine was opened"),
            prompter=Letters(),
            model_name="m",
            model_fingerprint="f",
        )
    assert not list(tmp_path.glob("out*"))


def test_a_comparison_tells_the_change_of_each_task(evaluated, tmp_path):
    directory, recipe, _ = evaluated
    strict = rescore(directory, recipe.model_copy(update={"verify": RULES}), tmp_path / "strict")
    found = compare(directory, strict)
    one = found["benchmarks"]["b"]
    assert one["measures"]["avg"]["difference"] == pytest.approx(-0.5 / 4)
    changes = {task: (of["problems"], of["avg"]["difference"]) for task, of in one["by_task"].items()}
    assert changes == {"ifollow": (2, pytest.approx(-0.25)), "math": (1, 0.0), "stem": (1, 0.0)}
    assert one["by_task"]["math"]["avg"]["interval"] is None  # of one problem
    before, after = read_estimates(directory), read_estimates(strict)
    (labels, changed) = (list(comparison_table(before, after, found).columns[at].cells) for at in (1, 4))
    assert changed[labels.index("avg@2 ifollow")] == "-25.0"
    run, row = tmp_path / "run", r"avg, ifollow</t[hd]><td[^>]*>75\.0</td><td[^>]*>"
    shutil.copytree(directory, run / "before")
    assert re.search(row + r"[\d.]+ to", build_page(read_run(run)))
    shutil.copytree(strict, run / "after")
    assert re.search(row + r"50\.0</td>", build_page(read_run(run)))


def test_anybodys_responses_are_scored_by_their_task(tmp_path):
    rows = [{**FOLLOW, "response": text} for text in ("all small", "Not, small", "Not small")]
    path = tmp_path / "r.jsonl"
    written(path, *rows, {**CHOICE, "response": "The answer is Mars."}, {**MATH, "response": "\\boxed{2}"})
    found = score_responses(path, Recipe(verify=SHARES), 1, tmp_path / "kept")["benchmarks"]["r"]
    assert {task: part["avg"] for task, part in found["by_task"].items()} == {"ifollow": 0.5, "math": 1.0, "stem": 0.0}
    assert found["without_reference"] == 0
    kept = read_estimates(rescore(tmp_path / "kept", Recipe(verify=RULES), tmp_path / "again"))["benchmarks"]["r"]
    assert kept["by_task"]["ifollow"]["avg"] == pytest.approx(1 / 3)


def test_ulorl_verify_judges_each_row_by_its_task(tmp_path):
    path = tmp_path / "r.jsonl"
    written(path, {**FOLLOW, "response": "Half"}, {**CHOICE, "response": "\\boxed{Jupiter}"}, {**MATH, "pred": "2"})
    summary = verify_file(path, SHARES, output=tmp_path / "out.parquet")
    assert [row["reward"] for row in summary["rows"]] == [0.5, 1.0, 1.0]
    assert [row["rule"] for row in summary["rows"]] == ["ifollow", "stem", "exact"]
    assert (summary["accepted"], summary["reward"]) == (pytest.approx(2 / 3), pytest.approx(2.5 / 3))
    assert pq.read_table(tmp_path / "out.parquet")["reward"].to_pylist() == [0.5, 1.0, 1.0]
    written(path, {**CHOICE, "answer": "Z", "response": "x"})
    with pytest.raises(UserError, match=r"r\.jsonl, row 1: task stem: the answer 'Z'"):
        verify_file(path, RULES)


CODE = {"task": "code", "tests": [{"input": "", "output": "1"}]}


@pytest.mark.parametrize(
    ("row", "reward"),
    [
        ({**CHOICE, "pred": "b"}, None),
        ({**CHOICE, "pred": "Jupiter"}, 1.0),
        ({**CHOICE, "prediction": "Mars"}, 0.0),
        ({**CHOICE, "response": "Jupiter", "kind": "answer"}, 1.0),
        ({"task": "stem", "problem": "How far?", "answer": "500 cm", "pred": "5 m"}, 1.0),
        ({"task": "stem", "problem": "How far?", "answer": "500 cm", "pred": "5 m", "kind": "response"}, 0.0),
        ({**FOLLOW, "instruction_id_list": ["startend:quotation"], "kwargs": [{}], "pred": '"a"'}, 1.0),
        ({**FOLLOW, "instruction_id_list": ["change_case:english_capital"], "kwargs": [{}], "pred": "ALL"}, 1.0),
        ({**CODE, "pred": "print(1)"}, 1.0),
        ({**CODE, "pred": "```python\nprint(1)\n```"}, 1.0),
        ({**CODE, "pred": "print(2)"}, 0.0),
    ],
)
def test_bare_answers_are_judged_as_such(tmp_path, row, reward):
    path = tmp_path / "r.jsonl"
    written(path, row)
    (judged,) = verify_file(path, RULES)["rows"]
    if reward is None:  # the letter of an option in an order that follows from the id
        assert judged["reason"].startswith("B, ")
    else:
        assert judged["reward"] == reward


def test_rows_of_one_text_are_judged_each_by_itself(tmp_path):
    path = tmp_path / "r.jsonl"
    rows = [{**CODE, "tests": [{"input": "", "output": out}], "response": "print(1)"} for out in ("1", "2", "1")]
    written(path, *rows)
    assert [row["reward"] for row in verify_file(path, RULES)["rows"]] == [1.0, 0.0, 1.0]


def test_figures_of_tasks_that_not_every_process_has_are_combined():
    parts = [{"reward/math": mean([1.0, 0.0])}, {"reward/math": mean([1.0]), "reward/stem": mean([0.25])}]
    assert combine(parts) == {"reward/math": pytest.approx(2 / 3), "reward/stem": 0.25}
