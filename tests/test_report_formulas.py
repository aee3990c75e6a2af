"""Formulas on the page: what becomes MathML, what stays source, and that nothing gets out of its element."""

import random
import time
import xml.etree.ElementTree as Xml

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ulorl.report.page import formulas
from ulorl.report.page.formulas import LONGEST, formula, rich_text, short_answer


@pytest.fixture(autouse=True)
def _converter():
    pytest.importorskip("latex2mathml", reason="the extra `report` is not installed")


def parsed(markup):
    return Xml.fromstring(f"<div>{markup}</div>")


def formulas_of(text):
    return ["".join(math.itertext()) for math in parsed(rich_text(text)).iter("math")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"a $x^2$ b", ["x2"]),
        (r"\(a\) and \[b\] and $$c$$", ["a", "b", "c"]),
        (r"so \boxed{12}.", ["12"]),
        (r"so \boxed{\frac{1}{2}}", ["12"]),
        ("It costs $5 and $6.", []),
        ("It costs $5, then $ 6 $.", []),
        (r"an escaped \$x\$", []),
        ("one dollar $ alone", []),
        (r"\begin{align*}a&=b\end{align*}", ["a=b"]),
        (r"rows \\[2pt] of a table", []),
    ],
)
def test_formulas_are_found_where_they_are(text, expected):
    assert formulas_of(text) == expected


def test_structure_is_kept():
    root = parsed(formula(r"\frac{x^2}{\sqrt{3}}"))
    assert {"mfrac", "msup", "msqrt"} <= {node.tag for node in root.iter()}
    assert 'class="boxed"' in formula(r"\boxed{5}")


@pytest.mark.parametrize(
    "latex",
    [
        r"\frac{1",
        r"\left( x",
        r"x}",
        r"\def\a{\b\b}\a",
        r"\newcommand{\x}{y}\x",
        "{" * 100 + "}" * 100,
        "x^" * 300 + "x",
        "x" * (LONGEST + 1),
        r"\href{javascript:alert(1)}{x}",
        r"\style{position:fixed}{x}",
    ],
)
def test_what_is_broken_or_dangerous_is_shown_as_its_source(latex):
    root = parsed(formula(latex))
    assert root[0].tag == "code"
    assert "".join(root.itertext()) == latex


@pytest.mark.parametrize(
    "latex", [r"\text{<script>alert(1)</script>}", r"\text{<b onclick=x>&amp;</b>}", "<script>x</script>"]
)
def test_markup_in_a_formula_is_text(latex):
    root = parsed(rich_text(f"a ${latex}$ b"))
    assert not {node.tag for node in root.iter()} & {"script", "b", "style"}
    assert "<" in "".join(root.itertext())


def test_attributes_come_from_a_closed_list():
    for latex in (r"\color{red\" onload=x}y", r"\class{a}{b}", r"\hspace{1\" onclick=x}y", r"\mathbb{R}\tag{1}"):
        for node in parsed(rich_text(f"${latex}$")).iter():
            assert set(node.attrib) <= {*formulas._ALLOWED, "class"}, latex


@given(st.text(alphabet=st.sampled_from(list("\\${}[]()^_&<>\"'ab1 \n")), max_size=120))
def test_any_text_gives_well_formed_markup(text):
    parsed(rich_text(text))
    parsed(short_answer(text))


@given(st.text(max_size=80))
def test_text_without_formulas_reads_as_itself(text):
    plain = text.replace("$", "").replace("\\", "")
    if plain.isprintable():
        assert "".join(parsed(rich_text(plain)).itertext()) == plain


def test_random_commands_are_quick_and_well_formed():
    from latex2mathml import commands

    words = [value for value in vars(commands).values() if isinstance(value, str) and value.startswith("\\")]
    words += ["{", "}", "^", "_", "&", "x", "1", r"\left(", r"\right)", r"\begin{matrix}", r"\end{matrix}"]
    draw = random.Random(0)
    formula("x")
    start = time.perf_counter()
    for _ in range(1500):
        parsed(formula("".join(draw.choices(words, k=draw.choice((3, 10, 60))))[:LONGEST]))
    assert time.perf_counter() - start < 20


def test_the_work_grows_with_the_length_of_the_text():
    for piece in ("$", "$ ", r"\(", r"\boxed{", r"\begin{align}", "{", r"\[x"):
        start = time.perf_counter()
        rich_text(piece * 3000)
        assert time.perf_counter() - start < 5, piece


def test_an_answer_shows_its_exact_characters():
    assert short_answer("12") == "<code>12</code>"
    root = parsed(short_answer(r"\frac{1}{2}"))
    assert "".join(root.find(".//code").itertext()) == r"\frac{1}{2}"
    assert root.find("math") is not None


def test_without_the_converter_everything_is_source(monkeypatch):
    monkeypatch.setattr(formulas, "_converter", lambda: None)
    formulas._mathml.cache_clear()
    assert rich_text("a $x<1$") == "a <code>x&lt;1</code>"
    formulas._mathml.cache_clear()
