"""Properties of verdicts on generated answers of every kind.

Each generated answer is a template filled with numbers. Templates are such that two different fillings never
mean the same (positive numbers, each of which the value depends on strictly), so that "one digit changed" is a
wrong answer without another look.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ulorl.verify.outcome import Outcome
from ulorl.verify.policy import Policy
from ulorl.verify.tiers import RULES, decide, read_answer

STRICT = Policy(rounding="never", missing_unit="reject")
"""Without the policies for which the arguments play different parts."""

FAST = settings(max_examples=250, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
THOROUGH = settings(FAST, max_examples=20_000, derandomize=False, print_blob=True)


@dataclass(frozen=True)
class Template:
    """``text`` has a ``#`` for each number, from ``low`` to ``high``."""

    text: str
    low: int = 2
    high: int = 60

    def fill(self, numbers: Sequence[int]) -> str:
        rest = iter(numbers)
        return re.sub("#", lambda _: str(next(rest)), self.text)


NUMBERS = [
    "#", "-#", "#.#", "-0.#", "0.0#7", r"#\%", "#%", r"\frac{#}{#1}", r"-\frac{#}{#1}", r"\dfrac{#}{61}", "#/#1",
    r"# \frac{3}{71}", "# 3/71", r"0.\overline{#}", r"#.1\overline{3#}", "#e5", r"#.#\times 10^{#}",
    r"#\cdot 10^{-#}", "#,#00,123", r"#\,000\,#00", r"\$#", r"\$#.25", "#^{#}", "#!", r"#^\circ", "#°", "#i", "#+#i",
    "#-#i", "1#0_3", r"1011_{#}", "#:71", "#st", "2^{1/#}", r"10^{10^{#}}",
]  # fmt: skip
RADICALS = [
    r"\sqrt{#}", r"#\sqrt{#}", r"\sqrt[3]{#}", r"\sqrt[#]{3}", r"\frac{#+\sqrt{#}}{#}", r"\frac{\sqrt{#}}{#}",
    r"\sqrt{#+\sqrt{#}}", r"#+#\sqrt{3}", r"\frac{#}{1+\sqrt{#}}", "sqrt(#)", "√#", r"\sqrt{#}+\sqrt{1#1}",
]  # fmt: skip
CONSTANTS = [
    r"#\pi", r"\frac{#\pi}{61}", r"#+#\pi", r"\ln #", r"\ln{#}+#", r"\log_{#}{7}", "e^{#}", r"\frac{e^{#}}{#}",
    r"\arctan #", r"\sin #", r"\cos{\frac{1}{#}}", r"\pi^{#}", r"#\ln 3", r"\tan\frac{\pi}{1#1}",
]  # fmt: skip
EXPRESSIONS = [
    "#x", "x^{#}", "#x^2+#x+#", "(x+#)(x-#)^2", r"\frac{x+#}{x+7#}", r"\sqrt{x^2+#}", r"\frac{#a}{b}", "#ab+#c",
    r"\sin(#x)", r"#\cos^2 x", r"e^{#x}", r"\ln(x+#)", "x^#y", "#n!", r"\binom{n}{#}", "2^{n+#}", "n^2+#n",
    r"\frac{a^#-b}{#}", r"x_{#}", r"\alpha+#\beta", r"|x|+#", r"\lfloor x\rfloor+#", r"#\sqrt{x}", r"x^{\frac{1}{#}}",
]  # fmt: skip
STRUCTURES = [
    "(#,#)", r"\left(#, \frac{#}{61}\right)", "(#,#,#)", "(-#, #)", r"\{#, 7#, 61#\}",
    "#, 7#, 61#", "# and 7#", r"# \text{ or } 7#", "[#, 7#]", "(#, 7#]", r"[#,\infty)", r"(-\infty,#)",
    r"(-\infty,-#)\cup(#,\infty)", r"(#,7#)\cup(80#,90#)", "x>#", r"x\le #", "#<x<7#", r"#\leq x<7#",
    r"|x|<#", "x=#", "x=#, y=#", "x = # or x = 7#", "f(x)=#x+#", "y=#x-#", "x^2+y^2=#",
    r"\frac{x^2}{#}+\frac{y^2}{61}=1",
    r"#\pm\sqrt{#}", r"\pm #", r"\begin{pmatrix}#&#\\#&#\end{pmatrix}", r"\begin{pmatrix}#\\#\end{pmatrix}",
    r"\begin{bmatrix}#&#&#\end{bmatrix}", r"#\mathbf{i}+#\mathbf{j}", r"\mathbb{R}\setminus\{#\}", r"x\ne #",
    r"\frac{\pi}{#}+#k\pi, k\in\mathbb{Z}", "a_n=#n+#", "A=#, B=#", r"\{x \mid x > #\}", r"x\in(#,7#)",
    "ax^#+b=0", r"\{(#,#),(#,61#)\}", "#:#1",
]  # fmt: skip
QUANTITIES = [
    r"#\text{ cm}", "# cm", r"# \text{ cm}^2", r"# cm^3", "# km/h", r"#\ \text{m/s}^2", "# hours", "# kg", "#.5 m",
    r"# \text{ square meters}", "# apples", "#:15 pm", "7:# am", "# minutes", r"\frac{#}{61} \text{ litres}",
    "# dollars", "# cents", "March 1#, 19#7", "# degrees", "# percent", "# N", "# people",
]  # fmt: skip
BOUNDS = {
    "#:15 pm": (1, 12),
    "7:# am": (10, 59),
    "March 1#, 19#7": (1, 9),
    "#!": (3, 40),
    r"\binom{n}{#}": (2, 9),
    r"10^{10^{#}}": (2, 9),
    "1#0_3": (1, 2),
    r"1011_{#}": (2, 9),
    "#^{#}": (2, 9),
    r"#\cdot 10^{-#}": (2, 9),
    r"#.#\times 10^{#}": (1, 9),
    r"#\,000\,#00": (1, 9),
    "#,#00,123": (1, 9),
    "2^{1/#}": (2, 9),
    r"\sqrt[#]{3}": (2, 9),
    "x^{#}": (2, 30),
    "x^#y": (2, 9),
    "ax^#+b=0": (2, 9),
    r"\frac{a^#-b}{#}": (2, 9),
    r"0.\overline{#}": (10, 97),
}
"""Of templates in which larger or smaller numbers would be another kind of answer, or too large a one."""

KINDS = {
    "numbers": NUMBERS, "radicals": RADICALS, "constants": CONSTANTS, "expressions": EXPRESSIONS,
    "structures": STRUCTURES, "quantities": QUANTITIES,
}  # fmt: skip
WORDS = [
    "yes", "no", "True", "false", "B", r"\text{(C)}", r"\textbf{(D)}", "seven", "twenty-one", "one half", "Friday",
    r"\text{east}", "odd", "x", r"\pi", r"\infty", r"\emptyset", r"\varnothing", r"\mathbb{R}", r"\text{no solution}",
    "ellipse", "isosceles triangle", r"\text{Ann and Bo}", "undefined", "甲", "(A), (C)", r"-\infty", "i", "e",
]  # fmt: skip


def template_of(text: str) -> Template:
    return Template(text, *BOUNDS.get(text, ()))


EVERY = [template_of(text) for texts in KINDS.values() for text in texts]


@st.composite
def fillings(draw: st.DrawFn, templates: Sequence[Template] = EVERY) -> tuple[Template, list[int]]:
    template = draw(st.sampled_from(templates))
    numbers = st.integers(template.low, template.high)
    return template, [draw(numbers) for _ in range(template.text.count("#"))]


def answers() -> st.SearchStrategy[str]:
    return st.one_of(st.sampled_from(WORDS), fillings().map(lambda filled: filled[0].fill(filled[1])))


@st.composite
def pairs_of_a_kind(draw: st.DrawFn) -> tuple[str, str]:
    kind = draw(st.sampled_from(sorted(KINDS)))
    filled = fillings([template_of(text) for text in KINDS[kind]])
    (one, a), (other, b) = draw(filled), draw(filled)
    return one.fill(a), other.fill(b)


@st.composite
def pairs_with_one_digit_changed(draw: st.DrawFn) -> tuple[str, str]:
    template, numbers = draw(fillings())
    changed = []
    for position, number in enumerate(numbers):
        digits = str(number)
        for place, old in enumerate(digits):
            for new in "0123456789":
                other = int(digits[:place] + new + digits[place + 1 :])
                if new != old and template.low <= other <= template.high:
                    changed.append([*numbers[:position], other, *numbers[position + 1 :]])
    assume(changed)
    return template.fill(numbers), template.fill(draw(st.sampled_from(changed)))


def outcome(reference: str, answer: str, policy: Policy = STRICT) -> Outcome:
    return decide(RULES, read_answer(reference), read_answer(answer), policy)[1]


@pytest.mark.parametrize("template", [*EVERY, *map(template_of, WORDS)], ids=lambda template: template.text)
def test_every_kind_of_answer_is_read(template: Template) -> None:
    for number in (template.low, (template.low + template.high) // 2, template.high):
        answer = read_answer(template.fill([number] * template.text.count("#")))
        assert answer.value is not None, (answer.normal, answer.problem)


def check_reflexive(text: str) -> None:
    assert outcome(text, text).relation == "equal"
    a, b = read_answer(text), read_answer(text)
    for tier in RULES[1:]:  # not by the same text, but by what it means
        found = tier.compare(a, b, STRICT)
        if found.relation != "undecided":
            assert found.relation == "equal"
            return
    raise AssertionError(found.reason)


def check_symmetric(pair: tuple[str, str]) -> None:
    a, b = pair
    there, back = outcome(a, b), outcome(b, a)
    assert there.relation == back.relation, (there, back)


def _with_spaces(text: str) -> str:
    if re.search(r"\\text|\\begin|[A-Za-z]{4}|\d[,:/]\d", text):
        return f"  {text}\t"
    return re.sub(r"(\\[{}]|[_^]\{|[+=<>{}()\[\]])", r" \1 ", text)


def _with_left_and_right(text: str) -> str:
    plain = re.sub(r"\\(?:left|right)(?![a-z])", "", text)
    return re.sub(r"(?<!\\)[(\[]", r"\\left\g<0>", re.sub(r"(?<!\\)[)\]]", r"\\right\g<0>", plain))


SPELLINGS: dict[str, Callable[[str], str]] = {
    "spaces": _with_spaces,
    "spaces around": lambda text: f" \n{text}  ",
    "left and right": lambda text: text if r"\sqrt[" in text else _with_left_and_right(text),
    "dfrac": lambda text: re.sub(r"\\[dt]?frac", r"\\dfrac", text),
    "tfrac": lambda text: re.sub(r"\\[dt]?frac", r"\\tfrac", text),
    "dollars": lambda text: text if r"\$" in text else f"${text}$",
    "two dollars": lambda text: text if r"\$" in text else f"$${text}$$",
    "parentheses": lambda text: rf"\({text}\)",
    "brackets": lambda text: rf"\[{text}\]",
    "full stop": lambda text: f"{text}.",
    "displaystyle": lambda text: rf"\displaystyle {text}",
}


def check_spellings(text: str) -> None:
    for name, spell in SPELLINGS.items():
        found = outcome(text, spell(text))
        assert found.relation == "equal", (name, spell(text), found.reason)
        assert outcome(spell(text), text).relation == "equal", name


def check_not_equal(pair: tuple[str, str]) -> None:
    a, b = pair
    assert outcome(a, b).relation != "equal", (a, b)
    assert outcome(b, a).relation != "equal", (b, a)
    if "." not in a:  # rounding to the decimals of a reference is a policy
        assert outcome(a, b, Policy()).relation != "equal", (a, b)


PROPERTIES: dict[str, tuple[Callable[[], st.SearchStrategy[Any]], Callable[[Any], None]]] = {
    "an answer equals itself": (answers, check_reflexive),
    "the order of the arguments does not matter": (lambda: st.tuples(answers(), answers()), check_symmetric),
    "nor for two answers of one kind": (pairs_of_a_kind, check_symmetric),
    "nor for answers that differ by a digit": (pairs_with_one_digit_changed, check_symmetric),
    "notation does not matter": (answers, check_spellings),
    "one digit changed is another answer": (pairs_with_one_digit_changed, check_not_equal),
}


@pytest.mark.parametrize("name", PROPERTIES)
def test_property(name: str) -> None:
    examples, check = PROPERTIES[name]
    FAST(given(examples())(check))()


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", PROPERTIES)
def test_property_on_many_more(name: str) -> None:
    examples, check = PROPERTIES[name]
    THOROUGH(given(examples())(check))()
