"""Puzzles of reasoning-gym: made seeded, kept in files, scored in workers that execute nothing of an answer."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("reasoning_gym", reason='reasoning-gym is not installed: pip install "ulorl[logic]"')

from ulorl.errors import UserError
from ulorl.problem import Problem
from ulorl.recipe import FieldNames, VerifyRecipe
from ulorl.recipe_tasks import LogicRecipe, TasksRecipe
from ulorl.rows import read_problems
from ulorl.verify.tasks.base import Attempt
from ulorl.verify.tasks.logic import LogicTask
from ulorl.verify.tasks.puzzles import expressions, library
from ulorl.verify.tasks.puzzles.codec import decode, encode
from ulorl.verify.tasks.puzzles.make import Puzzles, make, parse

EVALUATE = ("string_insertion", "spiral_matrix", "binary_matrix", "n_queens", "number_sorting", "bitwise_arithmetic")
NO_ANSWER = ("graph_color", "boxnet", "propositional_logic", "rubiks_cube", "rush_hour")
PARSE = ("puzzle24", "countdown", "polynomial_multiplication", "simple_integration", "intermediate_integration")


def problem(row: dict, **changes) -> Problem:
    extra = {name: row[name] for name in ("metadata", "settings") if name in row} | changes
    return Problem(row["id"], row["problem"], row["answer"], task="logic", extra=extra)


@pytest.fixture(scope="module")
def rows() -> dict[str, dict]:
    """One puzzle of some data sets."""
    names = (*EVALUATE, *PARSE, "chain_sum", *NO_ANSWER, "spell_backward", "knights_knaves", "codeio")
    return {row["id"].partition("/")[0]: row for row in make([Puzzles(name, 1) for name in names], seed=3)}


@pytest.fixture(scope="module")
def task():
    judge = LogicTask(VerifyRecipe())
    yield judge
    judge.close()


def scores(task: LogicTask, row: dict, *answers: str) -> list[float]:
    return [
        reward.value for reward in task.score([Attempt(problem(row), f"<answer>{one}</answer>") for one in answers])
    ]


def test_the_own_answer_of_each_scores_one(task, rows):
    for name, row in rows.items():
        assert task.check(problem(row)) is None, name
        if row["answer"]:
            assert scores(task, row, row["answer"]) == [1.0], name
    assert {rows[name]["answer"] for name in NO_ANSWER} == {""}


def test_a_fence_or_bold_around_an_answer_costs_nothing(task, rows):
    queens, liars = rows["n_queens"], rows["knights_knaves"]
    assert scores(task, queens, f"\n```\n{queens['answer']}\n```\n") == [1.0]
    assert scores(task, liars, f"**{liars['answer']}**") == [1.0]
    assert scores(task, rows["chain_sum"], f"**{rows['chain_sum']['answer']}**") == [1.0]


def test_what_is_lenient_in_a_scorer_is_as_the_documentation_says(task, rows):
    liars = rows["knights_knaves"]
    assert scores(task, liars, f"{liars['answer']} Or so it seems to me.") == [1.0]
    (row,) = make([Puzzles("fraction_simplification", 1)], seed=3)
    number, _, by = row["answer"].strip("$").partition("/")
    found = row["answer"] if "frac" in row["answer"] else f"\\frac{{{number}}}{{{by}}}"
    assert scores(task, row, f"{found.strip('$')} or $\\frac{{1}}{{2}}$") == [1.0]


def test_parts_of_a_reward_are_the_data_sets_own(task, rows):
    row = rows["spell_backward"]
    word = row["answer"]
    # one letter of the word is wrong
    near = ("x" if word[0] != "x" else "y") + word[1:]
    assert scores(task, row, near) == pytest.approx([(len(word) - 1) / len(word)])
    assert scores(task, rows["chain_sum"], f"it is {rows['chain_sum']['answer']}")[0] < 1
    reward = task.score([Attempt(problem(row), "no idea at all")])[0]
    assert reward.reason == "no_answer"


def test_answers_that_are_expressions_or_literals_are_read_without_executing_them(task, rows):
    matrix = [list(map(int, line.split())) for line in rows["binary_matrix"]["answer"].split("\n")]
    assert scores(task, rows["binary_matrix"], str(matrix)) == [0.1]
    polynomial = rows["polynomial_multiplication"]["answer"]
    assert scores(task, rows["polynomial_multiplication"], f"0 + {polynomial}", "x + 1") == [1.0, 0.0]
    integral = rows["simple_integration"]["answer"]
    assert scores(task, rows["simple_integration"], integral.replace("C", "7"), "exp(x)") == [1.0, 0.0]
    assert scores(task, rows["countdown"], f"({rows['countdown']['answer']})") == [1.0]


HOSTILE = (
    "__import__('os').system('touch {mark}')",
    "open('{mark}', 'w').write('x')",
    "exec(\"open('{mark}','w')\")",
    "[c for c in ().__class__.__base__.__subclasses__()]",
    "(lambda: __import__('pathlib').Path('{mark}').touch())()",
    "9**9**9**9",
    "10**10**7",
    "(" * 3000 + ")" * 3000,
    "[" * 3000,
    "factorial(10**9)",
    "integrate(exp(x**x), x)",
    "x" * 19_000,
    "\x00",
    "nan",
    "-" * 5000 + "1",
    "{'a': [1, 2}",
)


def hostile_rewards(rows, names, answers, mark):
    """Rewards of hostile answers by data set, and of a right and a wrong one after them."""
    judge = LogicTask(VerifyRecipe(tasks=TasksRecipe(logic=LogicRecipe(workers=1, seconds=1.0))))
    told = [f"<answer>{one.replace('{mark}', str(mark))}</answer>" for one in answers]
    found = {name: judge.score([Attempt(problem(rows[name]), one) for one in told]) for name in names}
    after = scores(judge, rows["chain_sum"], rows["chain_sum"]["answer"], "oops")
    judge.close()
    return found, after


def test_answers_that_are_code_run_nothing_and_earn_nothing(rows, tmp_path):
    found, after = hostile_rewards(rows, ("binary_matrix", "countdown", "n_queens"), HOSTILE[:5], tmp_path / "mark")
    assert all(reward.value <= 0.05 for rewards in found.values() for reward in rewards)
    assert not (tmp_path / "mark").exists()
    assert after == [1.0, 0.0]


@pytest.mark.slow
def test_no_hostile_answer_gets_out_or_holds_up_a_batch(rows, tmp_path):
    begun = time.monotonic()
    names = (*EVALUATE, *PARSE, "codeio", "knights_knaves")
    found, after = hostile_rewards(rows, names, HOSTILE, tmp_path / "mark")
    assert {name: reward for name, rewards in found.items() for reward in rewards if reward.value > 0.05} == {}
    assert not (tmp_path / "mark").exists()
    assert after == [1.0, 0.0]
    assert time.monotonic() - begun < 600


def test_a_scorer_that_takes_too_long_is_killed_and_an_error(rows):
    row = rows["simple_integration"]
    judge = LogicTask(VerifyRecipe(tasks=TasksRecipe(logic=LogicRecipe(workers=1, seconds=1.0))))
    first, second = judge.score(
        [Attempt(problem(row), f"<answer>{one}</answer>") for one in ("factorial(10**6)*x", row["answer"])]
    )
    judge.close()
    assert (first.error, first.value, first.reason) == (True, 0.0, "timed out")
    assert second.value == 1.0


def test_broken_rows_say_what_is_wrong(task, rows):
    row = rows["chain_sum"]
    assert "the column metadata" in task.check(Problem("p", "t", "1", task="logic"))
    assert "no JSON object" in task.check(problem(row, metadata="{"))
    assert "not an object" in task.check(problem(row, metadata=[1]))
    assert "do you mean chain_sum" in task.check(problem(row, metadata={"source_dataset": "chain_sums"}))
    assert "composite is not offered" in task.check(problem(row, metadata={"source_dataset": "composite"}))
    assert "has no setting 'mx'" in task.check(problem(row, settings={"mx": 1}))
    hostile = {**json.loads(row["metadata"]), "a": {"__pairs__": [[1]]}}
    assert "metadata is not as `ulorl tasks make` writes it" in task.check(problem(row, metadata=hostile))
    assert "metadata is a tuple" in task.check(problem(row, metadata={"__tuple__": []}, dataset="chain_sum"))
    spelt = rows["spell_backward"]
    assert "No such file" in task.check(problem(spelt, settings={"data_file": "nope.txt"}))
    for path in ("../words3to10.txt", "/etc/passwd", "..", "", 3, ["a"]):
        assert "no path" in task.check(problem(spelt, settings={"data_file": path}))
    (reward,) = task.score([Attempt(problem(spelt, settings={"data_file": "nope.txt"}), "<answer>a</answer>")])
    assert reward.error and "No such file" in reward.reason
    wrong = Problem("p", "t", "no number", task="logic", extra={"metadata": rows["number_sorting"]["metadata"]})
    assert "'no number' scores 0, not 1" in task.check(wrong)
    lost = Problem("p", "t", "", task="logic", extra={"metadata": {"source_dataset": "graph_color"}})
    assert "cannot be scored (its metadata lacks num_vertices, possible_answer" in task.check(lost)


def test_rows_that_reasoning_gym_wrote_itself_are_read(task, tmp_path):
    entry = library.dataset("gcd", {}, seed=4, size=1)[0]
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps(entry) + "\n")
    ((found,), bad) = read_problems([str(path)], FieldNames(task="logic"))
    assert not bad
    assert task.check(found) is None
    assert task.score([Attempt(found, f"\\boxed{{{entry['answer']}}}")])[0].value == 1.0


def test_the_same_seed_makes_the_same_puzzles_and_others_make_others():
    wanted = [Puzzles("ransom_note", 4), Puzzles("chain_sum", 30, {"max_terms": 2, "max_digits": 1})]
    first, again, other = (list(make(wanted, seed)) for seed in (1, 1, 2))
    assert first == again
    assert len({row["problem"] for row in first}) == len(first) == 34
    texts = {row["problem"] for row in first[:4]}
    assert not texts & {row["problem"] for row in other[:4]}


def test_a_data_set_that_runs_out_says_so_and_gives_what_it_has():
    told = []
    found = list(make([Puzzles("spell_backward", 5, {"min_word_len": 3, "max_word_len": 3})], 0, told.append))
    assert len(found) == 5
    assert not told
    tiny = {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1}
    found = list(make([Puzzles("chain_sum", 600, tiny)], 0, told.append))
    assert 100 < len(found) < 600
    assert f"chain_sum has only {len(found)} of 600 puzzles" in told[0]


@pytest.mark.parametrize(
    ("name", "settings", "why"),
    [
        ("chain_sun", {}, "do you mean chain_sum"),
        ("chain_sum", {"max_term": 1}, "do you mean"),
        ("chain_sum", {"max_terms": 1}, "does not take"),
        ("composite", {}, "not offered"),
        ("spell_backward", {"data_file": "nope.txt"}, "does not take {'data_file': 'nope.txt'}: No such file"),
        ("spell_backward", {"data_file": "../../x"}, "give the name of a file of reasoning-gym, no path"),
    ],
)
def test_data_sets_and_settings_that_there_are_not(name, settings, why):
    with pytest.raises(UserError, match=why):
        list(make([Puzzles(name, 1, settings)], 0))


def test_the_input_logic_makes_puzzles_on_the_fly():
    sources = ['logic:chain_sum:5:{"max_terms": 2}', "logic-test:chain_sum:5"]
    problems, bad = read_problems(sources, FieldNames(), seed=7)
    assert not bad
    assert {one.task for one in problems} == {"logic"}
    assert len({one.id for one in problems}) == 10
    assert problems[0].source_id == "chain_sum/7/0"
    assert parse('logic:gcd:3:{"a": "b:c"}') == Puzzles("gcd", 3, {"a": "b:c"})
    for source in ("logic:chain_sum", "logic::3", "logic:gcd:0", "logic:gcd:3:[1]", "logic:gcd:3:{"):
        with pytest.raises(UserError, match="logic"):
            read_problems([source], FieldNames())


def test_the_command_writes_files_that_are_read_alike(tmp_path):
    def called(*arguments):
        command = [sys.executable, "-m", "ulorl", "tasks", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    read = []
    for name in ("a.jsonl", "b.jsonl.gz", "c.parquet"):
        done = called(
            "make", "gcd", "n_queens", "--size", "2", "--set", "n_queens.max_remove=3", "-o", str(tmp_path / name)
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"{tmp_path / name}: 2 gcd, 2 n_queens\n"
        read.append(read_problems([str(tmp_path / name)], FieldNames())[0])
    plain = [[(one.id, one.answer, one.extra["metadata"]) for one in found] for found in read]
    assert plain[0] == plain[1] == plain[2]
    assert json.loads(read[0][2].extra["settings"]) == {"max_remove": 3}
    assert gzip.decompress((tmp_path / "b.jsonl.gz").read_bytes()) == (tmp_path / "a.jsonl").read_bytes()
    assert pq.read_schema(tmp_path / "c.parquet").names[:4] == ["id", "problem", "answer", "task"]
    assert "n_queens" in called("list", "logic").stdout
    assert json.loads(called("list", "gcd", "--json").stdout)["min_numbers"] == 2
    refused = called("make", "gcd", "--set", "lcm.x=1", "-o", str(tmp_path / "d.jsonl"))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "NAME being one of the data sets named: gcd" in refused.stderr
    assert not Path(tmp_path / "d.jsonl").exists()
    (tmp_path / "e.jsonl").mkdir()
    refused = called("make", "gcd", "--size", "1", "-o", str(tmp_path / "e.jsonl"))
    assert refused.returncode == 2
    assert refused.stderr == f"ulorl: {tmp_path / 'e.jsonl'}: cannot be written (Is a directory); name another file\n"
    assert not list(tmp_path.glob(".*"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=20,
)


@given(JSON)
def test_what_a_scorer_needs_survives_a_file(value):
    assert decode(json.loads(json.dumps(encode(value)))) == value


def test_expressions_are_sympys_and_nothing_else():
    import sympy

    x = sympy.Symbol("x")
    for text in ("2*x**3/4 - x + 1/3", "sin(x)*exp(-x) + C", "-(x+1)**2", "log(x) + pi", "sqrt(2)*x", "0.5*x"):
        ours = expressions.parse(text, {"x": x})
        assert sympy.simplify(ours - sympy.parse_expr(text, local_dict={"x": x})) == 0
    for text in ("x.__class__", "open('a')", "x if x else x", "[1]", "lambda: 1", "'a'", "x; x", "f(x)", "2**10001"):
        with pytest.raises((ValueError, SyntaxError)):
            expressions.parse(text, {"x": x})
    assert expressions.integer("(0xff & 3) << 2 ^ -1") == (0xFF & 3) << 2 ^ -1
    with pytest.raises(ValueError, match="too long a shift"):
        expressions.integer("1 << 999999")


@pytest.mark.slow
def test_every_data_set_makes_and_scores_its_own_puzzles(task):
    left_out = []
    found = list(make([Puzzles(name, 2) for name in library.names()], 5, left_out.append))
    assert not left_out
    assert len({row["id"].partition("/")[0] for row in found}) == len(library.names()) == 105
    assert [(row["id"], fault) for row in found if (fault := task.check(problem(row))) is not None] == []
