"""Values of expressions against mpmath and Python, and what the numbers are allowed to decide."""

from __future__ import annotations

import random
import threading
import time
from fractions import Fraction

import mpmath
import pytest
import sympy

from ulorl.verify.exact import numerics
from ulorl.verify.exact.algebra import Expression, Unsupported
from ulorl.verify.grammar.expressions import parse_expression
from ulorl.verify.grammar.normalise import normalise
from ulorl.verify.grammar.tokens import tokenise
from ulorl.verify.symbolic.to_sympy import symbolic_size, to_sympy

MP = mpmath.mp.clone()
MP.dps = 60


def parse(text: str) -> Expression:
    return parse_expression(tokenise(normalise(text)))


CONSTANTS = [
    (r"\sin 1", lambda m: m.sin(1)),
    (r"\cos^3 2", lambda m: m.cos(2) ** 3),
    (r"\tan\frac{\pi}{7}", lambda m: m.tan(m.pi / 7)),
    (r"\cot 2", lambda m: m.cot(2)),
    (r"\sec 1+\csc 1", lambda m: m.sec(1) + m.csc(1)),
    (r"\arcsin\frac13", lambda m: m.asin(m.mpf(1) / 3)),
    (r"\arccos\frac13", lambda m: m.acos(m.mpf(1) / 3)),
    (r"\arctan 5", lambda m: m.atan(5)),
    (r"\sinh 1+\cosh 2-\tanh 3", lambda m: m.sinh(1) + m.cosh(2) - m.tanh(3)),
    (r"\operatorname{arsinh} 2", lambda m: m.asinh(2)),
    (r"\operatorname{arcosh} 2", lambda m: m.acosh(2)),
    (r"\operatorname{artanh}\frac12", lambda m: m.atanh(m.mpf(1) / 2)),
    (r"\ln 10", lambda m: m.log(10)),
    (r"\ln(-2)", lambda m: m.log(-2)),
    (r"\log_7 11", lambda m: m.log(11, 7)),
    (r"e^{\sqrt2}", lambda m: m.exp(m.sqrt(2))),
    (r"\pi^e", lambda m: m.pi**m.e),
    (r"2^{\sqrt3}", lambda m: m.mpf(2) ** m.sqrt(3)),
    (r"\sqrt[5]{7}", lambda m: m.root(7, 5)),
    (r"\sqrt[3]{1-\sqrt2}", lambda m: -m.root(m.sqrt(2) - 1, 3)),
    (r"\sqrt{1+\sqrt{2+\sqrt3}}", lambda m: m.sqrt(1 + m.sqrt(2 + m.sqrt(3)))),
    (r"i^i", lambda m: m.mpc(0, 1) ** m.mpc(0, 1)),
    (r"(1+i)^{10}", lambda m: m.mpc(1, 1) ** 10),
    (r"|1+\sqrt2 i|", lambda m: m.sqrt(3)),
    (r"\frac{2000!}{1999!}", lambda m: m.mpf(2000)),
    (r"\frac{1}{2004!}", lambda m: 1 / m.factorial(2004)),
    (r"\sum_{k=1}^{100}\frac{1}{k}", lambda m: m.harmonic(100)),
    (r"\binom{5000}{2500}", lambda m: m.binomial(5000, 2500)),
    (r"\lfloor e^{10} \rfloor", lambda m: m.floor(m.exp(10))),
]


@pytest.mark.parametrize(("text", "value"), CONSTANTS)
def test_values_agree_with_mpmath(text: str, value: object) -> None:
    expected = value(MP)  # type: ignore[operator]
    found = MP.mpmathify(numerics.evaluate(parse(text), 45))
    assert abs(found - expected) <= MP.mpf(10) ** -40 * abs(expected)


UNDEFINED = ["x", r"\tan(\arcsin 1)", "(-1/2)!", r"\lfloor \sin^2 1+\cos^2 1 \rfloor", "10^{10^{30}}", "f(2)"]


@pytest.mark.parametrize("text", UNDEFINED)
def test_no_value(text: str) -> None:
    try:
        expression = parse(text)
    except Unsupported:
        return
    assert numerics.evaluate(expression) is None


def _random(rng: random.Random, depth: int) -> tuple[str, object]:
    """A random constant as LaTeX, and its value by mpmath."""
    if not depth or rng.random() < 0.2:
        n, d = rng.randint(1, 12), rng.randint(1, 12)
        return rng.choice([(str(n), MP.mpf(n)), (rf"\frac{{{n}}}{{{d}}}", MP.mpf(n) / d), (r"\pi", +MP.pi)])
    x, v = _random(rng, depth - 1)
    y, w = _random(rng, depth - 1)
    k = rng.randint(2, 5)
    return rng.choice(
        [
            lambda: (rf"\left({x}+{y}\right)", v + w),
            lambda: (rf"{x}-\left({y}\right)", v - w),
            lambda: (rf"\left({x}\right)\left({y}\right)", v * w),
            lambda: (rf"\frac{{{x}}}{{{y}}}", v / w),
            lambda: (rf"\sqrt{{{x}}}", MP.sqrt(v)),
            lambda: (rf"\left({x}\right)^{{{k}}}", v**k),
            lambda: (rf"\sin\left({x}\right)", MP.sin(v)),
            lambda: (rf"\cos\left({x}\right)", MP.cos(v)),
            lambda: (rf"\ln\left({x}\right)", MP.log(v)),
            lambda: (rf"e^{{{x}}}", MP.exp(v)),
            lambda: (rf"\arctan{{\left({x}\right)}}", MP.atan(v)),
            lambda: (rf"\left|{x}\right|", abs(v)),
            lambda: (rf"\log_{{{k}}}\left({x}\right)", MP.log(v) / MP.log(k)),
        ]
    )()


def test_random_constants_agree_with_mpmath() -> None:
    rng = random.Random(7)
    checked = 0
    for _ in range(600):
        try:
            text, expected = _random(rng, 3)
        except ZeroDivisionError:
            continue
        try:
            found = numerics.evaluate(parse(text), 45)
        except Unsupported:
            continue
        size = abs(expected)  # type: ignore[arg-type]
        if found is None or not MP.mpf(10) ** -15 < size < MP.mpf(10) ** 200:
            continue
        checked += 1
        assert abs(MP.mpmathify(found) - expected) <= MP.mpf(10) ** -35 * size, text
    assert checked > 350


def test_the_sign_of_constants() -> None:
    assert numerics.sign(parse(r"\sqrt2-\ln 4")) == 1
    assert numerics.sign(parse(r"\sqrt2-\frac32")) == -1
    assert numerics.sign(parse(r"\sin\frac{\pi}{7}-\cos\frac{5\pi}{14}")) == 0
    assert numerics.sign(parse(r"e^{-1000}")) == 1
    assert numerics.sign(parse("x")) is None
    assert numerics.sign(parse("1+i")) is None


def test_approximate_is_within_its_digits() -> None:
    value = numerics.approximate(parse(r"\sqrt[3]{2}"), 40)
    assert isinstance(value, Fraction)
    assert abs(value**3 - 2) < Fraction(1, 10**38)
    assert numerics.approximate(parse("i")) is None
    assert numerics.approximate(parse(r"\frac13")) == Fraction(1, 3)


def test_values_do_not_depend_on_the_global_precision_or_the_thread() -> None:
    expression = parse(r"\sin 1 + e^{\sqrt2} + \ln 7")
    expected = numerics.approximate(expression, 60)
    results: list[Fraction | None] = []

    def work(digits: int) -> None:
        for _ in range(30):
            mpmath.mp.dps = digits
            results.append(numerics.approximate(expression, 60))

    before = mpmath.mp.dps
    threads = [threading.Thread(target=work, args=(digits,)) for digits in (5, 15, 400)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    mpmath.mp.dps = before
    assert set(results) == {expected}


HOSTILE = [
    "9^{9^{9^{9}}}",
    "9" * 3000 + "!",
    "(10^{12})!",
    r"\sum_{k=1}^{1000000} k!",
    r"\sum_{i=1}^{300}\sum_{j=1}^{300}\sum_{k=1}^{300} \sin(ijk)",
    r"\sin(10^{3000})",
    r"\tan(" * 30 + "x" + ")" * 30,
    "(x+y+z+1)^{500}",
    r"e^{e^{e^{e^{e^{9}}}}}",
    r"\binom{10^{9}}{10^{8}}",
    r"\prod_{n=1}^{300} (2^{2^n}+1)",
    "+".join(rf"\sin({k})" for k in range(120)),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_expressions_take_little_time(text: str) -> None:
    start = time.process_time()
    try:
        expression = parse(text)
        numerics.evaluate(expression)
        numerics.relation_at(expression, parse("1"), {"x": Fraction(1, 3), "y": Fraction(1), "z": Fraction(2)})
    except Unsupported:
        pass
    assert time.process_time() - start < 0.5


SYMPY = [r"\frac{\sin 2x}{x+1}", r"\sqrt{x+\sqrt3}", r"e^{-x}\ln x", r"\log_2 x", r"\binom{5}{2}x!", r"|x-5|^3", "3i x"]


@pytest.mark.parametrize("text", SYMPY)
def test_sympy_objects_have_the_same_values(text: str) -> None:
    from ulorl.verify.exact.evaluation import Evaluator
    from ulorl.verify.exact.floats import from_fraction

    expression = parse(text)
    found = Evaluator(200, {"x": from_fraction(Fraction(3), 200)}).value(expression)
    value = MP.make_mpf(found) if len(found) == 4 else MP.make_mpc(found)
    expected = sympy.N(to_sympy(expression).subs(sympy.Symbol("x"), 3), 50)
    real, imaginary = expected.as_real_imag()
    assert abs(value - MP.mpc(str(real), str(imaginary))) < MP.mpf(10) ** -40


def test_sympy_gets_nothing_that_explodes() -> None:
    for text in ("2^{100000}", "1000000!", r"\binom{10^6}{5\cdot 10^5}"):
        with pytest.raises(Unsupported):
            to_sympy(parse(text))
    assert symbolic_size(parse(r"\sin(x+1)+2")) < 10
    assert to_sympy(parse(r"\sum_{k=1}^{\infty} \frac{1}{k^2}")).doit() == sympy.pi**2 / 6
