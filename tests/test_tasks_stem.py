"""STEM: multiple choice with shuffled options, short answers with units and tolerances."""

from __future__ import annotations

from collections import Counter

import pytest

from ulorl.problem import Problem, problem_id
from ulorl.recipe import VerifyRecipe
from ulorl.verify.tasks.base import Attempt
from ulorl.verify.tasks.choices import choices_of
from ulorl.verify.tasks.stem import StemTask, short_answer

PLANETS = ["Mars", "Jupiter", "Venus", "Saturn"]


@pytest.fixture(scope="module")
def task():
    judge = StemTask(VerifyRecipe(symbolic=False))
    yield judge
    judge.close()


def row(text="Which planet is the largest?", answer="B", **extra) -> Problem:
    return Problem(problem_id(text), text, answer, task="stem", extra={"choices": PLANETS} | extra)


def short(answer, **extra) -> Problem:
    return Problem("p", "How much?", answer, task="stem", extra=extra)


def value(task, problem, response) -> float:
    return task.score([Attempt(problem, response)])[0].value


def test_options_are_shuffled_by_the_problem_and_the_right_letter_follows(task):
    orders, places = Counter(), Counter()
    for number in range(400):
        problem = row(f"Question {number}?")
        choices = choices_of(problem)
        assert choices == choices_of(problem)
        assert sorted(choices.options) == sorted(PLANETS)
        assert choices.options[choices.right] == "Jupiter"
        letter = "ABCD"[choices.right]
        assert f"\n{letter}. Jupiter" in task.prompt(problem)
        assert value(task, problem, f"\\boxed{{{letter}}}") == 1.0
        orders[choices.options] += 1
        places[choices.right] += 1
    assert len(orders) == 24
    assert all(60 < count < 140 for count in places.values())


@pytest.mark.parametrize(
    "choices",
    [
        PLANETS,
        dict(zip("ABCD", PLANETS, strict=True)),
        {"text": PLANETS, "label": list("ABCD")},
        {"text": PLANETS, "label": list("1234")},
        '["Mars", "Jupiter", "Venus", "Saturn"]',
        {"A": "Mars", "B": "Jupiter", "C": "Venus", "D": "Saturn", "E": None},
    ],
)
def test_choices_come_in_every_usual_form(task, choices):
    answer = "2" if isinstance(choices, dict) and choices.get("label", "")[:1] == ["1"] else "B"
    problem = row(answer=answer, choices=choices)
    assert task.check(problem) is None
    assert choices_of(problem).options[choices_of(problem).right] == "Jupiter"


def test_the_answer_may_be_the_options_text_or_its_number():
    for problem in (row(answer="jupiter "), row(answer="(B)"), row(answer="anything", answer_index=1)):
        assert choices_of(problem).options[choices_of(problem).right] == "Jupiter"


def responses(problem):
    letter = "ABCD"[choices_of(problem).right]
    wrong = "ABCD"[(choices_of(problem).right + 1) % 4]
    other = choices_of(problem).options["ABCD".index(wrong)]
    right = [
        f"\\boxed{{{letter}}}",
        f"The answer is ({letter}).",
        f"Answer: {letter.lower()}",
        f"<answer>{letter}. Jupiter</answer>",
        f"\\boxed{{\\text{{{letter}) Jupiter}}}}",
        "The answer is Jupiter.",
        f"Therefore, the answer is option {letter}.",
        f"**Final answer: {letter}**",
        "\\boxed{JUPITER}",
    ]
    false = [
        f"\\boxed{{{wrong}}}",
        f"<answer>{letter}. {other}</answer>",
        "\\boxed{Pluto}",
        f"\\boxed{{{letter}}} or \\boxed{{{wrong}}}",
        "\\boxed{E}",
        f"<think>\\boxed{{{letter}}}</think>\\boxed{{{wrong}}}",
    ]
    return right, false


def test_letters_and_values_are_answers_and_contradictions_are_not(task):
    problem = row()
    right, wrong = responses(problem)
    assert {text: value(task, problem, text) for text in right} == dict.fromkeys(right, 1.0)
    assert {text: value(task, problem, text) for text in wrong} == dict.fromkeys(wrong, 0.0)
    assert task.score([Attempt(problem, "I do not know")])[0].reason == "no_answer"


def test_values_are_compared_as_the_verifier_does(task):
    problem = row("How far?", "1500 m", choices=["15 km", "1500 m", "150 m", "1.5 m"])
    assert value(task, problem, "\\boxed{1.5 \\text{ km}}") == 1.0
    assert value(task, problem, "\\boxed{15000 m}") == 0.0
    twice = row("How far is it?", "A", choices=["1 km", "1000 m", "3 m"])
    assert value(task, twice, "\\boxed{100000 cm}") == 0.0  # two options have this value
    assert value(task, twice, f"\\boxed{{{'ABC'[choices_of(twice).right]}}}") == 1.0


@pytest.mark.parametrize("last", ["All of the above", "none of these", "Both A and B", "Neither of the above options"])
def test_options_that_speak_of_others_keep_their_order(last):
    for number in range(20):
        problem = row(f"Question {number}?", "C", choices=["one", "two", last])
        assert choices_of(problem).options == ("one", "two", last)
        assert choices_of(problem).right == 2


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (row(answer="E"), "neither the letter nor the text"),
        (row(answer="1"), "neither the letter nor the text"),
        (row(answer_index=4), "a number from 0 to 3"),
        (row(choices=["one"]), "2 to 26"),
        (row(choices=["one", "One "]), "there twice"),
        (row(choices=["one", ""]), "empty"),
        (row(choices="{"), "no JSON"),
        (row(choices=3), "a int"),
        (row(answer="b", choices=["c", "a", "b"]), "give answer_index"),
        (short(""), "the column answer is empty"),
        (short("\\frac{1"), "cannot be verified"),
        (short("5 m", tolerance="a lot"), "neither a number nor a percentage"),
        (short("5 m", tolerance=5), "no share below 0.1"),
        (short("five", tolerance=1), "no share below 0.1"),
        (short("5 m", policy={"ordr": "free"}), "no such setting"),
        (short("5 m", policy={"order": "any"}), "the column policy"),
        (short("5 m", policy=[1]), "no object"),
    ],
)
def test_broken_rows_say_what_is_wrong(task, problem, why):
    assert why in task.check(problem)


@pytest.mark.parametrize(
    ("problem", "right", "wrong"),
    [
        (short("9.81 ± 0.02 m/s^2"), ["9.81 m/s^2", "9.83", "979 cm/s^2"], ["9.84 m/s^2", "9.81 m", "9.78"]),
        (short("9.81 m/s^2 ± 2%"), ["10 m/s^2", "9.62 m/s^2"], ["10.1 m/s^2", "9.6 m/s^2"]),
        (short("(9.81 \\pm 0.02)\\ m/s^2"), ["9.8 m/s^2"], ["9.7 m/s^2"]),
        (short("9.81 (+/- 0.02) m/s^2"), ["9.8 m/s^2"], ["9.7 m/s^2"]),
        (short("3.0 \\times 10^8 m/s ± 1%"), ["2.998e8 m/s", "299792 km/s"], ["2.9e8 m/s"]),
        (short("70", unit="kg", tolerance="2%"), ["70 kg", "71000 g", "71"], ["72 kg", "70 g"]),
        (short("70 kg", tolerance=1), ["69 kg", "71 kg"], ["68.9 kg"]),
        (short("300 K"), ["26.85 °C"], ["27.85 °C"]),
        (short("5 km", policy={"missing_unit": "reject"}), ["5000 m"], ["5"]),
        (short("mitochondria"), ["the mitochondria"], ["ribosome"]),
    ],
)
def test_short_answers_with_units_and_tolerances(task, problem, right, wrong):
    assert task.check(problem) is None
    assert {one: value(task, problem, f"\\boxed{{{one}}}") for one in right} == dict.fromkeys(right, 1.0)
    assert {one: value(task, problem, f"\\boxed{{{one}}}") for one in wrong} == dict.fromkeys(wrong, 0.0)


def test_a_plus_minus_that_is_no_tolerance_stays_a_pair_of_values():
    assert short_answer(short("±3")).reference == "±3"
    assert short_answer(short("5 ± 3")).policy == {}
    assert short_answer(short("2 ± \\sqrt{3}")).reference == "2 ± \\sqrt{3}"
