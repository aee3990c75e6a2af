"""Sets, tuples, matrices, intervals, families, equations and named values: what is equal, different, undecided."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ulorl.verify.outcome import Relation
from ulorl.verify.policy import DEFAULT, Policy
from ulorl.verify.tiers import RULES, decide, read_answer


def relation(reference: str, answer: str, policy: Policy = DEFAULT) -> Relation:
    return decide(RULES, read_answer(reference), read_answer(answer), policy)[1].relation


EQUAL = [
    # tuples, vectors, matrices
    (r"\langle 1, 2, 3 \rangle", "(1,2,3)"),
    (r"\begin{pmatrix} 1 \\ 2 \\ 3 \end{pmatrix}", "(1, 2, 3)"),
    (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\langle 1, 2 \rangle"),
    (r"\begin{pmatrix} 1 & 2 \end{pmatrix}", "(1, 2)"),
    (r"\begin{bmatrix} 1 & 2 \\ 3 & 4 \end{bmatrix}", "[[1,2],[3,4]]"),
    (r"\begin{bmatrix} 1 & 2 \\ 3 & 4 \end{bmatrix}", "Matrix([[1, 2], [3, 4]])"),
    (r"\left[\begin{array}{cc} 1 & 2 \\ 3 & 4 \end{array}\right]", r"\begin{matrix} 1 & 2 \\ 3 & 4 \end{matrix}"),
    (r"\frac{1}{2}\begin{pmatrix} 2 \\ -4 \end{pmatrix}", r"\begin{pmatrix} 1 \\ -2 \end{pmatrix}"),
    (r"-\begin{pmatrix} 2 \\ -4 \end{pmatrix}", r"\begin{pmatrix} -2 \\ 4 \end{pmatrix}"),
    (r"\begin{pmatrix} 1 & 2 \end{pmatrix}^T", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}"),
    (r"(1,2)^T", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}"),
    (r"\begin{vmatrix} 2 & 1 \\ 1 & 2 \end{vmatrix}", "3"),
    (r"\begin{pmatrix} \sqrt{8} \\ \frac{2}{4} \end{pmatrix}", r"\begin{pmatrix} 2\sqrt2 \\ 0.5 \end{pmatrix}"),
    ("((1,2),(3,4))", "((1,2),(3,4))"),
    ("(1,2),(3,4)", "(3,4) and (1,2)"),
    ("(1,2),(3,4)", r"\{(3,4),(1,2)\}"),
    ("(1,2),(3,4)", r"(1,2) \text{ or } (3,4)"),
    ("(1,2),(3,4)", "[(1,2),(3,4)]"),
    ("(a, b) = (1, 2)", "(1, 2)"),
    ("1,2,3", "(1,2,3)"),
    # lists and sets
    ("1, 2, 3", r"\{3, 2, 1\}"),
    ("1, 2 and 3", "1, 2, 3"),
    ("1, 2, or 3", "3; 1; 2"),
    (r"1 \text{ and } 2", "1 and 2"),
    ("-2、3", "3, -2"),
    ("x=1或x=2", "1, 2"),
    ("x = 1 or x = 2", "x = 1, 2"),
    ("x = 1 or x = 2", "1, 2"),
    (r"x = 1 \lor x = 2", r"x \in \{1, 2\}"),
    (r"\{1, 2, 2\}", r"\{1, 2\}"),
    (r"\{1, 2\} \cup \{2, 3\}", r"\{1, 2, 3\}"),
    (r"\{1,2,3\} \cap \{2,3,4\}", r"\{2,3\}"),
    (r"\{1,2,3\} \setminus \{2\}", r"\{1,3\}"),
    (r"\emptyset", r"\{\}"),
    (r"\emptyset", r"\text{no solution}"),
    (r"\{5\}", "5"),
    (r"\{x \mid x^2 = 4\}", r"\{x : x^2=4\}"),
    # named values
    ("x=2, y=3", "y=3, x=2"),
    ("x=2, y=3", r"x=2 \text{ and } y=3"),
    ("x=2; y=3", "(2, 3)"),
    ("y=3, x=2", "(2, 3)"),
    ("a=1,b=2,c=3", "(1,2,3)"),
    ("p=5,q=2;p=7,q=2", "(5,2),(7,2)"),
    ("p=5,q=2;p=7,q=2", "q=2, p=7 or q=2, p=5"),
    ("(x,y) = (1,2), (3,4)", "(3,4), (1,2)"),
    ("(x,y) = (1,2) or (x,y) = (3,4)", "(3,4), (1,2)"),
    ("(x, y) = (1, 2)", "x = 1, y = 2"),
    ("(x, y) = (1, 2)", r"\begin{cases} x = 1 \\ y = 2 \end{cases}"),
    ("x_1 = 2, x_2 = 3", "3, 2"),
    ("x_{1,2} = 1 \\pm \\sqrt{2}", "1+\\sqrt2, 1-\\sqrt2"),
    ("AB = 4, CD = 5", "4, 5"),
    ("Minimum: 1, Maximum: 3", "1, 3"),
    ("x = y = z = 1", "1"),
    ("x = y = z = 1", "(1, 1, 1)"),
    ("x = y = 1", "x = 1, y = 1"),
    (r"\angle ABC = 30^\circ", r"30^\circ"),
    (r"\frac{AB}{CD} = \frac{1}{2}", "1/2"),
    ("f(2) = 7", "7"),
    ("P(A) = 1/2", "0.5"),
    # plus-minus
    (r"\pm 3", "-3, 3"),
    (r"x = \pm 3", "x = 3 or x = -3"),
    (r"1 \pm i", "1+i, 1-i"),
    (r"(\pm 1, 2)", "(1,2), (-1,2)"),
    (r"(\pm 1, \pm 2)", "(1,2), (-1,2), (1,-2), (-1,-2)"),
    (r"(\pm 1, \mp 2)", "(1,-2), (-1,2)"),
    (r"\{1 \pm \sqrt5, -2\}", r"\{-2, 1+\sqrt5, 1-\sqrt5\}"),
    (r"\pm 1, \pm 2", "1, -1, 2, -2"),
    (r"\pm\sqrt2\pm\sqrt3", r"\sqrt2+\sqrt3, \sqrt2-\sqrt3, -\sqrt2+\sqrt3, -\sqrt2-\sqrt3"),
    # intervals and inequalities
    (r"(1,2)\cup(2,3)", r"(2,3) \cup (1,2)"),
    (r"[0,1]\cup[1,2]", "[0,2]"),
    (r"(0,1)\cup\{1\}\cup(1,2)", "(0,2)"),
    (r"x<1 \text{ or } x>2", r"(2,\infty)\cup(-\infty,1)"),
    ("1<x<2", "2>x>1"),
    ("1<x<2", "x>1 and x<2"),
    ("1<x<2", "x>1, x<2"),
    (r"x\in[1,2]", r"1\le x\le 2"),
    (r"[1,2]", r"x \geq 1 \text{ and } x \leq 2"),
    (r"\{x \mid 1<x\}", r"(1,\infty)"),
    (r"\{x \in \mathbb{R} : 1<x<2\}", "1<x<2"),
    (r"x \ne 3", r"(-\infty,3)\cup(3,\infty)"),
    ("x != 3", r"\mathbb{R}\setminus\{3\}"),
    (r"x \ne 1, 2", r"x \ne 1 \text{ and } x \ne 2"),
    (r"x \ne \pm 1", r"(-\infty,-1)\cup(-1,1)\cup(1,\infty)"),
    (r"\mathbb{R}", r"\text{all real numbers}"),
    (r"\mathbb{R}", r"(-\infty, \infty)"),
    (r"\mathbb{R} - \{0\}", r"(-\infty,0)\cup(0,+\infty)"),
    (r"\mathbb{R}^+", r"(0,\infty)"),
    ("|x| < 2", "(-2, 2)"),
    ("|x - 1| \\ge 2", "x \\le -1 \\text{ or } x \\ge 3"),
    ("-x > -1", "x < 1"),
    ("2x + 1 > 5", "x > 2"),
    (r"(-\infty, 3]", r"[-\infty, 3]"),
    (r"[0, 3] \cap [2, 5]", "[2, 3]"),
    (r"[0,2] \setminus (0,1)", r"\{0\}\cup[1,2]"),
    ("x>1", "1<x"),
    (r"a \le -2 \text{ or } a = 1", r"(-\infty,-2]\cup\{1\}"),
    (r"\left(\frac{1}{2}, \pi\right)", "0.5 < t < \\pi"),
    (r"(1,2) \cap (3,4)", r"\emptyset"),
    (r"[a, b)", "a \\le x < b"),
    ("a < b < c", "c > b > a"),
    ("x + y < 5", "2x + 2y < 10"),
    ("x + y < 5", "5 > x + y"),
    # families
    (r"\frac{\pi}{4}+k\pi, k\in\mathbb{Z}", r"\frac{\pi}{4}+n\pi"),
    (r"\frac{\pi}{4}+k\pi, k\in\mathbb{Z}", r"\frac{5\pi}{4}+n\pi, n \in \mathbb{Z}"),
    (r"x = \frac{\pi}{4}+k\pi \ (k\in\mathbb{Z})", r"x = -\frac{3\pi}{4}+k\pi, \text{ where } k \text{ is an integer}"),
    (r"x = k\pi, k\in\mathbb{Z}", r"x = 2k\pi \text{ or } x = (2k+1)\pi, k \in \mathbb{Z}"),
    (r"\pm\frac{\pi}{2}+2k\pi", r"\frac{\pi}{2}+k\pi"),
    (r"\pm\frac{\pi}{3}+2k\pi", r"\frac{\pi}{3}+2n\pi, \frac{5\pi}{3}+2n\pi"),
    (r"45^\circ + 180^\circ k, k \in \mathbb{Z}", r"225^\circ + 180^\circ n, n\in\mathbb{Z}"),
    (r"x = 2n+1, n \in \mathbb{Z}", r"x = 2k-1, k \in \mathbb{Z}"),
    (r"x = 2n+1, n \text{ integer}", r"2k+1, k \in \mathbb{Z}"),
    (r"\{2k+1 \mid k \in \mathbb{Z}\}", r"2n+1 \text{ for some integer } n"),
    (r"x \equiv 3 \pmod 7", r"x \equiv 10 \pmod{7}"),
    (r"x \equiv 3 \pmod 7", r"7k+3, k\in\mathbb{Z}"),
    (r"3 \pmod 7", "x \\equiv 3 \\mod 7"),
    (r"x \equiv 1, 4 \pmod 5", r"x \equiv 4 \pmod 5 \text{ or } x \equiv 1 \pmod 5"),
    (r"2n, n \in \mathbb{N}", r"2k, k \in \mathbb{N}"),
    # equations and functions
    ("x = 5", "5 = x"),
    ("y = 2x+1", "2x - y + 1 = 0"),
    ("y = 2x+1", "2y = 4x + 2"),
    ("3x+4y = 12", r"\frac{x}{4} + \frac{y}{3} = 1"),
    ("(x-1)^2+(y+2)^2=9", "x^2+y^2-2x+4y-4=0"),
    (r"\frac{x^2}{4}+\frac{y^2}{9}=1", "9x^2+4y^2=36"),
    ("xy=1", r"y=\frac{1}{x}"),
    ("x^2 = 4", r"x = \pm 2"),
    ("f(x) = 2x", "f(t) = 2t"),
    ("f(x) = 2x", "2x"),
    ("f(x) = 2x", "2t"),
    ("f(x, y) = x - 2y", "g(u, v) = u - 2v"),
    ("a_n = 2n+1", "2n+1"),
    ("x = 6/2 = 3", "3"),
    ("m + n = 3 + 4 = 7", "7"),
    ("f(x) = 0 or f(x) = x", "f(x) = x, f(x) = 0"),
    (r"f(x) = 1 \text{ for all } x \in \mathbb{R}", "f(x) = 1"),
    (r"f(x) = cx, c \in \mathbb{R}", r"f(x) = kx, k \in \mathbb{R}"),
    (r"f(x) = cx \text{ for any real constant } c", r"f(x) = ax \text{ where } a \in \mathbb{R}"),
    (r"x^2 + y^2 \ne 1", r"1 \ne x^2 + y^2"),
    (r"\frac{1+\sqrt5}{2} \approx 1.618", r"\frac{1+\sqrt5}{2}"),
    (r"\begin{cases} x & \text{if } x > 0 \\ 0 & \text{if } x \le 0 \end{cases}",
     r"\begin{cases} 0, & x \le 0 \\ x, & x > 0 \end{cases}"),
    # choices
    ("(B) 12", "B"),
    (r"\textbf{(B)}\ 12", "12"),
    ("ABD", "D, B, A"),
]  # fmt: skip
DIFFERENT = [
    (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\begin{pmatrix} 1 & 2 \end{pmatrix}"),
    (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", r"\begin{pmatrix} 1 & 3 \\ 2 & 4 \end{pmatrix}"),
    (r"\begin{pmatrix} 1 \\ 2 \\ 3 \end{pmatrix}", "(1, 3, 2)"),
    (r"\begin{pmatrix} 1 & 0 \\ 0 & 1 \end{pmatrix}", r"\begin{pmatrix} 1 & 0 & 0 \\ 0 & 1 & 0 \end{pmatrix}"),
    ("(1,2)", "(1,2,3)"),
    ("(1,2)", "[1,2]"),
    ("(1,2)", "(1,2]"),
    ("(1,2),(3,4)", "(1,2),(4,3)"),
    ("(1,2),(3,4)", "(1,2)"),
    ("(1,2),(3,4)", "1,2,3,4"),
    ("((1,2),(3,4))", "((1,2),(4,3))"),
    ("1,2,3", "1,2"),
    ("1,2,3", "1,2,3,4"),
    (r"\{1,2\}", r"\{1,2,3\}"),
    (r"\{1,2\}", r"\{1,-2\}"),
    (r"\{1,2\} \cup \{3\}", r"\{1,2\}"),
    ("5", "5 or 6"),
    ("5", r"\{5, 6\}"),
    ("5", "(5, 6)"),
    ("x=5", r"x=5 \text{ or } x=6"),
    ("x=2, y=3", "x=3, y=2"),
    ("x=2, y=3", "(3,2)"),
    ("x=2, y=3", "(2,3),(3,2)"),
    ("x=2, y=3", "y=2, x=3"),
    ("p=5,q=2;p=7,q=2", "(5,2),(7,3)"),
    ("p=5,q=2;p=7,q=2", "(5,2)"),
    ("16,3,1,1", "w=16, d=3, a=2, b=2"),
    ("Minimum: 1, Maximum: 3", "1, 2"),
    ("x = 5", "y = 6"),
    ("x = 5", "x > 5"),
    (r"\pm 3", "3"),
    (r"(\pm 1, 2)", "(1,2)"),
    (r"(\pm 1, \mp 2)", "(1,2), (-1,-2)"),
    (r"\pm 1, \pm 2", "1, -1, 2"),
    (r"(1,2)\cup(2,3)", "(1,3)"),
    (r"(-\infty,1)\cup(2,\infty)", "(1,2)"),
    (r"(-\infty,1)\cup(2,\infty)", r"(-\infty,1]\cup(2,\infty)"),
    (r"(-\infty,1)\cup(2,\infty)", r"(-\infty,1)\cup(3,\infty)"),
    (r"\mathbb{R}\setminus\{0\}", r"\mathbb{R}"),
    (r"\mathbb{R}", r"\mathbb{Z}"),
    (r"x \ne 3", r"x \ne -3"),
    (r"x \ne 1, 2", r"x \ne 1"),
    ("|x| < 2", "(0,2)"),
    ("x < 1", "x > 1"),
    ("-x > -1", "x > 1"),
    (r"\{x \mid x>1\}", r"[1,\infty)"),
    ("a < b < c", "b < a < c"),
    ("a < b < c", r"a \le b < c"),
    ("x + y < 5", "x + y > 5"),
    ("x + y < 5", r"x + y \le 5"),
    (r"\frac{\pi}{4}+k\pi, k\in\mathbb{Z}", r"-\frac{\pi}{4}+n\pi"),
    (r"\frac{\pi}{4}+k\pi, k\in\mathbb{Z}", r"\frac{\pi}{4}+2n\pi"),
    (r"\frac{\pi}{4}+k\pi", r"\frac{\pi}{4}"),
    (r"x = k\pi", r"2n\pi"),
    (r"2n+1, n\in\mathbb{Z}", r"2n, n\in\mathbb{Z}"),
    (r"x \equiv 3 \pmod 7", r"x \equiv 4 \pmod 7"),
    (r"x \equiv 3 \pmod 7", r"x \equiv 3 \pmod 8"),
    (r"x \equiv 1, 4 \pmod 5", r"x \equiv 1 \pmod 5"),
    ("y = 2x+1", "2x + y + 1 = 0"),
    ("y = 2x+1", "y = 2x - 1"),
    ("y = 2x+1", "y = -2x - 1"),
    ("(x-1)^2+(y+2)^2=9", "x^2+y^2-2x+4y+4=0"),
    ("x^2+y^2=1", "x^2-y^2=1"),
    ("x^2 = 4", r"x = \pm 3"),
    ("f(x) = 2x", "f(t) = 3t"),
    ("f(x, y) = x - 2y", "f(x, y) = y - 2x"),
    ("f(x) = 0 or f(x) = x", "f(x) = 0 or f(x) = -x"),
    ("a_n = 2n+1", "a_n = 2n-1"),
    (r"f(x) = x \text{ for all } x \in \mathbb{Q}", "f(x) = 1"),
    ("(B) 12", "C"),
    ("(B) 12", "13"),
    ("ABD", "A, B"),
]
UNDECIDED = [
    ("x=2, y=3", "3, 2"),
    ("(1,2)", "1, 2"),
    (r"(\pm 1, \pm 2)", "(1,2), (-1,-2)"),
    ("3", "1=2=3"),
    ("3", "x = 1 = 3"),
    ("2k+1", "2k-1"),
    ("2n", "2k"),
    (r"2n, n \in \mathbb{N}", r"2n, n \in \mathbb{Z}"),
    ("y = ax", "y = bx"),
    ("x = 5", "y = 5"),
    (r"y = \frac{1}{x}, x > 0", r"y = \frac{1}{x}"),
    (r"f(x) = cx, c > 0", "f(x) = cx"),
    ("1, 2, \\dots, 10", "1, 2, 10"),
    (r"x \in \mathbb{Z}, 1 < x < 3", "1 < x < 3"),
    ("1 and 2", "1 or 2"),
    ("(1,2", "(1,2)"),
    ("1,,2", "1,2"),
    ("a<b>c", "a<b, b>c"),
]


@pytest.mark.parametrize(("reference", "answer"), EQUAL)
def test_equal_in_both_directions(reference: str, answer: str) -> None:
    assert (relation(reference, answer), relation(answer, reference)) == ("equal", "equal")


@pytest.mark.parametrize(("reference", "answer"), DIFFERENT)
def test_different_in_both_directions(reference: str, answer: str) -> None:
    assert (relation(reference, answer), relation(answer, reference)) == ("different", "different")


@pytest.mark.parametrize(("reference", "answer"), UNDECIDED)
def test_undecided_in_both_directions(reference: str, answer: str) -> None:
    assert (relation(reference, answer), relation(answer, reference)) == ("undecided", "undecided")


def test_strict_order_of_lists_is_a_policy() -> None:
    strict = Policy(order="strict")
    assert relation("1, 2, 3", "3, 2, 1") == "equal"
    assert relation("1, 2, 3", "3, 2, 1", strict) == "different"
    assert relation("1, 2, 3", "1, 2, 3", strict) == "equal"
    assert relation(r"\{1, 2, 3\}", r"\{3, 2, 1\}", strict) == "equal"


def test_partners_are_found_where_the_first_choice_is_wrong() -> None:
    # 0.33 rounds both 1/3 and 0.33; only one assignment leaves a partner for each.
    tolerant = Policy(relative_tolerance=Fraction(1, 20))
    assert relation("100, 104", "104, 108", tolerant) == "equal"
    assert relation("100, 104", "104, 112", tolerant) == "different"


def test_long_lists_are_bounded() -> None:
    many = ", ".join(str(n) for n in range(300))
    assert relation(many, ", ".join(str(n) for n in reversed(range(300)))) in ("undecided", "equal")
    assert relation("[" * 200 + "1" + "]" * 200, "1") == "undecided"
    assert relation(r"\pm 1" * 40, "1") == "undecided"


@pytest.mark.parametrize(
    "text",
    [
        r"\{" * 390 + "1" + r"\}" * 390,
        "A. " * 1300 + "5",
        "[" * 390 + "1,2" + "]" * 390,
        r"S=\{" * 150 + "1" + r"\}" * 150,
        "x = " * 390 + "y",
        r"\pm " * 300 + "1",
        "1 or " * 300 + "1",
        r"1\cup " * 300 + "2",
        "(1," * 190 + "1" + ")" * 190,
        r"\begin{pmatrix}" * 60 + "1" + r"\end{pmatrix}" * 60,
        "|" * 300,
        "1<" * 200 + "2",
        "(a) " * 200,
        r"10^{100}k\pi, k\in\mathbb{Z}",
    ],
)
def test_hostile_nesting_raises_nothing(text: str) -> None:
    for other in ("1", r"k\pi, k\in\mathbb{Z}", "(1,2)"):
        assert relation(text, other) != "equal"
        assert relation(other, text) != "equal"
