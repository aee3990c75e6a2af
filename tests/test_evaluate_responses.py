"""Anybody's responses: reading, scoring, published accuracies, and pass@k and maj@k against brute force."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ulorl.errors import UserError
from ulorl.evaluate.compare import compare
from ulorl.evaluate.finished import read_estimates
from ulorl.evaluate.rescore import rescore
from ulorl.evaluate.response_file import read_responses
from ulorl.evaluate.responses import powers_up_to, score_responses
from ulorl.evaluate.scores import read_scores
from ulorl.recipe import Recipe, VerifyRecipe

SHARED = Path(os.environ.get("ULORL_SHARED", Path(__file__).parents[2] / "shared")) / "data" / "responses"
RULES_ONLY = Recipe(verify=VerifyRecipe(symbolic=False))
ROWS = [
    {"problem": "1 + 1?", "gold": "2", "response": "\\boxed{2}", "label": True},
    {"problem": "2 + 2?", "gold": "4", "response": "\\boxed{5}", "label": False},
    {"problem": "1 + 1?", "gold": "2", "response": "\\boxed{3}", "label": True},
    {"problem": "2 + 2?", "gold": "4", "response": "no idea", "label": False},
]


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def only(result: dict[str, Any]) -> dict[str, Any]:
    (one,) = result["benchmarks"].values()
    return dict(one)


def test_rows_of_one_problem_are_its_samples(tmp_path: Path) -> None:
    result = score_responses(written(tmp_path / "mine.v2.jsonl", ROWS), RULES_ONLY, 0, None)
    assert list(result["benchmarks"]) == ["mine"]
    one = only(result)
    assert (one["problems"], one["samples"], one["total_samples"]) == (2, 2, 4)
    assert one["avg"] == 0.25
    assert one["pass_at_k"] == {"1": 0.25, "2": 0.5}
    assert one["maj_at_k"]["2"] == 0.25  # 2 against 3: a tie
    assert (one["no_answer"], one["truncated"], one["length"]) == (0.25, None, None)
    assert one["labels"]["agreement"] == 0.75
    assert [row["row"] for row in one["labels"]["disagreements"]] == [3]


@pytest.mark.parametrize("reference", ["gold", "reference", "answer", "ground_truth"])
def test_references_have_several_names_and_a_list_of_responses_is_samples(tmp_path: Path, reference: str) -> None:
    rows = [{"question": "1 + 1?", reference: 2, "responses": ["\\boxed{2}", "\\boxed{3}", "\\boxed{2.0}"]}]
    one = only(score_responses(written(tmp_path / "r.jsonl", rows), RULES_ONLY, 3, None))
    assert one["pass_at_k"] == pytest.approx({"1": 2 / 3, "2": 1.0, "3": 1.0})


def test_lengths_and_finish_reasons_are_used_where_told(tmp_path: Path) -> None:
    rows = [row | {"tokens": 10 * i, "finish_reason": "length" if i == 3 else "stop"} for i, row in enumerate(ROWS)]
    one = only(score_responses(written(tmp_path / "r.jsonl", rows), RULES_ONLY, 0, None))
    assert (one["length"]["mean"], one["length"]["max"], one["truncated"]) == (15.0, 30, 0.25)


def test_lengths_and_labels_are_read_from_text_too(tmp_path: Path) -> None:
    lines = ["problem,gold,response,label,tokens", *(f"1 + 1?,2,\\boxed{{2}},{one},{n}" for one, n in TOLD)]
    (tmp_path / "r.csv").write_text("\n".join(lines) + "\n")
    rows = [{"problem": "1 + 1?", "gold": "2", "response": "\\boxed{2}", "label": 1, "tokens": 12.0}] * 4
    for file, agreement, mean in ((tmp_path / "r.csv", 0.5, 9.5), (written(tmp_path / "r.jsonl", rows), 1, 12)):
        one = only(score_responses(file, RULES_ONLY, 0, None))
        assert (one["labels"]["agreement"], one["length"]["mean"]) == (agreement, mean)
    for wrong, message in (({"tokens": "many"}, "tokens is 'many'"), ({"label": "perhaps"}, "label is 'perhaps'")):
        with pytest.raises(UserError, match=f"r.jsonl:1.*{message}"):
            score_responses(written(tmp_path / "r.jsonl", [rows[0] | wrong]), RULES_ONLY, 0, None)


TOLD = [("true", 8), ("False", 9), ("1", 10), ("0", 11)]


def test_what_the_rows_told_outlives_another_scoring(tmp_path: Path) -> None:
    rows = [row | {"tokens": 10 * i} for i, row in enumerate(ROWS)]
    kept = tmp_path / "kept"
    score_responses(written(tmp_path / "r.jsonl", rows), RULES_ONLY, 0, kept)
    again = rescore(kept, RULES_ONLY, tmp_path / "again")
    for directory in (kept, again):
        assert read_scores(directory)["r"]["mean_length"].to_pylist() == [10.0, 20.0]
        assert only(read_estimates(directory))["length"]["mean"] == 15.0
        assert only(read_estimates(directory))["without_reference"] == 0


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "holds no rows"),
        (
            [ROWS[0], {"problem": "x", "response": "1"}],
            r"r.jsonl:2: no reference; looked for gold.*columns are: pro",
        ),
        ([{"problem": "x", "gold": None, "response": "1"}], "none of the 1 rows has a reference"),
        ([{"problem": "x", "gold": "  ", "response": "1"}], r"r.jsonl:1: the reference is empty"),
        ([ROWS[0], {"problem": "x", "gold": "1"}], r"r.jsonl:2: no response"),
        ([{"gold": "1", "response": "1"}], r"r.jsonl:1: no problem \(or id\)"),
        ([{"problem": "x", "gold": "1", "response": {"a": 1}}], "a response is a dict, not text"),
        ([ROWS[0], ROWS[0] | {"gold": "3"}], r"rows 1 and 2 give one problem two references, '2' and '3'"),
    ],
)
def test_files_that_cannot_be_scored_are_refused_by_row(tmp_path: Path, rows: list[Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        score_responses(written(tmp_path / "r.jsonl", rows), RULES_ONLY, 0, None)


def test_a_missing_file_broken_json_and_too_large_a_k_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_responses(tmp_path / "none.jsonl")
    path = written(tmp_path / "r.jsonl", ROWS[:3])
    with pytest.raises(UserError, match=r"pass@2 needs 2 samples of every problem: problem \w+ has 1"):
        score_responses(path, RULES_ONLY, 2, None)
    path.write_text(path.read_text() + "{broken\n")
    with pytest.raises(UserError, match=r"r.jsonl:4: "):
        read_responses(path)


def test_null_references_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [*ROWS, {"problem": "open", "gold": None, "response": "1"}]
    one = only(score_responses(written(tmp_path / "r.jsonl", rows), RULES_ONLY, 0, None))
    assert (one["total_samples"], one["without_reference"]) == (4, 1)


def test_kept_responses_are_an_evaluation_to_compare_and_rescore(tmp_path: Path) -> None:
    better = [row | {"response": f"\\boxed{{{row['gold']}}}"} for row in ROWS]
    for name, rows in (("bench", ROWS), ("other/bench", better)):
        path = tmp_path / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        score_responses(written(path, rows), RULES_ONLY, 0, tmp_path / f"{name}.eval")
    first, second = tmp_path / "bench.eval", tmp_path / "other/bench.eval"
    measures = compare(first, second)["benchmarks"]["bench"]["measures"]
    assert measures["avg"]["difference"] == 0.75
    assert "length" not in measures and "truncated" not in measures
    before = read_estimates(first)["benchmarks"]["bench"]
    again = read_estimates(rescore(first, RULES_ONLY, first))["benchmarks"]["bench"]
    assert {key: before[key] for key in again} == again


def test_powers() -> None:
    assert [powers_up_to(k) for k in (1, 2, 3, 8, 12)] == [[1], [1, 2], [1, 2, 3], [1, 2, 4, 8], [1, 2, 4, 8, 12]]


def shared(name: str) -> Path:
    path = SHARED / f"{name}.jsonl.gz"
    if not path.exists():
        pytest.skip(f"{path} is not here; set ULORL_SHARED to the directory that holds data/")
    return path


@pytest.mark.parametrize(
    ("name", "published", "within"),
    [
        ("gsm8k_abel_7b", 59.74, 0.005),
        ("gsm8k_gsmplus_metamath_7b", 66.72, 0.005),
        ("gsm8k_gsmplus_gpt4", 93.25, 0.2),
        ("gsm8k_tora-70b-v1_0", 84.3, 0.3),
    ],
)
def test_published_accuracies(name: str, published: float, within: float) -> None:
    started = time.perf_counter()
    one = only(score_responses(shared(name), Recipe(), 0, None))
    assert 100 * one["avg"] == pytest.approx(published, abs=within)
    assert time.perf_counter() - started < 60  # under 4 s on an idle core


def test_pass_and_maj_equal_brute_force_on_the_labels_of_real_samples() -> None:
    path = shared("math100_qwen25math_x8")
    one = only(score_responses(path, Recipe(), 8, None))
    problems: dict[str, list[tuple[bool, str]]] = {}
    with gzip.open(path, "rt") as lines:
        for row in map(json.loads, lines):
            # The one label that is wrong: 10000 is 10{,}000.
            right = row["label"] or (row["id"] == "math-72" and row["pred"] == row["gold"].replace("{,}", ""))
            problems.setdefault(row["problem"], []).append((right, row["pred"]))
    for k in (1, 2, 4, 8):
        subsets = [[any(right for right, _ in part) for part in combinations(rows, k)] for rows in problems.values()]
        assert one["pass_at_k"][str(k)] == pytest.approx(np.mean([np.mean(parts) for parts in subsets]))
    votes = [Counter("right" if right else text for right, text in rows) for rows in problems.values()]
    winners = [[answer for answer, n in vote.items() if n == max(vote.values())] for vote in votes]
    assert one["maj_at_k"]["8"] == pytest.approx(np.mean([("right" in w) / len(w) for w in winners]))
