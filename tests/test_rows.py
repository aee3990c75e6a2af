"""Reading rows: every format, every spelling of the columns, every kind of dirt; nothing is lost."""

from __future__ import annotations

import csv
import gzip
import json
import os
import sys
import types
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ulorl.columns import BadValueError, to_problem
from ulorl.errors import UserError
from ulorl.files import write_table
from ulorl.problem import DROPPED_SCHEMA, PROBLEM_SCHEMA, BadRow, Dropped, Problem, problem_id
from ulorl.recipe import FieldNames
from ulorl.rows import (
    dropped_table,
    problem_table,
    read_dropped_table,
    read_problem_table,
    read_problems,
    read_rows,
)

SHARED = Path(os.environ.get("ULORL_SHARED", Path(__file__).parents[2] / "shared")) / "data"
PLAIN = FieldNames()
ROWS = [
    {"id": "a-1", "problem": "What is 1 + 1?", "answer": "2", "level": "easy"},
    {"id": "a-2", "problem": 'Löse $x^2 = 4$,\n"beide" Lösungen; 求', "answer": "-2, 2", "level": "hard"},
    {"id": "a-3", "problem": "What is 3 + 1?", "answer": "4", "level": "easy"},
]


def jsonl(rows: list[Any]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def write_csv(path: Path, delimiter: str) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(ROWS[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(ROWS)


def write_as(path: Path, kind: str) -> None:
    columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    if kind == "jsonl":
        path.write_bytes(jsonl(ROWS))
    elif kind == "json":
        path.write_text(json.dumps(ROWS, indent=1))
    elif kind == "columns":
        path.write_text(json.dumps(columns))
    elif kind == "pandas":
        path.write_text(json.dumps({name: dict(enumerate(cells)) for name, cells in columns.items()}))
    elif kind == "data":
        path.write_text(json.dumps({"version": 1, "data": ROWS}))
    elif kind == "parquet":
        pq.write_table(pa.table(columns), path)
    else:
        write_csv(path, "\t" if kind == "tsv" else ",")


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize(
    ("kind", "extension"),
    [
        ("jsonl", ".jsonl"),
        ("jsonl", ".json"),
        ("json", ".json"),
        ("columns", ".json"),
        ("pandas", ".json"),
        ("data", ".json"),
        ("csv", ".csv"),
        ("tsv", ".tsv"),
        ("parquet", ".parquet"),
    ],
)
def test_every_format_by_name_and_by_content(
    tmp_path: Path, kind: str, extension: str, zipped: bool, named: bool
) -> None:
    path = tmp_path / ("rows" + (extension if named else ""))
    write_as(path, kind)
    if zipped:
        packed = path.with_name(path.name + (".gz" if named else ""))
        packed.write_bytes(gzip.compress(path.read_bytes()))
        path = packed
    problems, bad = read_problems([str(path)], PLAIN)
    assert bad == []
    assert [(row.problem, row.answer, row.source_id, row.extra, row.source) for row in problems] == [
        (row["problem"], row["answer"], row["id"], {"level": row["level"]}, path.name) for row in ROWS
    ]
    assert [row.id for row in problems] == [problem_id(row["problem"]) for row in ROWS]


def test_a_directory_is_its_files_in_order(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_bytes(jsonl(ROWS[:1]))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(jsonl(ROWS[1:])))
    (tmp_path / "README.md").write_text("no rows")
    (tmp_path / ".hidden.jsonl").write_text("{")
    problems, bad = read_problems([str(tmp_path)], PLAIN)
    assert [(row.source, row.source_id) for row in problems] == [
        ("a.jsonl.gz", "a-2"),
        ("a.jsonl.gz", "a-3"),
        ("b.jsonl", "a-1"),
    ]
    assert bad == []


def read_bytes(path: Path, data: bytes) -> tuple[list[Problem], list[BadRow]]:
    path.write_bytes(data)
    return read_problems([str(path)], PLAIN)


GOOD = b'{"problem": "p", "answer": "1"}\n'


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"problem": "p", "answer": "1"', "not JSON"),
        (b"[1, 2]", "a JSON list where an object"),
        (b'"text"', "a JSON str where an object"),
        (b'{"problem": "p"}', "no column for the answer"),
        (b'{"answer": "p"}', "no column for the problem"),
        (b'{"problem": null, "answer": "1"}', "problem: null"),
        (b'{"problem": "p", "answer": NaN}', "answer: null"),
        (b'{"problem": "  \\n", "answer": "1"}', "problem: empty"),
        (b'{"problem": "p", "answer": ""}', "answer: empty"),
        (b'{"problem": {"a": 1}, "answer": "1"}', "problem: a dict where text"),
        (b'{"problem": "p", "answer": ["1", "2"]}', "answer: a list where text"),
        (b'{"problem": [], "answer": "1"}', "without a chat message"),
        (b'{"problem": "p\\u0000", "answer": "1"}', "NUL"),
        (b'{"problem": "p", "answer": "\\ud800"}', "not Unicode text"),
        (b'{"problem": "p\xff", "answer": "1"}', "not UTF-8 (byte 15: 0xff)"),
        (b"[" * 100_000, "not JSON|nested too deeply"),
        (b'{"problem": "p", "answer": ' + b"9" * 5000 + b"}", "not readable as JSON"),
        (b'{"problem": "p", "answer": 1e999}', "inf is no answer"),
    ],
)
def test_a_malformed_line_is_set_aside_with_its_place(tmp_path: Path, line: bytes, reason: str) -> None:
    problems, bad = read_bytes(tmp_path / "x.jsonl", GOOD + b"\n" + line + b"\n" + GOOD)
    assert len(problems) == 2
    assert [(row.source, row.line) for row in bad] == [("x.jsonl", 3)]
    assert any(part in bad[0].reason for part in reason.split("|")), bad[0].reason
    assert len(bad[0].raw) <= 200
    bad[0].raw.encode()


def test_a_truncated_gzip_gives_all_whole_lines(tmp_path: Path) -> None:
    rows = [{"problem": f"problem {number} {os.urandom(20).hex()}", "answer": number} for number in range(3000)]
    packed = gzip.compress(jsonl(rows))
    whole = len(packed) // 2
    problems, bad = read_bytes(tmp_path / "x.jsonl.gz", packed[:whole])
    assert 1000 < len(problems) < 2000
    assert [row.problem for row in problems] == [row["problem"] for row in rows[: len(problems)]]
    assert [row.line for row in bad] == [len(problems) + 1]
    assert "ends early" in bad[0].reason
    damaged = packed[:whole] + b"\0" * 50 + packed[whole + 50 :]
    problems, bad = read_bytes(tmp_path / "y.jsonl.gz", damaged)
    assert len(problems) > 1000
    assert "damaged" in bad[-1].reason
    wrong_sum = packed[:-8] + b"\0" * 8
    problems, bad = read_bytes(tmp_path / "z.jsonl.gz", wrong_sum)
    assert len(problems) == 3000
    assert len(bad) == 1


def test_gzip_members_joined_together(tmp_path: Path) -> None:
    problems, bad = read_bytes(tmp_path / "x.jsonl.gz", gzip.compress(GOOD) + gzip.compress(GOOD) + b"\0" * 8)
    assert (len(problems), bad) == (2, [])


def test_long_lines_blank_lines_windows_ends_and_byte_order_mark(tmp_path: Path) -> None:
    long = {"problem": "x" * 5_000_000, "answer": "1"}
    data = b"\xef\xbb\xbf" + GOOD.strip() + b"\r\n\r\n" + jsonl([long]) + GOOD.strip()
    problems, bad = read_bytes(tmp_path / "x.jsonl", data)
    assert bad == []
    assert [len(row.problem) for row in problems] == [1, 5_000_000, 1]


def test_csv_dirt(tmp_path: Path) -> None:
    data = (
        b'problem,answer\nok,1\nshort\nlong,1,2\n"two\nlines",3\nbad\xff,4\nnul\x00,5\n'
        b'"a"b,6\nok,7\n,8\n"never closed,9\n'
    )
    problems, bad = read_bytes(tmp_path / "x.csv", data)
    assert [row.problem for row in problems] == ["ok", "two\nlines", "ok"]
    assert [(row.line, row.reason.split(" (")[0]) for row in bad] == [
        (3, "1 cells where the header has 2"),
        (4, "3 cells where the header has 2"),
        (7, "problem: holds bytes or escapes that are not Unicode text"),
        (8, "problem: holds a NUL byte"),
        (9, "not CSV"),
        (11, "problem: empty"),
        (12, "not CSV"),
    ]
    with pytest.raises(UserError, match="'answer' twice"):
        read_bytes(tmp_path / "y.csv", b"problem,answer,answer\n1,2,3\n")


@pytest.mark.parametrize(
    ("row", "problem", "answer"),
    [
        ({"Question": "q", "ANSWER": "1"}, "q", "1"),
        ({"prompt": "q", "ground_truth": "1", "response": "r"}, "q", "1"),
        ({"query": "q", "gt": 5}, "q", "5"),
        ({"input": "q", "output": "r"}, "q", "r"),
        ({"problem": "q", "solution": "long", "answer": "1"}, "q", "1"),
        ({"problem": "q", "solution": "long"}, "q", "long"),
        ({"question": "q", "final_answer": ["9"]}, "q", "9"),
        ({"problem": "q", "answer": 10**40 + 1}, "q", "1" + "0" * 39 + "1"),
        ({"problem": "q", "answer": 0.1}, "q", "0.1"),
        ({"problem": "q", "answer": 1e-7}, "q", "1e-07"),
        ({"problem": "q", "answer": True}, "q", "True"),
        ({"problem": "q", "answer": Decimal("1.50")}, "q", "1.50"),
        (
            {
                "prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}],
                "reward_model": {"style": "rule", "ground_truth": "34"},
                "extra_info": {"index": 7},
            },
            "q",
            "34",
        ),
        (
            {"prompt": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "r"}], "target": "1"},
            "q",
            "1",
        ),
    ],
)
def test_common_spellings_and_number_answers(row: dict[str, Any], problem: str, answer: str) -> None:
    found = to_problem(row, PLAIN, "x")
    assert (found.problem, found.answer) == (problem, answer)


def test_named_columns_win_and_go_into_objects() -> None:
    row = {"problem": "wrong", "Text": "q", "meta": {"Key": {"gold": 3}}, "answer": "wrong", "n": 5}
    fields = FieldNames(problem="text", answer="meta.key.gold", id="n")
    found = to_problem(row, fields, "x")
    assert (found.problem, found.answer, found.source_id) == ("q", "3", "5")
    assert found.extra == {"problem": "wrong", "answer": "wrong", "meta": {"Key": {"gold": 3}}}
    with pytest.raises(BadValueError, match="no column 'nope'"):
        to_problem(row, FieldNames(answer="nope"), "x")


def test_known_columns_are_kept_when_valid_and_the_rest_is_extra() -> None:
    row = {
        "problem": "q",
        "answer": "1",
        "task": "logic",
        "kind": "proof",
        "pass_rate": 0.25,
        "level": [1, None],
    }
    found = to_problem(row, PLAIN, "x")
    assert (found.task, found.kind, found.pass_rate, found.extra) == (
        "logic",
        "proof",
        0.25,
        {"level": [1, None]},
    )
    row |= {"task": 3, "kind": "", "pass_rate": 25, "bytes": b"\xff", "nan": float("nan")}
    found = to_problem(row, PLAIN, "x")
    assert (found.task, found.kind, found.pass_rate) == ("math", None, None)
    assert found.extra == {
        "task": 3,
        "kind": "",
        "pass_rate": 25,
        "level": [1, None],
        "bytes": "/w==",
        "nan": None,
    }


def test_columns_that_do_not_fit_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(jsonl([{"frage": "1", "answer": "2"}] * 3))
    with pytest.raises(UserError, match=r"problem; the columns are: frage, answer; name one in data\.fields\.problem"):
        read_problems([str(path)], PLAIN)
    assert len(read_problems([str(path)], FieldNames(problem="frage"))[0]) == 3
    with pytest.raises(UserError, match=r"no column 'fragen' \(data\.fields\.problem\); the columns are: frage"):
        read_problems([str(path)], FieldNames(problem="fragen"))


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("x.jsonl", b"", "holds no rows"),
        ("x.json", b"[]", "holds no rows"),
        ("x.csv", b"problem,answer\n", "holds no rows"),
        ("x.jsonl", b"{\n{\n", "none of the 2 rows is usable; the first, x.jsonl:1: not JSON"),
        ("x.json", b"{", "none of the 1 rows is usable; the first, x.json:1: not JSON"),
        ("x.json", b'{"problem": ["a"], "answer": ["1", "2"]}', "columns of unequal length"),
        ("x.json", b"3", "neither an array nor an object"),
        ("x.parquet", b"PAR1 not really", "not readable as Parquet"),
        ("x.dat", b"words and words", "format not recognised"),
    ],
)
def test_an_input_without_a_usable_row_is_an_error(tmp_path: Path, name: str, data: bytes, expected: str) -> None:
    with pytest.raises(UserError) as caught:
        read_bytes(tmp_path / name, data)
    assert expected in str(caught.value)


def test_missing_inputs_are_named(tmp_path: Path) -> None:
    for source, expected in (
        (str(tmp_path / "gone.jsonl"), "no such file or directory"),
        (str(tmp_path), "holds no file with rows"),
        ("quickstart:many", "must come the number of problems"),
        ("hub:", "the name of the data set is missing"),
    ):
        with pytest.raises(UserError, match=expected):
            read_problems([source], PLAIN)


def test_limit_draws_with_the_seed_and_keeps_the_order(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(jsonl([{"problem": f"p{number}", "answer": number} for number in range(100)]))
    drawn = [[int(row.answer) for row in read_problems([str(path)], PLAIN, 10, seed)[0]] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert all(numbers == sorted(set(numbers)) and len(numbers) == 10 for numbers in drawn)
    assert len(read_problems([str(path)], PLAIN, limit=1000)[0]) == 100


def test_generated_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    def generate_problems(split: str, count: int, seed: int) -> list[dict[str, Any]]:
        return [{"id": f"{split}-{seed}-{n}", "problem": f"p{n}", "answer": n, "family": "f"} for n in range(count)]

    module = types.SimpleNamespace(generate_problems=generate_problems)
    monkeypatch.setitem(sys.modules, "ulorl.quickstart.problems", module)
    problems, _ = read_problems(["quickstart:3", "quickstart-test:2"], PLAIN, seed=5)
    assert [row.source_id for row in problems] == [
        "train-5-0",
        "train-5-1",
        "train-5-2",
        "test-5-0",
        "test-5-1",
    ]
    assert problems[0].source == "quickstart:3"
    assert problems[0].extra == {"family": "f"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("hub:owner/name", ("owner/name", None, "train")),
        ("hub:owner/name@test", ("owner/name", None, "test")),
        ("hub:owner/name/main@test", ("owner/name", "main", "test")),
        ("hub:./a/b", ("./a/b", None, "train")),
    ],
)
def test_hub_names(monkeypatch: pytest.MonkeyPatch, source: str, expected: tuple[Any, ...]) -> None:
    calls = []

    def load_dataset(name: str, config: str | None, split: str) -> list[dict[str, str]]:
        calls.append((name, config, split))
        return [{"question": "q", "answer": "1"}]

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    problems, _ = read_problems([source], PLAIN)
    assert calls == [expected]
    assert problems[0].source == source


def test_hub_data_set_from_a_local_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("datasets")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "train.jsonl").write_bytes(jsonl(ROWS))
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "cache"))
    problems, bad = read_problems([f"hub:{tmp_path / 'set'}"], PLAIN)
    assert ([row.problem for row in problems], bad) == ([row["problem"] for row in ROWS], [])
    with pytest.raises(UserError, match=r"cannot be loaded: .*check name, config and split"):
        read_problems([f"hub:{tmp_path / 'set'}@test"], PLAIN)


FULL = Problem(
    id="0" * 16,
    problem="求 p\n",
    answer="\\frac{1}{2}",
    source="x.jsonl",
    source_id="7",
    task="logic",
    kind="proof",
    pass_rate=0.25,
    multiplicity=3,
    original_problem="P",
    original_answer="A",
    extra={"b": [1, 2.5, None, {"c": "\ud800"}], "a": "ü"},
)


def test_problem_tables_round_trip(tmp_path: Path) -> None:
    problems = [FULL, Problem("1", "p", "a")]
    table = problem_table(problems)
    assert table.schema == PROBLEM_SCHEMA
    assert table["extra"][0].as_py() == '{"a":"\\u00fc","b":[1,2.5,null,{"c":"\\ud800"}]}'
    write_table(tmp_path / "problems.parquet", table)
    assert read_problem_table(tmp_path / "problems.parquet") == problems
    assert list(read_rows(str(tmp_path), PLAIN)) == problems, "a stage directory stands for its problems"
    assert problem_table([]).schema == PROBLEM_SCHEMA


def test_dropped_tables_round_trip_and_hold_bad_rows(tmp_path: Path) -> None:
    bad = BadRow("x.jsonl", 3, "not JSON", "{").dropped()
    assert (bad.step, bad.reason, bad.detail) == ("load", "malformed_row", "x.jsonl:3: not JSON")
    assert bad.problem.id != BadRow("x.jsonl", 4, "not JSON", "{").dropped().problem.id
    dropped = [bad, Dropped(FULL, "duplicates", "same_text", "same text", other_id="1")]
    table = dropped_table(dropped)
    assert table.schema == DROPPED_SCHEMA
    write_table(tmp_path / "dropped.parquet", table)
    assert read_dropped_table(tmp_path / "dropped.parquet") == dropped


def test_other_tables_are_refused(tmp_path: Path) -> None:
    write_table(tmp_path / "x.parquet", pa.table({"id": ["1"]}))
    with pytest.raises(UserError, match="it lacks problem, answer"):
        read_problem_table(tmp_path / "x.parquet")
    with pytest.raises(UserError, match="not readable as Parquet"):
        read_problem_table(tmp_path / "gone.parquet")


def real(name: str) -> str:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{path} is not here; set ULORL_SHARED to the directory that holds data/")
    return str(path)


@pytest.mark.parametrize(
    ("name", "good", "bad_lines"),
    [
        ("train/gsm8k_train.jsonl.gz", 7473, []),
        ("train/dsr_sub_1209.jsonl", 1208, [266]),
        ("train/math_train.jsonl.gz", 7498, [5342, 5344]),
        ("benchmarks", 3326, []),
    ],
)
def test_real_data_sets(name: str, good: int, bad_lines: list[int]) -> None:
    problems, bad = read_problems([real(name)], PLAIN)
    assert len(problems) == good
    assert [(row.line, row.reason) for row in bad] == [(line, "answer: empty") for line in bad_lines]
    assert all(row.source_id for row in problems)
