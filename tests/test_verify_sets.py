"""Sets, families, lines and tuples drawn at random, against an independent computation."""

from __future__ import annotations

import random
from fractions import Fraction

from ulorl.verify.outcome import Relation
from ulorl.verify.policy import DEFAULT
from ulorl.verify.tiers import RULES, decide, read_answer


def relation(reference: str, answer: str) -> Relation:
    return decide(RULES, read_answer(reference), read_answer(answer), DEFAULT)[1].relation


def _random_set(rng: random.Random) -> tuple[str, object]:
    """LaTeX of a random union or difference of intervals and points, and the same set in sympy."""
    from sympy import FiniteSet, Interval, Rational, S, Union, oo

    def number() -> tuple[str, object]:
        value = Fraction(rng.randint(-6, 6), rng.choice((1, 1, 2)))
        return rng.choice((str(value), rf"{float(value)}")), Rational(value.numerator, value.denominator)

    def piece() -> tuple[str, object]:
        (low_text, low), (high_text, high) = sorted((number(), number()), key=lambda pair: pair[1])
        kind = rng.random()
        if low == high or kind < 0.2:
            return rf"\{{{low_text}\}}", FiniteSet(low)
        left, right = rng.choice("(["), rng.choice(")]")
        if kind < 0.3:
            return rf"(-\infty, {high_text}{right}", Interval(-oo, high, True, right == ")")
        if kind < 0.4:
            return rf"{left}{low_text}, \infty)", Interval(low, oo, left == "(", True)
        return f"{left}{low_text}, {high_text}{right}", Interval(low, high, left == "(", right == ")")

    pieces = [piece() for _ in range(rng.randint(1, 4))]
    text, value = r" \cup ".join(p[0] for p in pieces), Union(*(p[1] for p in pieces))
    if rng.random() < 0.3:
        removed = piece()
        return rf"\left({text}\right) \setminus {removed[0]}" if len(pieces) > 1 else (
            rf"{text} \setminus {removed[0]}"
        ), value - removed[1]
    if len(pieces) > 1 and rng.random() < 0.2:
        return rf"\mathbb{{R}} \setminus ({text})", S.Reals - value
    return text, value


def test_sets_of_real_numbers_agree_with_sympy() -> None:
    from sympy import S, SymmetricDifference

    rng = random.Random(11)
    sets = [_random_set(rng) for _ in range(26)]
    equal = 0
    for text_a, set_a in sets:
        for text_b, set_b in rng.sample(sets, 5):
            expected = SymmetricDifference(set_a, set_b) == S.EmptySet
            equal += expected
            found = relation(text_a, text_b)
            if "cup" in text_a + text_b or "setminus" in text_a + text_b:
                assert found == ("equal" if expected else "different"), (text_a, text_b)
            else:
                assert (found == "equal") <= expected, (text_a, text_b)
    assert equal >= 3


def test_a_split_set_is_the_whole() -> None:
    rng = random.Random(5)
    for _ in range(60):
        low, middle, high = sorted(rng.sample(range(-20, 20), 3))
        pieces = [rf"[{low},{middle})", rf"\{{{middle}\}}", rf"({middle},{high}]"]
        rng.shuffle(pieces)
        assert relation(rf"[{low},{high}]", r"\cup".join(pieces)) == "equal"
        assert relation(rf"{low} \le x \le {high}", r"\cup".join(pieces[:2])) == "different"


def _members(offsets: list[Fraction], period: Fraction) -> set[Fraction]:
    """The members between 0 and 60 of the progressions with these offsets."""
    return {o + k * period for o in offsets for k in range(-400, 400) if 0 <= o + k * period < 60}


def test_families_agree_with_their_members() -> None:
    rng = random.Random(3)

    def side() -> tuple[str, set[Fraction]]:
        period = Fraction(rng.choice((1, 2, 3)), rng.choice((1, 2)))
        offsets = [Fraction(rng.randint(-4, 4), 2) for _ in range(rng.randint(1, 2))]
        letter = rng.choice("kn")
        pi = [rf"\frac{{{o.numerator}\pi}}{{{o.denominator}}}" for o in offsets]
        terms = [rf"{o} + \frac{{{period.numerator}{letter}\pi}}{{{period.denominator}}}" for o in pi]
        return ", ".join(terms) + rf", {letter} \in \mathbb{{Z}}", _members(offsets, period)

    sides = [side() for _ in range(14)]
    equal = 0
    for text_a, members_a in sides:
        for text_b, members_b in sides:
            equal += members_a == members_b
            assert relation(text_a, text_b) == ("equal" if members_a == members_b else "different"), (text_a, text_b)
    assert equal >= 14


def test_lines_agree_with_their_coefficients() -> None:
    rng = random.Random(8)
    for _ in range(80):
        a, b, c, d, e, f = (rng.choice((-3, -2, -1, 1, 2, 3)) for _ in range(6))
        same = a * e == b * d and a * f == c * d
        one, other = f"{a}x + {b}y + {c} = 0", f"{d}x + {e}y = {-f}"
        assert relation(one, other) == ("equal" if same else "different"), (one, other)
        slope = rf"y = \frac{{{-a}}}{{{b}}}x + \frac{{{-c}}}{{{b}}}"
        assert relation(one, slope) == "equal"


def test_permuted_tuples_and_changed_elements_are_never_equal() -> None:
    rng = random.Random(2)
    for _ in range(40):
        values = rng.sample(range(-30, 30), rng.randint(2, 5))
        swapped = values[:]
        i, j = rng.sample(range(len(values)), 2)
        swapped[i], swapped[j] = swapped[j], swapped[i]
        text, other = (", ".join(map(str, v)) for v in (values, swapped))
        column = r" \\ ".join(map(str, values))
        assert relation(f"({text})", f"({other})") == "different"
        assert relation(rf"\begin{{pmatrix}} {column} \end{{pmatrix}}", f"({other})") == "different"
        assert relation(rf"\begin{{pmatrix}} {column} \end{{pmatrix}}", f"({text})") == "equal"
        assert relation(rf"\{{{text}\}}", rf"\{{{other}\}}") == "equal"
        assert relation(rf"\{{{text}\}}", rf"\{{{other}, 99\}}") == "different"
        names = [f"{name}={value}" for name, value in zip("abcde", values, strict=False)]
        exchanged = [f"{name}={value}" for name, value in zip("abcde", swapped, strict=False)]
        assert relation(", ".join(names), ", ".join(rng.sample(names, len(names)))) == "equal"
        assert relation(", ".join(names), ", ".join(exchanged)) == "different"
        assert relation(", ".join(names), f"({text})") == "equal"
        assert relation(", ".join(names), f"({other})") == "different"
