"""Steps 2 to 4 of curation on the labelled problems and on the two training sets: figures and time.

    python benchmarks/curate_kinds.py [SHARED]

The rules were first tuned on 200 of the labelled problems (``first``) and counted on the other 122 (``second``), which
were read and mended on afterwards: neither split is fresh any more, and the figures of both say how well the rules
fit, not how they do on problems nobody has looked at.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

from ulorl.curate.answers import answers
from ulorl.curate.kinds import KINDS, classify, kinds
from ulorl.curate.load import clean_text
from ulorl.curate.rewrite import rewrite
from ulorl.problem import Problem
from ulorl.recipe import CurateRecipe

FIRST = 200
TO_REACH = {
    "multi_part": (0.95, 0.90),
    "multiple_choice": (0.97, 0.95),
    "proof": (0.90, 0.85),
    "true_false": (0.90, 0.85),
}
SETS = ("deepscaler", "numinamath_20k")


def labelled(shared: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(rows the rules were tuned on first, rows they were tuned on last)."""
    lines = (shared / "data/curate/problem_kinds.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    random.Random(1).shuffle(rows)
    return rows[:FIRST], rows[FIRST:]


def precision_recall(rows: list[dict[str, Any]]) -> dict[str, tuple[int, int, int]]:
    """Kind -> (rightly found, found, there are)."""
    pairs = [(row["kind"], classify(row["problem"], row["answer"] or "").kind) for row in rows]
    truth, found = Counter(kind for kind, _ in pairs), Counter(kind for _, kind in pairs)
    right = Counter(kind for kind, said in pairs if kind == said)
    return {kind: (right[kind], found[kind], truth[kind]) for kind in KINDS}


def kinds_table(shared: Path) -> list[str]:
    """Precision and recall of each kind on both splits, one line each."""
    lines = []
    for name, rows in zip(("first", "second"), labelled(shared), strict=True):
        for kind, (right, found, there) in precision_recall(rows).items():
            if there:
                goal = "to reach {:.2f} / {:.2f}".format(*TO_REACH[kind]) if kind in TO_REACH else ""
                share = f"P {right}/{found} = {right / max(found, 1):.3f}  R {right}/{there} = {right / there:.3f}"
                lines.append(f"{name:6} {kind:16} {share}  {goal}".rstrip())
    return lines


def training_rows(shared: Path) -> list[Problem]:
    """The problems of both training sets, cleaned."""
    rows = []
    for name in SETS:
        with gzip.open(shared / f"data/train/{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            for number, line in enumerate(file):
                row = json.loads(line)
                text, answer = clean_text(row["problem"]), clean_text(str(row["answer"] or ""))
                rows.append(Problem(f"{name}-{number}", text, answer, name))
    return rows


def steps_table(shared: Path) -> list[str]:
    """What each step keeps of the training sets and its processor time, one line each."""
    problems = training_rows(shared)
    lines = []
    calls = (("answers", lambda rows: answers(rows, CurateRecipe())), ("kinds", kinds), ("rewrite", rewrite))
    for name, call in calls:
        rows, start = len(problems), time.process_time()
        result = call(problems)
        seconds = time.process_time() - start
        reasons = Counter(row.reason for row in result.dropped)
        problems = result.kept
        lines.append(f"{name:8} {rows} rows, {len(problems)} kept, {seconds:.1f} s: {dict(reasons)} {result.notes}")
    return lines


def shared_directory(description: str | None) -> Path:
    """The directory of data sets that is named on the command line, else by ULORL_SHARED, else beside the checkout."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    beside = Path(__file__).resolve().parents[2] / "shared"
    parser.add_argument("shared", type=Path, nargs="?", default=Path(os.environ.get("ULORL_SHARED", beside)))
    return Path(parser.parse_args().shared)


def main() -> None:
    shared = shared_directory(__doc__)
    for line in (*kinds_table(shared), *steps_table(shared)):
        print(line)


if __name__ == "__main__":
    main()
