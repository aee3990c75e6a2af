"""Generated problem sets.

Invariants: the same (split, count, seed) gives the same rows, and a smaller count gives a prefix of them;
a problem belongs to the train or to the test split by a hash of its text without lead-in, so that no wording
of a test problem is ever a train problem; the test split is clean and holds no problem twice; every clean row
needs at least two steps.
"""

from __future__ import annotations

import hashlib
import random
from typing import Literal

from ulorl.quickstart import dirt
from ulorl.quickstart.dirt import DIRT_SHARES, LEAD_INS, Dirt, Row
from ulorl.quickstart.families import FAMILIES, Task
from ulorl.seeds import derive_seed

Split = Literal["train", "test"]

LONG_TAIL = 1.2
"""The number of steps is drawn with weight steps ** -LONG_TAIL: many short problems, a few very long ones."""
EASY_FAMILIES = ("pairs", "repeat")
"""Families with enough one-step problems to stay different from each other."""


def generate_problems(split: Split, count: int, seed: int) -> list[Row]:
    """``count`` rows with keys id, problem, answer, family, steps, and in a planted row ``dirt``.

    About a third of the train rows is planted; the test split is clean. Raises ValueError for an unknown
    split or a negative count.
    """
    if split not in ("train", "test"):
        raise ValueError(f"split: {split!r} is neither train nor test")
    if count < 0:
        raise ValueError(f"count: {count} is negative")
    rng = random.Random(derive_seed(seed, "quickstart", split))
    rows: list[Row] = []
    clean: list[Row] = []
    seen: set[Task] = set()
    while len(rows) < count:
        kind = _draw_dirt(rng) if split == "train" and clean else None
        row = _planted(kind, clean, seen, rng) if kind else _fresh(split, seen, rng)
        row["id"] = f"quickstart-{split}-{seed}-{len(rows)}"
        rows.append(row)
        if kind is None:
            clean.append(row)
    return rows


def draw_task(split: Split, rng: random.Random, easy: bool = False, longest: int = 24) -> Task:
    """One problem of the split, family drawn evenly, of 2 to ``longest`` steps; an easy one takes one."""
    while True:
        family = FAMILIES[rng.choice(EASY_FAMILIES if easy else tuple(FAMILIES))]
        lengths = range(2, min(longest, family.max_steps) + 1)
        steps = 1 if easy else rng.choices(lengths, [length**-LONG_TAIL for length in lengths])[0]
        task = Task(family.name, family.draw(rng, steps), steps)
        if split_of(task) == split:
            return task


def split_of(task: Task) -> Split:
    """One eighth of all problems is test, by hash."""
    return "test" if hashlib.sha256(task.text.encode()).digest()[0] < 32 else "train"


def word(task: Task, rng: random.Random) -> str:
    """The problem's text with a lead-in."""
    return rng.choice(LEAD_INS) + task.text


def _row(task: Task, rng: random.Random) -> Row:
    return {
        "id": "",
        "problem": word(task, rng),
        "answer": task.answer,
        "family": task.family,
        "steps": task.steps,
    }


def _fresh(split: Split, seen: set[Task], rng: random.Random, easy: bool = False) -> Row:
    task = draw_task(split, rng, easy)
    while task in seen:
        task = draw_task(split, rng, easy)
    seen.add(task)
    return _row(task, rng)


def _draw_dirt(rng: random.Random) -> Dirt | None:
    kinds = list(DIRT_SHARES)
    shares = [DIRT_SHARES[kind] for kind in kinds]
    return rng.choices([*kinds, None], [*shares, 1 - sum(shares)])[0]


def _planted(kind: Dirt, clean: list[Row], seen: set[Task], rng: random.Random) -> Row:
    match kind:
        case "exact_duplicate":
            row = dirt.exact_duplicate(rng.choice(clean), rng)
        case "near_duplicate":
            row = dirt.near_duplicate(rng.choice(clean), rng)
        case "wrong_reference":
            row = dirt.wrong_reference(rng.choice(clean), rng)
        case "multiple_choice":
            row = dirt.multiple_choice(_fresh("train", seen, rng), rng)
        case "multi_part":
            row = dirt.multi_part(_fresh("train", seen, rng), _fresh("train", seen, rng))
        case "too_easy":
            row = _fresh("train", seen, rng, easy=True)
    return {**row, "dirt": kind}
