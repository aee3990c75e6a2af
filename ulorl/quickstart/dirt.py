"""Faults planted into the train split, so that curation has something to find.

Each function turns clean rows into a dirty one. The kind is stored under ``dirt``, which curation must not
read: it is there to measure curation against.
"""

from __future__ import annotations

import random
from typing import Literal

Row = dict[str, object]
Dirt = Literal["exact_duplicate", "near_duplicate", "multi_part", "multiple_choice", "wrong_reference", "too_easy"]

DIRT_SHARES: dict[Dirt, float] = {
    "exact_duplicate": 0.07,
    "near_duplicate": 0.07,
    "multi_part": 0.05,
    "multiple_choice": 0.06,
    "wrong_reference": 0.05,
    "too_easy": 0.05,
}
"""Share of the rows of the train split, by kind; the rest is clean."""

LEAD_INS = ("", "", "", "Find: ", "Compute: ", "Work out: ")
"""What may stand before a problem. A near-duplicate has another one."""


def exact_duplicate(row: Row, rng: random.Random) -> Row:
    """The same text and reference again."""
    return {**row}


def near_duplicate(row: Row, rng: random.Random) -> Row:
    """Other white space and another lead-in; no number changes."""
    text = str(row["problem"])
    lead_in = next((lead for lead in LEAD_INS if lead and text.startswith(lead)), "")
    other = rng.choice([lead for lead in sorted(set(LEAD_INS)) if lead != lead_in])
    words = (other + text.removeprefix(lead_in)).split(" ")
    gap = rng.randrange(len(words) - 1)
    words[gap] += " "
    return {**row, "problem": " ".join(words) + rng.choice(("", " ", "."))}


def wrong_reference(row: Row, rng: random.Random) -> Row:
    """The same text with a reference that contradicts the right one."""
    return {**row, "answer": str(other_values(row, rng)[0])}


def multiple_choice(row: Row, rng: random.Random) -> Row:
    """Four options that hold the value, and a letter as the reference."""
    options = [int(str(row["answer"])), *other_values(row, rng)[:3]]
    rng.shuffle(options)
    letter = "ABCD"[options.index(int(str(row["answer"])))]
    listed = " ".join(f"({name}) {value}" for name, value in zip("ABCD", options, strict=True))
    return {**row, "problem": f"{row['problem']}\n{listed}", "answer": rng.choice((letter, f"({letter})"))}


def multi_part(row: Row, other: Row) -> Row:
    """Two problems asked as one."""
    steps = int(str(row["steps"])) + int(str(other["steps"]))
    return {
        **row,
        "problem": f"(a) {row['problem']}\n(b) {other['problem']}",
        "answer": f"(a) {row['answer']} (b) {other['answer']}",
        "steps": steps,
    }


def other_values(row: Row, rng: random.Random) -> list[int]:
    """Plausible values other than the right one, in random order; at least nine."""
    right = int(str(row["answer"]))
    low = max(0, right - 5)
    values = [value for value in range(low, low + 10) if value != right]
    rng.shuffle(values)
    return values
