"""Spellings of one answer that are equal both ways round, and their neighbours, which never are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ulorl.recipe import VerifyRecipe
from ulorl.verify import Item, Verifier
from ulorl.verify.classes import equivalence_classes
from ulorl.verify.outcome import Outcome
from ulorl.verify.policy import Policy
from ulorl.verify.tiers import FAULT, Answer, Tier, decide, read_answer

EQUAL = r"""
8th place | 8
21^{\mathrm{st}} | 21
32^{nd} | 32nd
17th Floor | 17
seventh | 7
twenty-third | 23
4:00 pm | 4
16:00 | 16
9 am | 9
noon | 12
21:07:00 | 21:07
25weeks | 25
25weeks | 25 weeks
6oranges | 6
30minutes | 0.5 hours
30 \AA | 30 angstroms
30 \AA | 3 nm
3.25$10^4$ | 32500
7.5$10^{-3}$ | 0.0075
0.11_2 | 0.75
0.0101_2 | 5/16
2.1_3 | 7/3
0.1_2 | 0.10_2
\{3, 4\} = \{4, 3\} | \{3, 4\}
\{1+e^{\pi i}, 2\} = \{0, 1 \pm 1\} | \{0, 2\}
\{-2,-1,0,1\} | -2\le k\le 1, k\in\mathbb{Z}
\{0, 1\} | -1 < m < 2, m \in \mathbb{Z}
\{1, 2, 3\} | \{x \in \mathbb{Z} : 0 < x \le 3\}
odd | odd function
acute | acute triangle
\text{Ben} | Ben
\mathcal{O}(n^2) | O(n^2)
\log_3 x = 4 | x = 81
2^x = 32 | x = 5
3+6+\cdots+300 | 15150
1+2+3+\cdots+50 | 1275
1+2+\cdots+n | \frac{n(n+1)}{2}
2+4+6+\cdots+2n | n(n+1)
1+3+\cdots+(2n-1) | n^2
P:Q=3 | 3
a:b=3:5 | 3:5
98 g NaCl | 98 g
98 grams of salt | 98 g
2 mol H_2SO_4 | 2 mol
Price = 20 + 3 X | P(x) = 3x + 20
\17 | 17
\lfloor x + 3 \rfloor | \lfloor x \rfloor + 3
\lceil \frac{n}{3} \rceil | \lfloor \frac{n+2}{3} \rfloor
\lfloor \frac{n^2}{4} \rfloor | \lfloor\frac{n}{2}\rfloor \lceil\frac{n}{2}\rceil
\gcd(n, 6) | \gcd(n + 12, 6)
|x^2 - 9| | |x - 3||x + 3|
|x - 1000000| | |1000000 - x|
\sqrt{(x-5)^2} | |x-5|
\text{B,C} | B and C
\{2, 3\} | \{x \in \mathbb{Z}^+ : 1 < x < 4\}
x > 2 | x > 2, x \in \mathbb{R}
-1\le n\le 1, n\in\mathbb{Z} | -2 < n < 2, n\in\mathbb{Z}
\tanh^{-1}(x) | \frac{1}{2}\ln\frac{1+x}{1-x}
4 red | 4
(x, y) = (5, 8) | (5, 8)
640 acres | 1 square mile
""".strip().splitlines()

NEVER = r"""
8th | 9
8th | 8.5
8th place | 8 apples
an eighth | 8
one third | 3
third | \frac{1}{3}
4:00 pm | 5
4:30 pm | 4
9 am | 9 hours
16:00 | 15
21:07:00 | 21:08
21:07:01 | 21:07
1:2:0 | 1:3
1:2:3 | 1:2
25weeks | 25 days
6oranges | 6apples
2abcd | 2
3sinx | 3
6oranges | 7
30 \AA | 30 nm
3.25$10^4$ | 325
0.11_2 | 0.11
0.1_2 | 0.1_3
0.1_2 | 1_2
\{3, 4\} = \{4, 5\} | \{3, 4\}
\{3, 4\} = \{4, 5\} | \{4, 5\}
\{-1,0,1\} | -1\le n\le 1
\{-1,0,1\} | -1\le n\le 2, n\in\mathbb{Z}
\{-1,0,1\} | -1 < n\le 1, n\in\mathbb{Z}
\{0, 1, 2\} | n \le 2, n \in \mathbb{N}
odd function | even function
odd number | odd function
odd | odd ones out
\text{and} | Dan
\text{Amy} | May
\text{Ben} | \text{Ned}
\mathcal{O}(n) | O(n^2)
\log_3 x = 4 | x = 64
2^x = 32 | x = 6
1+2+\cdots+64 | 127
1+2+\cdots+64 | 2080
1+4+\cdots+100 | 1717
1+3+\cdots+91 | 2116
2+3+\cdots+89 | 4004
1+2+\cdots+2^n | 2^{n+1}-1
1+4+\cdots+n | \frac{n(n+1)}{2}
P:Q=3 | 4
a:b=3:5 | 5:3
98 g NaCl | 98 g NaOH
98 g NaCl | 89 g
98 g AB | 98
5 m AB | 5 m
Price = 20 + 3 X | P(x) = 3x + 30
Price = 20 + 3 X | Cost = 20 + 3 X
7,14,19 | Ann: 19, Bob: 14, Eve: 7
\lfloor\sqrt{n-1}\rfloor | \lfloor\sqrt{n-2}\rfloor
\lfloor\sqrt{n}\rfloor | \lfloor\sqrt{n}+\frac{1}{1000}\rfloor
\lfloor n/5000 \rfloor | 0
\lfloor (n+1)/500 \rfloor | \lfloor n/500 \rfloor
\gcd(n, 10007) | 1
n! | n! + \lfloor n/5000 \rfloor
\sum_{k=1}^n \lfloor k/5000 \rfloor | 0
\operatorname{sgn}(x - 6000) | -1
|x - 1000000| | 1000000 - x
\sqrt{(x - 1000000)^2} | 1000000 - x
\max(x, 1000000) | 1000000
\max(x, -1000) | x
|(x-2)(x-\frac{2001}{1000})| | (x-2)(x-\frac{2001}{1000})
|x - 7777777 y| | 7777777 y - x
x<1\text{ and }x>2 | x<1\text{ or }x>2
\tanh^{-1}(1) | 1
7 thousands | 7
7dozens | 7
7 tenths | 7
4 edr | 4
5 degrees of freedom | 5 degrees
2 mol CO | 2 mol Co
x > 2 | x > 2, x \in \mathbb{Z}
(x, y) = [5, 8) | (5, 8)
(p, q) \text{ with } p, q \in \{1, 2\} \text{ and even sum} | (p, q) \text{ with } p, q \in \{1, 2\} \text{ or even sum}
\text{B,C} | B
\text{B,C} | B, D
""".strip().splitlines()


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(VerifyRecipe()) as shared:
        yield shared


def both_ways(verifier: Verifier, line: str, **policy: str) -> list[bool | None]:
    a, b = line.split(" | ")
    items = [Item(x, y, is_answer=True, policy=policy or None) for x, y in ((a, b), (b, a))]
    return [verdict.equivalent for verdict in verifier.verify(items)]


@pytest.mark.parametrize("line", EQUAL)
def test_equal(verifier: Verifier, line: str) -> None:
    assert both_ways(verifier, line) == [True, True]


@pytest.mark.parametrize("line", NEVER)
def test_never_equal(verifier: Verifier, line: str) -> None:
    assert True not in both_ways(verifier, line)


def test_commands_that_lost_their_backslash_are_read(verifier: Verifier) -> None:
    assert both_ways(verifier, "[\x0crac{1}{3}, 2) | [\\frac{1}{3}, 2)") == [True, True]
    assert both_ways(verifier, "2 \times 3^2 | 18") == [True, True]
    assert True not in both_ways(verifier, "2\t3 | 23")


@pytest.mark.parametrize(
    ("response", "reference", "accepted"),
    [
        ("The chance is \\(\\frac{2}{5}\\), that is 40\\%.", r"\frac{2}{5}", True),
        ("The chance is \\(\\frac{2}{5}\\), that is 45\\%.", r"\frac{2}{5}", False),
        ("\\boxed{7}\n### Response\n\\boxed{8}", "8", True),
        ("\\boxed{7}\n### Response\n\\boxed{8}", "7", False),
        ("\\boxed{7}\n### Remarks\n\\boxed{8}", "8", False),
        ("Final Answer: Ben planted the tree 4 years ago. <|im_start|>user", "4", True),
        ("Final Answer: Ben planted the tree 4 years ago. <|im_start|>user", "5", False),
    ],
)
def test_final_answers(verifier: Verifier, response: str, reference: str, accepted: bool) -> None:
    verdict = verifier.verify([Item(reference, response)])[0]
    assert (verdict.equivalent is True) is accepted


def test_votes_are_not_rounded() -> None:
    assert equivalence_classes(["0.333", "1/3", "0.3334", "2/6"], VerifyRecipe()) == [0, 1, 2, 1]


def test_a_fault_of_ours_is_undecided_and_says_so() -> None:
    def broken(reference: Answer, answer: Answer, policy: Policy) -> Outcome:
        raise KeyError("x")

    rule, outcome = decide((Tier("broken", broken),), read_answer("1"), read_answer("2"), Policy())
    assert (rule, outcome.relation) == ("undecided", "undecided")
    assert outcome.reason.startswith(FAULT)


@pytest.mark.parametrize("line", ["8th place | 8", "seventh | 7", "4:00 pm | 4", "16:00 | 16", "12 cm | 12"])
def test_what_is_left_out_is_a_matter_of_policy(verifier: Verifier, line: str) -> None:
    assert True not in both_ways(verifier, line, missing_unit="reject")
