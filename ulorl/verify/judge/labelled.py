"""Labelled files as items to judge, and what of them must not be trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ulorl.errors import UserError
from ulorl.verify.judge.pairs import Excluded, LabelledPair, problem_key
from ulorl.verify.scoring.reading import read_items
from ulorl.verify.verdict import Item


@dataclass(frozen=True)
class Labelled:
    """An item, whether it is equivalent, and the file it comes from (its name without extension)."""

    item: Item
    equivalent: bool
    source: str


def read_labelled(files: Sequence[str]) -> list[Labelled]:
    """The labelled rows of files as `ulorl verify` reads them. UserError for a file without any."""
    items: list[Labelled] = []
    for name in files:
        path = Path(name)
        rows = [Labelled(row.item, row.label, path.stem) for row in read_items(path) if row.label is not None]
        if not rows:
            raise UserError(f"{path}: no row has a label; give true or false in the field label")
        items += rows
    return items


def excluded_by(items: Sequence[Labelled]) -> Excluded:
    """The pairs and problems of labelled items."""
    pairs = (LabelledPair(one.item.reference, one.item.response, one.equivalent, "").texts() for one in items)
    problems = (problem_key(one.item.problem) for one in items if one.item.problem)
    return Excluded(frozenset(pairs), frozenset(problems))
