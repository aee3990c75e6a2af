"""The typed rules: equal, different and undecided pairs of every kind, and properties of the relation."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ulorl.recipe import VerifyRecipe
from ulorl.verify import Item, Verifier, equivalence_classes

CONFIG = VerifyRecipe()
EXACT = VerifyRecipe(rounding="never")
"""Rounding takes the reference for rounded and the answer not, so it is the one policy that is not symmetric."""


def verdict(reference: str, answer: str, config: VerifyRecipe = CONFIG) -> bool | None:
    return Verifier(config).verify([Item(reference, answer, is_answer=True)])[0].equivalent


EQUAL = [
    (r"\frac{1}{2}", "0.5"),
    (r"\dfrac12", "1/2"),
    ("3 1/2", "7/2"),
    (r"-2\frac14", "-9/4"),
    ("½", "0.5"),
    ("−3", "-3"),
    ("1,234,567", "1234567"),
    (r"1{,}234", "1234"),
    (r"11,\! 111,\! 111", "11111111"),
    (r"1\,234\,567", "1234567"),
    ("3e-4", "0.0003"),
    (r"1.5\times10^3", "1500"),
    (r"0.\overline{3}", r"\frac13"),
    (r"0.1\overline{2}", r"\frac{11}{90}"),
    (r"50\%", "0.5"),
    (r"\$18", "18"),
    ("$18$", "18 dollars"),
    (r"27\text{ cm}", "27 cm"),
    (r"45^\circ", "45"),
    (r"90^\circ", r"\frac{\pi}{2}"),
    ("x = 5", "5"),
    ("5", "x = 10/2 = 5"),
    (r"\sqrt{12}", r"2\sqrt3"),
    (r"\frac{1}{1+\sqrt2}", r"\sqrt{2}-1"),
    (r"\sqrt{-4}", "2i"),
    (r"\frac{1}{i}", "-i"),
    ("(x+1)^2", "x^2+2x+1"),
    ("x^2+y^2=1", "x^2=1-y^2"),
    ("y = 2x+3", "f(x) = 3+2x"),
    ("(1, 2)", r"\left( 1,\, \frac{4}{2} \right)"),
    ("1, 2, 3", "3, 2 and 1"),
    (r"\{1,2\}", r"\{2,1,1\}"),
    (r"[0,1)\cup(2,\infty)", r"(2,\infty) \cup [0,1)"),
    ("x=2, y=3", "y=3, x=2"),
    ("x=2, y=3", "(2,3)"),
    ("A", r"\text{(A)}"),
    ("Yes", r"\text{yes}"),
    ("1011_2", "11"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{bmatrix} 1 & 2 \\ 3 & \frac{8}{2} \end{bmatrix}"),
    ("2^{100}", str(2**100)),
    ("20!", "2432902008176640000"),
    (r"\cos(x)", r"\cos x"),
    (r"\frac{T}{3}", r"\frac{1}{3}T"),
]
EQUAL += [
    ("x > 3", r"(3,\infty)"),
    (r"1 \le x < 2", "[1,2)"),
    ("2 > x", r"x \in (-\infty, 2)"),
    (r"\{x \mid x > 1\}", r"(1,\infty)"),
    (r"x<1 \text{ or } x>2", r"(-\infty,1)\cup(2,\infty)"),
    (r"1\pm\sqrt{19}", r"1-\sqrt{19}, 1+\sqrt{19}"),
    (r"\frac{-1\pm\sqrt{5}}{2}", r"\frac{\sqrt5-1}{2}, -\frac{1+\sqrt5}{2}"),
    ("(p,q) = (3,2)", "(3,2)"),
]
DIFFERENT = [
    ("27 cm", "27 m"),
    ("0.333...", "0.333"),
    ("10 am", "10 pm"),
    ("and", "or"),
    ("5 million", "5"),
    ("3<x<5", r"3<x\le5"),
    (r"\pm 3", "3, 4"),
    (r"\{x\mid x>1\}", r"[1,\infty)"),
    ("2^{100}", str(2**100 + 1)),
    ("1.0000001", "1.0000002"),
    ("0.33", r"\frac13"),
    (r"\sqrt2", "1.41421356"),
    (r"\pi", "3.14159"),
    ("(1,2]", "[1,2)"),
    ("(1,2)", "(2,1)"),
    ("(-2)^2", "-2^2"),
    ("A", "B"),
    ("yes", "no"),
    ("5", "5 or 6"),
    ("1, 2", "1, 3"),
    ("12_3", "12_4"),
    ("1+2i", "1-2i"),
    (r"4\sqrt2", "4"),
    (r"5\text{, }6", "5"),
    ("x=2, y=3", "x=3, y=2"),
    (r"\infty", r"-\infty"),
]
UNDECIDED = [
    ("31/2", "3 1/2 x"),
    ("7", "1=2=7"),
    ("3", "3m"),
    (r"\sqrt{23}", r"\sqrt23"),
    ("5", "1/2x"),
    ("0", r"\infty-\infty"),
    (r"\cos 1", r"\cos 1^\circ"),
    ("east", "seat"),
    ("1011_2", "1011"),
    ("1 ft, 6 in", "18"),
    ("5 squared", "5"),
    ("7 apples", "7 pears"),
    (r"5\text{x}", "5"),
    ("5", "__import__('os').system('true')"),
]


@pytest.mark.parametrize(("reference", "answer"), EQUAL)
def test_equal(reference: str, answer: str) -> None:
    assert verdict(reference, answer) is True


@pytest.mark.parametrize(("reference", "answer"), DIFFERENT)
def test_different(reference: str, answer: str) -> None:
    assert verdict(reference, answer) is False


@pytest.mark.parametrize(("reference", "answer"), UNDECIDED)
def test_undecided_with_a_reason(reference: str, answer: str) -> None:
    result = Verifier(CONFIG).verify([Item(reference, answer, is_answer=True)])[0]
    assert result.equivalent is None
    assert result.rule == "undecided"
    assert result.reason


@pytest.mark.parametrize(("reference", "answer"), EQUAL + DIFFERENT + UNDECIDED)
def test_the_order_of_the_arguments_does_not_matter(reference: str, answer: str) -> None:
    assert verdict(reference, answer, EXACT) == verdict(answer, reference, EXACT)


def test_lists_with_several_names_are_symmetric() -> None:
    a, b = "p=5,q=2;p=7,q=2", "p=5,q=8;p=7,q=2"
    assert verdict(a, b) is verdict(b, a)
    assert verdict(a, "p=7, q=2, p=5, q=2") is True


def test_one_digit_changed_in_a_list_of_numbers_is_never_equal() -> None:
    reference = "12, 345, 6789"
    for position, digit in enumerate(reference):
        if digit.isdigit():
            changed = reference[:position] + str((int(digit) + 3) % 10) + reference[position + 1 :]
            assert verdict(reference, changed) is False, changed


def test_a_mixed_number_is_never_glued() -> None:
    assert verdict("31/2", "3 1/2") is False


def test_tolerance_is_relative_and_inclusive() -> None:
    tolerant = VerifyRecipe(relative_tolerance=0.0625)
    assert verdict("16", "15", tolerant) is True
    assert verdict("16", "14.99", tolerant) is False
    assert verdict("0", "0.001", tolerant) is False


@pytest.mark.parametrize("reference", ["", "  ", "$$", r"\frac{1}{2", "}{", "."])
def test_an_unusable_reference_accepts_nothing(reference: str) -> None:
    verifier = Verifier(CONFIG)
    assert verifier.check_reference(reference) is not None
    for answer in (reference, "", "1", r"\boxed{}"):
        assert verifier.verify([Item(reference, answer, is_answer=True)])[0].equivalent is None


@pytest.mark.parametrize("reference", ["5", r"\frac{1}{2}", r"\text{Friday}", "a+b=c", "so 6 eggs\n#### 6"])
def test_a_usable_reference(reference: str) -> None:
    assert Verifier(CONFIG).check_reference(reference) is None


def ten_ways(n: int) -> list[str]:
    return [
        str(n), f"{n:,}", f"{n}.0", f"{n}.", f"${n}$", f"+{n}", rf"\frac{{{2 * n}}}{{2}}", f"x = {n}",
        rf"\boxed{{{n}}}", f"{n:,}".replace(",", "{,}"), f"{n} apples", f"{100 * n} / 100",
    ]  # fmt: skip


@given(st.integers(min_value=0, max_value=10**30))
@settings(max_examples=60, deadline=None)
def test_a_number_equals_its_spellings_and_not_the_next(n: int) -> None:
    for text in ten_ways(n):
        assert verdict(str(n), text) is True, text
        assert verdict(str(n + 1), text) is False, text


@given(st.fractions(max_denominator=10**6), st.fractions(max_denominator=10**6))
@settings(max_examples=100, deadline=None)
def test_fractions_compare_exactly(a: Fraction, b: Fraction) -> None:
    def latex(x: Fraction) -> str:
        return rf"{'-' if x < 0 else ''}\frac{{{abs(x.numerator)}}}{{{x.denominator}}}"

    assert verdict(str(a), latex(a)) is True
    assert verdict(str(a), latex(b)) is (a == b)


PIECES = [
    *"0123456789xyab+-*/^_=(){}[],.%$!| \\",
    "\\frac",
    "\\sqrt",
    "\\pi",
    "\\text{",
    " or ",
    "\\left(",
    "\\%",
    "\\circ",
]
ANSWERS = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


@given(ANSWERS, ANSWERS)
@settings(max_examples=300, deadline=None)
def test_symmetric_and_never_raises(a: str, b: str) -> None:
    assert verdict(a, b, EXACT) == verdict(b, a, EXACT) or "boxed" in a + b or "" in (a.strip(), b.strip())
    if Verifier(CONFIG).check_reference(a) is None:
        assert verdict(a, a) is True


def test_classes_group_equivalent_answers() -> None:
    answers = ["1/2", None, "0.5", r"\frac{1}{2}", "7", "x=7", None, "seven eggs", "7.0"]
    assert equivalence_classes(answers, CONFIG) == [0, -1, 0, 0, 1, 1, -1, 1, 1]


def test_many_different_answers_stay_apart() -> None:
    assert equivalence_classes([str(i) for i in range(200)], CONFIG) == list(range(200))
