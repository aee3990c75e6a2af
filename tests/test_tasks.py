"""Tasks: by name, mixed in a batch, failing alone; and the one that docs/tasks.md adds by entry point."""

from __future__ import annotations

import pickle
import re
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ulorl.errors import UserError
from ulorl.problem import Problem
from ulorl.recipe import VerifyRecipe
from ulorl.report.metrics import METRICS
from ulorl.train.rewards import Rewards, is_error
from ulorl.verify import Item, Verdict
from ulorl.verify.tasks import registry
from ulorl.verify.tasks.answers import stated
from ulorl.verify.tasks.base import NO_ANSWER, Reward, Task
from ulorl.verify.tasks.scorer import Scorer

CONFIG = VerifyRecipe(symbolic=False)
DOCS = Path(__file__).parents[1] / "docs" / "tasks.md"
MATH = Problem("m", "1+1", "2", source="a.jsonl", source_id="7")
STEM = Problem("s", "Which?", "B", task="stem", extra={"choices": ["Mars", "Jupiter"]})
FOLLOW = Problem("f", "No comma.", "", task="ifollow", extra={"instruction_id_list": ["punctuation:no_comma"]})


class Odd(Task):
    """Does what a problem says, for tests of what becomes of it."""

    def check(self, problem):
        if problem.answer == "raise":
            raise RuntimeError("boom")
        return "broken" if problem.answer == "broken" else None

    def prompt(self, problem):
        if problem.answer == "broken":
            raise ValueError("no prompt")
        return f"{problem.problem}!"

    def score(self, attempts):
        return [self.reward(problem.answer, response) for problem, response in attempts]

    def reward(self, what, response):
        match what:
            case "raise":
                raise RuntimeError("boom \ud800")
            case "nan":
                return Reward(float("nan"))
            case "two":
                return Reward(2.0)
            case "text":
                return "right"
            case "none":
                return Reward(0.0, NO_ANSWER)
            case "error":
                return Reward(0.0, "worker died", error=True)
        return Reward(float(what), "so it says")


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scorer]:
    monkeypatch.setitem(registry.BUILT_IN, "odd", f"{__name__}:Odd")
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    with Scorer(CONFIG) as scorer:
        yield scorer


def odd_item(what: str, response: str = "r") -> Item:
    return Item.of(Problem(what, "Do", what, task="odd"), response)


def test_a_batch_of_all_tasks_is_judged_each_by_its_own_in_order(odd):
    items = [
        Item.of(STEM, "The answer is Jupiter."),
        Item.of(MATH, "\\boxed{2}"),
        odd_item("0.5"),
        Item.of(FOLLOW, "a, b"),
        Item("3", "\\boxed{3}"),
        Item.of(MATH, "\\boxed{3}"),
    ]
    verdicts = odd.verify(items)
    assert [verdict.reward for verdict in verdicts] == [1.0, 1.0, 0.5, 0.0, 1.0, 0.0]
    assert [verdict.equivalent for verdict in verdicts] == [True, True, False, False, True, False]
    assert [verdict.rule for verdict in verdicts] == ["stem", "exact", "odd", "ifollow", "exact", "numeric"]
    assert odd.verify(items[::-1]) == verdicts[::-1]
    assert verdicts[2] == Verdict(False, "r", "odd", "so it says", 0.5)


def test_only_a_reward_of_one_is_solved_and_mathematics_has_no_parts(odd):
    solved, nearly = odd.verify([odd_item("1"), odd_item("0.999")])
    assert (solved.equivalent, nearly.equivalent) == (True, False)
    assert Verdict(None, None, "undecided").reward == 0.0
    assert Verdict(True, "1", "exact").reward == 1.0


@pytest.mark.parametrize("what", ["raise", "nan", "two", "text", "error"])
def test_what_a_task_fails_at_is_an_error_of_that_attempt_alone(odd, what):
    first, failed, last = odd.verify([odd_item("1"), odd_item(what), odd_item("0.25")])
    assert (first.reward, last.reward) == (1.0, 0.25)
    assert is_error(failed)
    assert failed.reward == 0.0
    assert not is_error(first)
    failed.reason.encode()


def test_a_response_without_an_answer_is_counted_as_such(odd):
    (verdict,) = odd.verify([odd_item("none")])
    assert (verdict.equivalent, verdict.answer, verdict.reason, verdict.reward) == (None, None, "no_answer", 0.0)


def test_unusable_rows_are_named(odd):
    assert odd.check(Problem("x", "t", "1", task="odd")) is None
    assert odd.check(Problem("x", "t", "broken", task="odd")) == "broken"
    assert "cannot check it: RuntimeError: boom" in odd.check(Problem("x", "t", "raise", task="odd"))
    assert "no task 'matt'; there are code, ifollow, logic, math" in odd.check(Problem("x", "t", "1", task="matt"))
    assert "cannot be verified" in odd.check(Problem("x", "t", "\\frac{"))
    bad = Problem("id1", "t", "broken", source="b.jsonl", source_id="12", task="odd")
    with pytest.raises(UserError, match=r"problem id1 \(b\.jsonl, 12\), task odd: no prompt"):
        odd.prompted([bad])
    with pytest.raises(UserError, match=r"problem id2: no task 'matt'"):
        odd.verify([Item.of(Problem("id2", "t", "1", task="matt"), "r")])


def test_prompts_are_the_tasks_and_ids_stay(odd):
    plain, shouted, choice = odd.prompted([MATH, Problem("x", "Do", "1", task="odd"), STEM])
    assert plain is MATH
    assert (shouted.id, shouted.problem) == ("x", "Do!")
    assert set(choice.problem.split("\n")) == {"Which?", "", "A. Mars", "B. Jupiter"} or "A. Jupiter" in choice.problem


BOARD = "_ Q\nQ _"


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        (f"<answer>\n{BOARD}\n</answer>", BOARD),
        (f"<answer>\n```\n{BOARD}\n```\n</answer>", BOARD),
        (f"<answer>```text\n{BOARD}\n```</answer>", BOARD),
        (f"<answer>~~~\n{BOARD}\n~~~</answer>", BOARD),
        ("<answer>\n  ```\n  _ Q\n  Q _\n  ```\n</answer>", BOARD),
        ("<answer>```\na\n```\nor\n```\nb\n```</answer>", "```\na\n```\nor\n```\nb\n```"),
        ("<answer>```\n\n```</answer>", None),
        ("<answer>**No**</answer>", "No"),
        ("<answer>**2*3**</answer>", "2*3"),
        ("<answer>2**3</answer>", "2**3"),
        ("<answer>**5** or **6**</answer>", "**5** or **6**"),
        ("<answer>**\n*.\n**</answer>", "**\n*.\n**"),
        ("<answer>****</answer>", "****"),
    ],
)
def test_what_is_around_all_of_a_tagged_answer_is_not_part_of_it(response, answer):
    assert stated(response) == answer


@pytest.mark.parametrize("fragment", ["**", "``", "```\n", "\n ", "*a", "``` "])
def test_unwrapping_a_tagged_answer_is_linear(fragment):
    for head in ("", "**a", "```\n"):
        begun = time.monotonic()
        stated(f"<answer>{head}{fragment * 500_000}</answer>")
        assert time.monotonic() - begun < 5


def test_a_bare_answer_is_tagged_for_tasks_that_look_for_one(odd, monkeypatch):
    monkeypatch.setattr(Odd, "reward", lambda self, what, response: Reward(1.0, response))
    bare = replace(odd_item("1", "b"), is_answer=True)
    assert odd.verify([bare])[0].reason == "<answer>b</answer>"
    monkeypatch.setattr(Odd, "extracts", False)
    assert odd.verify([bare])[0].reason == "b"


def test_a_scorer_goes_to_other_processes_without_its_workers():
    scorer = Scorer(CONFIG)
    copy = pickle.loads(pickle.dumps(scorer))
    assert copy.verify([Item.of(MATH, "\\boxed{2}")])[0].equivalent
    scorer.close()
    copy.close()


def test_rewards_of_a_slow_task_do_not_hold_up_the_others():
    from threading import Event

    free = Event()

    class Judge:
        def verify(self, items):
            if items[0].row is not None:
                free.wait(30)
            return [Verdict(True, "", "exact") for _ in items]

    rewards = Rewards(Judge(), timeout_s=0.3)
    rewards.submit("slow", Item.of(STEM, "x"))
    rewards.submit("fast", Item("1", "1"))
    found = rewards.collect()
    assert is_error(found["slow"])
    assert found["fast"].equivalent is True
    free.set()
    rewards.submit("again", Item.of(STEM, "x"))
    assert rewards.collect()["again"].equivalent is True
    rewards.close()


def test_no_task_can_be_named_as_a_metric_is():
    others = {name.partition("/")[2] for name in METRICS if name.startswith(("reward/", "validation/"))}
    assert others <= registry.NO_NAMES
    assert not registry.NO_NAMES & registry.BUILT_IN.keys()


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package of docs/tasks.md, as pip would have installed it."""
    blocks = dict(re.findall(r"```(python|toml)\n(.*?)```", DOCS.read_text(), re.DOTALL))
    assert len([line for line in blocks["python"].splitlines() if line.strip()]) <= 20
    (tmp_path / "letters.py").write_text(blocks["python"])
    project = tomllib.loads(blocks["toml"])["project"]
    (points,) = project["entry-points"].items()
    metadata = tmp_path / "ulorl_letters-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0.1\n")
    lines = "".join(f"{name} = {value}\n" for name, value in points[1].items())
    (metadata / "entry_points.txt").write_text(f"[{points[0]}]\n{lines}")
    monkeypatch.syspath_prepend(tmp_path)
    registry._registered.cache_clear()
    yield
    registry._registered.cache_clear()
    sys.modules.pop("letters", None)


@pytest.mark.usefixtures("installed")
def test_the_task_of_the_documentation_works_as_it_stands_there():
    row = Problem("l", "The longest word out of: n o s t e", "", task="letters", extra={"letters": "noste"})
    with Scorer(CONFIG) as scorer:
        assert scorer.check(row) is None
        assert scorer.check(Problem("x", "t", "", task="letters")) == "the column letters is missing"
        responses = ["<answer>stone</answer>", "\\boxed{note}", "The answer is tonnes.", "hm"]
        verdicts = scorer.verify([*(Item.of(row, one) for one in responses), Item.of(MATH, "\\boxed{2}")])
    assert [verdict.reward for verdict in verdicts] == [1.0, 0.8, 0.0, 0.0, 1.0]
    assert verdicts[1].reason == "4 letters, 0 of them not given"
    assert verdicts[3].reason == "no_answer"
    assert "letters" in registry.task_names()
    assert registry.summaries()["letters"].startswith("A word out of given letters")


@pytest.mark.parametrize(
    ("name", "why"), [("math", "two tasks are called math"), ("Bad", "named by"), ("mean", "named by")]
)
def test_entry_points_that_cannot_be_tasks_are_refused(tmp_path, monkeypatch, name, why):
    metadata = tmp_path / "odd-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 0.1\n")
    (metadata / "entry_points.txt").write_text(f"[ulorl.tasks]\n{name} = odd:Odd\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry._registered.cache_clear()
    try:
        with pytest.raises(UserError, match=why):
            registry.task_names()
    finally:
        monkeypatch.undo()
        registry._registered.cache_clear()


def test_a_registered_task_that_does_not_load_is_one_line(tmp_path, monkeypatch):
    metadata = tmp_path / "gone-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: gone\nVersion: 0.1\n")
    (metadata / "entry_points.txt").write_text("[ulorl.tasks]\ngone = no_such_module_here:Gone\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry._registered.cache_clear()
    try:
        with pytest.raises(UserError, match=r"task gone \(no_such_module_here:Gone\) cannot be loaded"):
            registry.load_task("gone", CONFIG)
        assert "cannot be loaded" in registry.summaries()["gone"]
    finally:
        monkeypatch.undo()
        registry._registered.cache_clear()
