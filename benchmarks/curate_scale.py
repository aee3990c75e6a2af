"""How curation grows with the number of rows: ``python benchmarks/curate_scale.py --rows 100000 1000000``.

Generates problems (with exact duplicates, near-duplicates, the same template with other numbers, and leaks of a
generated benchmark among them), curates each number of rows in a process of its own without a model, and prints time,
peak memory and cost a row, how they grow, and which share of what was planted was found. Rows, texts and hashes go
through files in ``--directory``, which takes about 1.5 GB for a million rows. The last figures are in
``docs/curation.md``: 0.56 ms of CPU a row for 100,000 rows and 0.74 ms for a million.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

STEPS = "normalise,answers,kinds,rewrite,duplicates,contamination"
_ITEMS = 500
_NAMES = (
    "Ana",
    "Ben",
    "Carla",
    "Deng",
    "Emil",
    "Fatima",
    "Goran",
    "Hana",
    "Ivo",
    "Jun",
    "Kofi",
    "Lena",
    "Mara",
    "Omar",
)
_TASKS = (
    "How many {0} does {name} have in the end",
    "Find the total number of {0} that remain",
    "What is the least number of {0} that {name} needs",
    "Determine how many {0} were sold by {name}",
)
_COUNTS_OF_NUMBERS = (2, 8, 18, 25, 20, 12, 7, 5, 3)
"""Percentages of problems with 0 to 8 numbers."""
_Row = dict[str, str]


def main() -> None:
    """Generate, curate and print one line for each number of rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--directory", type=Path, default=Path("runs/curate_scale"))
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    print("| rows | seconds | CPU seconds | CPU ms a row | peak memory | bytes a row | dropped of each kind |")
    print("|---|---|---|---|---|---|---|")
    before: tuple[int, float, float] | None = None
    for rows in arguments.rows:
        wall, seconds, memory, found = measure(rows, arguments.workers, arguments.directory)
        shown = ", ".join(f"{kind} {share:.3f}" for kind, share in found.items())
        print(
            f"| {rows:,} | {wall:.0f} | {seconds:.0f} | {1000 * seconds / rows:.3f} | {memory / 2**30:.2f} GiB "
            f"| {memory / rows:.0f} | {shown} |",
            flush=True,
        )
        if before is not None:
            more = rows - before[0]
            print(
                f"\nFrom {before[0]:,} rows on, each further row takes {1000 * (seconds - before[1]) / more:.3f} ms of "
                f"CPU and {(memory - before[2]) / more:.0f} bytes.\n",
                flush=True,
            )
        before = rows, seconds, memory


def measure(rows: int, workers: int, directory: Path) -> tuple[float, float, float, dict[str, float]]:
    """(seconds, CPU seconds, peak bytes, share dropped of each kind that was planted); one process: its own."""
    source, bench, output = directory / f"{rows}.jsonl", directory / f"{rows}.bench.jsonl", directory / f"{rows}"
    planted = write(source, bench, rows)
    settings = [f"curate.benchmarks={json.dumps([str(bench)])}", f"curate.workers={workers}"]
    command = [sys.executable, "-m", "ulorl", "curate", str(source), "-o", str(output), "--steps", STEPS, "--json"]
    command += [argument for setting in settings for argument in ("--set", setting)]
    began = time.perf_counter()
    process = subprocess.Popen([*command, "--force"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    funnel = json.loads(process.stdout.read())["funnel"]
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, "curate failed"
    seconds = time.perf_counter() - began
    assert funnel["rows_in"] == rows
    found = found_of(output / "dropped.parquet", planted)
    shutil.rmtree(output)
    source.unlink()
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, found


def found_of(dropped: Path, planted: Counter[str]) -> dict[str, float]:
    """Share of the planted rows that are among the dropped, by kind; of variants, which must be kept, too."""
    import pyarrow.parquet as pq

    table = pq.read_table(dropped, columns=["source_id", "step"])
    lost = Counter(
        identity.split("-")[0]
        for identity, step in zip(*(table.column(name).to_pylist() for name in table.column_names), strict=True)
        if step in ("duplicates", "contamination")
    )
    return {kind: lost[kind] / count for kind, count in sorted(planted.items())}


def write(source: Path, bench: Path, rows: int) -> Counter[str]:
    """Write rows and benchmark; how many rows of each kind there are."""
    planted: Counter[str] = Counter()
    with source.open("w", encoding="utf-8") as file:
        for row in generate(rows):
            planted[row["id"].split("-")[0]] += 1
            file.write(json.dumps(row) + "\n")
    with bench.open("w", encoding="utf-8") as file:
        draw = random.Random("items")
        for number in range(_ITEMS):
            file.write(json.dumps(problem(draw, vocabulary()) | {"id": f"item-{number}"}) + "\n")
    return planted


def generate(rows: int) -> Iterator[_Row]:
    """Problems; the first part of an id says what a row is: new, exact, near, variant or leak."""
    draw, words = random.Random(f"rows {rows}"), vocabulary()
    items_draw = random.Random("items")
    items = [problem(items_draw, words) for _ in range(_ITEMS)]
    recent: list[_Row] = []
    for number in range(rows):
        kind = draw.choices(["new", "exact", "near", "variant", "leak"], [78, 8, 8, 5.99, 0.01])[0] if recent else "new"
        if kind == "new":
            row = problem(draw, words)
            # Any earlier row may have copies, however far back: a reservoir of constant size.
            if len(recent) < 5000:
                recent.append(row)
            else:
                recent[draw.randrange(len(recent))] = row
        else:
            row = changed(draw, kind, draw.choice(items if kind == "leak" else recent))
        yield row | {"id": f"{kind}-{number}"}


def vocabulary() -> list[str]:
    """20,000 pronounceable words, common ones first."""
    draw = random.Random("words")
    syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    return ["".join(draw.choices(syllables, k=draw.randrange(2, 5))) for _ in range(20_000)]


def problem(draw: random.Random, words: list[str]) -> _Row:
    """A word problem of 15 to 55 words, words and numbers by Zipf's law.

    As in the training sets, every tenth has at most one number, and it is mostly a small one.
    """
    count, name = draw.randrange(5, 45), draw.choice(_NAMES)
    chosen = [words[min(int(20 * (1 / (1 - draw.random()) - 1) ** 1.2), len(words) - 1)] for _ in range(count)]
    for _ in range(draw.choices(range(9), _COUNTS_OF_NUMBERS)[0]):
        chosen.insert(draw.randrange(len(chosen)), f"${min(int(2 / (1 - draw.random())), 99_999)}$")
    task = draw.choice(_TASKS).format(draw.choice(words), name=name)
    return {"problem": f"{name} had {' '.join(chosen)}. {task}?", "answer": str(draw.randrange(3, 5000))}


def changed(draw: random.Random, kind: str, row: _Row) -> _Row:
    """A copy of a row: marked up otherwise, worded otherwise, or with another number and answer."""
    text = row["problem"]
    if kind == "exact":
        return row | {"problem": text.replace("$", "").replace(". ", ".  ")}
    pieces = text.split(" ")
    if kind == "variant":
        places = [place for place, piece in enumerate(pieces) if piece[:1] == "$"]
        number = f"${draw.randrange(100_000, 900_000)}$"
        if places:
            pieces[draw.choice(places)] = number
        else:
            pieces.insert(3, number)
        return {"problem": " ".join(pieces), "answer": str(draw.randrange(5000, 9000))}
    for _ in range(max(1, len(pieces) // 10)):
        place = draw.randrange(2, len(pieces) - 1)
        if pieces[place].isalpha():
            pieces[place] = "also"
    return row | {"problem": " ".join(pieces)}


if __name__ == "__main__":
    main()
