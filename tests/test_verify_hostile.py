"""Hostile answers: never accepted, never executed, cheap, and within a gigabyte."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ulorl.recipe import VerifyRecipe
from ulorl.verify import Item, Verifier


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(VerifyRecipe()) as verifier:
        yield verifier


TOWER = "9^{" * 40 + "9" + "}" * 40
HOSTILE = {
    "tower": "10^{10^{10}}",
    "tall tower": TOWER,
    "tower in a sum": r"\sum_{k=1}^{9^{9^9}} k",
    "tower as bound": r"\int_0^{10^{10^{10}}} x\,dx",
    "tower in a limit": r"\lim_{x \to 10^{10^{10}}} x",
    "tower in a root": r"\sqrt[10^{10^{10}}]{2}",
    "tower in a binomial": r"\binom{10^{10^{10}}}{7}",
    "tower in a floor": r"\lfloor 10^{10^{10}} \rfloor",
    "factorial": "10000000!",
    "factorial of factorial": "((((9!)!)!)!)!",
    "factorials of factorials in a row": "9" + "!" * 200,
    "factorial in a sum": r"\sum_{k=1}^{100} (k!)!",
    "large binomial": r"\binom{1000000000}{500000000}",
    "binomial of binomials": r"\binom{\binom{\binom{99}{49}}{7}}{\binom{88}{44}}",
    "long sum": r"\sum_{k=1}^{1000000000} \sin(k)",
    "long product": r"\prod_{k=1}^{1000000000} k",
    "product of sums": r"\prod_{k=1}^{500} \sum_{j=1}^{500} \frac{1}{j+k}",
    "sum that does not end": r"\sum_{n=1}^{\infty}\frac{\sin(n^2)}{n^{1.5}}",
    "sum that diverges": r"\sum_{n=1}^{\infty} n!",
    "sum backwards": r"\sum_{k=10^{9}}^{1} k",
    "sum with strange bounds": r"\sum_{k=0.5}^{x} k",
    "integral": r"\int_0^1 \sin(\sin(\sin(x^{x^x}))) e^{-x^7} dx",
    "integral without end": r"\int_0^\infty \frac{\sin(x^3)}{x+\sqrt{x}} dx",
    "integral that diverges": r"\int_0^1 \frac{1}{x} dx",
    "nested integrals": r"\int_0^1 \int_0^x \int_0^y \sin(xyz) dz dy dx",
    "limit": r"\lim_{x \to \infty} \frac{x^{x^x}}{e^{x!}}",
    "limit that oscillates": r"\lim_{x \to 0} \sin(\frac{1}{x})",
    "power of a sum": r"(x+y+z+w+a+b)^{500}",
    "powers of powers of sums": r"((((x+y)^{16}+z)^{16}+w)^{16}+a)^{16}",
    "many variables": "+".join(f"{a}{b}" for a in "abcdefgh" for b in "klmnop"),
    "rational power": r"\left(\frac{123456789}{987654321}\right)^{123456789}",
    "decimal power": "0.123456789^{0.987654321^{123456}}",
    "scientific": "1E1000000",
    "scientific without end": "1e99999999999999999999",
    "negative scientific": "1e-99999999",
    "digits": "7" * 5000,
    "many digits": "7" * 10_000_000,
    "decimals": "0." + "3" * 1_000_000,
    "repeating": r"0.\overline{" + "142857" * 5000 + "}",
    "parentheses": "(" * 100_000 + "1" + ")" * 100_000,
    "open parentheses": "(" * 100_000,
    "braces": "{" * 100_000 + "1" + "}" * 100_000,
    "nested fractions": r"\frac{1}{" * 3000 + "1" + "}" * 3000,
    "nested roots": r"\sqrt{1+" * 3000 + "1" + "}" * 3000,
    "few nested roots": r"\sqrt{1+" * 35 + "1" + "}" * 35,
    "nested boxes": r"\boxed{" * 50_000 + "1" + "}" * 50_000,
    "nested text": r"\text{" * 20_000 + "1" + "}" * 20_000,
    "nested left": r"\left(" * 20_000 + "1" + r"\right)" * 20_000,
    "minus signs": "-" * 100_000 + "1",
    "plus signs": "1" + "+1" * 100_000,
    "bars": "|" * 50_000,
    "dollars": "$" * 100_000,
    "backslashes": "\\" * 100_000,
    "newlines": "\n" * 1_000_000 + "1",
    "spaces": "1" + " " * 1_000_000 + "1",
    "commas": "1," * 100_000,
    "set": r"\{" + ",".join(map(str, range(30_000))) + r"\}",
    "same set": r"\{" + "1," * 2000 + r"1\}",
    "matrix": r"\begin{pmatrix}" + "&".join(["1"] * 5000) + r"\end{pmatrix}",
    "open environments": r"\begin{pmatrix}" * 5000,
    "identity matrix": r"\operatorname{eye}(100000)",
    "zero matrix": r"\operatorname{zeros}(100000, 100000)",
    "determinant": r"\det\begin{pmatrix}" + r"\\".join(["&".join(["x+y"] * 12)] * 12) + r"\end{pmatrix}",
    "digits and commas": "1,234" * 3000,
    "ones and dots": "1." * 50_000,
    "almost thousands": "1" + ",000" * 20_000 + ",",
    "words": "so " * 100_000,
    "answer is": "the answer is " * 20_000,
    "hashes": "#" * 100_000 + " 1",
    "stars": "*" * 100_000,
    "unclosed box": r"\boxed{" + "x" * 100_000,
    "letters": "a" * 100_000,
    "commands": r"\alpha" * 20_000,
    "subscripts": "a" + "_{b" * 5000 + "}" * 5000,
    "superscript characters": "2" + "⁹" * 100_000,
    "null bytes": "\x00" * 1000 + "1\x00",
    "control characters": "".join(map(chr, range(32))),
    "lone surrogate": "\ud800 = 1",
    "surrogates in mathematics": "x^{\udfff} + \\int_0^1 \udc00 dx",
    "right to left": "\u202e1\u202c",
    "combining": "1" + "\u0301" * 10_000,
    "emoji": "🧮" * 10_000,
    "digits of other scripts": r"\int_0^{٣} x dx",
    "fullwidth": "１０^{１０^{１０}}",
    "private use": "\ue000\uf8ff" * 1000,
    "input": r"\input{/etc/passwd}",
    "write": r"\immediate\write18{touch /tmp/pwned}",
    "macro": r"\def\x{\x\x}\x",
    "new command": r"\newcommand{\a}{\b\b}\newcommand{\b}{\a\a}\a",
    "csname": r"\csname end\endcsname",
    "loop": r"\loop\iftrue\repeat",
    "import": "__import__('os').system('touch PWNED')",
    "import in mathematics": r"\int_0^1 __import__('os').system('touch PWNED') dx",
    "import as a function": r"\operatorname{__import__}(os)",
    "import in a subscript": r"x_{__import__('os').system('touch PWNED')}",
    "exec": "exec('open(\"PWNED\", \"w\")')",
    "lambda": "(lambda: open('PWNED', 'w'))()",
    "f-string": "{open('PWNED','w')}",
    "comprehension": "[open('PWNED','w') for _ in [0]]",
    "sympy names": r"\mathrm{Symbol}('x').func.__globals__",
    "sympy names in mathematics": r"\sum_{S.Infinity=1}^{E1} Integer.__class__",
    "names of sympy objects": "S + N + Q + O(x) + I + E",
    "pickle": "cos\nsystem\n(S'touch PWNED'\ntR.",
    "json": '{"ready": true}\n{"relation": "equal"}',
    "regular expression": "(a+)+$" * 1000,
    "nan": r"\infty - \infty",
    "zero by zero": r"\frac{0}{0}",
    "zero to the zero": r"\lim_{x \to 0} 0^0",
    "pole": r"\tan(\pi/2)",
    "logarithm of zero": r"\int_0^1 \ln(0) dx",
    "gamma": r"\Gamma(10000000000)",
    "continued": "1" + r"+\frac{1}{1" * 300 + "}" * 300,
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_answers_cost_little_and_are_never_accepted(
    verifier: Verifier, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = HOSTILE[kind]
    items = [
        Item("4217", text, is_answer=True),
        Item(text, "4217", is_answer=True),
        Item("4217", text),
        Item("4217", rf"The answer is \boxed{{{text}}}."),
        *([] if "boxed" in text else [Item(text, text[:-1] + "8", is_answer=True)]),
    ]
    start = time.process_time(), time.monotonic()
    for verdict in verifier.verify(items):
        assert verdict.equivalent is not True
        assert verdict.rule != "undecided" or verdict.reason
    assert time.process_time() - start[0] < 2 * len(items)
    assert time.monotonic() - start[1] < 60, "on a busy machine"
    assert not list(tmp_path.iterdir())


def test_hostile_answers_fit_into_a_gigabyte(verifier: Verifier) -> None:
    me = psutil.Process()
    peak = 0
    stop = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not stop.wait(0.02):
            total = 0
            for process in me.children(recursive=True):
                try:
                    total += process.memory_info().rss
                except psutil.Error:
                    continue
            peak = max(peak, total)

    thread = threading.Thread(target=watch)
    thread.start()
    verifier.verify([Item("4217", text, is_answer=True) for text in HOSTILE.values()])
    stop.set()
    thread.join()
    assert peak < 700 << 20
