"""What an explanation says that an answer was read as: readable words for every kind of value."""

import pytest

from ulorl.verify.grammar import values
from ulorl.verify.scoring.describe import describe
from ulorl.verify.tiers import read_answer

READ = {
    "27 cm": "number 27 with unit 'cm'",
    "3.50": "number 7/2, a decimal to the nearest 1/100",
    r"0.\overline{3}": "number 1/3, a decimal whose digits repeat",
    "6th": "number 6 in a row (an ordinal)",
    "$5": "number 5 with unit money",
    "45%": "number 45 percent",
    "2:3:4": "the ratio 2 : 3 : 4",
    "5:30": "the ratio 5 : 30 (or the time of day 05:30)",
    "7:30 pm": "the time of day 19:30",
    "7 o'clock": "the time of day 07:00, am or pm left open",
    "July 4, 2020": "the date 2020-07-04",
    "3/7/2020": "the date 2020-03-07 or 2020-07-03",
    "1011_2": "the number 1011 in base 2",
    "no solution": "the words 'no solution'",
    "(B) 12": "the choice B, which is number 12",
    r"\{1, 2\}": "a set: [number 1; number 2]",
    r"\emptyset": "the empty set",
    "(1, 2]": "a bracketed list ( ]: [number 1; number 2]",
    "1 and 2": 'a list joined by "and": [number 1; number 2]',
    r"\mathbb{R}": "the set of numbers R",
    r"(0,1) \cup \{3\}": "the union of [a bracketed list ( ): [number 0; number 1]; a set: [number 3]]",
    "x = 5": "x = number 5",
    r"x \in \mathbb{Z}": "x in the set of numbers Z",
    "x + y = 1": "the equation x + y = 1",
    "a < b": "the inequality a < b",
    r"x \equiv 3 \pmod 7": "x congruent to 3 modulo 7",
    r"2k + 1, k \in \mathbb{Z}": "expression 1 + 2 k, where k in Z",
    r"(\pm 1, \pm 2)": "either",
    r"\begin{pmatrix}1&2\\3&4\end{pmatrix}": "a 2 x 2 matrix with rows [number 1; number 2] [number 3; number 4]",
    r"\begin{cases}1&x>0\\0&x\le 0\end{cases}": "by cases: number 1 if",
}


@pytest.mark.parametrize("text", READ)
def test_read_as(text: str) -> None:
    value = read_answer(text).value
    assert value is not None
    assert describe(value).startswith(READ[text])


def test_every_kind_of_value_has_words_of_its_own() -> None:
    shown = {type(read_answer(text).value) for text in READ}
    assert shown == set(values.Value.__args__)
    assert not any(kind.__name__ in describe(read_answer(text).value) for text in READ for kind in shown)
