"""``ulorl verify``: files of every format, verdicts written, figures printed, one verdict explained."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from ulorl.cli import app
from ulorl.errors import UserError
from ulorl.recipe import VerifyRecipe
from ulorl.verify.scoring.describe import describe
from ulorl.verify.scoring.explanation import explain
from ulorl.verify.scoring.files import verify_file
from ulorl.verify.scoring.rates import Rates
from ulorl.verify.scoring.reading import read_items
from ulorl.verify.tiers import read_answer
from ulorl.verify.verdict import Verdict

CONFIG = VerifyRecipe(symbolic=False)
RULES_ONLY = ["--set", "verify.symbolic=false"]
ROWS = [
    {"answer": "2", "response": "\\boxed{2}", "label": True},
    {"answer": "2", "response": "\\boxed{3}", "label": False},
    {"answer": "2", "response": "\\boxed{2.0}", "label": False},
    {"answer": "2", "response": "nothing", "label": True},
    {"answer": "2", "response": "\\boxed{2}", "label": None},
]


def json_lines(path: Path, rows: list[dict[str, Any]] = ROWS) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def gzipped(path: Path) -> Path:
    with gzip.open(path, "wt") as packed:
        packed.write("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def parquet(path: Path) -> Path:
    pq.write_table(pa.Table.from_pylist(ROWS), path)
    return path


def csv(path: Path) -> Path:
    path.write_text(
        "answer,response,label\n" + "".join(f"{r['answer']},{r['response']},{r['label'] or ''}\n" for r in ROWS)
    )
    return path


@pytest.mark.parametrize(("name", "make"), [("a.jsonl", json_lines), ("a.jsonl.gz", gzipped), ("a.parquet", parquet)])
def test_formats(tmp_path: Path, name: str, make: Callable[[Path], Path]) -> None:
    result = verify_file(make(tmp_path / name), CONFIG)
    assert (result["n"], result["labelled"], result["accuracy"]) == (5, 4, 0.5)
    assert (result["false_positive_rate"], result["false_negative_rate"]) == (0.5, 0.5)
    assert (result["undecided"], result["undecided_reasons"]) == (1, {"no_answer": 1})
    assert sum(result["by_rule"].values()) == len(result["rows"]) == 5


def test_labels_in_text(tmp_path: Path) -> None:
    result = verify_file(csv(tmp_path / "a.csv"), CONFIG)
    assert (result["n"], result["labelled"]) == (5, 2)


@pytest.mark.parametrize(
    ("row", "reference", "response", "bare"),
    [
        ({"reference": "1", "response": "r"}, "1", "r", False),
        ({"ref": "1", "pred": "p"}, "1", "p", True),
        ({"ref": "1", "pred": "p", "kind": "response"}, "1", "p", False),
        ({"gold": "1", "output": "o"}, "1", "o", False),
        ({"gold": "1", "output": "o", "kind": "answer"}, "1", "o", True),
        ({"answer": 7, "prediction": [1, 2]}, "7", "[1, 2]", True),
        ({"gold": None, "pred": "x", "response": "y"}, "", "y", False),
    ],
)
def test_fields(tmp_path: Path, row: dict[str, Any], reference: str, response: str, bare: bool) -> None:
    (one,) = read_items(json_lines(tmp_path / "a.jsonl", [row]))
    assert (one.item.reference, one.item.response, one.item.is_answer, one.label) == (reference, response, bare, None)


def test_a_row_brings_its_problem_and_its_policy(tmp_path: Path) -> None:
    rows = [
        {"ref": "1, 2", "pred": "2, 1", "question": "Which?", "policy": {"order": "strict"}},
        {"ref": "1, 2", "pred": "2, 1"},
    ]
    path = json_lines(tmp_path / "a.jsonl", rows)
    assert [one.item.problem for one in read_items(path)] == ["Which?", None]
    assert [row["equivalent"] for row in verify_file(path, CONFIG)["rows"]] == [False, True]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    assert [row["equivalent"] for row in verify_file(tmp_path / "a.parquet", CONFIG)["rows"]] == [False, True]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"answer": "1"}', "row 1: none of the fields response"),
        ('{"ref":"1","pred":"1"}\n{"pred":"1"}', "row 2: none of the fields reference"),
        ("[1]", "row 1"),
        ('{"ref":"1","pred":"1"}\n[1]\n', "row 2"),
        ("{", "row 1"),
        ("", "no rows"),
        ('{"ref":"1","pred":"1","label":"perhaps"}', "row 1: label"),
        ('{"ref":"1","pred":"1","policy":"strict"}', "row 1: policy"),
        ('{"ref":"1","pred":"1","policy":{"ordr":"strict"}}', "row 1: policy: no such setting 'ordr'"),
        ('{"ref":"1","pred":"1","policy":{"order":"x"}}', "row 1: policy: order"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(content)
    with pytest.raises(UserError, match="bad.jsonl.*" + message.replace("'", ".")):
        verify_file(path, CONFIG)


def test_rates_are_undefined_without_labels() -> None:
    rates = Rates()
    rates.add(Verdict(True, "1", "exact"), None)
    summary = rates.summary()
    assert summary["accepted"] == 1.0
    assert summary["accuracy"] is summary["false_positive_rate"] is summary["false_negative_rate"] is None


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz", "out.parquet"])
def test_verdicts_are_written(tmp_path: Path, name: str) -> None:
    rows = [*ROWS, {"answer": "2", "response": "\\boxed{\ud800}", "label": False}]
    path = tmp_path / name
    result = verify_file(json_lines(tmp_path / "a.jsonl", rows), CONFIG, output=path, keep=lambda row: row.disagrees)
    if name.endswith(".parquet"):
        written = pq.read_table(path).to_pylist()
    else:
        opener = gzip.open if name.endswith(".gz") else open
        with opener(path, "rt", encoding="utf-8") as lines:
            written = [json.loads(line) for line in lines]
    assert [row["row"] for row in written] == [1, 2, 3, 4, 5, 6]
    assert [row["equivalent"] for row in written] == [True, False, True, None, True, None]
    assert [row["row"] for row in result["rows"]] == [3, 4]
    assert [row for row in written if row["row"] in (3, 4)] == result["rows"]


def test_a_failure_leaves_no_output(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"ref": "1", "pred": "1"}\n[]\n')
    with pytest.raises(UserError):
        verify_file(path, CONFIG, output=tmp_path / "out.jsonl")
    assert [file.name for file in tmp_path.iterdir()] == ["bad.jsonl"]
    with pytest.raises(UserError, match="parquet"):
        verify_file(json_lines(tmp_path / "a.jsonl"), CONFIG, output=tmp_path / "out.xml")
    with pytest.raises(UserError, match="nowhere"):
        verify_file(json_lines(tmp_path / "a.jsonl"), CONFIG, output=tmp_path / "nowhere" / "out.jsonl")
    (tmp_path / "taken.jsonl").mkdir()
    with pytest.raises(UserError, match=r"taken\.jsonl: cannot be written \(Is a directory\)"):
        verify_file(json_lines(tmp_path / "a.jsonl"), CONFIG, output=tmp_path / "taken.jsonl")
    with pytest.raises(UserError, match=r"/proc/a\.jsonl: cannot be written"):
        verify_file(json_lines(tmp_path / "a.jsonl"), CONFIG, output=Path("/proc/a.jsonl"))


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["verify", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_json_holds_the_figures(tmp_path: Path) -> None:
    figures = json.loads(run(str(json_lines(tmp_path / "a.jsonl")), "--json", *RULES_ONLY))
    wanted = "n accuracy false_positive_rate false_negative_rate undecided pairs_per_second by_rule"
    assert set(wanted.split()) <= set(figures)
    assert (figures["n"], figures["accuracy"], figures["undecided"]) == (5, 0.5, 1)
    assert "rows" not in figures and figures["pairs_per_second"] > 0


def test_text_lists_figures_reasons_and_disagreements(tmp_path: Path) -> None:
    path = str(json_lines(tmp_path / "a.jsonl"))
    text = run(path, *RULES_ONLY)
    assert "accuracy         50.00 %" in text and "1 no_answer" in text and "{" not in text
    listed = [json.loads(line) for line in run(path, "--disagreements", *RULES_ONLY).splitlines() if line[0] == "{"]
    assert [row["row"] for row in listed] == [3, 4]


def test_output_option(tmp_path: Path) -> None:
    run(str(json_lines(tmp_path / "a.jsonl")), "-o", str(tmp_path / "v.jsonl"), *RULES_ONLY)
    assert len((tmp_path / "v.jsonl").read_text().splitlines()) == 5


@pytest.mark.parametrize(
    "arguments", [[], ["--ref", "5"], ["--answer", "5"], ["a.jsonl", "--ref", "5", "--answer", "5"]]
)
def test_misuse_is_refused(arguments: list[str]) -> None:
    with pytest.raises(UserError, match="give a FILE, or --ref and --answer"):
        run(*arguments)


def test_options_without_effect_and_paths_that_cannot_be_meant_are_refused(tmp_path: Path) -> None:
    file = json_lines(tmp_path / "rows.jsonl")
    before = file.read_bytes()
    with pytest.raises(UserError, match="is the file that is read"):
        run(str(file), "-o", str(tmp_path / "." / "rows.jsonl"))
    assert file.read_bytes() == before
    with pytest.raises(UserError, match="is a directory; give a file"):
        run(str(tmp_path))
    for option in (["-o", str(tmp_path / "x.jsonl")], ["--disagreements"]):
        with pytest.raises(UserError, match=f"{option[0]} has no effect with --ref and --answer"):
            run("--ref", "5", "--answer", "5", *option)


def test_help_shows_the_options_of_scoring_and_the_other_command() -> None:
    text = run("--help")
    assert "--disagreements" in text and "verify train" in text


def test_explains_units_step_by_step() -> None:
    lines = run("--ref", "27 cm", "--answer", "so it is \\boxed{0.27 m}", *RULES_ONLY).splitlines()
    assert lines[-1] == "verdict: equivalent, rule units"
    assert lines[1] == "extracted  '0.27 m': from a box"
    assert [line for line in lines if line.startswith("units      ")] == [
        "units      reference: 27/100 in base units of length",
        "units      answer: 27/100 in base units of length",
        "units      equal",
    ]
    assert any(line.startswith("policy     relative_tolerance 0.0, rounding reference") for line in lines)


def test_explains_numbers_and_unreadable_answers() -> None:
    lines = explain("3 1/2", r"\boxed{\frac{7}{2}}", CONFIG)
    assert lines[0] == "reference  '3 1/2' is read as: number 7/2"
    assert "exact      cannot tell: other text" in lines and "numeric    equal" in lines
    assert lines[-1] == "verdict: equivalent, rule numeric"
    assert explain("5", "\\frac{", CONFIG)[-1].startswith("verdict: undecided")
    assert any("no final answer" in line for line in explain("5", "", CONFIG))
    assert "unusable" in explain("}", "5", CONFIG)[0]


def test_descriptions_are_short_and_readable() -> None:
    def described(text: str) -> str:
        value = read_answer(text).value
        assert value is not None
        return describe(value)

    assert described("50\\%") == "number 50 percent"
    assert described("-2x + \\sqrt{3}") == "expression -2 x + sqrt(3)"
    assert "0 + " not in described("(1, 2]") and "bracketed list" in described("(1, 2]")
    assert len(described(", ".join(map(str, range(200))))) <= 400
