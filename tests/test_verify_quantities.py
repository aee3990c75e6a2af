"""Numbers with units, percent, words, times, bases and rounding: labelled kinds, policies and properties."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ulorl.recipe import VerifyRecipe
from ulorl.verify.comparison.compare import compare
from ulorl.verify.policy import Policy, policy_of
from ulorl.verify.tiers import RULES, decide, read_answer

DEFAULT = policy_of(VerifyRecipe())
NEVER = Policy(rounding="never")


def relation(reference: str, answer: str, policy: Policy = DEFAULT) -> str:
    return decide(RULES, read_answer(reference), read_answer(answer), policy)[1].relation


def rule(reference: str, answer: str) -> str:
    return decide(RULES, read_answer(reference), read_answer(answer), DEFAULT)[0]


EQUAL = """
27 cm | 0.27 m
5 km | 5000 m
36 km/h | 10 m/s
10\\text{ m/s} | 36\\text{ km/h}
1 m^2 | 10000 cm^2
1 N | 1 \\text{ kg m/s}^2
5\\,\\mathrm{cm^{2}} | 5 \\text{ square centimeters}
428\\text{ sq. ft.} | 428 square feet
2.53 μH | 2.53 µH
1 L | 1000 cubic centimeters
5 kWh | 18 MJ
100°C | 212°F
0 ^\\circ\\mathrm{C} | 273.15 K
180 degrees | \\pi \\text{ radians}
60 rpm | 2\\pi \\text{ rad/s}
5 pounds | 80 ounces
20 dollars per hour | $20/hour
1 hour 30 minutes | 90 minutes
2 \\, \\text{h} \\, 40 \\, \\text{min} | 160 min
1 \\text{ minute 12 seconds} | 72 s
5 ft 6 in | 66 in
5 km 300 m | 5300 m
1h 30m | 90 min
1 000 km | 1000 km
5'6" | 66 inches
30°15' | 30.25^\\circ
27 cm | 27
5 apples | 5
5 units | 5
5 square units | 5 cm^2
7 apples | 7 red apples
3 m | 300 cm
3m | 300 cm
3 m | 3
36\\pi | 36\\pi \\text{ cm}^3
\\$5 | 5 dollars
100 cents | $1
£5 | 5 pounds
5 yuan | 5元
$23{,}000 | 23000 dollars
$500 billion | 500000000000
50% | 0.5
50% | 50
50 percent | 1/2
50 per cent | 50\\%
three | 3
thirty-five | 35
minus five | -5
two and a half | 2.5
three quarters | 0.75
one thousand six hundred twenty-five | 1625
a dozen | 12
5 dozen eggs | 60
3 million | 3000000
third | 3rd
9th day | ninth
五 | 5
三十五 | 35
百分之五十 | 50%
二分之一 | \\frac12
12厘米 | 0.12米
3\\sqrt{2}厘米 | 3\\sqrt2
10:00 a.m. | 10 am
14:30 | 2:30 PM
08:34 \\text{P.M.} | 20:34
noon | 12 pm
midnight | 12 am
half past five | 5:30
7:30 AM | 7:30
March 5, 2021 | 5 March 2021
2021-03-05 | March 5, 2021
7/4/2020 | July 4, 2020
Friday | Fri
星期五 | Friday
3:4 | 6:8
3:4 | 3/4
1 : (4/3) | 3:4
C | c
Option C | (C)
选C | C
yes | True
是 | yes
no solution | \\emptyset
no solution | The equation has no solution.
无解 | none
DNE | does not exist
infinitely many | \\infty
the circle | circle
椭圆 | ellipse
\\text{odd} | odd
1011_{two} | 11
1011 base 2 | 1011_2
0.333... | \\frac13
0.(3) | 1/3
0.1(6) | \\frac16
0.\\dot{3} | 1/3
1'234'567 | 1234567
1_000 | 1000
１２３ | 123
⅖ | 0.4
{1 \\over 2} | 0.5
\\textcolor{red}{42} | 42
\\text{42} | 42
\\boxed{\\text{6 years}} | 6
①③ | 1,3
5 (cm) | 5 cm
≈ 3.14 | 3.14
1.64 x 10^-16 | 1.64e-16
5 | There are 5 apples
5 | x is equal to 5
5 | 5 is the answer
x < 3 | We find that $x \\lt 3$.
5 | 共有5种
**C)** 40\\% | C
5:30 pm | 5\\text{:}30\\text{ p.m.}
= \\frac23 | 2/3
\\text{B,E} | E, B
3 \\text{ hours and } 20 \\text{ minutes} | 200 min
1 hour 30 minutes | 1 hour and 30 minutes
$5.30 | 5 dollars and 30 cents
5 | The remainder is 5.
6 | There are six ways
yes | Yes, it is possible
no | No, because it is odd
33.3 | \\frac{100}{3}
6.46 | \\dfrac{84}{13}\\text{ days}
0.363 | \\frac{\\pi-2}{\\pi}
13.63 | 13.625
16.7 percent | 16.71%
8.05 km | 5 miles
100 km/hr | 100 \\frac{\\text{km}}{\\text{h}}
9.8 m/s^2 | 9.8 \\text{ m s}^{-2}
1 mile | 5280 ft
-40°C | -40°F
50¢ | \\$0.50
Rs. 500 | 500 rupees
5 \\Omega | 5 ohms
2\\pi m | 200\\pi cm
5 N·m | 5 J
0.5 L | 500 cm³
5 square units | 5 units^2
3 1/4 | three and one fourth
-\\infty | negative infinity
3 to 4 | 3:4
下午3点 | 15:00
2020年1月5日 | January 5, 2020
60公里/小时 | 60 km/h
一半 | 1/2
0x1F | 31
0b1011 | 1011_2
(1011)_2 | 1011_{two}
(C) 42 | 42
quarter to eight | 7:45
33.3% | 1/3
"""
DIFFERENT = """
27 cm | 27 m
27 cm | 28 cm
27 cm | 27 g
90 minutes | 1.5
5 mW | 5 MW
5 m/s | 5 \\text{ m/s}^2
5 cm^2 | 5 cm
5 kg | 5 lb
5 ft 6 in | 5.6 ft
1 hour 30 minutes | 1.3 hours
100°C | 100°F
30°15' | 30.15^\\circ
5 apples | 6 pears
$5 | 5 cents
5 dollars | 5 euros
\\$1.50 | \\$1.05
12厘米 | 12米
50% | 5
150\\% | 0.15
four | five
five million | 5
five apples | 4
-5 | five
10 am | 10 pm
7:30 AM | 7:30 PM
7:30 | 7:31
12:30 | 12:31
March 5, 2021 | March 5, 2020
7/4/2020 | 7/4/2021
Friday | Monday
June | July
1:2:3 | 1:3:2
5:8 | 5:6
C | D
yes | no
正确 | 错误
and | or
north | south
increasing | decreasing
at least two thirds | at most two thirds
at least 3 | at most 3
three and one fourth | three and three fourths
(C) 42 | (D) 42
no solution | 5
infinitely many | 0
1011_2 | 1011_3
0.333... | 0.333
0.33 | 1/3
0.3 | 0.\\overline{3}
0.333 | 0.\\overline{3}
\\frac{100}{3} | 33.3
\\pi | 3.14159
13.63 | 13.64
13.63 | 13.6
1.0000001 | 1.0000002
62 | 62.3
5 | 5.001
"""
NOT_EQUAL = """
3m | 3
2x m | 2x
2xm | 2x
2 t | 2
5 squared | 5
5 choose 2 | 5
5 more than x | 5
5 below zero | 5
at least 5 | 5
7 apples | 7 pears
5 minutes | 5 m
1 year | 365 days
10 C | 10 K
third | 1/3
second | 2
no one | 1
no one | no
12:30 | 2/5
one of them | 1
1011_2 | 1011
east | seat
Alice and Bob | Alice
no solution | 0
10:15 | 2:4
2:30 | 2.5
3:4 | 4/3
The answer is not 5 | 5
The value is between 5 and 6 | 5
the width is 5 | the length is 5
f is increasing | g is increasing
5 of 6 | 5
2.5(3) | 7.5
1 2 | 12
"""


def pairs(text: str) -> list[tuple[str, str]]:
    return [(a.strip(), b.strip()) for a, _, b in (line.partition("|") for line in text.strip().splitlines())]


@pytest.mark.parametrize(("reference", "answer"), pairs(EQUAL))
def test_equal(reference: str, answer: str) -> None:
    assert relation(reference, answer) == "equal"


@pytest.mark.parametrize(("reference", "answer"), pairs(DIFFERENT))
def test_different(reference: str, answer: str) -> None:
    assert relation(reference, answer) == "different"


@pytest.mark.parametrize(("reference", "answer"), pairs(NOT_EQUAL))
def test_not_equal(reference: str, answer: str) -> None:
    assert relation(reference, answer) != "equal"
    assert relation(answer, reference) != "equal"


@pytest.mark.parametrize(("reference", "answer"), pairs(EQUAL + DIFFERENT + NOT_EQUAL))
def test_symmetric_without_rounding(reference: str, answer: str) -> None:
    assert relation(reference, answer, NEVER) == relation(answer, reference, NEVER)


@pytest.mark.parametrize("text", sorted({side for pair in pairs(EQUAL + DIFFERENT + NOT_EQUAL) for side in pair}))
def test_every_text_equals_itself(text: str) -> None:
    value = read_answer(text).value
    assert value is None or compare(value, value, DEFAULT).relation == "equal"


def test_the_rule_that_decided_is_reported() -> None:
    assert rule("27 cm", "0.27 m") == "units"
    assert rule("27 cm", "27 g") == "units"
    assert rule("33.3", r"\frac{100}{3}") == "rounding"
    assert rule("3", "three") == "numeric"


def test_policy_of_a_missing_unit() -> None:
    reject = Policy(missing_unit="reject")
    for unit in ("27 cm", "$27", r"27 \text{ km/h}"):
        assert relation(unit, "27") == "equal"
        assert relation(unit, "27", reject) == "different"
        assert relation("27", unit, reject) == "different"
    assert relation("27 m", "27", reject) != "equal"
    assert relation("27 apples", "27", reject) == "equal"
    assert relation("7:30 AM", "7:30", reject) == "different"
    assert relation("180 degrees", r"\pi", reject) == "equal"


def test_policy_of_percent() -> None:
    assert [relation("50%", other) for other in ("0.5", "50", "50\\%")] == ["equal", "equal", "equal"]
    value, strict = Policy(percent="value"), Policy(percent="strict")
    assert [relation("50%", other, value) for other in ("0.5", "50", "50\\%")] == ["equal", "different", "equal"]
    assert [relation("50%", other, strict) for other in ("0.5", "50", "50\\%")] == ["different", "different", "equal"]


def test_rounding_takes_only_the_reference_for_rounded_and_only_with_three_digits() -> None:
    assert relation("0.667", "2/3") == "equal"
    assert relation("0.667", "2/3", NEVER) == "different"
    assert relation("2/3", "0.667") == "different"
    assert relation("0.67", "2/3") == "different"
    assert relation("0.666", "2/3") == "different"
    assert relation("6.67 \\times 10^{-4}", "1/1500") == "equal"
    assert relation("6.67 \\times 10^{-4}", "1/150") == "different"
    assert relation("1.414", "\\sqrt2") == "equal"
    assert relation("1.413", "\\sqrt2") == "different"


@given(st.integers(min_value=100, max_value=99_999), st.integers(min_value=1, max_value=4), st.integers(1, 9))
@settings(max_examples=80, deadline=None)
def test_one_digit_changed_is_never_equal_by_rounding(digits: int, decimals: int, change: int) -> None:
    text = f"{digits / 10**decimals:.{decimals}f}"
    last = str((int(text[-1]) + change) % 10)
    assert relation(text, text[:-1] + last) == ("equal" if text[-1] == last else "different")
