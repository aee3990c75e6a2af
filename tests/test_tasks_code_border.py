"""Task ``code``: what a program must not reach of its tests, and what its tests must not take for its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from forged_programs import FORGERIES, SCAN, SQUARES
from test_tasks_code import SQUARE, judge, recipe, row

from ulorl.verify.tasks.code import CodeTask


@pytest.fixture(scope="module")
def share() -> Iterator[CodeTask]:
    task = CodeTask(recipe("share"))
    yield task
    task.close()


@pytest.mark.parametrize("name", FORGERIES)
def test_passing_is_not_to_be_had_without_the_values(share: CodeTask, name: str) -> None:
    (reward,) = judge(share, row(assertions=[SQUARES]), FORGERIES[name])
    assert reward.value == 0 and not reward.error, reward


def test_nothing_of_earlier_jobs_is_in_a_program() -> None:
    task = CodeTask(recipe(workers=1, cpu_s=5.0, wall_s=20.0, total_s=30.0))
    honest = "honest_program = 1\nprint(input() and 'printed_words')\n"
    for _ in range(3):
        case = {"input": "given_words", "output": "printed_words"}
        assert judge(task, row(tests=[case, case]), honest)[0].value == 1
        failed = judge(task, row(assertions=["assert f(70001) == 4900140001"] * 30), "def f(x): return 5")
        assert failed[0].value == 0
    words = ("honest_program", "given_words", "printed_words", "f(70001) == 4900140001", "own_words")
    pattern = "|".join(f"[{word[0]}]{re.escape(word[1:])}" for word in words)
    outcome = task.sandbox.script(
        f"{SCAN}\nown_words = found_in_memory(rb'{pattern}')\nprint(own_words)", "", task.sandbox.limits()
    )
    task.close()
    assert outcome.output == "{b'own_words'}\n", outcome


def test_the_entry_point_is_the_programs_whatever_python_calls_so(share: CodeTask) -> None:
    calls = row(input_output={"fn_name": "max", "inputs": [[[1, 9, 5]], [[3, 4]]], "outputs": [9, 4]})
    none, good = judge(share, calls, "pass", "def max(values): return sorted(values)[-1]")
    assert (none.value, good.value) == (0, 1)
    assert "name 'max' is not defined" in none.reason
    checked = row(test="def check(candidate):\n    assert candidate([1, 9, 5]) == 15\n", entry_point="sum")
    assert [reward.value for reward in judge(share, checked, "pass", "def sum(v): return v[0] + v[1] + v[2]")] == [0, 1]
    unnamed = {"test_list": ["x = sum(10, 15)\nassert x == 2", "assert len('abc') == 3"]}
    common = "def sum(a, b): return len([n for n in range(1, min(a, b) + 1) if a % n == b % n == 0])"
    assert "name in entry_point what they test" in str(share.check(row(**unnamed)))
    assert share.check(row(**unnamed, entry_point="sum")) is None
    assert judge(share, row(**unnamed, entry_point="sum"), common)[0].value == 1


@pytest.mark.parametrize(
    ("tests", "entry_point"),
    [
        ("input = 3\nassert f(input) == 9\nsum = f(2)\nassert abs(sum) == 4", ""),
        ("sum = f(2)\nassert str(sum) == '4'\nassert True, 'a{}'.format(1)", ""),
        ("def check(candidate):\n    assert candidate(1) == 1\n    assert len('abc') == 3", "f"),
    ],
)
def test_what_tests_call_so_themselves_is_theirs(share: CodeTask, tests: str, entry_point: str) -> None:
    extra = {"test": tests, "entry_point": entry_point} if entry_point else {"assertions": [tests]}
    assert share.check(row(**extra)) is None
    assert judge(share, row(**extra), SQUARE)[0].value == 1


def test_only_the_end_of_the_programs_own_iterator_ends_a_loop(share: CodeTask) -> None:
    loop = row(
        assertions=[
            "for got, want in zip(map(f, [1, 2]), [1, 4]):\n    assert got == want",
            "assert list(g()) == [1, 2]",
        ]
    )
    both = "def g():\n    yield 1\n    yield 2\n"
    stops, good = judge(share, loop, both + "def f(x): raise StopIteration", f"{both}{SQUARE}")
    assert (stops.value, good.value) == (0.5, 1)
    assert "the program raised StopIteration" in stops.reason
    ends = "it = g()\nnext(it)\nnext(it)\ntry:\n    it.send(None)\n    assert False\nexcept StopIteration:\n    pass"
    assert judge(share, row(assertions=[ends, ends.replace("it.send(None)", "it.__next__()")]), both)[0].value == 1


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        ({"assertions": ["assert"]}, "tests that are no Python"),
        ({"assertions": ["x = 1"]}, "tests without any assertion"),
        ({"test": "def check(candidate):\n    pass\n", "entry_point": "f"}, "tests without any assertion"),
    ],
)
def test_assertions_that_nothing_can_pass_are_found_without_an_answer(share: CodeTask, extra: Any, why: str) -> None:
    assert why in str(share.check(row(**extra)))
