"""Benchmarks: found, whole, of the right size, with the right kind of answers, and the real files where they are."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ulorl.errors import UserError
from ulorl.evaluate.benchmarks import load_benchmark, located, parse_benchmarks
from ulorl.evaluate.registry import BOXED, KNOWN
from ulorl.recipe import EvaluateRecipe, VerifyRecipe
from ulorl.recipe_evaluate import Benchmark
from ulorl.verify import Verifier

SHARED = Path(os.environ.get("ULORL_SHARED", Path(__file__).parents[2] / "shared")) / "data" / "benchmarks"


def written(path: Path, rows: list[dict]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def rows(count: int) -> list[dict]:
    return [{"problem": f"What is {i} + 1?", "answer": str(i + 1)} for i in range(count)]


def settings(names: str, **changes) -> EvaluateRecipe:
    return EvaluateRecipe(benchmarks=parse_benchmarks(names), **changes)


@pytest.mark.parametrize("name", sorted(KNOWN.keys() - {"olymmath_zh_hard"}))
def test_real_files_stand_in_for_the_hub_and_have_usable_references(name):
    if not SHARED.is_dir():
        pytest.skip(f"{SHARED} is not here; set ULORL_SHARED to the directory that holds data/")
    (benchmark,) = located(settings(name, bench_dir=str(SHARED)))
    problems = load_benchmark(benchmark, seed=0)
    assert len(problems) in KNOWN[name].items
    verifier = Verifier(VerifyRecipe())
    unusable = [problem.answer for problem in problems if verifier.check_reference(problem.answer)]
    assert len(unusable) <= 0.02 * len(problems), unusable


def test_every_known_benchmark_says_where_it_is_and_whose():
    for name, known in KNOWN.items():
        assert known.source.startswith("hub:") and "@" in known.source and "/" in known.source, name
        assert known.items and all(count >= 30 for count in known.items)
        assert known.licence and "{problem}" in known.prompt and "\\boxed" in known.prompt
        assert located(settings(name))[0].source == known.source


def test_a_known_name_with_another_size_is_refused(tmp_path):
    source = written(tmp_path / "aime.jsonl", rows(29))
    with pytest.raises(UserError, match=r"benchmark aime2025: .*aime.jsonl has 29 problems, not 30"):
        load_benchmark(Benchmark(name="aime2025", source=source), seed=0)
    assert len(load_benchmark(Benchmark(name="mine", source=source), seed=0)) == 29
    with pytest.raises(UserError, match=r"benchmark mine: .* has 29 problems, not 28"):
        load_benchmark(Benchmark(name="mine", source=source, items=28), seed=0)


@pytest.mark.parametrize("answer", ["1000", "-1", "1/2", "x", "12.5", "#### 1,000"])
def test_a_known_name_with_answers_it_cannot_have_is_refused(tmp_path, answer):
    source = written(tmp_path / "aime.jsonl", [*rows(29), {"problem": "odd one", "answer": answer}])
    with pytest.raises(UserError, match=r"answer of problem 30 of .*, not an integer from 0 to 999"):
        load_benchmark(Benchmark(name="aime2025", source=source), seed=0)
    fine = written(tmp_path / "fine.jsonl", [*rows(29), {"problem": "whole", "answer": 27.0}])
    assert len(load_benchmark(Benchmark(name="aime2025", source=fine), seed=0)) == 30


def test_the_limit_draws_with_the_seed_and_comes_after_the_count(tmp_path):
    source = written(tmp_path / "aime.jsonl", rows(30))
    drawn = [load_benchmark(Benchmark(name="aime2025", source=source, limit=10), seed) for seed in (0, 0, 1)]
    assert [len(problems) for problems in drawn] == [10, 10, 10]
    assert drawn[0] == drawn[1] != drawn[2]


def test_repeated_and_unusable_rows_are_refused_by_place(tmp_path):
    source = written(tmp_path / "twice.jsonl", [*rows(3), rows(2)[1]])
    with pytest.raises(UserError, match=r"problems 2 and 4 of .*twice.jsonl are the same"):
        load_benchmark(Benchmark(name="mine", source=source), seed=0)
    source = written(tmp_path / "hole.jsonl", [*rows(2), {"problem": "no answer", "answer": None}])
    with pytest.raises(UserError, match=r"1 rows cannot be used, first hole.jsonl:3: "):
        load_benchmark(Benchmark(name="mine", source=source), seed=0)


def test_own_columns_are_named_in_the_recipe(tmp_path):
    source = written(tmp_path / "own.jsonl", [{"aufgabe": "1 + 1?", "loesung": "2", "answer": "wrong"}])
    (problem,) = load_benchmark(Benchmark(name="own", source=source, problem="aufgabe", answer="loesung"), seed=0)
    assert (problem.problem, problem.answer) == ("1 + 1?", "2")


def test_names_are_looked_up_and_a_directory_stands_in_for_the_hub(tmp_path):
    with pytest.raises(UserError, match=r"no benchmark 'aime1999'; known are aime2024, "):
        located(settings("aime1999"))
    with pytest.raises(UserError, match=r"benchmark aime2025: no file of it in .*; looked for aime2025 or aime25 or"):
        located(settings("aime2025", bench_dir=str(tmp_path)))
    with pytest.raises(UserError, match="nowhere is no directory"):
        located(settings("aime2025", bench_dir="nowhere"))
    own, known = written(tmp_path / "own.jsonl", rows(2)), written(tmp_path / "aime25.jsonl", rows(30))
    found = located(settings("aime2025,own,there=quickstart-test:3", bench_dir=str(tmp_path)))
    assert [one.source for one in found] == [known, own, "quickstart-test:3"]


def test_instructions_are_those_of_known_benchmarks_unless_given(tmp_path):
    benchmarks = (
        Benchmark(name="aime2025"),
        Benchmark(name="gsm8k", prompt="Q: {problem}"),
        Benchmark(name="own", source="x.jsonl"),
    )
    for on, first in ((True, BOXED), (False, "")):
        found = located(EvaluateRecipe(benchmarks=benchmarks, instructions=on))
        assert [one.prompt for one in found] == [first, "Q: {problem}", ""]


@pytest.mark.parametrize("text", ["", "a,,b", "a/b", "a b=x", "x,x=y"])
def test_bad_lists_of_benchmarks_are_refused(text):
    with pytest.raises(UserError, match="--bench: "):
        parse_benchmarks(text)
