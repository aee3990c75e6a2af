"""Makes puzzles: ``python -m ulorl.verify.tasks.puzzles.maker``, a specification on standard input, rows on the output.

A process of its own, because some data sets depend on the order of sets of strings, which only the start of a process
can fix (`ulorl.verify.tasks.puzzles.make` starts it). Invariants: a row follows from the data set, its settings, the
seed and its number alone; no question twice; what the data set's own scorer does not give 1 is left out and counted.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ulorl.problem import problem_id
from ulorl.seeds import derive_seed
from ulorl.verify.tasks.puzzles.codec import decode, encode
from ulorl.verify.tasks.puzzles.library import SettingError, dataset

TRIES = 20
"""Puzzles looked at for one that is wanted, after which a data set is exhausted."""


def rows(
    name: str, settings: Mapping[str, Any], size: int, seed: int, left_out: Counter[str]
) -> Iterator[dict[str, Any]]:
    """At most ``size`` puzzles of one data set, as columns; ``answer`` is empty where it knows none but scores any.

    SettingError for a name or settings that there are not.
    """
    import numpy as np

    made = dataset(name, settings, derive_seed(seed, "logic", name), size * TRIES)
    seen: set[str] = set()
    found = 0
    for number in range(size * TRIES):
        random.seed(derive_seed(seed, "logic", name, number))  # some data sets draw from the global generators
        np.random.seed(derive_seed(seed, "logic", name, number))
        entry = made[number]
        identity = problem_id(entry["question"])
        if identity in seen:
            left_out["repeated"] += 1
            continue
        seen.add(identity)
        try:
            metadata = json.dumps(encode(entry["metadata"]), ensure_ascii=False)
        except TypeError:
            left_out["not storable"] += 1
            continue
        kept = {**entry, "metadata": decode(json.loads(metadata))}
        if entry["answer"] is not None and made.score_answer(entry["answer"], kept) < 1:
            left_out["own answer does not score 1"] += 1
            continue
        yield {
            "id": f"{name}/{seed}/{number}",
            "problem": entry["question"],
            "answer": "" if entry["answer"] is None else str(entry["answer"]),
            "task": "logic",
            "metadata": metadata,
            **({"settings": json.dumps(dict(settings))} if settings else {}),
        }
        found += 1
        if found == size:
            return


def main() -> None:
    """Rows as JSON lines; at the end of each data set ``{"left_out": {...}}``, or ``{"error": "..."}`` and no more."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)  # some data sets print
        for spec in json.load(sys.stdin):
            left_out: Counter[str] = Counter()
            try:
                for row in rows(spec["name"], spec["settings"], spec["size"], spec["seed"], left_out):
                    print(json.dumps(row), file=out)
            except SettingError as error:
                print(json.dumps({"error": str(error)}), file=out)
                return
            print(json.dumps({"left_out": left_out}), file=out, flush=True)


if __name__ == "__main__":
    main()
