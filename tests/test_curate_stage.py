"""The stage: every row accounted for, the same bytes twice, difficulty with a fake model."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ulorl.curate.difficulty import Solved, difficulty, solved_counts
from ulorl.curate.explain import explain
from ulorl.curate.funnel import render_funnel, step_entry
from ulorl.curate.reasons import REASONS, drop
from ulorl.curate.stage import curate
from ulorl.errors import UserError
from ulorl.problem import Problem
from ulorl.recipe import CURATE_STEPS, CurateRecipe, DataRecipe, DifficultyRecipe, Recipe
from ulorl.rows import read_dropped_table

NO_MODEL = CURATE_STEPS[:-1]
ROWS: list[dict[str, Any]] = [
    {"id": "r1", "problem": "How many legs have 12 dogs?", "answer": "#### 48"},
    {"id": "r2", "problem": "How many  legs have 12 dogs?", "answer": "48"},
    {"id": "r3", "problem": "Given f(x) = 2x.\n(1) Find f(1).\n(2) Find f(2).", "answer": "4"},
    {"id": "r4", "problem": "What is 7 times 8?\nA) 54\nB) 56\nC) 58", "answer": "B"},
    {"id": "r5", "problem": "Find the sum of the digits of 12345.", "answer": "15"},
    {"id": "r6", "problem": "Find the sum of the digits of 12345.", "answer": "16"},
    {
        "id": "r7",
        "problem": "A benchmark item about 31 owls, 17 cats and 90 mice in a barn: how many animals?",
        "answer": "138",
    },
    {"id": "r8", "problem": None, "answer": "3"},
    {
        "id": "r9",
        "problem": "Find the inverse of the matrix.",
        "answer": r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}",
    },
]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return str(path)


def recipe_for(tmp_path: Path, rows: list[dict[str, Any]] = ROWS, **settings: Any) -> Recipe:
    bench = write_rows(tmp_path / "bench.jsonl", [ROWS[6] | {"id": "bench-1"}])
    settings = {"steps": NO_MODEL, "benchmarks": (bench,)} | settings
    return Recipe(data=DataRecipe(inputs=(write_rows(tmp_path / "rows.jsonl", rows),)), curate=CurateRecipe(**settings))


def test_every_row_is_kept_or_dropped_with_a_reason(tmp_path: Path) -> None:
    out = curate(recipe_for(tmp_path), tmp_path / "out", engine_factory=None)
    kept = pq.read_table(out / "problems.parquet").to_pylist()
    dropped = pq.read_table(out / "dropped.parquet").to_pylist()
    assert [(one["source_id"], one["problem"], one["answer"], one["multiplicity"]) for one in kept] == [
        ("r1", "How many legs have 12 dogs?", "48", 2),
        ("r4", "What is 7 times 8?", "56", 1),
    ]
    reasons = {one["source_id"]: (one["step"], one["reason"]) for one in dropped}
    reasons.pop(next(name for name, (step, _) in reasons.items() if step == "load"))
    assert reasons == {
        "r2": ("duplicates", "exact_duplicate"),
        "r3": ("kinds", "multi_part"),
        "r5": ("references", "conflicting_references"),
        "r6": ("references", "conflicting_references"),
        "r7": ("contamination", "benchmark_leak"),
        "r9": ("answers", "matrix_answer"),
    }
    assert next(one["other_id"] for one in dropped if one["source_id"] == "r7") == "bench-1"
    funnel = json.loads((out / "funnel.json").read_text())
    assert (funnel["rows_in"], funnel["rows_out"]) == (len(ROWS), len(kept))
    assert Counter(one["reason"] for one in dropped) == Counter(
        {reason: count for entry in funnel["steps"] for reason, count in entry["dropped"].items()}
    )
    assert render_funnel(funnel).row_count > len(NO_MODEL)
    card = (out / "card.md").read_text()
    assert "rows.jsonl" in card
    assert "duplicate_words = 0.5" in card


def test_explain_tells_one_row_s_story(tmp_path: Path) -> None:
    out = curate(recipe_for(tmp_path), tmp_path / "out", engine_factory=None)
    assert "dropped by kinds: multi_part" in explain(out, "r3")
    story = explain(out, "r4")
    assert "kept" in story
    assert "A) 54" in story
    kept_id = next(row.other_id for row in read_dropped_table(out / "dropped.parquet") if row.problem.source_id == "r2")
    assert kept_id is not None
    assert "1 rows were dropped because of it" in explain(out, kept_id)
    with pytest.raises(UserError, match="no row has the id"):
        explain(out, "nobody")


def test_same_input_gives_the_same_bytes_and_done_work_is_not_redone(tmp_path: Path) -> None:
    recipe = recipe_for(tmp_path)
    first = curate(recipe, tmp_path / "one", engine_factory=None)
    second = curate(recipe, tmp_path / "two", engine_factory=None)
    for name in ("problems.parquet", "dropped.parquet", "funnel.json", "card.md"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    stamp = (first / "problems.parquet").stat().st_mtime_ns
    assert curate(recipe, tmp_path / "one", engine_factory=None) == first
    assert (first / "problems.parquet").stat().st_mtime_ns == stamp


def test_steps_can_be_chosen(tmp_path: Path) -> None:
    out = curate(recipe_for(tmp_path, steps=("kinds",)), tmp_path / "out", engine_factory=None)
    ids = pq.read_table(out / "problems.parquet").column("id").to_pylist()
    assert len(ids) == len(set(ids)) == len(ROWS) - 2


def test_no_row_left_names_the_step(tmp_path: Path) -> None:
    recipe = recipe_for(tmp_path, rows=[ROWS[2]])
    with pytest.raises(UserError, match=r"no row is left after kinds; kinds dropped most, 1 of 1 \(multi_part 1\)"):
        curate(recipe, tmp_path / "out", engine_factory=None)
    assert not (tmp_path / "out").exists()


def test_difficulty_without_a_model_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="leave difficulty out"):
        curate(recipe_for(tmp_path, steps=CURATE_STEPS), tmp_path / "out", engine_factory=None)


def test_given_pass_rates_need_no_model() -> None:
    problems = [Problem(str(rate), "What?", "1", pass_rate=rate) for rate in (0.0, 0.125, 0.875, 1.0)]
    result = difficulty(problems, DifficultyRecipe(min_pass_rate=0.1, max_pass_rate=0.9), None)
    assert [one.id for one in result.kept] == ["0.125", "0.875"]
    assert [(one.problem.id, one.reason) for one in result.dropped] == [
        ("0.0", "too_hard"),
        ("1.0", "too_easy"),
    ]


def test_undecided_verdicts_are_no_failures_but_missing_answers_are() -> None:
    table = pa.table(
        {
            "problem_id": ["a", "a", "a", "b", "b", "c", "d", "d"],
            "equivalent": [True, None, False, True, True, None, None, True],
            "reason": ["", "unparsable", "", "", "", "unparsable", "no_answer", ""],
        }
    )
    counts = solved_counts(table)
    assert counts == {"a": Solved(1, 1, 1), "b": Solved(2, 0), "c": Solved(0, 0, 1), "d": Solved(1, 1)}
    assert {name: one.rate for name, one in counts.items()} == {"a": 0.5, "b": 1.0, "c": None, "d": 0.5}


def test_sampled_pass_rates_drop_what_is_always_solved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stage against a stand-in for sampling: asked once, with the recipe's settings."""
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    asked: list[dict[str, Any]] = []

    def sample_problems(problems: list[Problem], **settings: Any) -> pa.Table:
        asked.append(settings | {"ids": [one.source_id for one in problems]})
        names = [one.id for one in problems for _ in range(2)]
        verdicts = [right for one in problems for right in ((True, None) if one.source_id == "r4" else (True, True))]
        verdicts[-1] = False
        reasons = [""] * len(verdicts)
        columns = {"problem_id": names, "equivalent": pa.array(verdicts, pa.bool_()), "reason": reasons}
        columns["finish_reason"] = ["stop"] * len(verdicts)
        return pa.table(columns)

    class FakePrompter:
        def encode(self, text: str) -> tuple[int, ...]:
            return tuple(range(len(text)))

    monkeypatch.setattr("ulorl.sampling.sample_problems", sample_problems)
    rows = [
        ROWS[0],
        ROWS[3],
        ROWS[4],
        ROWS[4] | {"id": "long", "problem": "Add up these 99 numbers: " + "1 + " * 99 + "1"},
    ]
    base = recipe_for(tmp_path, rows=rows, steps=CURATE_STEPS, difficulty=DifficultyRecipe(samples=2))
    recipe = base.model_copy(
        update={"model": base.model.model_copy(update={"path": str(model), "max_prompt_tokens": 100})}
    )
    out = curate(recipe, tmp_path / "out", engine_factory=lambda: (None, FakePrompter()))  # type: ignore[arg-type,return-value]
    assert [one["ids"] for one in asked] == [["r1", "r4", "r5"]]
    assert asked[0]["samples"] == 2
    kept = pq.read_table(out / "problems.parquet").to_pylist()
    assert [(one["source_id"], one["pass_rate"]) for one in kept] == [("r4", 1.0), ("r5", 0.5)]
    reasons = {one["source_id"]: one["reason"] for one in pq.read_table(out / "dropped.parquet").to_pylist()}
    assert reasons == {"r1": "too_easy", "long": "prompt_too_long"}


def test_unknown_reasons_are_refused() -> None:
    with pytest.raises(AssertionError, match="unknown reason"):
        drop(Problem("a", "b", "c"), "kinds", "boring", "")
    assert all(text.endswith(".") for text in REASONS.values())


def test_lost_rows_are_noticed() -> None:
    with pytest.raises(AssertionError, match="3 rows in, 1 out, 1 dropped"):
        step_entry("kinds", 3, 1, [drop(Problem("a", "b", "c"), "kinds", "multi_part", "")], {})


def test_quickstart_dirt_is_caught(tmp_path: Path) -> None:
    """Every planted fault but too_easy, which needs a model, is found in nearly every row that has it."""
    recipe = Recipe(data=DataRecipe(inputs=("quickstart:700",)), curate=CurateRecipe(steps=NO_MODEL))
    out = curate(recipe, tmp_path / "out", engine_factory=None)
    kept = Counter(one["dirt"] for one in _extras(out / "problems.parquet"))
    lost = Counter((one["dirt"], reason) for one, reason in _reasons(out / "dropped.parquet"))
    assert lost["multi_part", "multi_part"] > 20
    assert lost["exact_duplicate", "exact_duplicate"] > 20
    assert sum(count for (_, reason), count in lost.items() if reason == "near_duplicate") > 20
    assert lost["wrong_reference", "conflicting_references"] > 20
    assert kept["multi_part"] == kept["wrong_reference"] == kept["exact_duplicate"] == 0
    rewritten = [one for one in pq.read_table(out / "problems.parquet").to_pylist() if one["kind"] == "multiple_choice"]
    assert rewritten
    assert all("(A)" not in one["problem"] and one["answer"].isdecimal() for one in rewritten)


def _extras(path: Path) -> list[dict[str, Any]]:
    return [{"dirt": None} | json.loads(text or "{}") for text in pq.read_table(path).column("extra").to_pylist()]


def _reasons(path: Path) -> list[tuple[dict[str, Any], str]]:
    return list(zip(_extras(path), pq.read_table(path).column("reason").to_pylist(), strict=True))
