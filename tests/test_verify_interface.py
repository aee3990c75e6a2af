"""The verifier from threads, event loops and processes; several boxes; classes."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from ulorl.recipe import VerifyRecipe
from ulorl.verify import Item, Verdict, Verifier, equivalence_classes
from ulorl.verify.outcome import DIFFERENT, EQUAL, Outcome, undecided
from ulorl.verify.symbolic.tier import SymbolicTier
from ulorl.verify.symbolic.worth import why_not
from ulorl.verify.tiers import Pair, read_answer

CONFIG = VerifyRecipe()
SYMBOLIC_EQUAL = [
    (r"\frac{\pi^2}{6}", r"\sum_{k=1}^{\infty}\frac{1}{k^2}"),
    ("1", r"\lim_{n \to \infty} \frac{n+1}{n}"),
    (r"\frac{\sqrt{\pi}}{2}", r"\int_0^\infty e^{-x^2} dx"),
    (r"\ln 2", r"\int_1^2 \frac{1}{x} dx"),
    ("e", r"\lim_{n \to \infty} \left(1+\frac{1}{n}\right)^n"),
    (r"e - 1", r"\sum_{k=1}^{\infty} \frac{1}{k!}"),
    (r"\frac{a^2}{2} - a\cos a + \sin a", r"\int_0^a (x + x \sin x) dx"),
    (r"\frac{1}{6}", r"\int_0^1 \int_0^x y \, dy \, dx"),
    ("0", r"\lim_{x \to \infty} \sum_{k=1}^{3} \frac{k}{x}"),
]
"""Beyond the rules: infinite sums, integrals and limits."""
SYMBOLIC_NOT_EQUAL = [
    (r"\frac{1}{3}", r"\int_0^1 x\,dx"),
    (r"2^{n}-1", r"\sum_{k=0}^{n}2^k"),
    ("1", r"\int_0^1 x\,dx \text{ m}"),
    (r"\frac{1}{2}", r"\int_0^1 x\,dx = \frac{1}{3}"),
    (r"\frac{1}{2}", r"\int_0^1 x\,dx, 5"),
    (r"\frac{1}{2}", r"\int_0^1 x\,dx + "),
    (r"\frac{1}{2}", r"\int_0^1 x\,dx \neq"),
    (r"\frac{1}{2}", r"\int_0^1 x\,dx \sqrt("),
    ("6", r"\sum_{k=1}^{3} k'"),
    ("6", r"\sum_{k=1}^{3} k \text{ or } 7"),
    ("6", r"\sum_{k=1}^{3} k_2"),
    ("1011", r"\sum_{k=1}^{1} 1011_2"),
    (r"\sum_{k=1}^{3} K", r"\sum_{k=1}^{3} k"),
    ("e^x", r"\sum_{n=0}^{\infty0} \frac{x^n}{n!}"),
    (r"\int_0^1 \int_0^x y dy dx", r"\int_0^1 \int_0^y y dx dy"),
    (r"\int_0^1 \int_0^1 y dy dx", r"\int_0^1 y dx \int_0^1 y dy"),
    (r"\frac{\pi^2}{6}", r"\sum_{k=1}^{\infty}\frac{1}{k^2} + \frac{1}{10^{40}}"),
    (r"\frac{\pi^2}{6}", r"\sum_{k=1}^{\infty}\frac{1}{k^2} (1 + \frac{1}{10^{90}})"),
    (r"\ln 2", r"\int_1^2 \frac{1}{x} dx + \frac{1}{10^{60}}"),
    (r"\ln 2", r"\int_1^2 \frac{1}{x} dx \approx 0.7"),
    (r"\ln 2", r"\int_1^2 \frac{1}{x} dx \text{ or } 1"),
    (r"\frac{1}{10^{50}}", r"\int_0^1 \sin(x) dx - 1 + \cos(1)"),
    (r"\frac{1}{10^{300}}", r"\binom{2}{2} \frac{1}{10^{301}}"),
    ("1.0000001", r"\binom{2}{2} 1.0000002"),
    ("3", r"\lim_{x \to 0} |x| / x"),
    (r"\int_0^1 x\,dx \text{ cm}", r"\int_0^1 x\,dx \text{ m}"),
    (r"\sum_{k=1}^{3} k_1", r"\sum_{k=1}^{3} k_2"),
]


def bare(pairs: Sequence[tuple[str, str]]) -> list[Item]:
    return [Item(reference, answer, is_answer=True) for reference, answer in pairs]


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(CONFIG) as verifier:
        yield verifier


MIXED = bare(
    [
        *SYMBOLIC_EQUAL,
        *SYMBOLIC_NOT_EQUAL[:4],
        (r"\frac{1}{2}", r"\int_0^1 x\,dx + "),
        (r"\frac{\pi^2}{6}", r"\sum_{k=1}^{\infty}\frac{1}{k^2} + \frac{1}{10^{40}}"),
        ("6", r"\sum_{k=1}^{3} k'"),
        ("27", "27"),
        ("27", "28"),
        ("5", "cat"),
        ("", "1"),
        ("7", ""),
        (r"\frac12", "0.5"),
    ]
)
"""Every way through the cascade, and nothing near the time limit, so that verdicts do not depend on the load."""


def plain(verdicts: Sequence[Verdict]) -> list[tuple[bool | None, str, str]]:
    return [(verdict.equivalent, verdict.rule, verdict.reason) for verdict in verdicts]


@pytest.mark.parametrize(("reference", "answer"), SYMBOLIC_EQUAL)
def test_the_symbolic_tier_finds_equal_values(verifier: Verifier, reference: str, answer: str) -> None:
    assert verifier.verify(bare([(reference, answer), (answer, reference)])) == [
        Verdict(True, answer, "symbolic"),
        Verdict(True, reference, "symbolic"),
    ]


@pytest.mark.parametrize(("reference", "answer"), SYMBOLIC_NOT_EQUAL)
def test_nothing_is_dropped_to_make_values_equal(verifier: Verifier, reference: str, answer: str) -> None:
    for verdict in verifier.verify(bare([(reference, answer), (answer, reference)])):
        assert verdict.equivalent is not True


def test_without_the_symbolic_tier_no_process_starts() -> None:
    before = set(psutil.Process().children(recursive=True))
    verdicts = Verifier(VerifyRecipe(symbolic=False)).verify(bare(SYMBOLIC_EQUAL))
    assert not any(verdict.equivalent for verdict in verdicts)
    assert set(psutil.Process().children(recursive=True)) == before


def test_rules_start_no_process_either() -> None:
    verifier = Verifier(CONFIG)
    before = set(psutil.Process().children(recursive=True))
    verifier.verify(bare([("27", "27"), ("27", "28"), ("Friday", "Monday"), ("5", "cat"), ("", "1")]))
    assert set(psutil.Process().children(recursive=True)) == before


def test_the_same_verdicts_from_a_thread_an_event_loop_and_many_threads(verifier: Verifier) -> None:
    expected = plain(verifier.verify(MIXED))
    assert plain(asyncio.run(verifier.verify_async(MIXED))) == expected

    async def at_once() -> list[list[Verdict]]:
        return list(await asyncio.gather(*(verifier.verify_async(MIXED) for _ in range(4))))

    assert [plain(verdicts) for verdicts in asyncio.run(at_once())] == [expected] * 4
    with ThreadPoolExecutor(8) as threads:
        assert [plain(v) for v in threads.map(verifier.verify, [MIXED] * 8)] == [expected] * 8


def _verdicts_of(verifier: Verifier) -> list[tuple[bool | None, str, str]]:
    with verifier:
        return plain(verifier.verify(MIXED))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_same_verdicts_from_processes(verifier: Verifier, method: str) -> None:
    expected = plain(verifier.verify(MIXED))
    count = 8 if method == "fork" else 2
    small = Verifier(VerifyRecipe(symbolic_workers=1))
    with ProcessPoolExecutor(count, multiprocessing.get_context(method)) as processes:
        assert list(processes.map(_verdicts_of, [small] * count)) == [expected] * count
    assert plain(verifier.verify(MIXED)) == expected


def test_a_verdict_does_not_depend_on_the_other_items_of_a_call(verifier: Verifier) -> None:
    together = plain(verifier.verify(MIXED))
    assert [plain(verifier.verify([item]))[0] for item in MIXED] == together
    assert plain(verifier.verify(MIXED[::-1])) == together[::-1]


def test_killed_workers_leave_every_item_with_a_verdict() -> None:
    """A worker is killed once it has been seen with work; the others, and new ones, do the rest."""
    items = bare([(rf"{n}(e-1)", rf"\sum_{{k=1}}^{{\infty}} \frac{{{n}}}{{k!}}") for n in range(2, 62)])
    tier = SymbolicTier(CONFIG)
    tier.warm_up()
    stop = threading.Event()

    def murderer() -> None:
        for worker in list(tier._pool._alive):
            served = worker.served
            while worker.served < served + 3 and not stop.wait(0.001):
                pass
            worker.process.kill()

    thread = threading.Thread(target=murderer)
    thread.start()
    try:
        verdicts = Verifier(CONFIG, [tier]).verify(items)
    finally:
        stop.set()
        thread.join()
        tier.close()
    assert len(verdicts) == len(items)
    assert {(v.equivalent, v.rule) for v in verdicts} <= {(True, "symbolic"), (None, "undecided")}
    assert any(v.equivalent is None for v in verdicts), "killed in the middle"
    assert any(v.equivalent for v in verdicts), "the rest was judged"


def test_a_closed_verifier_still_applies_the_rules() -> None:
    verifier = Verifier(CONFIG)
    verifier.close()
    verdicts = verifier.verify(bare([("5", "5"), SYMBOLIC_EQUAL[0]]))
    assert [verdict.equivalent for verdict in verdicts] == [True, None]


def test_a_pickled_verifier_judges_alike(verifier: Verifier) -> None:
    with pickle.loads(pickle.dumps(verifier)) as copy:
        assert plain(copy.verify(MIXED)) == plain(verifier.verify(MIXED))


@dataclass
class Scripted:
    """A batch tier that says what it is told and remembers what it was asked."""

    says: dict[str, Outcome]
    name: str = "scripted"
    asked: list[str] = field(default_factory=list)
    closed: bool = False

    def decide(self, pairs: Sequence[Pair]) -> list[Outcome]:
        self.asked += [pair.answer.text for pair in pairs]
        return [self.says.get(pair.answer.text, undecided("unknown")) for pair in pairs]

    def close(self) -> None:
        self.closed = True


def boxes(*contents: str) -> str:
    return " and ".join(rf"\boxed{{{content}}}" for content in contents)


@pytest.mark.parametrize(
    ("reference", "response", "says", "equivalent", "rule"),
    [
        ("5", boxes("cat"), {"cat": EQUAL}, True, "scripted"),
        ("5", boxes("cat"), {"cat": DIFFERENT}, False, "scripted"),
        ("5", boxes("cat"), {"cat": Outcome("equal", rule="units")}, True, "units"),
        ("5", boxes("cat"), {}, None, "undecided"),
        ("5", boxes("cat", "5"), {"cat": EQUAL}, True, "exact"),
        ("5", boxes("cat", "5"), {"cat": DIFFERENT}, False, "hedge"),
        ("5", boxes("cat", "5"), {}, None, "undecided"),
        ("5", boxes("cat", "dog"), {"cat": EQUAL, "dog": EQUAL}, True, "scripted"),
        ("5", boxes("cat", "dog"), {"cat": EQUAL, "dog": DIFFERENT}, False, "hedge"),
        ("5", boxes("4", "cat"), {}, False, "hedge"),
    ],
)
def test_batch_tiers_take_part_in_every_kind_of_item(
    reference: str, response: str, says: dict[str, Outcome], equivalent: bool | None, rule: str
) -> None:
    tier = Scripted(says)
    verdict = Verifier(CONFIG, [tier]).verify([Item(reference, response)])[0]
    assert (verdict.equivalent, verdict.rule) == (equivalent, rule)


def test_the_boxes_of_a_list_may_be_matched_by_a_batch_tier() -> None:
    tier = Scripted({"cat, dog": EQUAL})
    verdict = Verifier(CONFIG, [tier]).verify([Item("1, 2", boxes("cat", "dog"))])[0]
    assert (verdict.equivalent, verdict.rule) == (True, "scripted")


def test_only_what_is_undecided_goes_down_and_as_one_batch() -> None:
    first, second = Scripted({"cat": EQUAL}), Scripted({"dog": DIFFERENT}, name="second")
    verifier = Verifier(CONFIG, [first, second])
    verdicts = verifier.verify(bare([("5", "5"), ("5", "cat"), ("5", "6"), ("5", "dog"), ("5", "owl")]))
    assert first.asked == ["cat", "dog", "owl"]
    assert second.asked == ["dog", "owl"]
    assert [(v.equivalent, v.rule) for v in verdicts] == [
        (True, "exact"), (True, "scripted"), (False, "numeric"), (False, "second"), (None, "undecided"),
    ]  # fmt: skip
    verifier.close()
    assert first.closed and second.closed


@dataclass
class FakeJudge(Scripted):
    """A judge that is also asked about what was rejected."""

    name: str = "generative"
    also_rejected: bool = True
    reviewed: list[str] = field(default_factory=list)

    def review(self, pairs: Sequence[Pair]) -> list[Outcome]:
        self.reviewed += [pair.answer.text for pair in pairs]
        return [self.says.get(pair.answer.text, undecided("unsure")) for pair in pairs]


REVIEWED = [
    *bare([("5", "5"), ("5", "cat"), ("5", "owl"), ("5", "6"), ("5", "7"), ("5", "8"), ("", "cat")]),
    Item("5", boxes("5", "6")),
    Item("1, 2", boxes("3", "4")),
    Item("5", "no box"),
]


@pytest.mark.parametrize("also_rejected", [True, False])
def test_a_judge_may_overturn_rejections(monkeypatch: pytest.MonkeyPatch, also_rejected: bool) -> None:
    judge = FakeJudge({"cat": EQUAL, "6": EQUAL, "7": DIFFERENT, "3, 4": EQUAL}, also_rejected=also_rejected)
    monkeypatch.setattr("ulorl.verify.verifier._judge_of", lambda config: judge)
    with Verifier(CONFIG, []) as verifier:
        verdicts = verifier.verify(REVIEWED)
    assert judge.asked == ["cat", "owl"]
    assert judge.reviewed == (["6", "7", "8", "3, 4"] if also_rejected else []), "no hedge, nothing accepted"
    overturned = (True, "generative") if also_rejected else (False, "numeric")
    assert [(v.equivalent, v.rule) for v in verdicts] == [
        (True, "exact"), (True, "generative"), (None, "undecided"), overturned, (False, "numeric"), (False, "numeric"),
        (None, "undecided"), (False, "hedge"), (also_rejected, "generative" if also_rejected else "typed"),
        (None, "undecided"),
    ]  # fmt: skip
    assert judge.closed


def test_an_unusable_reference_is_never_put_to_a_batch_tier() -> None:
    tier = Scripted({"cat": EQUAL})
    verdicts = Verifier(CONFIG, [tier]).verify(bare([("", "cat"), (r"\frac{1}{2", "cat"), ("}{", "cat")]))
    assert [verdict.equivalent for verdict in verdicts] == [None] * 3
    assert all(verdict.reason.startswith("reference: ") for verdict in verdicts)
    assert not tier.asked


def test_large_batches_are_judged_in_parts() -> None:
    tier = Scripted({})
    items = bare([("5", "5")] * 9000 + [("5", "owl")] * 1000)
    verdicts = Verifier(CONFIG, [tier]).verify(items)
    assert [verdict.equivalent for verdict in verdicts] == [True] * 9000 + [None] * 1000
    assert len(tier.asked) == 1000


def test_classes_merge_what_only_the_symbolic_tier_finds_equal() -> None:
    answers = [r"\int_1^2 \frac{1}{x} dx", r"\ln 2", None, "7", r"\int_2^4 \frac{1}{x} dx", r"\ln(2)"]
    assert equivalence_classes(answers, CONFIG) == [0, 1, -1, 2, 3, 1]
    tier = SymbolicTier(CONFIG)
    assert equivalence_classes(answers, CONFIG, tier) == [0, 0, -1, 1, 0, 0]
    tier.close()


@pytest.mark.parametrize(
    ("text", "is_sent"),
    [
        (r"\sum_{k=1}^{\infty}\frac{1}{k^2}", True),
        (r"\int_0^\infty e^{-x^2} dx", True),
        (r"\prod_{k=0}^{\infty}(1+2^{-2^k})", True),
        (r"\sum_{k=1}^{n} k^{10}", False),  # no number equals what depends on n
        (r"\sum_{k=1}^{5000} \frac{1}{k}", True),
        (r"\int_0^{10^{10}} x\,dx", False),
        (r"\sum_{k=1}^{9999999} k", False),
        (r"\lim_{x\to 0} 9^{9^{9}} x", False),
        (r"\lim_{x\to 0} x^{x^{x^{x^x}}}", False),
        (r"\sum_{k=1}^{5} (k!)!", False),
        (r"\sum_{k=1}^{5} k!!", False),
        (r"\sum_{k=1}^{5} 99999! k", False),
        (r"\sqrt{2}+\ln 5", False),
        (r"\int_0^1 x\,dx \text{ square metres}", False),
        (r"\int_0^1 x\,dx" + "+1" * 300, False),
        (r"10^{10^{10}}", False),
        (r"\binom{10^9}{7}", False),
    ],
)
def test_only_what_a_computer_algebra_system_can_decide_is_sent_to_a_worker(text: str, is_sent: bool) -> None:
    assert (why_not(read_answer("7"), read_answer(text)) == "") is is_sent
    assert (why_not(read_answer(text), read_answer("7")) == "") is is_sent


def test_sums_of_the_same_variables_are_sent_to_a_worker() -> None:
    total = read_answer(r"\sum_{k=1}^{n} k^{10}")
    assert why_not(read_answer("n^{11}"), total) == ""
    assert why_not(read_answer("m^{11}"), total) == "other variables"


def test_the_callers_alarm_survives(verifier: Verifier) -> None:
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    try:
        signal.setitimer(signal.ITIMER_REAL, 100)
        verifier.verify(bare(SYMBOLIC_EQUAL))
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 100
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


SHARED = Path(os.environ.get("ULORL_SHARED", Path(__file__).parents[2] / "shared")) / "data" / "verify"


def test_the_order_of_the_arguments_does_not_matter_on_labelled_pairs(verifier: Verifier) -> None:
    if not SHARED.is_dir():
        pytest.skip(f"no labelled pairs at {SHARED}; set ULORL_SHARED to the directory that holds data/")
    rows = [json.loads(line) for path in sorted(SHARED.glob("*.jsonl")) for line in path.open()]
    rows = [row for row in rows if row.get("kind") != "response"]
    there = verifier.verify([Item(r["ref"], r["pred"], is_answer=True, policy={"rounding": "never"}) for r in rows])
    back = verifier.verify([Item(r["pred"], r["ref"], is_answer=True, policy={"rounding": "never"}) for r in rows])
    both = [(a, b) for a, b in zip(there, back, strict=True) if None not in (a.equivalent, b.equivalent)]
    assert len(both) > 1000
    assert not [pair for pair in both if pair[0].equivalent is not pair[1].equivalent]
