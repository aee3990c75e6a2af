"""Families of numbers and expressions for training a judge. Every form is equal by construction, every miss is not."""

from __future__ import annotations

import random
from fractions import Fraction

from ulorl.verify.judge.family import Draw, Family, change_digit, family

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"


def in_words(number: int) -> str:
    """0 to 999 in English."""
    ones, tens = _ONES.split(), _TENS.split()
    if number < 20:
        return ones[number]
    if number < 100:
        return tens[number // 10 - 2] + (f"-{ones[number % 10]}" if number % 10 else "")
    rest = number % 100
    return f"{ones[number // 100]} hundred" + (f" and {in_words(rest)}" if rest else "")


def decimal(value: Fraction) -> str | None:
    """The terminating decimal of a fraction, or None."""
    scaled = value * 10**6
    if scaled.denominator != 1:
        return None
    digits = f"{abs(scaled.numerator):07d}"
    text = f"{digits[:-6]}.{digits[-6:]}".rstrip("0").rstrip(".")
    return ("-" if value < 0 else "") + text


def latex(value: Fraction) -> str:
    """A fraction in LaTeX."""
    if value.denominator == 1:
        return str(value.numerator)
    return ("-" if value < 0 else "") + rf"\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


def integers(rng: random.Random) -> Family:
    number = rng.choice([rng.randint(3, 99), rng.randint(100, 999), rng.randint(1000, 9_999_999)])
    text = str(number)
    forms = [text, f"{number}.0", f"${text}$", f"x = {text}", f"n={text}", f"the answer is {text}", f"{number + 3} - 3"]
    forms += [f"{number:,}", f"{number:,}".replace(",", "{,}")] if number >= 1000 else [in_words(number)]
    misses = [change_digit(text, rng), str(number + 1), f"-{text}", f"{text}0", f"1/{text}", f"{text}!"]
    misses += [f"{text} or {number + 2}", f"x > {text}", f"{text}x"]
    misses += [in_words(number + 10)] if number < 900 else []
    return family("integer", forms, misses)


def fractions(rng: random.Random) -> Family:
    value = Fraction(rng.randint(1, 60), rng.choice([2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 20, 25]))
    if value.denominator == 1:
        value += Fraction(1, 2)
    top, bottom = value.numerator, value.denominator
    times = rng.randint(2, 5)
    forms = [
        latex(value),
        f"{top}/{bottom}",
        rf"\dfrac{{{top}}}{{{bottom}}}",
        rf"\frac{{{top * times}}}{{{bottom * times}}}",
    ]
    forms += [f"{top} over {bottom}", f"{top} \\div {bottom}", rf"\tfrac{{{top}}}{{{bottom}}}", f"x={top}/{bottom}"]
    if (point := decimal(value)) is not None:
        forms.append(point)
    if value > 1:
        forms.append(rf"{top // bottom} \frac{{{top % bottom}}}{{{bottom}}}")
    misses = [
        latex(1 / value),
        latex(-value),
        latex(value + Fraction(1, bottom)),
        f"{top}/{bottom + 1}",
        f"{top}{bottom}",
    ]
    misses += [rf"\frac{{{top}}}{{{bottom * 10}}}", f"{top}", f"0.{top}{bottom}1", rf"\sqrt{{{latex(value)}}}"]
    return family("fraction", forms, misses)


def percents(rng: random.Random) -> Family:
    value = rng.randint(2, 99)
    point = decimal(Fraction(value, 100)) or ""
    forms = [f"{value}\\%", f"{value}%", f"{value} percent", point, latex(Fraction(value, 100)), f"{value} per cent"]
    misses = [f"{change_digit(str(value), rng)}%", f"{value}.5\\%", f"{100 - value or 1}\\%" if value != 50 else "51%"]
    return family("percent", forms, [*misses, f"{value * 10} percent"])


def roots(rng: random.Random) -> Family:
    outside, inside = rng.randint(2, 9), rng.choice([2, 3, 5, 6, 7, 10, 11])
    square = outside * outside * inside
    plain = rf"{outside}\sqrt{{{inside}}}"
    forms = [
        plain,
        rf"\sqrt{{{square}}}",
        rf"{outside} \cdot \sqrt{{{inside}}}",
        rf"\sqrt{{{inside}}} \times {outside}",
    ]
    forms += [rf"{outside}\cdot {inside}^{{1/2}}", f"{outside}√{inside}", f"{outside}*sqrt({inside})"]
    forms += [
        rf"\frac{{{outside * inside}}}{{\sqrt{{{inside}}}}}",
        rf"\sqrt{{{inside}}}+{outside - 1}\sqrt{{{inside}}}",
    ]
    misses = [rf"{inside}\sqrt{{{outside}}}", rf"{outside}+\sqrt{{{inside}}}", rf"\sqrt{{{square + 1}}}", str(square)]
    misses += [
        rf"{outside}\sqrt[3]{{{inside}}}",
        rf"-{plain}",
        rf"{outside + 1}\sqrt{{{inside}}}",
        rf"\frac{{1}}{{{plain}}}",
    ]
    misses += [rf"\pm {plain}", rf"\sqrt{{{outside * inside}}}"] if outside != 1 else []
    return family("root", forms, misses)


def powers(rng: random.Random) -> Family:
    base, power = rng.randint(2, 9), rng.randint(3, 40)
    forms = [
        f"{base}^{{{power}}}",
        f"{base}**{power}",
        f"{base} \\cdot {base}^{{{power - 1}}}",
        f"({base})^{{{power}}}",
    ]
    forms += [f"\\frac{{{base}^{{{power + 1}}}}}{{{base}}}", f"{base} to the power {power}", f"pow({base}, {power})"]
    misses = [f"{base}^{{{power + 1}}}", f"{base}^{{{power}}}-1", f"{base} \\cdot {power}"]
    misses += [f"{power}^{{{base}}}"] if power**base != base**power else []
    return family("power", forms, [*misses, f"{base}^{{-{power}}}", f"{base}^{{{power}}}+1", f"{base}{power}"])


def scientific(rng: random.Random) -> Family:
    digits, power = rng.randint(11, 99), rng.randint(2, 6)
    value = digits * 10 ** (power - 1)
    mantissa = f"{digits // 10}.{digits % 10}"
    forms = [
        rf"{mantissa} \times 10^{{{power}}}",
        str(value),
        f"{value:,}",
        f"{mantissa}e{power}",
        f"{mantissa}*10^{power}",
    ]
    forms += [rf"{mantissa} \cdot 10^{power}", rf"{digits} \times 10^{{{power - 1}}}", f"{mantissa}×10^{power}"]
    misses = [rf"{mantissa} \times 10^{{{power + 1}}}", f"{value}0", rf"{mantissa} \times 10^{{-{power}}}"]
    return family(
        "scientific", forms, [*misses, rf"{change_digit(mantissa, rng)} \times 10^{{{power}}}", f"{mantissa}"]
    )


def polynomials(rng: random.Random) -> Family:
    a, b = rng.sample(range(1, 10), 2)
    x = rng.choice("xyztnab")
    forms = [
        f"({x}+{a})({x}-{b})",
        f"({x}-{b})({x}+{a})",
        f"{x}^2{a - b:+d}{x}-{a * b}",
        f"-{a * b}{a - b:+d}{x}+{x}^{{2}}",
    ]
    forms += [f"{x}^2-{a * b}{a - b:+d}{x}", rf"({x} + {a}) \cdot ({x} - {b})"]
    misses = [
        f"({x}-{a})({x}+{b})",
        f"{x}^2{b - a:+d}{x}-{a * b}",
        f"{x}^2{a - b:+d}{x}+{a * b}",
        f"({x}+{a})({x}+{b})",
    ]
    misses += [f"{x}^3{a - b:+d}{x}-{a * b}", f"{x}-{b}", f"{x}^2{a - b:+d}{x}-{a * b + 1}", f"({x}+{a})^2"]
    return family("polynomial", forms, misses)


def linear(rng: random.Random) -> Family:
    m, c = rng.randint(2, 9), rng.randint(1, 9)
    forms = [f"y = {m}x + {c}", f"y={c}+{m}x", f"{m}x - y + {c} = 0", f"f(x) = {m}x+{c}", f"{m}x+{c}", f"y-{c}={m}x"]
    forms += [rf"f(x) = {m}x + {c} \text{{ for all }} x", rf"f(x)={m}x+{c},\ x \in \mathbb{{R}}"]
    misses = [f"y = {m}x - {c}", f"y = {c}x + {m}", f"x = {m}y + {c}", f"{m}x + y + {c} = 0", f"f(x)={m}x^2+{c}"]
    misses += [f"y = {m + 1}x + {c}", f"{m}x", f"f(x) = {c}", f"f(x)={m}x+{c + 1}"] if m != c else []
    return family("function", forms, misses)


def logarithms(rng: random.Random) -> Family:
    a, b = rng.sample([2, 3, 5, 7, 11], 2)
    forms = [
        rf"\ln {a * b}",
        rf"\ln {a} + \ln {b}",
        rf"\ln {b}+\ln {a}",
        rf"\log_e {a * b}",
        rf"-\ln\frac{{1}}{{{a * b}}}",
    ]
    other = [
        rf"\log_{{{a}}} {b}",
        rf"\frac{{\ln {b}}}{{\ln {a}}}",
        rf"\frac{{\log {b}}}{{\log {a}}}",
        rf"\frac{{1}}{{\log_{b} {a}}}",
    ]
    if rng.random() < 0.5:
        return family(
            "logarithm", forms, [rf"\ln {a + b}", rf"\ln {a} \cdot \ln {b}", rf"\ln \frac{{{a}}}{{{b}}}", *other]
        )
    return family(
        "logarithm", other, [rf"\log_{{{b}}} {a}", rf"\frac{{\ln {a}}}{{\ln {b}}}", rf"\ln \frac{{{b}}}{{{a}}}", *forms]
    )


_IDENTITIES: tuple[tuple[str, str], ...] = (
    (r"\sec X; \frac{1}{\cos X}; (\cos X)^{-1}; 1/\cos(X)", r"\csc X; \cos X; \cos^{-1} X; -\sec X"),
    (r"\csc X; \frac{1}{\sin X}; 1/\sin(X)", r"\sec X; \sin X; \arcsin X"),
    (r"\tan X; \frac{\sin X}{\cos X}; \sin X \sec X; 1/\cot X", r"\cot X; \frac{\cos X}{\sin X}; \tan^2 X"),
    (r"\sin 2X; 2\sin X\cos X; 2\cos(X)\sin(X)", r"2\sin X; \sin X \cos X; \sin^2 X; \cos 2X"),
    (r"2\cos^2 X - 1; \cos^2 X-\sin^2 X; \cos(2X)", r"1-2\cos^2 X; \sin^2 X-\cos^2 X; 1; 2\cos X"),
    (r"1-\cos^2 X; \sin^2 X; (\sin X)^2; 1 - (\cos X)^2", r"\cos^2 X; 1+\cos^2 X; \sin X^2; 1-\cos X"),
    (r"\tan^2 X + 1; \sec^2 X; \frac{1}{\cos^2 X}", r"\csc^2 X; \sec X; 1-\tan^2 X; \cot^2 X+1"),
    (r"\arctan X; \tan^{-1} X; \operatorname{arctg} X; arctan(X)", r"\cot X; \frac{1}{\tan X}; \arcsin X"),
    (r"\arcsin X; \sin^{-1}(X); asin(X)", r"\csc X; \arccos X; \sin X"),
    (r"e^{X}; \exp(X); \exp X; 1/e^{-X}", r"e^{-X}; \ln X; 10^{X}; -e^{X}"),
    (r"\sqrt[3]{X}; X^{1/3}; X^{\frac13}; cbrt(X)", r"\sqrt{X}; X^3; 3\sqrt{X}; X^{-1/3}"),
    (r"\frac{1}{X^2}; X^{-2}; 1/X^2; \left(\frac1X\right)^2", r"X^2; -X^2; X^{-1/2}; \frac{2}{X}"),
    (r"|X|; \sqrt{X^2}; \lvert X \rvert; abs(X)", r"X; -X; X^2"),
    (r"\binom{X}{2}; \frac{X(X-1)}{2}; C(X,2); {}_{X}C_2", r"\frac{X(X+1)}{2}; X^2; \frac{X}{2}; X(X-1)"),
)
"""Equal forms, and what they are mistaken for; X is a variable."""


def identities(rng: random.Random) -> Family:
    forms, misses = rng.choice(_IDENTITIES)
    x = rng.choice("xtuabn")
    factor = rng.choice(["", "", "", str(rng.randint(2, 9))])

    def rename(text: str) -> str:
        return factor + (f"({text})" if factor else text).replace("X", x)

    return family("identity", [rename(one) for one in forms.split("; ")], [rename(one) for one in misses.split("; ")])


def complexes(rng: random.Random) -> Family:
    a, b = rng.sample(range(2, 12), 2)
    forms = [
        f"{a}+{b}i",
        f"{a} + {b} i",
        f"{b}i+{a}",
        rf"{a}+i\cdot {b}",
        rf"{a} + {b}\mathrm{{i}}",
        f"z = {a}+{b}i",
        f"{a}+i{b}",
    ]
    misses = [f"{a}-{b}i", f"{b}+{a}i", f"-{a}+{b}i", f"{a}+{b}", f"{a}+{b + 1}i", f"{a}", f"({a}+{b})i", f"|{a}+{b}i|"]
    return family("complex", forms, misses)


def bases(rng: random.Random) -> Family:
    base, number = rng.randint(2, 9), rng.randint(20, 400)
    digits, rest = "", number
    while rest:
        digits, rest = str(rest % base) + digits, rest // base
    forms = [f"{digits}_{base}", f"{digits}_{{{base}}}", rf"{digits}_{{\text{{{base}}}}}", f"{digits} in base {base}"]
    forms += [rf"({digits})_{base}", str(number)]
    misses = [digits, f"{digits}0_{base}", f"{digits}_{{{base + 1}}}", f"{digits[::-1]}_{base}", str(number + 1)]
    return family("base", forms, [miss for miss in misses if digits != digits[::-1] or miss != f"{digits}_{base}"])


def rounded(rng: random.Random) -> Family:
    value = Fraction(rng.randint(1, 40), rng.choice([3, 7, 9, 11, 13]))
    if value.denominator == 1:
        value += Fraction(1, 3)
    short, long = f"{float(value):.3f}", f"{float(value):.5f}"
    exact = latex(value)
    forms = [rf"{exact} \approx {short}", exact, rf"{exact} \text{{ (approximately }} {short})", f"exactly {exact}"]
    misses = [rf"\approx {change_digit(short, rng)}", change_digit(long, rng), rf"{latex(1 / value)} \approx {short}"]
    return family("rounded", forms, misses)


NUMBERS: tuple[Draw, ...] = (
    integers, fractions, percents, roots, powers, scientific, polynomials, linear, logarithms, identities, complexes,
    bases, rounded,
)  # fmt: skip
