"""Answers that a response denies or takes back, placeholders, and notation that must not stand in the way."""

from __future__ import annotations

import pytest

from ulorl.recipe import VerifyRecipe
from ulorl.verify import Item, Verifier

RULES = Verifier(VerifyRecipe(symbolic=False))
DENIED = [
    "Answer: x is not equal to 5",
    "The answer is definitely not $5$ here",
    "Answer: any number bigger than 5",
    "The answer is a value larger than 5.",
    "Answer: all real numbers except 5",
    "Therefore, x is larger than 5.",
    "Therefore the limit exceeds 5.",
    "Thus, the sum is divisible by 5.",
    "It cannot be **5**.",
    "Is it **5**?",
    "**5** is not a solution",
    "The value **5** fails.",
    "**5** or more",
    "\\boxed{5}\n\nHmm, this is incorrect.",
    "\\boxed{5}\n\nActually, I made an error. It should be 43.",
    "\\boxed{5}\n\nCorrection: 43.",
]
STANDS = [
    "So it is **5**.",
    "The total is **5** apples, not 6.",
    "\\boxed{5}\n\nThis is the answer.",
    "\\boxed{5}, since choosing 4 would be wrong.",
    "\\boxed{5}\n\nIt is not incorrect to say so.",
    "The format is \\boxed{answer}. My answer: \\boxed{5}",
    "I will put my final answer in \\boxed{your final answer here}. We get \\boxed{5}",
    "\\boxed{\\text{Final Answer}}\n\n\\boxed{5}",
]


def verdict(reference: str, response: str) -> bool | None:
    (found,) = RULES.verify([Item(reference, response)])
    return found.equivalent


@pytest.mark.parametrize("response", DENIED)
def test_a_number_that_is_denied_is_no_answer(response: str) -> None:
    assert verdict("5", response) is not True


@pytest.mark.parametrize("response", STANDS)
def test_what_is_said_of_something_else_denies_nothing(response: str) -> None:
    assert verdict("5", response) is True


@pytest.mark.parametrize(
    ("reference", "answer", "equal"),
    [
        ("(3,4)", r"\{(3,4)\}", True),
        (r"\{(3,4)\}", "(3,4)", True),
        ("(3,4)", r"\{(3,5)\}", False),
        ("(3,4)", r"\{3,4\}", None),
        (r"\sqrt{2}", r"\frac{1}{\sin 45^\circ}", True),
        (r"\tan 70^\circ", r"\frac{\sin 70^\circ}{\cos 70^\circ}", True),
        (r"\tan 70^\circ", r"\frac{\sin 70^\circ}{\cos 60^\circ}", False),
        (r"\begin{pmatrix}1\\3\end{pmatrix}", r"\begin{pmatrix}1\\[4pt]3\end{pmatrix}", True),
        (r"\begin{pmatrix}1\\3\end{pmatrix}", r"\begin{pmatrix}1\\[4pt]4\end{pmatrix}", False),
        ("x=1,y=2", r"\begin{cases}x=1\\[4pt]y=2\end{cases}", True),
    ],
)
def test_notation(reference: str, answer: str, equal: bool | None) -> None:
    with Verifier(VerifyRecipe()) as verifier:
        (found,) = verifier.verify([Item(reference, f"\\boxed{{{answer}}}")])
    assert found.equivalent is equal, found
