"""Benchmarks: whole, of the right size, and the real files where they are."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ulorl.errors import UserError
from ulorl.evaluate.benchmarks import KNOWN, benchmark_named, load_benchmark
from ulorl.recipe import Benchmark, VerifyRecipe
from ulorl.verify import Verifier

SHARED = Path(os.environ.get("ULORL_SHARED", Path(__file__).parents[2] / "shared")) / "data"
FILES = {
    "aime2024": "aime24",
    "aime2025": "aime25",
    "amc23": "amc23",
    "beyondaime": "beyondaime",
    "gsm8k": "gsm8k_test",
    "hmmt_feb_2025": "hmmt_feb_2025",
    "math500": "math500",
    "minerva_math": "minerva_math",
}


def written(path: Path, rows: list[dict]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def rows(count: int) -> list[dict]:
    return [{"problem": f"What is {i} + 1?", "answer": str(i + 1)} for i in range(count)]


@pytest.mark.parametrize("name", KNOWN)
def test_real_files_have_the_known_size_and_usable_references(name):
    path = SHARED / "benchmarks" / f"{FILES[name]}.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is not here; set ULORL_SHARED to the directory that holds data/")
    problems = load_benchmark(Benchmark(name=name, source=str(path)), seed=0)
    assert len(problems) == KNOWN[name].items
    verifier = Verifier(VerifyRecipe())
    unusable = [problem.answer for problem in problems if verifier.check_reference(problem.answer)]
    assert len(unusable) <= 0.02 * len(problems), unusable


def test_a_known_name_with_another_size_is_refused(tmp_path):
    source = written(tmp_path / "aime.jsonl", rows(29))
    with pytest.raises(UserError, match=r"benchmark aime2025: .*aime.jsonl has 29 problems, not 30"):
        load_benchmark(Benchmark(name="aime2025", source=source), seed=0)
    assert len(load_benchmark(Benchmark(name="mine", source=source), seed=0)) == 29


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


def test_names_are_looked_up():
    assert benchmark_named("aime2025", limit=5) == Benchmark(name="aime2025", source="hub:math-ai/aime25@test", limit=5)
    with pytest.raises(UserError, match="no benchmark 'aime1999'; known are aime2024, "):
        benchmark_named("aime1999")
