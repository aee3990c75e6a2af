"""Families of words, units, times, money and choices for training a judge."""

from __future__ import annotations

import random
from fractions import Fraction

from ulorl.verify.judge.family import Draw, Family, change_digit, family
from ulorl.verify.judge.numbers import decimal, in_words

_UNITS: tuple[tuple[tuple[str, str, int], ...], ...] = (
    (("mm", "millimeters", 1), ("cm", "centimeters", 10), ("m", "meters", 1000), ("km", "kilometers", 1_000_000)),
    (("mg", "milligrams", 1), ("g", "grams", 1000), ("kg", "kilograms", 1_000_000)),
    (("s", "seconds", 1), ("min", "minutes", 60), ("h", "hours", 3600), ("days", "days", 86400)),
    (("mL", "milliliters", 1), ("L", "liters", 1000)),
    (("in", "inches", 1), ("ft", "feet", 12), ("yd", "yards", 36)),
    (("J", "joules", 1), ("kJ", "kilojoules", 1000)),
    (("W", "watts", 1), ("kW", "kilowatts", 1000), ("MW", "megawatts", 1_000_000)),
    (("Pa", "pascals", 1), ("kPa", "kilopascals", 1000)),
    (("Hz", "hertz", 1), ("kHz", "kilohertz", 1000)),
    (("V", "volts", 1), ("mV", "millivolts", -1000)),
)
_THINGS = ("apples", "students", "ways", "books", "coins", "people", "cars", "points", "games", "marbles", "tickets")
_SAME: tuple[tuple[str, ...], ...] = (
    ("ellipse", "an ellipse", "Ellipse", "It is an ellipse", "椭圆"),
    ("circle", "a circle", "the curve is a circle", "圆"),
    ("parabola", "a parabola", "Parabola", "抛物线"),
    ("hyperbola", "a hyperbola", "双曲线"),
    ("a straight line", "line", "a line"),
    ("two parallel lines", "a pair of parallel lines"),
    ("equilateral triangle", "an equilateral triangle", "the triangle is equilateral", "equilateral", "正三角形"),
    ("isosceles triangle", "the triangle is isosceles", "isosceles"),
    ("right triangle", "a right-angled triangle", "right-angled"),
    ("even", "an even number", "it is even", "偶数"),
    ("odd", "an odd number", "it is odd", "奇数"),
    ("prime", "a prime number", "n is prime", "质数"),
    ("composite", "a composite number", "not prime and greater than 1"),
    ("yes", "Yes.", "Yes, it is", "是"),
    ("no", "No.", "No, it is not", "不是"),
    ("true", "True", "the statement is true", "it is true", "正确"),
    ("false", "False", "the statement is false", "错误"),
    ("increasing", "the function is increasing", "strictly increasing", "it increases"),
    ("decreasing", "the function is decreasing", "it decreases"),
    ("no solution", "there is no solution", "no solutions exist", "there are no solutions", "无解"),
    ("infinitely many", "there are infinitely many", "infinitely many solutions", "无穷多个"),
    (r"\mathbb{R}", "all real numbers", r"(-\infty,\infty)", "every real number", "全体实数"),
    (r"\emptyset", "the empty set", r"\{\}", r"\varnothing", "空集"),
    (r"\mathbb{Z}", "all integers", "the set of integers", "整数集"),
    ("does not exist", "DNE", "the limit does not exist", "undefined", "不存在"),
    (r"\infty", "infinity", r"+\infty", "it diverges to infinity", "无穷大"),
    ("convergent", "the series converges", "it converges"),
    ("divergent", "the series diverges", "it diverges"),
    ("parallel", "the lines are parallel", "they are parallel", "平行"),
    ("perpendicular", "the lines are perpendicular", "they meet at a right angle", "垂直"),
    ("maximum", "a maximum", "local maximum"),
    ("minimum", "a minimum", "local minimum"),
    ("positive", "it is positive", "greater than zero", "> 0"),
    ("negative", "it is negative", "less than zero", "< 0"),
    ("Alice", "It is Alice", "Alice wins", "the winner is Alice"),
    ("Bob", "It is Bob", "Bob wins", "the winner is Bob"),
    ("the first player", "first player", "the player who moves first wins"),
    ("the second player", "second player", "the player who moves second wins"),
    ("Monday", "on a Monday", "Mon", "星期一"),
    ("Thursday", "on a Thursday", "Thu", "星期四"),
    ("January", "in January", "Jan", "一月"),
    ("north", "due north", "to the north", "北"),
    ("east", "due east", "to the east", "东"),
    ("red", "the red one", "Red", "红色"),
    ("blue", "the blue one", "Blue", "蓝色"),
    ("sufficient but not necessary", "sufficient, not necessary", "充分不必要条件"),
    ("necessary but not sufficient", "necessary, not sufficient", "必要不充分条件"),
    ("neither necessary nor sufficient", "neither sufficient nor necessary", "既不充分也不必要条件"),
    ("all odd integers", r"n = 2k+1, k \in \mathbb{Z}", "every odd integer", "n is odd"),
    ("all even integers", r"n = 2k, k \in \mathbb{Z}", "every even integer", "n is even"),
    ("all primes", "every prime number", "all prime numbers"),
    ("all positive integers", r"\mathbb{N}^*", r"n \ge 1", "every positive integer", r"\mathbb{Z}^+"),
    ("centroid", "the centroid of the triangle", "its centroid", "重心"),
    ("incenter", "the incenter of the triangle", "its incenter", "内心"),
    ("orthocenter", "the orthocenter of the triangle", "垂心"),
)  # fmt: skip


_CLOSE: tuple[frozenset[str], ...] = tuple(
    frozenset(names.split("; "))
    for names in (
        "yes; true; positive", "no; false; negative", r"no solution; \emptyset; does not exist; no",
        r"infinitely many; \infty", r"divergent; does not exist; \infty", "odd; all odd integers",
        "even; all even integers", "prime; all primes", "composite; no; even", "the first player; Alice",
        "the second player; Bob", "a straight line; two parallel lines", "parallel; two parallel lines",
        "sufficient but not necessary; necessary but not sufficient",
    )
)  # fmt: skip
"""First forms that may mean the same to somebody: neither is taken as a miss of the other."""


def words(rng: random.Random) -> Family:
    forms = rng.choice(_SAME)
    close = {name for names in _CLOSE if forms[0] in names for name in names} | {forms[0]}
    others = [rng.choice(other) for other in rng.sample([one for one in _SAME if one[0] not in close], 6)]
    misses = [*others, f"not {forms[0]}", f"{forms[0]} or {others[0]}", f"{forms[0][::-1]}"]
    letters = list(forms[0])
    rng.shuffle(letters)
    return family("words", list(forms), [*misses, "".join(letters)] if forms[0].isalpha() else misses)


def units(rng: random.Random) -> Family:
    ladder = rng.choice(_UNITS)
    step = rng.randrange(len(ladder) - 1)
    (small, small_name, low), (large, large_name, high) = ladder[step], ladder[step + 1]
    ratio = Fraction(1, 1000) if high < 0 else Fraction(high, low)
    number = rng.choice([rng.randint(1, 99), rng.randint(100, 5000)])
    inside = decimal(Fraction(number) / ratio)
    forms = [
        f"{number} {small}",
        rf"{number}\text{{ {small}}}",
        f"{number} {small_name}",
        rf"{number}\,\mathrm{{{small}}}",
    ]
    if inside is not None:
        forms += [f"{inside} {large}", rf"{inside} \text{{ {large_name}}}"]
    misses = [
        f"{number} {large}",
        f"{number * 10} {small}",
        f"{change_digit(str(number), rng)} {small}",
        f"{number}0 {large_name}",
    ]
    foreign = rng.choice([other for other in _UNITS if other is not ladder])[0]
    return family("units", forms, [*misses, f"{number} {foreign[0]}", f"{number} {small}^2"])


def counted(rng: random.Random) -> Family:
    number, thing = rng.randint(2, 60), rng.choice(_THINGS)
    other = rng.choice([one for one in _THINGS if one != thing])
    forms = [
        str(number),
        f"{number} {thing}",
        f"There are {number} {thing}",
        rf"{number} \text{{ {thing}}}",
        f"{in_words(number)} {thing}",
    ]
    misses = [
        f"{number + 1} {thing}",
        change_digit(str(number), rng),
        f"{number} {thing} and 1 {other[:-1]}",
        f"{in_words(number + 1)} {thing}",
    ]
    return family("counted", forms, [*misses, f"more than {number} {thing}"])


def money(rng: random.Random) -> Family:
    whole, cents = rng.randint(1, 200), rng.choice([0, 25, 50, 75, rng.randint(1, 99)])
    amount = f"{whole}.{cents:02d}"
    forms = [rf"\${amount}", f"${amount}", f"{amount} dollars", f"{whole * 100 + cents} cents", f"USD {amount}"]
    forms += [f"{whole} dollars", rf"\${whole}"] if cents == 0 else []
    misses = [
        rf"\${whole + 1}.{cents:02d}",
        f"{whole} cents",
        rf"\${whole}.{(cents + 10) % 100:02d}",
        f"€{amount}",
    ]
    return family("money", forms, [*misses, rf"\${change_digit(amount, rng)}"])


def times(rng: random.Random) -> Family:
    hour, minute = rng.randint(1, 11), rng.choice([0, 15, 30, 45, rng.randint(1, 59)])
    text = f"{hour}:{minute:02d}"
    forms = [
        f"{text} PM",
        f"{text} p.m.",
        f"{hour + 12}:{minute:02d}",
        f"{text} in the afternoon",
        rf"{text} \text{{ pm}}",
    ]
    misses = [
        f"{text} AM",
        f"{hour + 1}:{minute:02d} PM",
        f"{hour}:{(minute + 10) % 60:02d} PM",
        f"{hour + 11}:{minute:02d}",
    ]
    return family("time", forms, [*misses, f"{hour} hours {minute} minutes" if minute else f"{hour} hours"])


def choices(rng: random.Random) -> Family:
    letter = rng.choice("ABCDE")
    other = rng.choice([one for one in "ABCDE" if one != letter])
    forms = [
        letter,
        f"({letter})",
        rf"\text{{({letter})}}",
        f"{letter}.",
        f"Option {letter}",
        f"choice {letter}",
        f"选{letter}",
        rf"\mathbf{{{letter}}}",
    ]
    return family(
        "choice",
        forms,
        [other, f"({other})", f"{letter}{other}", f"{letter} or {other}", f"not {letter}", f"Option {other}"],
    )


def angles(rng: random.Random) -> Family:
    degrees = rng.choice([15, 30, 36, 45, 60, 72, 75, 90, 105, 120, 135, 150, rng.randint(1, 179)])
    part = Fraction(degrees, 180)
    radians = rf"\frac{{{part.numerator if part.numerator > 1 else ''}\pi}}{{{part.denominator}}}"
    forms = [
        rf"{degrees}^\circ",
        f"{degrees}°",
        f"{degrees} degrees",
        radians,
        rf"\angle ABC = {degrees}^\circ",
        rf"{degrees}^{{\circ}}",
    ]
    forms += [f"{radians} radians"]
    misses = [
        rf"{180 - degrees if degrees != 90 else 91}^\circ",
        rf"{degrees + 5}^\circ",
        f"{degrees} radians",
        rf"{degrees}\pi",
    ]
    return family("angle", forms, [*misses, rf"{degrees}'", rf"\frac{{\pi}}{{{degrees}}}"])


def letters(rng: random.Random) -> Family:
    a, b = rng.sample("abcdxyzpqrstuvRST", 2)
    n = rng.randint(2, 9)
    forms = [f"{n}{a}{b}", f"{n}{b}{a}", rf"{n} \cdot {a} \cdot {b}", f"{n}*{a}*{b}", f"{a}{b}+{n - 1}{a}{b}"]
    misses = [
        f"{n}{a}",
        f"{n}{a}+{b}",
        rf"\frac{{{n}{a}}}{{{b}}}",
        f"{n}{a}^{b}",
        f"{n + 1}{a}{b}",
        f"{n}{a}{b}^2",
        f"{a}{b}",
    ]
    return family("letters", forms, misses)


PHRASES: tuple[Draw, ...] = (words, words, words, units, units, counted, money, times, choices, angles, letters)
