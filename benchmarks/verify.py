"""Every figure of the verifier on labelled data: ``python benchmarks/verify.py [--data DIR] [--json FILE]``.

DIR holds JSON lines with ref, pred, label, kind (answer or response) and tags; without one, ``data/verify`` of the
directory that ULORL_SHARED names, else of ``../shared``. ``data/responses`` beside it is used where it exists.

Accuracy counts undecided as not accepted. Bare pairs are the rows of kind "answer" outside hostile.jsonl and
near_miss.jsonl. Rows tagged ``policy``, whose label depends on a convention, are left out of every other line and
reported one line a convention. math-verify judges the same bare pairs and near misses in the same run, in turns.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import multiprocessing
import os
import re
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from math_verify_peer import Peer

from ulorl.recipe import VerifyRecipe
from ulorl.verify import Item, Verdict, Verifier
from ulorl.verify.scoring.rates import Rates

SHARED = Path(os.environ.get("ULORL_SHARED", Path(__file__).parents[2] / "shared")) / "data"
ROUNDS = 5
HOSTILE_SECONDS, HOSTILE_MIB = 2.0, 1024
PUBLISHED = {
    "gsm8k_abel_7b": 0.5974,
    "gsm8k_gsmplus_metamath_7b": 0.6672,
    "gsm8k_gsmplus_gpt4": 0.9325,
    "gsm8k_tora-70b-v1_0": 0.843,
}
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED / "verify")
    parser.add_argument("--json", type=Path, help="also write every figure here")
    parser.add_argument("--show", choices=["fp", "fn"], help="list what disagrees with its label")
    parser.add_argument("--no-peer", action="store_true", help="leave math-verify out")
    arguments = parser.parse_args()
    groups = _groups(arguments.data)
    figures: dict[str, Any] = {}
    with Verifier(VerifyRecipe()) as verifier:
        _start_workers(verifier)
        _heading("accuracy", "to reach: accuracy, false positives, false negatives")
        for name, target in (
            ("bare pairs", "94 %, <= 0.7 %, <= 10 %"),
            ("near misses", "-, <= 1.5 %, <= 15 %"),
            ("whole responses", "99 %, <= 0.2 %, -"),
        ):
            figures[name] = _accuracy(name, groups[name], verifier, target, arguments.show)
        if not arguments.no_peer:
            figures["peer"] = _peer(groups, verifier)
        figures["policies"] = _policies(groups["policy"], verifier)
        figures["hostile"] = _hostile(groups["hostile"])
        figures["callers"] = _callers(groups["bare pairs"] + groups["near misses"], verifier)
    figures["symmetry"] = _symmetry(groups["bare pairs"] + groups["near misses"])
    figures["responses"] = _responses()
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n")


def _start_workers(verifier: Verifier) -> None:
    verifier.verify([Item(r"\sin(1)\cos(1)", r"\frac{\sin(2)}{2}", is_answer=True)])


def _groups(directory: Path) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for path in sorted(directory.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if path.stem == "hostile":
                groups["hostile"].append(row)
            elif "policy" in (row.get("tags") or []):
                groups["policy"].append(row)
            elif row["kind"] == "response":
                groups["whole responses"].append(row)
            else:
                groups["near misses" if path.stem == "near_miss" else "bare pairs"].append(row)
    if not groups:
        sys.exit(f"{directory}: no labelled data; give --data DIR or set ULORL_SHARED")
    return groups


def _items(rows: Sequence[Row]) -> list[Item]:
    return [Item(row["ref"], row["pred"], row.get("question"), is_answer=row["kind"] != "response") for row in rows]


def _heading(title: str, note: str) -> None:
    print(f"\n{title} ({note})")


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f} %"


def _rates(rows: Sequence[Row], verdicts: Sequence[Verdict], seconds: float = 0.0) -> dict[str, Any]:
    rates = Rates(seconds=seconds)
    for row, verdict in zip(rows, verdicts, strict=True):
        rates.add(verdict, row["label"])
    return rates.summary()


def _line(result: dict[str, Any]) -> str:
    return (
        f"{result['n']:5}  accuracy {_percent(result['accuracy'])}, false positives "
        f"{_percent(result['false_positive_rate'])}, false negatives {_percent(result['false_negative_rate'])}, "
        f"{result['pairs_per_second']:.0f}/s"
    )


def _accuracy(name: str, rows: list[Row], verifier: Verifier, target: str, show: str | None) -> dict[str, Any]:
    items = _items(rows)
    start = time.perf_counter()
    verdicts = verifier.verify(items)
    result = _rates(rows, verdicts, time.perf_counter() - start)
    print(f"  {name:16} {_line(result)}, undecided {result['undecided']}   [{target}]")
    print(f"  {'':16} by rule: {', '.join(f'{rule} {count}' for rule, count in result['by_rule'].items())}")
    for row, verdict in zip(rows, verdicts, strict=True):
        accepted = verdict.equivalent is True
        if accepted != row["label"] and show == ("fp" if accepted else "fn"):
            print(
                f"    {row['id']} {row['ref'][:50]!r} | {str(verdict.answer)[:50]!r} | {verdict.rule} {verdict.reason}"
            )
    return result


def _peer(groups: dict[str, list[Row]], verifier: Verifier) -> dict[str, Any]:
    """math-verify and ours on the same pairs in turns; how many times as many pairs a second ours judges."""
    _heading("math-verify on the same pairs", f"in {ROUNDS} turns each; 10 s a pair, then killed")
    figures: dict[str, Any] = {}
    with Peer() as peer:
        for name in ("bare pairs", "near misses"):
            rows = groups[name]
            accepted: dict[int, bool] = {}
            ratios, rates = [], []
            for turn in range(ROUNDS):
                part = range(turn, len(rows), ROUNDS)
                items = _items([rows[index] for index in part])
                start = time.perf_counter()
                verifier.verify(items)
                between = time.perf_counter()
                for index in part:
                    accepted[index] = peer.accepts(rows[index]["ref"], rows[index]["pred"]) is True
                theirs = time.perf_counter() - between
                ratios.append(theirs / (between - start))
                rates.append(len(part) / theirs)
            verdicts = [Verdict(accepted[index], None, "peer") for index in range(len(rows))]
            result = _rates(rows, verdicts) | {"pairs_per_second": statistics.median(rates), "ratios": ratios}
            figures[name] = result
            print(
                f"  {name:16} {_line(result)}; ours is {statistics.median(ratios):.0f} times as fast "
                f"({min(ratios):.0f} to {max(ratios):.0f})"
            )
        print(f"  killed {peer.killed} times")
        figures["killed"] = peer.killed
    return figures


def _policies(rows: list[Row], verifier: Verifier) -> dict[str, Any]:
    _heading("labels that depend on a policy", "agreement with our defaults; docs/verify.md says why")
    kinds: dict[str, list[bool]] = defaultdict(list)
    for row, verdict in zip(rows, verifier.verify(_items(rows)), strict=True):
        tag = re.search(r"\[policy:([^\]]*)\]", row.get("note") or "")
        kinds[tag[1] if tag else "other"].append((verdict.equivalent is True) == row["label"])
    for kind, agreed in sorted(kinds.items(), key=lambda pair: -len(pair[1])):
        print(f"  {kind:20} {sum(agreed):3} of {len(agreed):3}")
    return {kind: [sum(agreed), len(agreed)] for kind, agreed in kinds.items()}


def _hostile(rows: list[Row]) -> dict[str, Any]:
    _heading("hostile", f"each within {HOSTILE_SECONDS:.0f} s and {HOSTILE_MIB} MiB, none accepted wrongly or executed")
    slowest, wrong = (0.0, ""), []
    with _empty_directory() as directory, _peak_memory() as peak, Verifier(VerifyRecipe()) as verifier:
        _start_workers(verifier)
        for row in rows:
            begin = time.perf_counter()
            (verdict,) = verifier.verify(_items([row]))
            slowest = max(slowest, (time.perf_counter() - begin, row["id"]))
            if verdict.equivalent and not row["label"]:
                wrong.append(row["id"])
        executed = sorted(os.listdir(directory))
    print(
        f"  {len(rows)} answers: slowest {slowest[0]:.2f} s ({slowest[1]}), peak {peak[0]:.0f} MiB with all workers, "
        f"accepted wrongly {wrong or 'none'}, files made {executed or 'none'}"
    )
    return {"n": len(rows), "slowest_s": slowest[0], "peak_mib": peak[0], "wrong": wrong, "executed": executed}


@contextmanager
def _empty_directory() -> Iterator[str]:
    """Hostile answers make files in the working directory if anything executes them."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        try:
            yield directory
        finally:
            os.chdir(before)


@contextmanager
def _peak_memory() -> Iterator[list[float]]:
    """The largest resident memory, in MiB, of this process and its children together, every 10 ms."""
    peak, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.01):
            peak[0] = max(peak[0], sum(map(_resident, [os.getpid(), *_descendants(os.getpid())])))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()


def _descendants(process: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{process}/task"):
            children = Path(f"/proc/{process}/task/{task}/children").read_text().split()
            for child in map(int, children):
                found += [child, *_descendants(child)]
    except OSError:
        pass
    return found


def _resident(process: int) -> float:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (OSError, IndexError):
        return 0.0


def _callers(rows: list[Row], verifier: Verifier) -> dict[str, int]:
    _heading("callers", "verdicts that differ from those of the main thread")
    items = _items(rows)
    expected = verifier.verify(items)

    def differing(verdicts: Sequence[Verdict]) -> int:
        return sum(a.equivalent != b.equivalent for a, b in zip(expected, verdicts, strict=True))

    async def together() -> list[list[Verdict]]:
        return list(await asyncio.gather(*(verifier.verify_async(items) for _ in range(4))))

    with ThreadPoolExecutor(4) as workers:
        threads = list(workers.map(lambda _: verifier.verify(items), range(4)))
    with ProcessPoolExecutor(8, mp_context=multiprocessing.get_context("spawn")) as pool:
        processes = list(pool.map(_verify_alone, [items] * 8))
    figures = {
        "again": differing(verifier.verify(items)),
        "4 threads": sum(map(differing, threads)),
        "asyncio": sum(map(differing, asyncio.run(together()))),
        "8 processes": sum(map(differing, processes)),
    }
    print("  " + ", ".join(f"{caller} {count}" for caller, count in figures.items()) + f" of {len(items)} each")
    return figures


def _verify_alone(items: list[Item]) -> list[Verdict]:
    with Verifier(VerifyRecipe()) as verifier:
        return verifier.verify(items)


def _symmetry(rows: list[Row]) -> dict[str, Any]:
    _heading("symmetry", "verify(a, b) against verify(b, a) with rounding never: verdicts that differ")
    pairs = [(row["ref"], row["pred"]) for row in rows]
    with Verifier(VerifyRecipe(rounding="never")) as verifier:
        one = verifier.verify([Item(a, b, is_answer=True) for a, b in pairs])
        other = verifier.verify([Item(b, a, is_answer=True) for a, b in pairs])
    differ = [row["id"] for row, a, b in zip(rows, one, other, strict=True) if a.equivalent != b.equivalent]
    contradict = [
        row["id"] for row, a, b in zip(rows, one, other, strict=True) if {a.equivalent, b.equivalent} == {True, False}
    ]
    print(f"  {len(differ)} of {len(pairs)} ({len(contradict)} contradict each other): {', '.join(differ[:10]) or '-'}")
    return {"n": len(pairs), "differ": differ, "contradict": contradict}


def _responses() -> dict[str, Any]:
    """Published accuracies and labels of real responses, and the speed of tiers 1 and 2 on them."""
    paths = sorted((SHARED / "responses").glob("*.jsonl.gz"))
    if not paths:
        return {}
    _heading("real responses", "rules alone, one process; last: with verify.last_number")
    figures: dict[str, Any] = {}
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows = [row for row in map(json.loads, lines) if row["gold"]]
        items = [Item(row["gold"], row["response"], row.get("problem")) for row in rows]
        name = path.name.removesuffix(".jsonl.gz")
        figures[name] = result = {}
        for last in (False, True):
            verifier = Verifier(VerifyRecipe(symbolic=False, last_number=last))
            start, processor = time.perf_counter(), time.process_time()
            verdicts = verifier.verify(items)
            seconds, processor = time.perf_counter() - start, time.process_time() - processor
            result["last" if last else "stated"] = _rates(rows, verdicts, seconds) | {"processor_s": processor}
        stated, last_number = result["stated"], result["last"]
        published = f"published {_percent(PUBLISHED[name])}, " if name in PUBLISHED else ""
        print(
            f"  {name:28} {len(rows):5}  {published}accepted {_percent(stated['accepted'])} (last "
            f"{_percent(last_number['accepted'])}), agrees with labels {_percent(stated['accuracy'])} (last "
            f"{_percent(last_number['accuracy'])}), {stated['pairs_per_second']:.0f}/s, "
            f"{len(rows) / stated['processor_s']:.0f} a second of processor time"
        )
    return figures


if __name__ == "__main__":
    main()
