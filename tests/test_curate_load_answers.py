"""Cleaning text and taking the short answer out of a reference."""

from __future__ import annotations

import pytest

from ulorl.curate.answers import answers, last_boxed, option_letter, same_text, short_answer
from ulorl.curate.load import clean_text, normalise
from ulorl.problem import Problem
from ulorl.recipe import CurateRecipe


def row(problem: str, answer: str = "1", **more: object) -> Problem:
    return Problem(id="x", problem=problem, answer=answer, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "mathematics",
    [
        r"$a<b>c$",
        r"\begin{pmatrix} 1 &  2 \\   3 & -4 \end{pmatrix}",
        r"\(x  \le  y &lt; z\)",
        "$$\n\n\n x \\\\ \t y $$",
        "if x<b and b>3 then 2<p",
    ],
)
def test_mathematics_survives_byte_for_byte(mathematics: str) -> None:
    assert clean_text(mathematics) == mathematics


def test_html_control_characters_and_white_space_go() -> None:
    dirty = "Find&nbsp;<b>x</b>:<br/>x  =  2 m<sup>2</sup>,\x00 caf\u0065\u0301 &amp; \\$3.  \n\n\n\nNow."
    assert clean_text(dirty) == "Find x:\nx = 2 m^{2}, caf\u00e9 & \\$3.\n\nNow."


def test_ids_are_unique_and_first_text_is_kept() -> None:
    result = normalise([row("What  is 1?"), row("What is 1?"), row("\x00 "), row("What?", " ")])
    first, second = result.kept
    assert second.id == f"{first.id}-2"
    assert (first.problem, first.original_problem, second.original_problem) == (
        "What is 1?",
        "What  is 1?",
        None,
    )
    assert [one.reason for one in result.dropped] == ["empty_problem", "empty_answer"]


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("Natalia sold 48/2 = 24.\n#### 72", "72"),
        (r"so $x=\boxed{1}$ and then $\boxed{\frac{1}{2}}$.", r"\frac{1}{2}"),
        ("C) 15", "15"),
        (r"\textbf{(B)}\ 12", "12"),
        (r"\textbf{(C) } 3", "3"),
        (r"\text{B) } -\frac{3}{25}", r"-\frac{3}{25}"),
        ("**B** 300", "300"),
        ("**A)** 250", "250"),
        ("The correct answer is (E) \\(\\frac{6p - q}{5}\\).", r"\frac{6p - q}{5}"),
        (
            r"\text{The range of } a \text{ is } (-\infty, -5] \cup [5, +\infty).",
            r"(-\infty, -5] \cup [5, +\infty)",
        ),
        ("126(C)", "126"),
        (r"\frac{4}{7} \textbf{(C)}", r"\frac{4}{7}"),
        (r"0.25 \text{ (Option D)}", "0.25"),
        (r"B \text{ (40)}", "40"),
        (r"\frac{2}{3}(a)", r"\frac{2}{3}(a)"),
        (r"3 \text{(h)}", r"3 \text{(h)}"),
        ("(D)", "D"),
        ("$-\\frac{1}{7}$", r"-\frac{1}{7}"),
        ("-5", "-5"),
        ("(1, 2)", "(1, 2)"),
        ("(A, B)", "(A, B)"),
        ("A = 45r", "A = 45r"),
        (r"\$36", r"\$36"),
        ("0.5", "0.5"),
        ("A)$ 12", "12"),
        ("B: [6, 8)", "[6, 8)"),
        (r"\mathbf{A}^{3} = 5", r"\mathbf{A}^{3} = 5"),
        (r"\mathbf{A} \cdot B", r"\mathbf{A} \cdot B"),
        ("A: B = 2:3", "A: B = 2:3"),
        ("Given the choices: **B) \\(7!\\)**", "7!"),
        (r"S = \frac{11}{2} \times 10 = 55", "55"),
        (r"a_n = 2 - \frac{1}{n} = \frac{2n-1}{n}", r"\frac{2n-1}{n}"),
        (r"\frac{x+3}{3} = \frac{y}{4} = \frac{z}{9}", r"\frac{x+3}{3} = \frac{y}{4} = \frac{z}{9}"),
        ("x = y = 2", "x = y = 2"),
        ("x = 1, y = 2 = z", "x = 1, y = 2 = z"),
        # The dots of a decimal that goes on are part of its value; a stop is not.
        ("0.333...", "0.333..."),
        ("$-10.8666...$", "-10.8666..."),
        ("The answer is 7.", "7"),
    ],
)
def test_short_answer(reference: str, expected: str) -> None:
    assert short_answer(reference)[0] == expected


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("1+" * 60 + "1", "answer_too_long"),
        (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", "matrix_answer"),
        (r"\begin{cases} 1, & x>0 \\ 2, & x<0 \end{cases}", "structured_answer"),
        (r"\left\{\begin{array}{l} x=1 \\ y=2 \end{array}\right.", "structured_answer"),
        (r"65 \text{ meters is possible, but 85 meters is not possible}", "text_answer"),
        (r"n \text{ is a multiple of 4}", "text_answer"),
        (
            "To solve this problem let us think " + "about it step by step and then we shall see " * 3,
            "no_final_answer",
        ),
    ],
)
def test_unusable_references_are_dropped(reference: str, reason: str) -> None:
    result = answers([row("What?", reference)], CurateRecipe())
    assert [one.reason for one in result.dropped] == [reason]


def test_products_of_variables_are_no_words() -> None:
    assert not answers([row("What?", "a^3 + 3a - abc - ab^2 - bc^2 - ca")], CurateRecipe()).dropped
    assert answers([row("What?", "Red-7 legs, Blue-7 legs, Gold-8 legs")], CurateRecipe()).dropped


def test_matrices_can_be_kept_and_the_original_reference_is() -> None:
    matrix = r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}"
    kept = answers([row("What?", matrix), row("What?", "#### 7")], CurateRecipe(keep_matrices=True)).kept
    assert [one.answer for one in kept] == [matrix, "7"]
    assert [one.original_answer for one in kept] == [None, "#### 7"]


def test_length_and_structure_are_settings() -> None:
    rows = [row("What?", "1" * 30), row("What?", "one two three"), row("What?", r"\begin{cases} 1 \\ 2 \end{cases}")]
    strict = answers(rows, CurateRecipe(max_answer_chars=20, max_answer_words=2))
    assert [one.reason for one in strict.dropped] == ["answer_too_long", "text_answer", "answer_too_long"]
    assert not answers(rows, CurateRecipe(keep_systems=True)).dropped


def test_boxed_needs_balanced_braces() -> None:
    assert last_boxed(r"\boxed{\frac{1}{2}") is None
    assert last_boxed(r"\boxed{1} or \boxed {2}") == "2"


def test_option_letters() -> None:
    assert [
        option_letter(text) for text in ("C) 15", r"\textbf{(B)}\ 12", "(D)", "D", r"E \text{ (9)}", "15", "Dog")
    ] == [
        "C",
        "B",
        "D",
        "D",
        "E",
        None,
        None,
    ]


def test_same_text_sees_through_spelling_not_through_value() -> None:
    assert same_text(r"$\dfrac{1}{2}$", r"\frac{1}{2}")
    assert same_text("1,000", "1000")
    assert same_text("x = 5", "5")
    assert same_text(r"330\pi", r"$330\pi$ inches")
    assert not same_text("12", "21")
    assert not same_text("-5", "5")


def test_hostile_text_is_linear() -> None:
    """Texts on which a backtracking pattern would not return; no clock: the test's time-out is the limit."""
    for text in (
        "(" * 100_000,
        "$" * 100_001,
        "<b " * 100_000,
        "x " * 2_500_000,
        "\\boxed{" * 50_000,
        " \n" * 200_000,
    ):
        assert isinstance(clean_text(text), str)
        assert isinstance(short_answer(text)[0], str)
