"""Bad input: a clear message, the good rows go on, nothing is lost; and what comes out can be loaded elsewhere."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ulorl.curate.funnel import check_conservation, funnel_page
from ulorl.curate.licences import stated_licence
from ulorl.curate.stage import curate
from ulorl.errors import UserError
from ulorl.recipe import CURATE_STEPS, CurateRecipe, DataRecipe, Recipe

GOOD = [
    {"id": f"g{n}", "problem": f"What is {n} plus {7 * n + 3}, times {n + 11}?", "answer": str((8 * n + 3) * (n + 11))}
    for n in range(6)
]


def lines(*rows: Any) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def clean(tmp_path: Path, *sources: str | Path, out: str = "out") -> Path:
    inputs = tuple(str(source) for source in sources)
    recipe = Recipe(data=DataRecipe(inputs=inputs), curate=CurateRecipe(steps=CURATE_STEPS[:-1]))
    return curate(recipe, tmp_path / out, engine_factory=None)


def result(out: Path) -> tuple[int, Counter[str], list[str], dict[str, Any]]:
    """(rows kept, dropped by reason, details of what could not be read, funnel)."""
    funnel = json.loads((out / "funnel.json").read_text())
    kept = pq.read_table(out / "problems.parquet").num_rows
    dropped = pq.read_table(out / "dropped.parquet").to_pylist()
    check_conservation(funnel, kept, len(dropped))
    unread = [row["detail"] for row in dropped if row["step"] == "load"]
    return kept, Counter(row["reason"] for row in dropped), unread, funnel


CSV = b"problem,answer\n"
UMLAUT = "How large is the sum of 31 and 45 for K\xe4se?"


@pytest.mark.parametrize(
    ("name", "data", "kept", "told"),
    [
        (
            "nulls.jsonl",
            lines({"problem": None, "answer": "1"}, {"problem": "What is 3+9?", "answer": None}, None, GOOD[0]),
            1,
            ["problem: null", "answer: null", "NoneType where an object"],
        ),
        (
            "mixed.jsonl",
            lines(*GOOD[:2])
            + json.dumps({"problem": UMLAUT, "answer": "76"}, ensure_ascii=False).encode("latin-1")
            + b"\n"
            + json.dumps({"problem": UMLAUT, "answer": "76"}, ensure_ascii=False).encode()
            + b"\n",
            3,
            ["not UTF-8"],
        ),
        ("utf16.jsonl", lines(*GOOD).decode().encode("utf-16"), 6, []),
        ("utf16.csv", "problem,answer\nWhat is 5+6?,11\n".encode("utf-16-be").join([b"\xfe\xff", b""]), 1, []),
        ("mixed.csv", CSV + b"What is 2+2?,4\n" + f"{UMLAUT},76\n".encode("latin-1"), 1, ["not Unicode text"]),
        ("nul.csv", CSV + b"What is 2+2?,4\nWhat \0is 2+3?,5\nWhat is 9+3?,12\n", 2, ["NUL"]),
        (
            "nul.jsonl",
            lines({"problem": "What\0 is 7+8?", "answer": "15"}, GOOD[0]) + b'{"problem": "\0", "answer": "3"}\n',
            1,
            ["NUL", "control character"],
        ),
        ("quotes.csv", CSV + b'"What is 2+2?,4\nWhat is 3+3?,6\nWhat is 4+4?,8\n', 2, ["not CSV"]),
        (
            "quote_in_the_middle.csv",
            CSV + b'What is 2+2?,4\n"What is 3+3?,6\n"What is 4+4?",8\nWhat is 5+5?,10\n',
            3,
            ["not CSV"],
        ),
        ("cells.csv", CSV + b"What is 2+2?,4,extra\nWhat is 3+3?\nWhat is 4+4?,8\n", 1, ["3 cells", "1 cells"]),
        ("lines.csv", CSV + b'"What is\r\n3+4?",7\r\n', 1, []),
        (
            "types.jsonl",
            lines(
                {"problem": 3, "answer": 4},
                {"problem": True, "answer": "1"},
                {"problem": ["x"], "answer": "1"},
                {"problem": {"a": 1}, "answer": "1"},
                {"problem": "What is 4/5 of 3?", "answer": [1, 2]},
                {"problem": "What is 3 + 88?", "answer": 91},
                {"problem": "What is 3 + 81.5?", "answer": 84.5},
                {"problem": "What is 4/5 of 10?", "answer": ["8"]},
                {"id": {"a": 1}, "problem": "What is 1/5 of 10?", "answer": "2"},
                "text",
                [1],
                7,
            ),
            4,
            ["a int where text", "a bool where text", "a list without", "a dict", "a list where", "str", "list", "int"],
        ),
        ("same_ids.jsonl", lines(*(one | {"id": "same"} for one in GOOD)), 6, []),
        (
            "deep.jsonl",
            b'{"problem": "What is 3+9?", "answer": "12", "x": ' + b"[" * 900 + b"]" * 900 + b"}",
            0,
            ["deep"],
        ),
        ("wrong_name.jsonl.gz", lines(*GOOD), 6, []),
        ("escape.jsonl", b'{"problem": "What is \\ud800 3+3?", "answer": "6"}\n', 0, ["not Unicode text"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_good_rows_go_on(name: str, data: bytes, kept: int, told: list[str], tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    (tmp_path / "other.jsonl").write_bytes(lines({"problem": "How many legs have 12 dogs?", "answer": "48"}))
    out = clean(tmp_path, tmp_path / name, tmp_path / "other.jsonl")
    rows, _, unread, _ = result(out)
    assert rows == kept + 1
    assert len(unread) == len(told)
    assert all(any(part in detail for detail in unread) for part in told)
    sources = pq.read_table(out / "problems.parquet")["source"].to_pylist()
    assert sources.count("other.jsonl") == 1


def test_a_torn_gzip_gives_its_whole_lines(tmp_path: Path) -> None:
    rows = [{"problem": f"What is {n} times {os.urandom(4).hex()} plus 4?", "answer": str(n)} for n in range(900)]
    packed = gzip.compress(lines(*rows))
    (tmp_path / "torn.jsonl.gz").write_bytes(packed[: len(packed) * 2 // 3])
    rows_kept, _, unread, _ = result(clean(tmp_path, tmp_path / "torn.jsonl.gz"))
    assert 400 < rows_kept < 900
    assert len(unread) == 1
    assert "ends early" in unread[0]


def test_five_megabytes(tmp_path: Path) -> None:
    sum_of = "Find the sum of " + " + ".join(map(str, range(800_000)))
    huge = [
        {"id": "sum", "problem": sum_of[:5_000_000], "answer": "12"},
        {"id": "letters", "problem": "x" * 5_000_000, "answer": "12"},
        {"id": "brackets", "problem": "(" * 2_500_000 + "What is $" + "{" * 2_400_000, "answer": "12"},
        {"id": "digits", "problem": "What is the number of 17 stars?", "answer": "9" * 5_000_000},
    ]
    (tmp_path / "big.jsonl").write_bytes(lines(*huge, *GOOD))
    rows, dropped, _, _ = result(clean(tmp_path, tmp_path / "big.jsonl"))
    assert rows + dropped.total() == len(huge) + len(GOOD)
    assert dropped["answer_too_long"] == 1
    assert rows >= len(GOOD)


def useless(tmp_path: Path) -> list[Path]:
    """Inputs without a usable row."""
    made: dict[str, bytes] = {
        "empty.jsonl": b"",
        "empty.csv": b"",
        "empty.jsonl.gz": gzip.compress(b""),
        "empty.parquet": b"",
        "blank.jsonl": b"\n\n  \n",
        "header.csv": b"problem,answer\n",
        "one_column.csv": b"problem\nWhat is 3+4?\n",
        "one_column.txt": b"just words\nand more words\n",
        "unknown.jsonl": lines({"foo": "What is 1+1?", "bar": "2"}),
        "torn.parquet": b"PAR1" + b"x" * 100,
        "twice.csv": b"problem,answer,answer\nx,1,2\n",
    }
    for name, data in made.items():
        (tmp_path / name).write_bytes(data)
    return [tmp_path / name for name in made]


def test_useless_inputs_alone_are_an_error_and_beside_good_ones_a_message(tmp_path: Path) -> None:
    inputs = useless(tmp_path)
    for source in inputs:
        with pytest.raises(UserError) as caught:
            clean(tmp_path, source)
        assert source.name in str(caught.value)
        assert "\n" not in str(caught.value)
        assert not list(tmp_path.glob("out*")), "nothing may be in the way of the next try"
    (tmp_path / "good.jsonl").write_bytes(lines(*GOOD))
    out = clean(tmp_path, *inputs[:6], tmp_path / "good.jsonl", *inputs[6:])
    rows, _, _, funnel = result(out)
    assert rows == len(GOOD)
    assert len(funnel["messages"]) == len(inputs)
    for source, message in zip(inputs, funnel["messages"], strict=True):
        assert source.name in message
        assert message in (out / "funnel.md").read_text()
    with pytest.raises(UserError, match=r"empty\.jsonl: holds no rows.*; and 8 more"):
        clean(tmp_path, *inputs, out="none")


def test_directories(tmp_path: Path) -> None:
    directory = tmp_path / "set"
    directory.mkdir()
    for name in ("empty", "only_readme"):
        (tmp_path / name).mkdir()
        with pytest.raises(UserError, match="holds no file with rows"):
            clean(tmp_path, tmp_path / name)
        (directory / "README.md").write_text("---\nlicense: mit\n---\n# A set")
    for name, data in {
        "a.jsonl": lines(*GOOD[:3]),
        "b.jsonl": b"",
        "c.json": b'{"v": 1}',
        "d.csv": b"foo\n1\n",
    }.items():
        (directory / name).write_bytes(data)
    (directory / "e.jsonl").write_bytes(lines(*GOOD[3:]))
    out = clean(tmp_path, directory)
    rows, dropped, unread, funnel = result(out)
    assert (rows, dropped["malformed_row"]) == (len(GOOD), 2)
    assert all("no column" in detail for detail in unread)
    assert [message.split(":")[0] for message in funnel["messages"]] == ["c.json", "d.csv"]
    assert "mit (README.md)" in (out / "card.md").read_text()


def test_licences_are_stated_or_unknown(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(lines(*GOOD))
    assert stated_licence(str(tmp_path / "rows.jsonl")) is None
    (tmp_path / "LICENSE").write_text("\nMIT License\n\nmore\n")
    assert stated_licence(str(tmp_path / "rows.jsonl")) == "MIT License (LICENSE)"
    (tmp_path / "README.md").write_text("---\nname: x\nlicense:\n- cc-by-4.0\n- 'mit'\ntags: [a]\n---\ntext")
    assert stated_licence(str(tmp_path)) == "cc-by-4.0, mit (README.md)"
    assert stated_licence("hub:nobody/nothing@train") is None


def test_the_card_tells_where_rows_come_from(tmp_path: Path) -> None:
    rows = [one | {"license": "MIT", "source": "olympiads"} for one in GOOD[:4]] + [GOOD[4], {"problem": "?"}]
    (tmp_path / "rows.jsonl").write_bytes(lines(*rows))
    card = (clean(tmp_path, tmp_path / "rows.jsonl") / "card.md").read_text()
    assert "| rows.jsonl | 6 | 5 | MIT (4); not stated (2) | olympiads (4); not stated (2) |" in card
    assert f"| {tmp_path / 'rows.jsonl'} | unknown |" in card
    assert "malformed_row | 1 |" in card
    assert 'load_dataset("parquet"' in card


def test_other_libraries_read_what_comes_out(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    polars = pytest.importorskip("polars")
    (tmp_path / "rows.jsonl").write_bytes(lines(*GOOD, GOOD[0]))
    out = clean(tmp_path, tmp_path / "rows.jsonl")
    for name, rows in (("problems.parquet", 6), ("dropped.parquet", 1)):
        path = str(out / name)
        table = pa.table(pq.read_table(path))
        loaded = datasets.load_dataset("parquet", data_files=path, split="train", cache_dir=str(tmp_path / "cache"))
        assert loaded.to_list() == table.to_pylist()
        assert polars.read_parquet(path).to_dicts() == table.to_pylist()
        assert polars.scan_parquet(path).select(polars.len()).collect().item() == rows


def test_a_page_survives_what_problems_contain() -> None:
    example = {
        "id": "i",
        "source_id": None,
        "other_id": None,
        "detail": "a|b `c` <x> *y*",
        "problem": "`$x$`\n# no",
        "answer": "",
    }
    entry = {
        "step": "kinds",
        "rows_in": 2,
        "rows_out": 1,
        "dropped": {"multi_part": 1},
        "notes": {},
        "examples": {"multi_part": [example]},
    }
    page = funnel_page({"rows_in": 2, "rows_out": 1, "steps": [entry], "messages": []})
    assert "a\\|b \\`c\\` \\<x\\> \\*y\\*" in page
    assert "\n# no" not in page
    with pytest.raises(AssertionError, match="rows were lost"):
        check_conservation({"rows_in": 3, "rows_out": 1, "steps": [entry], "messages": []}, 1, 1)


def ulorl(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ulorl", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_command_line(tmp_path: Path) -> None:
    """Messages, three examples of each reason, one row's story, chosen steps, mistakes in one line."""
    parts = "(1) Find the sum of {0} and 3. (2) Find the product of {0} and 7."
    more = [{"id": f"m{n}", "problem": parts.format(n + 20), "answer": "4"} for n in range(4)]
    (tmp_path / "rows.jsonl").write_bytes(lines(*GOOD, *more, GOOD[0] | {"id": "twin"}))
    (tmp_path / "empty.csv").write_bytes(b"")
    rows, out = str(tmp_path / "rows.jsonl"), str(tmp_path / "out")
    done = ulorl("curate", rows, str(tmp_path / "empty.csv"), "-o", out, "--steps", "kinds, duplicates")
    assert done.returncode == 0, done.stderr
    assert "empty.csv: holds no rows" in done.stderr
    assert done.stdout.count("(1) Find the sum of 2") == 3
    funnel = json.loads((tmp_path / "out" / "funnel.json").read_text())
    assert [entry["step"] for entry in funnel["steps"]] == ["load", "kinds", "duplicates"]
    assert (tmp_path / "out" / "funnel.md").read_text().count("parts") >= 3

    story = ulorl("curate", out, "--explain", "twin")
    assert story.returncode == 0, story.stderr
    assert "dropped by duplicates: exact_duplicate" in story.stdout
    assert "passed: load, kinds" in story.stdout
    assert "because of: " in story.stdout
    assert GOOD[0]["problem"] in story.stdout
    told = json.loads(ulorl("curate", out, "--explain", "g0", "--json").stdout)
    assert "kept" in told["story"]
    assert "1 rows were dropped because of it" in told["story"]

    for settings, steps in (
        ((), [step for step in CURATE_STEPS if step != "difficulty"]),
        (("--set", "curate.steps=['kinds', 'difficulty']"), ["kinds", "difficulty"]),
        (("--set", "curate={workers = 1, steps = ['kinds']}"), ["kinds"]),
        (("--set", "curate={workers = 1}"), [step for step in CURATE_STEPS if step != "difficulty"]),
        (("--steps", "kinds", "--set", "curate.workers=1"), ["kinds"]),
    ):
        shown = ulorl("curate", rows, *settings, "--dry-run", "--json")
        assert json.loads(shown.stdout)["recipe"]["curate"]["steps"] == steps, shown.stderr

    for arguments, words in (
        (("curate", out, "--explain", "nobody"), "no row has the id"),
        (("curate", str(tmp_path), "--explain", "g0"), "needs a directory that curate made"),
        (("curate", rows), "-o DIR"),
        (("curate", rows, "-o", str(tmp_path / "x"), "--steps", "kinds,nonsense"), "nonsense"),
        (("curate", rows, "--steps", "kinds", "--set", "curate.steps=['answers']"), "--steps: goes without --set"),
        (("curate", str(tmp_path / "empty.csv"), "-o", str(tmp_path / "x")), "holds no rows"),
    ):
        failed = ulorl(*arguments)
        assert failed.returncode == 2, (arguments, failed.stderr)
        messages = [line for line in failed.stderr.splitlines() if line.startswith("ulorl: ")]
        assert len(messages) == 1, failed.stderr
        assert words in messages[0]
        assert "Traceback" not in failed.stderr
