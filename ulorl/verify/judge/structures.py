"""Families of sets, intervals, tuples, matrices and solution families for training a judge."""

from __future__ import annotations

import random

from ulorl.verify.judge.family import Draw, Family, family


def intervals(rng: random.Random) -> Family:
    a = rng.randint(-9, 8)
    b = a + rng.randint(1, 9)
    x = rng.choice("xxxtym")
    left_open, right_open = rng.random() < 0.5, rng.random() < 0.5
    opening, closing = "(" if left_open else "[", ")" if right_open else "]"
    low, high = "<" if left_open else r"\le ", "<" if right_open else r"\le "
    forms = [f"{opening}{a},{b}{closing}", rf"\left{opening}{a}, {b}\right{closing}", f"{a}{low}{x}{high}{b}"]
    forms += [rf"{x} \in {opening}{a},{b}{closing}", rf"\{{{x} \mid {a} {low} {x} {high} {b}\}}"]
    wrong = r"\le " if left_open else "<"
    down, up = ">" if right_open else r"\ge ", ">" if left_open else r"\ge "
    forms.append(f"{b}{down}{x}{up}{a}")
    other_opening, other_closing = "[" if left_open else "(", "]" if right_open else ")"
    misses = [f"{other_opening}{a},{b}{closing}", f"{opening}{a},{b}{other_closing}", f"{opening}{a},{b + 1}{closing}"]
    misses += [
        f"{opening}{a - 1},{b}{closing}",
        f"{x}{low}{b}",
        rf"{opening}{a},\infty)",
        rf"(-\infty,{a}) \cup ({b},\infty)",
    ]
    return family("interval", forms, [*misses, rf"\{{{a},{b}\}}", f"{a}{wrong}{x}{high}{b}"])


def rays(rng: random.Random) -> Family:
    a, x = rng.randint(-9, 9), rng.choice("xxtmk")
    if rng.random() < 0.5:
        forms = [
            f"{x} > {a}",
            rf"({a},\infty)",
            rf"({a}, +\infty)",
            f"{a} < {x}",
            rf"{x} \in ({a},\infty)",
            f"{x} is greater than {a}",
        ]
        misses = [f"{x} < {a}", rf"[{a},\infty)", rf"{x} \ge {a}", rf"(-\infty,{a})", f"{x} = {a}", f"{x} > {a + 1}"]
        return family("inequality", forms, [*misses, rf"{x} \ne {a}", f"{x} is at least {a}", str(a)])
    forms = [
        rf"{x} \le {a}",
        rf"(-\infty,{a}]",
        rf"{a} \ge {x}",
        rf"{x} \leqslant {a}",
        f"{x} is at most {a}",
        f"{x} <= {a}",
    ]
    misses = [
        f"{x} < {a}",
        rf"(-\infty,{a})",
        rf"{x} \ge {a}",
        rf"[{a},\infty)",
        rf"{x} \le {a - 1}",
        f"{x} is less than {a}",
    ]
    return family("inequality", forms, misses)


def excluded(rng: random.Random) -> Family:
    a, x = rng.randint(-5, 9), rng.choice("xmk")
    forms = [
        rf"{x} \ne {a}",
        rf"{x} \neq {a}",
        f"{x} != {a}",
        rf"(-\infty,{a}) \cup ({a},\infty)",
        f"all real numbers except {a}",
    ]
    forms += [rf"\mathbb{{R}} \setminus \{{{a}\}}", f"{x} is not {a}"]
    misses = [f"{x} = {a}", rf"{x} \ge {a}", rf"{x} \ne {a + 1}", r"\mathbb{R}", f"{x} > {a}", rf"\{{{a}\}}"]
    return family("inequality", forms, misses)


def unions(rng: random.Random) -> Family:
    a = rng.randint(-9, 5)
    b = a + rng.randint(1, 6)
    forms = [
        rf"(-\infty,{a}) \cup ({b},\infty)",
        rf"({b},\infty)\cup(-\infty,{a})",
        rf"x<{a} \text{{ or }} x>{b}",
        f"x < {a}, x > {b}",
    ]
    misses = [
        rf"(-\infty,{a}] \cup [{b},\infty)",
        f"({a},{b})",
        rf"(-\infty,{b}) \cup ({a},\infty)",
    ]
    return family(
        "union", forms, [*misses, rf"(-\infty,{a}) \cup ({b + 1},\infty)", rf"(-\infty,{a})", rf"({b},\infty)"]
    )


def listings(rng: random.Random) -> Family:
    values = rng.sample(range(-12, 40), rng.randint(2, 4))
    mixed = values[1:] + values[:1]
    text = ", ".join(map(str, values))
    forms = [text, ", ".join(map(str, mixed)), rf"\{{{text}\}}", rf"\{{{', '.join(map(str, mixed))}\}}"]
    forms += [", ".join(map(str, values[:-1])) + f" and {values[-1]}", "x = " + " or ".join(map(str, values))]
    forms += [", ".join(f"x={value}" for value in values), ", ".join(f"x_{n}={v}" for n, v in enumerate(values, 1))]
    other = [*values[:-1], max(values) + 1]
    misses = [
        ", ".join(map(str, values[:-1])),
        ", ".join(map(str, other)),
        text + f", {max(values) + 3}",
        str(values[0]),
    ]
    misses += [rf"\{{{', '.join(map(str, other))}\}}", str(sum(values)), ", ".join(str(-value) for value in values)]
    same = sorted(values) == sorted(-value for value in values)
    return family("list", forms, misses[:-1] if same else misses)


def points(rng: random.Random) -> Family:
    a, b, c = rng.sample(range(-9, 12), 3)
    forms = [
        f"({a},{b})",
        rf"\left({a}, {b}\right)",
        f"x = {a}, y = {b}",
        f"(x, y) = ({a}, {b})",
        rf"x={a} \text{{ and }} y={b}",
    ]
    forms += [f"y={b}, x={a}", f"the point ({a}, {b})", f"P({a},{b})"]
    misses = [
        f"({b},{a})",
        f"({a},{c})",
        f"({-a if a else 10},{b})",
        f"x={b}, y={a}",
        f"({a},{b},{c})",
        str(a),
        f"x={c}, y={b}",
    ]
    return family("tuple", forms, misses)


def plus_minus(rng: random.Random) -> Family:
    a, b = rng.randint(1, 9), rng.choice([2, 3, 5, 7, 10])
    forms = [
        rf"{a} \pm \sqrt{{{b}}}",
        rf"{a}+\sqrt{{{b}}}, {a}-\sqrt{{{b}}}",
        rf"x = {a} - \sqrt{{{b}}} \text{{ or }} x = {a} + \sqrt{{{b}}}",
    ]
    forms += [rf"\{{{a}-\sqrt{{{b}}}, {a}+\sqrt{{{b}}}\}}", rf"{a} ± √{b}"]
    misses = [
        rf"{a} + \sqrt{{{b}}}",
        rf"-{a} \pm \sqrt{{{b}}}",
        rf"{a} \pm {b}",
        rf"{b} \pm \sqrt{{{a}}}",
        rf"{a} - \sqrt{{{b}}}",
    ]
    return family("plus-minus", forms, misses if a != b else misses[:3])


def matrices(rng: random.Random) -> Family:
    a, b, c, d = rng.sample(range(-9, 10), 4)
    rows = rf"{a} & {b} \\ {c} & {d}"
    forms = [
        rf"\begin{{pmatrix}} {rows} \end{{pmatrix}}",
        rf"\begin{{bmatrix}}{rows}\end{{bmatrix}}",
        f"[[{a}, {b}], [{c}, {d}]]",
    ]
    forms += [
        rf"\left[\begin{{array}}{{cc}} {rows} \end{{array}}\right]",
        rf"A = \begin{{pmatrix}} {rows} \end{{pmatrix}}",
    ]
    misses = [
        rf"\begin{{pmatrix}} {a} & {c} \\ {b} & {d} \end{{pmatrix}}",
        rf"\begin{{pmatrix}} {a} & {b} & {c} & {d} \end{{pmatrix}}",
    ]
    misses += [rf"\begin{{pmatrix}} {a} & {b} \\ {c} & {d + 1} \end{{pmatrix}}", str(a * d - b * c)]
    misses += [rf"\begin{{pmatrix}} {-a if a else 10} & {b} \\ {c} & {d} \end{{pmatrix}}"]
    return family("matrix", forms, misses)


def vectors(rng: random.Random) -> Family:
    a, b, c = rng.sample(range(-9, 10), 3)
    forms = [
        rf"\begin{{pmatrix}} {a} \\ {b} \\ {c} \end{{pmatrix}}",
        f"({a}, {b}, {c})",
        rf"\langle {a}, {b}, {c} \rangle",
    ]
    forms += [
        rf"\begin{{bmatrix}} {a} \\ {b} \\ {c} \end{{bmatrix}}",
        rf"{a}\mathbf{{i}}{b:+d}\mathbf{{j}}{c:+d}\mathbf{{k}}",
    ]
    misses = [
        f"({a}, {c}, {b})",
        f"({a}, {b})",
        rf"\begin{{pmatrix}} {b} \\ {a} \\ {c} \end{{pmatrix}}",
        f"({a}, {b}, {c + 1})",
    ]
    return family("vector", forms, [*misses, rf"\langle {-a if a else 10}, {b}, {c} \rangle"])


def solution_families(rng: random.Random) -> Family:
    a, period, n, k = rng.randint(3, 6), rng.choice(["", "2"]), *rng.sample(["k", "n", "m"], 2)
    start = rf"\frac{{\pi}}{{{a}}}"
    forms = [
        rf"x = {start} + {period}{n}\pi",
        rf"x = {start} + {period}{k}\pi, {k} \in \mathbb{{Z}}",
        rf"{period}{n}\pi + \pi/{a}",
    ]
    forms += [
        rf"\{{{start} + {period}\pi {k} : {k} \in \mathbb{{Z}}\}}",
        rf"{start} + {period}\pi {n} for integers {n}",
    ]
    misses = [
        rf"x = -{start} + {period}{n}\pi",
        rf"x = {start} + {'' if period else '2'}{n}\pi",
        start,
        rf"x = {start} + {period}{n}",
    ]
    misses += [rf"x = \frac{{\pi}}{{{a + 1}}} + {period}{k}\pi", rf"x = \pm{start} + {period}{k}\pi"] if a > 2 else []
    return family("family", forms, misses)


def sequences(rng: random.Random) -> Family:
    a, b = rng.randint(2, 9), rng.randint(1, 9)
    forms = [f"a_n = {a}n + {b}", f"{a}n+{b}", f"a_n={b}+{a}n", rf"a_{{n}} = {a} \cdot n + {b}", f"{a + b}+{a}(n-1)"]
    forms += [rf"a_n = {a}n+{b} \text{{ for all }} n \ge 1", rf"a_n = {a}n+{b}\ (n \in \mathbb{{N}}^*)"]
    misses = [
        f"a_n = {a}n - {b}",
        f"a_n = {a}n",
        f"a_n = {a + 1}n+{b}",
        f"a_n = {a}^n+{b}",
        f"{a}(n-1)+{b}",
        f"a_{{n+1}} = {a}n+{b}",
    ]
    return family("sequence", forms, misses)


def powers_of_n(rng: random.Random) -> Family:
    a, n = rng.randint(2, 7), rng.choice("nkm")
    forms = [f"{a}^{{{n}}}", rf"{a} \cdot {a}^{{{n}-1}}", rf"\frac{{{a}^{{{n}+1}}}}{{{a}}}", f"a_{n} = {a}^{n}"]
    misses = [
        f"{a}^{{{n}+1}}",
        f"{a}^{{{n}}}-1",
        f"{n}^{{{a}}}",
        f"{a}{n}",
        f"{a}^{{-{n}}}",
        f"{a}^{{{n}-1}}",
        f"{a + 1}^{{{n}}}",
    ]
    return family("sequence", forms, misses)


def equations(rng: random.Random) -> Family:
    r = rng.randint(2, 9)
    h = rng.randint(1, 9)
    forms = [
        f"(x-{h})^2 + y^2 = {r * r}",
        f"y^2+(x-{h})^2={r}^2",
        f"x^2 - {2 * h}x + y^2 = {r * r - h * h}",
        rf"\sqrt{{(x-{h})^2+y^2}} = {r}",
    ]
    misses = [
        f"(x+{h})^2 + y^2 = {r * r}",
        f"(x-{h})^2 - y^2 = {r * r}",
        f"x^2 + (y-{h})^2 = {r * r}",
        f"(x-{h})^2 + y^2 = {r}",
    ]
    return family("equation", forms, [*misses, f"(x-{h})^2+y^2 \\le {r * r}", f"(x-{h})^2 + y^2 = {r * r + 1}"])


STRUCTURES: tuple[Draw, ...] = (
    intervals, rays, excluded, unions, listings, points, plus_minus, matrices, vectors, solution_families, sequences,
    powers_of_n, equations,
)  # fmt: skip
