"""The figures of curation on labelled and on real data, with the targets: ``python benchmarks/curate.py [SHARED]``.

Which rows the rules were tuned on:
- kinds: see ``curate_kinds``; both of its splits have been tuned on by now, so neither is fresh;
- duplicates: the limits were once set on all pairs of near_duplicates.jsonl; the rule for copies in other words was
  made on unlabelled pairs of the training sets, so its two halves here are no fresh split;
- leaks: the limits were set on near_duplicates.jsonl (pairs marked ``same``, one side as a benchmark item among all
  benchmarks) and on what the training sets bring up; rewordings of contest items were made for this figure alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from curate_kinds import kinds_table, shared_directory

from ulorl.curate.contamination import BenchmarkIndex
from ulorl.curate.duplicates import duplicates
from ulorl.curate.stage import read_benchmarks
from ulorl.problem import Problem
from ulorl.recipe import CurateRecipe

STEPS = "normalise,answers,kinds,rewrite,duplicates,contamination"
SETS = ("deepscaler.jsonl.gz", "numinamath_20k.jsonl.gz")
CONTESTS = ("aime24", "aime25", "aime26", "amc23", "hmmt_feb_2025", "beyondaime")
_REWORDING = (
    (r"\bFind\b", "Determine"),
    (r"\bLet\b", "Suppose that"),
    (r"\bCompute\b", "Calculate"),
    (r"\bWhat is\b", "Give"),
    (r"\bthe number of\b", "how many there are of the"),
    (r"\bsuch that\b", "so that"),
    (r"\bwhere\b", "in which"),
    (r"\bgreatest\b", "largest"),
    (r"\bleast\b", "smallest"),
    (r"\\frac", r"\\dfrac"),
    (r"\\leq?\b", r"\\leqslant"),
    (r"\\geq?\b", r"\\geqslant"),
    (r"\$([^$]+)\$", r"\\(\1\\)"),
)


def main() -> None:
    """Print everything."""
    shared = shared_directory(__doc__)
    data = shared / "data"
    print("\n".join(kinds_table(shared)), flush=True)
    print("\n".join(duplicates_table(_labelled(data, "near_duplicates"))), flush=True)
    benchmarks = sorted((data / "benchmarks").glob("*.jsonl"))
    print("\n".join(leaks_table(data, benchmarks)), flush=True)
    print("\n".join(whole_run(data, benchmarks)), flush=True)


def duplicates_table(pairs: list[dict[str, Any]]) -> list[str]:
    """Recall and false merges; a pair marked as conflicting counts as found."""
    counts: Counter[tuple[str, str, bool]] = Counter()
    for pair in pairs:
        half = "ab"[hashlib.sha256(pair["a"].encode()).digest()[0] % 2]
        rows = [Problem(side, pair[side], pair[f"answer_{side}"] or "?") for side in "ab"]
        result = duplicates(rows, CurateRecipe())
        counts[half, pair["label"], bool(result.dropped or result.conflicts)] += 1
    lines = []
    for half in "ab":
        for label, goal in (("same", "to reach 0.95"), ("variant", "at most 0.05"), ("same_transformed", "")):
            found, missed = counts[half, label, True], counts[half, label, False]
            share = found / max(found + missed, 1)
            lines.append(f"duplicates, half {half}: {label:16} {found}/{found + missed} = {share:.3f}  {goal}".rstrip())
    return lines


def leaks_table(data: Path, benchmarks: list[Path]) -> list[str]:
    """Labelled copies, labelled leaks and reworded contest items that are found."""
    listed = read_benchmarks([str(path) for path in benchmarks], 0)
    pairs = [pair for pair in _labelled(data, "near_duplicates") if pair["label"] == "same"]
    found = 0
    for item_side, row_side in ("ab", "ba"):
        items = [Problem(pair["pair_id"], pair[item_side], pair[f"answer_{item_side}"] or "?") for pair in pairs]
        index = _index({**listed, "copies": items})
        rows = [Problem("row", pair[row_side], pair[f"answer_{row_side}"] or "?") for pair in pairs]
        found += sum(_leaks(index, row) for row in rows)
    lines = [f"leaks: copies across sources {found}/{2 * len(pairs)} = {found / 2 / len(pairs):.3f}  to reach 0.98"]
    index = _index(listed)
    leaks = _labelled(data, "benchmark_leaks")
    found = sum(_leaks(index, Problem("row", leak["train_problem"], leak["train_answer"])) for leak in leaks)
    lines.append(f"leaks: candidates of benchmark_leaks.jsonl {found}/{len(leaks)} = {found / len(leaks):.3f}")
    items = [item for name in CONTESTS for item in listed[f"{name}.jsonl"]]
    found = sum(_leaks(index, Problem("row", reworded(item.problem), item.answer)) for item in items)
    return [*lines, f"leaks: contest items reworded {found}/{len(items)} = {found / len(items):.3f}  to reach 0.98"]


def whole_run(data: Path, benchmarks: list[Path]) -> list[str]:
    """Time, memory and what is flagged, steps 1 to 6 on the two training sets against all benchmarks."""
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory) / "out"
        inputs = [str(data / "train" / name) for name in SETS]
        command = [sys.executable, "-m", "ulorl", "curate", *inputs, "-o", str(output), "--steps", STEPS, "--json"]
        command += ["--set", f"curate.benchmarks={json.dumps([str(path) for path in benchmarks])}"]
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert process.stdout is not None
        funnel = json.loads(process.stdout.read())["funnel"]
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        assert status == 0, "curate failed"
        cpu = usage.ru_utime + usage.ru_stime
        flagged = _flagged(output)
    lines = [
        f"steps 1-6, {funnel['rows_in']:,} rows in, {funnel['rows_out']:,} out: {seconds:.1f} s  to reach 60; "
        f"{cpu:.1f} s of CPU with its workers, {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}",
        f"peak memory of the largest process {usage.ru_maxrss / 2**20:.2f} GiB  to reach 2 in all",
    ]
    for benchmark, (same, template) in flagged.items():
        lines.append(f"flagged against {benchmark:32} same problem {same:3}, same template {template:3}")
    return lines


def reworded(text: str) -> str:
    """The text with other words and mark-up for the same things."""
    for pattern, replacement in _REWORDING:
        text = re.sub(pattern, replacement, text)
    return text


def _flagged(output: Path) -> dict[str, tuple[int, int]]:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    lost = pq.read_table(output / "dropped.parquet", columns=["step", "detail"])
    details = lost.filter(pc.equal(lost.column("step"), "contamination")).column("detail").to_pylist()
    marks = pq.read_table(output / "problems.parquet", columns=["template"]).column("template").drop_null().to_pylist()
    same = Counter(detail.split(":")[0] for detail in details)
    template = Counter(mark.split(" of ", 1)[1].split(":")[0] for mark in marks)
    return {name: (same[name], template[name]) for name in sorted(same.keys() | template.keys())}


def _index(benchmarks: Any) -> BenchmarkIndex:
    recipe = CurateRecipe()
    return BenchmarkIndex(benchmarks, recipe.leak_words, recipe.leak_numbers)


def _leaks(index: BenchmarkIndex, row: Problem) -> bool:
    match = index.find(row)
    return match is not None and match.same_problem


def _labelled(data: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (data / "curate" / f"{name}.jsonl").read_text().splitlines()]


if __name__ == "__main__":
    main()
