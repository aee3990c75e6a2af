"""Curation as a stream: the same bytes whatever the batches, workers and kills; hashes and ids without the texts."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ulorl.curate.contamination import BenchmarkIndex, contamination
from ulorl.curate.duplicates import duplicates, group_rows
from ulorl.curate.ids import UniqueIds
from ulorl.curate.signatures import SignatureFiles, signatures
from ulorl.curate.spill import RowFile, TextFile, write_parquet
from ulorl.curate.stage import curate, read_benchmarks
from ulorl.curate.workers import ordered_map
from ulorl.errors import UserError
from ulorl.problem import DROPPED_SCHEMA, PROBLEM_SCHEMA, BadRow, Problem, problem_id
from ulorl.recipe import CURATE_STEPS, CurateRecipe, DataRecipe, FieldNames, Recipe
from ulorl.rows import problem_table, read_problems, stream_problems

OUTPUTS = ("problems.parquet", "dropped.parquet", "funnel.json", "card.md")
WORDS = [a + b + c for a in ("boat", "crate", "lamp", "river") for b, c in (("man", "er"), ("top", "s"), ("land", ""))]


def generated(rows: int, seed: int = 0) -> list[dict[str, Any]]:
    """Problems with exact and near copies, conflicting references and rows that cannot be read."""
    draw = random.Random(seed)
    made: list[dict[str, Any]] = []
    for number in range(rows):
        kind = draw.random()
        if made and kind < 0.3:
            old = draw.choice(made)
            text = str(old["problem"])
            text = text.replace("Say", "Tell us") if kind < 0.1 else text.replace("  ", " ") + "\n"
            made.append({"id": number, "problem": text, "answer": "9" if kind < 0.05 else old["answer"], "n": number})
        else:
            words = " ".join(draw.choices(WORDS, k=12))
            text = f"Ann puts {draw.randrange(9, 999)}  {words} beside {draw.randrange(9, 999)} others. Say how many."
            made.append(
                {"id": number, "problem": None if kind > 0.98 else text, "answer": str(number % 97), "n": number}
            )
    return made


def recipe_for(directory: Path, rows: int = 400, **settings: Any) -> Recipe:
    directory.mkdir(exist_ok=True)
    made = generated(rows)
    source, bench = directory / "rows.jsonl", directory / "bench.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in made))
    bench.write_text(json.dumps(next(row for row in made if row["problem"])) + "\n")
    chosen: dict[str, Any] = {"steps": CURATE_STEPS[:6], "benchmarks": (str(bench),)} | settings
    return Recipe(data=DataRecipe(inputs=(str(source),)), curate=CurateRecipe(**chosen))


def bytes_of(directory: Path) -> list[bytes]:
    return [(directory / name).read_bytes() for name in OUTPUTS]


def test_batches_and_workers_do_not_show(tmp_path: Path) -> None:
    one = curate(recipe_for(tmp_path / "in", workers=1), tmp_path / "one", engine_factory=None)
    expected = bytes_of(one)
    small = curate(recipe_for(tmp_path / "in", workers=1), tmp_path / "small", engine_factory=None, batch_rows=7)
    many = curate(recipe_for(tmp_path / "in", workers=2), tmp_path / "many", engine_factory=None, batch_rows=40)
    assert bytes_of(small) == expected
    assert bytes_of(many) == expected
    kept, lost = (pq.read_table(one / name) for name in OUTPUTS[:2])
    assert len(kept) + len(lost) == 400
    steps = lost.column("step").to_pylist()
    assert steps == sorted(steps, key=[entry["step"] for entry in json.loads(expected[2])["steps"]].index)
    ids = [*kept.column("id").to_pylist(), *lost.column("id").to_pylist()]
    assert len(set(ids)) == len(ids)
    assert set(lost.column("other_id").drop_null().to_pylist()) <= {*ids, "0", *map(str, range(400))}


def test_both_files_have_their_columns_and_the_input_s_own_values(tmp_path: Path) -> None:
    out = curate(recipe_for(tmp_path / "in"), tmp_path / "out", engine_factory=None)
    assert pq.read_schema(out / "problems.parquet").equals(PROBLEM_SCHEMA)
    assert pq.read_schema(out / "dropped.parquet").equals(DROPPED_SCHEMA)
    for row in pq.read_table(out / "problems.parquet").to_pylist():
        assert json.loads(row["extra"]) == {"n": int(row["source_id"])}
        assert row["kind"]
    later = {"duplicates", "contamination"}
    assert all(row["kind"] for row in pq.read_table(out / "dropped.parquet").to_pylist() if row["step"] in later)


def _killed(recipe: Recipe, output: Path) -> None:
    def kill(step: str, done: int, total: int) -> None:
        if step == "duplicates and leaks":
            os.kill(os.getpid(), signal.SIGKILL)

    curate(recipe, output, engine_factory=None, progress=kill, batch_rows=50)


def test_killed_work_starts_again_cleanly(tmp_path: Path) -> None:
    recipe = recipe_for(tmp_path / "in", workers=1)
    process = multiprocessing.get_context("spawn").Process(target=_killed, args=(recipe, tmp_path / "out"))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert (tmp_path / "out.partial" / "spill").is_dir()
    resumed = curate(recipe, tmp_path / "out", engine_factory=None)
    assert bytes_of(resumed) == bytes_of(curate(recipe, tmp_path / "whole", engine_factory=None))
    assert not (resumed / "spill").exists()


def test_benchmarks_are_read_whole_or_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "test.jsonl").write_text(json.dumps({"problem": f"{name}: {ITEM}", "answer": "576"}) + "\n")
    sources = [str(tmp_path / name / "test.jsonl") for name in ("a", "b")]
    assert list(read_benchmarks(sources, 0)) == sources, "two files of one name are two benchmarks"
    assert list(read_benchmarks(sources[:1], 0)) == ["test.jsonl"]
    with Path(sources[0]).open("a") as file:
        file.write('{"problem": null, "answer": "1"}\n')
    with pytest.raises(UserError, match=r"1 of 2 rows are no benchmark items; the first, line 2: problem: null"):
        read_benchmarks(sources, 0)


def test_nothing_is_left_of_work_that_failed(tmp_path: Path) -> None:
    recipe = recipe_for(tmp_path / "in", rows=5)
    Path(recipe.data.inputs[0]).write_text(
        json.dumps({"problem": "Let f(x) = 2x.\n(1) Find f(1).\n(2) Find f(2).", "answer": "4"}) + "\n"
    )
    with pytest.raises(UserError, match="no row is left"):
        curate(recipe, tmp_path / "out", engine_factory=None)
    assert not (tmp_path / "out.partial" / "spill").exists()


def test_unique_ids_in_any_batches() -> None:
    draw = random.Random(1)
    ids = [problem_id(str(draw.randrange(300))) for _ in range(1000)] + ["a", "a", "a-2", "a-2", "b-2", "b", "b"]
    whole = UniqueIds().unique(ids)
    assert len(set(whole)) == len(ids)
    assert whole[-7:] == ["a", "a-2", "a-2-2", "a-2-3", "b-2", "b", "b-3"]
    handed = UniqueIds()
    assert [one for start in range(0, len(ids), 13) for one in handed.unique(ids[start : start + 13])] == whole


def test_parquet_bytes_do_not_depend_on_batches(tmp_path: Path) -> None:
    rows = [Problem(str(number), "x" * (number % 50), "1", extra={"n": number}) for number in range(20_000)]
    table = problem_table(rows)
    write_parquet(tmp_path / "one", PROBLEM_SCHEMA, [table])
    pieces = [table.slice(start, 333) for start in range(0, len(table), 333)]
    assert write_parquet(tmp_path / "many", PROBLEM_SCHEMA, pieces) == len(rows)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "many").read_bytes()
    assert write_parquet(tmp_path / "none", PROBLEM_SCHEMA, []) == 0
    assert pq.read_table(tmp_path / "none").schema.equals(PROBLEM_SCHEMA)


def test_row_groups_end_where_texts_are_large(tmp_path: Path) -> None:
    rows = [Problem(str(number), "y" * (30 << 20), "1") for number in range(5)]
    write_parquet(tmp_path / "large", PROBLEM_SCHEMA, (problem_table([row]) for row in rows))
    parts = pq.ParquetFile(tmp_path / "large").metadata
    assert [parts.row_group(at).num_rows for at in range(parts.num_row_groups)] == [3, 2]


def test_files_give_back_what_they_got(tmp_path: Path) -> None:
    rows = [Problem(str(number), f"Text {number} \u6c42 {'z' * number}", str(number)) for number in range(50)]
    file, texts = RowFile(tmp_path / "rows", PROBLEM_SCHEMA), TextFile(tmp_path / "texts")
    for start in range(0, 50, 8):
        file.append(problem_table(rows[start : start + 8]))
        texts.append(problem_table(rows[start : start + 8]))
    file.close()
    texts.close()
    assert pa.concat_tables(file.tables()).equals(problem_table(rows))
    assert pa.concat_tables(file.tables()).equals(problem_table(rows)), "may be read again"
    with texts:
        assert [texts.text(row) for row in (49, 0, 17)] == [
            (rows[row].problem, rows[row].answer) for row in (49, 0, 17)
        ]


def test_signatures_in_files_decide_as_in_memory(tmp_path: Path) -> None:
    rows = [
        Problem(str(row["id"]), row["problem"], row["answer"]) for row in generated(300) if row["problem"] is not None
    ]
    files = SignatureFiles(tmp_path / "signatures")
    for start in range(0, len(rows), 41):
        files.append(signatures(rows[start : start + 41]))

    class Texts:
        def text(self, row: int) -> tuple[str, str]:
            return rows[row].problem, rows[row].answer

    found = group_rows(files.open(), Texts(), CurateRecipe())
    expected = group_rows(signatures(rows), Texts(), CurateRecipe())
    for name in ("leader", "state", "multiplicity", "near", "evidence"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    assert set(expected.state.tolist()) == {0, 1, 2, 3}, "rows of every fate"


def test_no_chains() -> None:
    """Nobody is dropped for a row that it was not itself compared with and found alike."""
    letters = [a + b + "ndo" for a in "bcdfghjklm" for b in "aeiou"]
    texts = [f"{' '.join(letters[at : at + 20])} holds 731 and 946 items, how many?" for at in range(0, 28, 4)]
    rows = [Problem(str(at), text, "1677") for at, text in enumerate(texts)]
    result = duplicates(rows, CurateRecipe())
    kept = {one.id: one for one in result.kept}
    assert len(kept) > 1, "the ends of the chain are too far apart"
    for lost in result.dropped:
        assert lost.other_id in kept
        pair = duplicates([kept[lost.other_id], lost.problem], CurateRecipe())
        assert len(pair.dropped) == 1


def _double(number: int) -> int:
    return 2 * number


def _make(call: Callable[[int], int]) -> Callable[[int], int]:
    return call


def _die(number: int) -> int:
    os._exit(3)


def test_results_come_in_order_and_a_dead_worker_is_told() -> None:
    assert list(ordered_map(partial(_make, _double), range(40), 2)) == [2 * number for number in range(40)]
    assert list(ordered_map(partial(_make, _double), range(2), 8)) == [0, 2]
    with pytest.raises(UserError, match=r"worker process ended early.*curate\.workers=1"):
        list(ordered_map(partial(_make, _die), range(40), 2))


def test_rows_are_streamed_and_limited_as_read(tmp_path: Path) -> None:
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in generated(200)))
    for limit in (0, 30, 1000):
        rows = list(stream_problems([str(source)], FieldNames(), limit, 5))
        problems, bad = read_problems([str(source)], FieldNames(), limit, 5)
        assert [row for row in rows if isinstance(row, Problem)] == problems
        assert [row for row in rows if isinstance(row, BadRow)] == bad
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(UserError, match="holds no rows"):
        list(stream_problems([str(tmp_path / "empty.jsonl")], FieldNames()))


ITEM = (
    "A lighthouse keeper named Oswin lights 17 lanterns each evening and 23 lanterns each stormy night. In a month "
    "with 11 stormy nights and 19 calm evenings, how many lanterns does Oswin light altogether?"
)


def background() -> list[Problem]:
    draw = random.Random(3)
    return [
        Problem(f"o{number}", " ".join(draw.choices(WORDS, k=12)) + f" {draw.randrange(5000)}?", str(number))
        for number in range(300)
    ]


def test_the_same_problem_and_the_same_template_are_told_apart() -> None:
    bench = {"bench": [*background(), Problem("item", ITEM, "576", source_id="bench-7")]}
    copy = ITEM.replace("A lighthouse keeper named Oswin lights", "Oswin keeps a lighthouse and lights")
    other_data = ITEM.replace("17", "18").replace("19 calm", "14 calm")
    other_question = ITEM.replace(
        "how many lanterns does Oswin light altogether", "how many evenings were there in all"
    )
    rows = [
        Problem("copy", copy, "576"),
        Problem("data", other_data, "505"),
        Problem("question", other_question, "30"),
        Problem("wrong reference", ITEM.replace("month with", "month having"), "575"),
        Problem("none", "How many lanterns are 17 and 23 lanterns?", "40"),
    ]
    marked = contamination(rows, CurateRecipe(), bench)
    assert [(one.problem.id, one.reason, one.other_id) for one in marked.dropped] == [
        ("copy", "benchmark_leak", "bench-7"),
        ("wrong reference", "benchmark_leak", "bench-7"),
    ]
    assert all("word Jaccard" in one.detail and "number Jaccard" in one.detail for one in marked.dropped)
    assert {one.id: (one.template or "").split(":")[0] for one in marked.kept} == {
        "data": "bench-7 of bench",
        "question": "bench-7 of bench",
        "none": "",
    }
    strict = contamination(rows, CurateRecipe(drop_templates=True), bench)
    assert [(one.problem.id, one.reason) for one in strict.dropped][1:3] == [
        ("data", "benchmark_template"),
        ("question", "benchmark_template"),
    ]


def test_an_index_in_parts_finds_the_same_whatever_the_order_of_words() -> None:
    index = BenchmarkIndex({"bench": [*background(), Problem("item", ITEM, "576")]}, 0.4, 0.6)
    found = index.find(Problem("row", ITEM.replace("named Oswin ", ""), "576"))
    assert found is not None
    assert (found.benchmark, found.item.id, found.same_problem) == ("bench", "item", True)
    assert BenchmarkIndex({}, 0.4, 0.6).find(Problem("row", ITEM, "576")) is None
