"""Generated and mutated LaTeX, and random bytes, through the whole verifier: no exception, no hang, no growth."""

from __future__ import annotations

import gc
import random
import resource
import time
from collections.abc import Iterator
from itertools import islice

import psutil
import pytest

from ulorl.recipe import VerifyRecipe
from ulorl.verify import Item, Verifier
from ulorl.verify.extraction.extract import extract, given
from ulorl.verify.grammar.normalise import normalise
from ulorl.verify.policy import DEFAULT
from ulorl.verify.tiers import RULES, decide, read_answer

SECONDS = 1.0
"""Processor time of one text through all steps of this process, at most 2,000 characters long."""
GROWTH_MIB = 60
"""Of the resident memory after the first tenth of the texts: caches fill up, nothing else may."""

SEEDS = [
    "27", "-3.50", "1,234,567", r"\frac{3}{4}", r"3\frac12", r"0.\overline{142857}", r"2.5\times10^{-3}", r"45\%",
    r"\$12.50", r"\sqrt{2}+\sqrt[3]{5}", r"\frac{1+\sqrt{5}}{2}", r"3\pi/4", r"\ln 2+e^{-1}", "x^2-3x+2",
    r"\frac{x+1}{x-1}", "2^{10}", "5!", r"\binom{n}{k}", r"\sin^2\theta", r"|x-3|", r"\lfloor x\rfloor", "(1,2)",
    r"\left(-\infty,3\right]", r"(0,1)\cup[2,\infty)", r"\{1,2,3\}", r"\{x\mid x>2\}", "x=2, y=3", r"1<x\le5",
    r"x\in\mathbb{R}\setminus\{0\}", r"\pm\sqrt{3}", "3+4i", "1011_2", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}",
    r"\begin{cases}x&x>0\\-x&x\le0\end{cases}", r"\frac{\pi}{3}+2k\pi, k\in\mathbb{Z}", r"27\text{ cm}^2", "60 km/h",
    "3:15 pm", "March 5, 2021", "twenty-one", r"\textbf{(C)}", "yes", "east", "1:2:3", "x \\equiv 3 \\pmod 7",
    r"\sum_{k=1}^{n}k^2", r"\int_0^1 x\,dx", r"\lim_{x\to0}\frac{\sin x}{x}", r"\prod_{k=1}^{5}k",
    "f(x)=2x+1", "甲和乙",
    "答案是 5", r"The answer is \boxed{\frac{1}{2}}.", "<think>5</think> So 6.", "#### 72", "Answer: 3 or 4",
    r"\boxed{1} and \boxed{2}",
]  # fmt: skip
PIECES = [
    "{", "}", "(", ")", "[", "]", r"\{", r"\}", "^", "_", "$", "&", r"\\", ",", ";", ":", "=", "<", ">", "|", "!",
    "'", "%", "/", "+", "-", "*", ".", " ", "\n", "~", "^{", "_{", "0", "9", "10^{10}", "99", "1e9", "-1", r"\frac",
    r"\sqrt", r"\left", r"\right", r"\text{", r"\boxed{", r"\overline{", r"\cdot", r"\times", r"\pm", r"\cup", r"\in",
    r"\le", r"\ne", r"\pi", r"\infty", r"\sin", r"\log_", r"\sum_", r"\int_", r"\lim_", r"\binom", r"\begin{pmatrix}",
    r"\end{pmatrix}", r"\pmod", r"\mathbb{Z}", r"\ldots", r"\circ", "i", "e", "x", "k", "dx", " cm", " or ", " and ",
    "√", "²", "½", "π", "∞", "≤", "×", "−", "°", "，", "５", "٣", "\u200b", "\u202e", "\x00", "\ud800",
    "the answer is ",
]  # fmt: skip


def _mutated(rng: random.Random, text: str) -> str:
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at, end = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
        piece = rng.choice(PIECES)
        text = rng.choice(
            (
                text[:at] + piece + text[at:],
                text[:at] + text[end:],
                text[:at] + text[at:end] * rng.choice((2, 2, 3, 40)) + text[end:],
                text[:at] + rng.choice(SEEDS) + text[end:],
                text[:at] + "{" + text[at:end] + "}" + text[end:],
                text[:at] + piece * rng.choice((2, 5, 50)) + text[end:],
                text[::-1],
                "".join(rng.sample(text, len(text))),
            )
        )[:2000]
    return text


def texts(seed: int) -> Iterator[str]:
    """Without end: seeds changed here and there, heaps of pieces, and bytes."""
    rng = random.Random(seed)
    while True:
        yield _mutated(rng, rng.choice(SEEDS))
        yield _mutated(rng, rng.choice(SEEDS) + rng.choice(PIECES) + rng.choice(SEEDS))
        yield "".join(rng.choice(PIECES) for _ in range(rng.randrange(60)))
        data = rng.randbytes(rng.randrange(80))
        yield data.decode("latin-1") if rng.random() < 0.5 else data.decode("utf-8", "surrogateescape")


def run(count: int, seed: int) -> None:
    verifier = Verifier(VerifyRecipe(symbolic=False))
    before, resident = read_answer("7"), 0
    for number, text in enumerate(islice(texts(seed), count)):
        start = time.process_time()
        extract(text, last_number=True)
        given(text, parts=True)
        normal = normalise(text)
        assert isinstance(normal, str)
        answer = read_answer(text)
        for a, b in ((before, answer), (answer, before), (answer, answer)):
            assert decide(RULES, a, b, DEFAULT)[1].relation in ("equal", "different", "undecided")
        items = [Item(text, before.text, is_answer=True), Item(before.text, text), Item("7", f"so \\boxed{{{text}}}")]
        for verdict in verifier.verify(items):
            assert verdict.equivalent is not None or verdict.reason
        taken = time.process_time() - start
        assert taken < SECONDS, (taken, text)
        before = answer
        if number == count // 10:
            resident = _resident()
    gc.collect()
    assert _resident() - resident < GROWTH_MIB << 20


def _resident() -> int:
    return int(psutil.Process().memory_info().rss)


def test_commas_inside_and_between_numbers_are_read_in_one_way() -> None:
    start = time.process_time()
    extract("so )" + "2," * 900 + "1({}", last_number=True)
    assert time.process_time() - start < SECONDS


def test_a_few_thousand_texts() -> None:
    run(3_000, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_hundred_thousand_texts() -> None:
    run(100_000, seed=2)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_the_symbolic_tier_with_texts_that_reach_it() -> None:
    """Each within a few seconds of processor time, workers and all, whatever is sent to them."""
    with Verifier(VerifyRecipe()) as verifier:
        for number, text in enumerate(islice(texts(3), 20_000)):
            start = time.process_time()
            verdict = verifier.verify([Item(SEEDS[number % len(SEEDS)], text, is_answer=True)])[0]
            assert verdict.equivalent is not None or verdict.reason
            assert time.process_time() - start < SECONDS
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 400 << 10
