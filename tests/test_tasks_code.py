"""Task ``code``: tests out of rows, comparison of outputs, rewards."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from forged_programs import SQUARES

from ulorl.problem import Problem
from ulorl.recipe import FieldNames, SandboxRecipe, VerifyRecipe
from ulorl.recipe_sandbox import CodeRecipe
from ulorl.recipe_tasks import TasksRecipe
from ulorl.rows import read_rows
from ulorl.verify.sandbox.inside.assertions import same
from ulorl.verify.tasks.base import NO_ANSWER, Attempt, Reward
from ulorl.verify.tasks.code import CodeTask
from ulorl.verify.tasks.code_output import difference
from ulorl.verify.tasks.code_tests import BadTests, Call, Case, read_tests
from ulorl.verify.tasks.scorer import Scorer
from ulorl.verify.verdict import Item

SANDBOX = SandboxRecipe(workers=2, cpu_s=1.0, wall_s=2.0, total_s=12.0, memory_mib=256, output_kib=64)
SQUARE = "def f(x):\n    return x * x"


def recipe(reward: Any = "share", **sandbox: Any) -> VerifyRecipe:
    tasks = TasksRecipe(code=CodeRecipe(reward=reward))
    return VerifyRecipe(tasks=tasks, sandbox=SANDBOX.model_copy(update=sandbox))


@pytest.fixture(scope="module")
def share() -> Iterator[CodeTask]:
    task = CodeTask(recipe("share"))
    yield task
    task.close()


@pytest.fixture(scope="module")
def whole() -> Iterator[CodeTask]:
    task = CodeTask(recipe("all"))
    yield task
    task.close()


def row(**extra: Any) -> Problem:
    return Problem(
        f"id{abs(hash(json.dumps(extra)))}",
        "Write f.",
        "",
        source="rows.jsonl",
        source_id="7",
        task="code",
        extra=extra,
    )


def judge(task: CodeTask, problem: Problem, *programs: str) -> list[Reward]:
    assert task.check(problem) is None
    return task.score([Attempt(problem, program) for program in programs])


@pytest.mark.parametrize(
    ("printed", "expected", "equal"),
    [
        ("1 2\n3\n", "1 2\n3", True),
        ("1 2  \n3\n\n\n", "1 2\n3", True),
        ("1  2", "1 2", True),
        ("1\n2", "1 2", False),
        ("1 2", "1\n2", False),
        ("", "", True),
        ("", "1", False),
        ("\n\n1", "1", False),
        ("Yes", "YES", False),
        ("0.3333333", "0.33333333333", True),
        ("0.333", "0.33333333333", False),
        ("3", "3.0", True),
        ("3.0", "3", False),
        ("1e-9", "0.0", True),
        ("1000000.5", "1000000.6", True),
        ("100000000000000001", "100000000000000000", False),
        ("nan", "0.0", False),
        ("1e9999", "1e9998", False),
        ("x" * 1000, "x" * 1000, True),
        ("-0.0", "0.0", True),
        ("1.5,2.5", "1.5,2.50", False),
    ],
)
def test_comparing_outputs(printed: str, expected: str, equal: bool) -> None:
    assert (difference(printed, expected, 1e-6) == "") == equal
    assert difference(printed, printed, 0.0) == ""


def test_without_tolerance_numbers_are_text() -> None:
    assert difference("0.30", "0.3", 0.0) == "printed '0.30', expected '0.3'"
    assert difference("a\nb", "a\nc", 0.0) == "line 2: printed 'b', expected 'c'"


def test_public_formats() -> None:
    cases = (Case("1\n", "2\n"), Case("3", "4"))
    pairs = {"inputs": ["1\n", "3"], "outputs": ["2\n", "4"]}
    groups = {"public_tests": {"input": ["1\n"], "output": ["2\n"]}, "private_tests": {"input": ["3"], "output": ["4"]}}
    for extra in (
        {"tests": [{"input": "1\n", "output": "2\n"}, {"input": "3", "output": "4"}]},
        {"tests": json.dumps([{"input": "1\n", "output": "2\n"}, {"input": ["3"], "output": 4}])},
        {"input_output": json.dumps(pairs)},
        pairs,
        groups,
    ):
        assert read_tests(extra).cases == cases
    apps = read_tests({"input_output": {"fn_name": "f", "inputs": [[1, [2]], '3\n"a"'], "outputs": [[3], 4]}})
    assert apps.calls == (Call("[1, [2]]", "[3]"), Call('[3, "a"]', "4")) and apps.entry_point == "f"
    mbpp = read_tests(
        {"test_list": ["assert f(1) == 1", "assert f(2) == 4"], "test_setup_code": "import math", "test_imports": []}
    )
    assert mbpp.code == "import math\nassert f(1) == 1\nassert f(2) == 4"
    assert read_tests({"test": "def check(c):\n    assert c(1)", "entry_point": "f", "timeout_s": 3}).timeout_s == 3.0


@pytest.mark.parametrize(
    ("extra", "fault"),
    [
        ({}, "no tests"),
        ({"tests": []}, "no tests"),
        ({"tests": [{"input": "1"}]}, "neither a list of objects"),
        ({"tests": "{"}, "no JSON"),
        ({"tests": [{"input": None, "output": ""}]}, "not text"),
        ({"inputs": ["1"], "outputs": []}, "same length"),
        ({"assertions": []}, "not a list of assertions"),
        ({"assertions": [1]}, "not a list of assertions"),
        ({"assertions": ["assert f()"], "entry_point": "a b"}, "is no name"),
        ({"assertions": ["assert f()"], "timeout_s": -1}, "timeout_s"),
        ({"assertions": ["assert f()"], "timeout_s": True}, "timeout_s"),
        ({"fn_name": "f", "inputs": ["{"], "outputs": [1]}, "no list of arguments"),
        ({"test": "def check(c): pass"}, "no tests"),
    ],
)
def test_rows_without_tests_say_what_is_missing(share: CodeTask, extra: dict[str, Any], fault: str) -> None:
    with pytest.raises(BadTests, match=fault):
        read_tests(extra)
    assert fault in str(share.check(row(**extra)))


def test_a_row_whose_own_answer_fails_is_broken(share: CodeTask) -> None:
    problem = row(assertions=[SQUARES])
    assert share.check(replace(problem, answer=SQUARE)) is None
    fault = share.check(replace(problem, answer="def f(x): return x"))
    assert fault == ("its own answer does not pass its tests: passed 0 of 7 tests; test 1: not so: assert f(3) == 9")


def test_rows_come_from_files_with_their_tests(tmp_path: Path, share: CodeTask) -> None:
    rows = [
        {"problem": "a", "task": "code", "tests": [{"input": "1", "output": "2"}]},
        {"question": "b", "task": "code", "input_output": '{"inputs": ["1"], "outputs": ["2"]}'},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    for problem in read_rows(str(path), FieldNames()):
        assert isinstance(problem, Problem)
        assert judge(share, problem, "print(int(input()) + 1)")[0].value == 1


def test_programs_that_read_and_print(share: CodeTask, whole: CodeTask) -> None:
    problem = row(tests=[{"input": f"{n} {n}\n", "output": f"{2 * n}"} for n in range(4)])
    add = "a, b = map(int, input().split())\nprint(a + b)"
    wrong = "a, b = map(int, input().split())\nprint(a + b if a != 2 else 'x')"
    crash = "a, b = map(int, input().split())\nprint(a + b)\nassert a < 3, 'too large'"
    rewards = judge(share, problem, add, wrong, crash, "print(", "")
    assert [reward.value for reward in rewards] == [1.0, 0.75, 0.75, 0.0, 0.0]
    assert rewards[0].reason == "passed 4 of 4 tests" and rewards[0].answer == add
    assert rewards[1].reason == "passed 3 of 4 tests; test 3: printed 'x', expected '4'"
    assert rewards[2].reason == "passed 3 of 4 tests; test 4: exit status 1 (AssertionError: too large)"
    assert "SyntaxError" in rewards[3].reason
    assert rewards[4].reason == NO_ANSWER
    assert [reward.value for reward in judge(whole, problem, add, wrong)] == [1.0, 0.0]


def test_assertions_count_one_by_one(share: CodeTask, whole: CodeTask) -> None:
    problem = row(assertions=[SQUARES])
    wrong = "def f(x):\n    return x * x if x != 4 else 0"
    rewards = judge(share, problem, SQUARE, wrong, "raise ValueError('not today')", "def g(x): return x")
    assert [reward.value for reward in rewards] == [1.0, pytest.approx(6 / 7), 0.0, 0.0]
    assert rewards[1].reason.startswith("passed 6 of 7 tests; test 2: not so: assert f(4) == 16")
    assert rewards[2].reason == "passed 0 of 7 tests; the program ended (ValueError: not today)"
    assert [reward.value for reward in judge(whole, problem, SQUARE, wrong)] == [1.0, 0.0]


def test_a_test_that_ends_the_program_costs_itself_only(share: CodeTask) -> None:
    problem = row(assertions=[f"assert f({n}) == {n * n}" for n in range(5)])
    ends = "import os\ndef f(x):\n    if x == 2: os._exit(0)\n    return x * x"
    hangs = "import time\ndef f(x):\n    if x == 1: time.sleep(100)\n    return x * x"
    first, second = judge(share, problem, ends, hangs)
    assert (first.value, second.value) == (0.8, 0.8)
    assert first.reason == "passed 4 of 5 tests; test 3: the program ended"
    assert second.reason == "passed 4 of 5 tests; test 2: no end after 2 s"


def test_check_functions_as_in_humaneval(share: CodeTask) -> None:
    test = (
        "METADATA = {}\n\ndef check(candidate):\n    assert candidate(2) == 4\n    assert candidate(3) == 9, 'three'\n"
    )
    problem = row(test=test, entry_point="f")
    values = [reward.value for reward in judge(share, problem, SQUARE, "def f(x): return 4")]
    assert values == [1.0, 0.5]
    looping = "def check(c):\n    for n in range(5):\n        assert c(n) == n * n\n    return None\n"
    assert [r.value for r in judge(share, row(test=looping, entry_point="f"), SQUARE, "def f(x): return 0")] == [
        1.0,
        0.0,
    ]


def test_calls_with_json(share: CodeTask) -> None:
    problem = row(
        input_output={"fn_name": "add", "inputs": [[1, 2], [[1], [2]], [0.1, 0.2]], "outputs": [[3], [1, 2], 0.3]}
    )
    rewards = judge(
        share,
        problem,
        "def add(a, b):\n    return a + b",
        "class Solution:\n    def add(self, a, b):\n        return a + b",
        "def add(a, b):\n    return (a, b)",
    )
    assert [reward.value for reward in rewards] == [1.0, 1.0, 0.0]
    assert rewards[2].reason == "passed 0 of 3 tests; test 1: add(*[1, 2]) is not [3]"


@pytest.mark.parametrize(
    ("value", "expected", "equal"),
    [
        (True, 1, False), (1, True, False), (1, 1.0, True), (0.1 + 0.2, 0.3, True), (10**30, 10**30 + 1, False),
        ((1, 2), [1, 2], True),
        ({1: "a"}, {"1": "a"}, True), ({"a": (1,)}, {"a": [1]}, True), ([1], [1, 2], False), ("1", 1, False),
        (None, None, True),
    ],
)  # fmt: skip
def test_results_against_json(value: Any, expected: Any, equal: bool) -> None:
    assert same(value, expected) is equal


OBJECTS = """
from collections import Counter
class Stack:
    def __init__(self): self.items = []
    def push(self, x): self.items.append(x); return self
    def pop(self): return self.items.pop()
    def __len__(self): return len(self.items)
def fill(numbers):
    numbers.append(9)
    numbers.sort()
def evens():
    yield from (0, 2, 4)
def fail(x):
    raise KeyError(x)
def count(text): return Counter(text)
def infinite():
    n = 0
    while True:
        yield n
"""


def test_what_tests_may_do(share: CodeTask) -> None:
    tests = """
import itertools
stack = Stack()
stack.push(1).push(2)
assert stack.pop() == 2 and len(stack) == 1 and stack.items == [1]
numbers = [3, 1]
fill(numbers)
assert numbers == [1, 3, 9]
assert list(evens()) == [0, 2, 4] and list(itertools.islice(infinite(), 3)) == [0, 0, 0]
try:
    fail('x')
    assert False
except KeyError as error:
    assert 'x' in str(error)
assert count('aab') == {'a': 2, 'b': 1}
assert stack != Stack()
def helper(n):
    assert len(str(n)) == 1
for n in evens():
    helper(n)
    assert n % 2 == 0
helper(5)
"""
    (reward,) = judge(share, row(assertions=[tests]), OBJECTS)
    assert reward.reason == "passed 8 of 8 tests"


def test_rows_whose_tests_are_broken_are_errors_of_the_row(share: CodeTask) -> None:
    for assertions, fault in ((["assert f(1) =="], "no Python"), (["print(f(1))"], "without any assertion")):
        (reward,) = share.score([Attempt(row(assertions=assertions), SQUARE)])
        assert reward.error and fault in reward.reason
    with Scorer(recipe()) as scorer:
        (verdict,) = scorer.verify([Item.of(row(assertions=["nonsense("]), SQUARE)])
        assert verdict.equivalent is None and "no Python" in verdict.reason


def test_the_time_for_all_tests_is_bounded() -> None:
    task = CodeTask(recipe("share", total_s=3.0))
    problem = row(tests=[{"input": "", "output": "x"}] * 50)
    start = time.monotonic()
    (reward,) = judge(task, problem, "import time\ntime.sleep(100)")
    assert time.monotonic() - start < 10
    assert reward.value == 0 and "no end after 2 s" in reward.reason
    task.close()


def test_a_row_may_ask_for_more_time(share: CodeTask) -> None:
    source = "import time\ntime.sleep(2.5)\nprint(1)"
    tests = [{"input": "", "output": "1"}]
    assert judge(share, row(tests=tests), source)[0].value == 0
    assert judge(share, row(tests=tests, timeout_s=4), source)[0].value == 1


def test_equal_programs_run_once_and_threads_share(share: CodeTask, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = row(tests=[{"input": "2", "output": "4"}])
    seen: list[str] = []
    script = share.sandbox.script

    def counting(source: str, *rest: Any) -> Any:
        seen.append(source)
        return script(source, *rest)

    monkeypatch.setattr(share.sandbox, "script", counting)
    rewards = judge(share, problem, *["print(int(input()) ** 2)"] * 5, "print(5)")
    assert [reward.value for reward in rewards] == [1, 1, 1, 1, 1, 0]
    assert len(seen) == 2
    monkeypatch.undo()
    results: dict[int, list[float]] = {}

    def use(number: int) -> None:
        results[number] = [
            r.value for r in share.score([Attempt(problem, f"print({number}{' ' * n})") for n in range(5)])
        ]

    threads = [threading.Thread(target=use, args=(number,)) for number in (3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {3: [0.0] * 5, 4: [1.0] * 5}


def test_rows_of_one_text_are_judged_each_by_its_own_tests(share: CodeTask) -> None:
    one, other = (Problem("same", "", "", task="code", extra={"tests": [{"input": "", "output": n}]}) for n in "12")
    rewards = share.score([Attempt(problem, "print(1)") for problem in (one, other, one)])
    assert [reward.value for reward in rewards] == [1.0, 0.0, 1.0]


def test_an_own_answer_may_hold_marks_as_text(share: CodeTask) -> None:
    problem = row(tests=[{"input": "a\n", "output": "<s>a</s>"}])
    program = "print('<s>' + input() + '</s>')"
    assert share.check(replace(problem, answer=program)) is None
    assert judge(share, problem, program, f"```python\n{program}\n```</s>")[1].value == 1


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="wall_s"):
        SandboxRecipe(wall_s=100.0, total_s=10.0)
