"""Figures of a step that add up over processes: each says how it is combined, so that none is averaged wrongly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Figure:
    """One rank's part of a metric. A mean is a sum with its count; "same" is equal on all ranks."""

    how: Literal["mean", "sum", "max", "same"]
    value: float
    count: int = 1
    default: float | None = None


def mean(values: Iterable[float], default: float | None = None) -> Figure:
    """Mean over all values of all ranks; where there are none the default, or no metric."""
    found = list(values)
    return Figure("mean", float(sum(found)), len(found), default)


def total(value: float) -> Figure:
    """Sum over the ranks."""
    return Figure("sum", value)


def largest(values: Iterable[float], default: float | None = None) -> Figure:
    """Largest of all values of all ranks; where there are none the default, or no metric."""
    found = list(values)
    return Figure("max", max(found, default=0.0), len(found), default)


def same(value: float) -> Figure:
    """A value that every rank has."""
    return Figure("same", value)


def combine(parts: Sequence[Mapping[str, Figure]]) -> dict[str, float]:
    """The metrics of all ranks together; a rank may lack some (a task of which it had no sample)."""
    found = {}
    for name, own in {name: figure for part in parts for name, figure in part.items()}.items():
        figures = [part[name] for part in parts if name in part and part[name].count]
        if figures:
            found[name] = _combined(figures)
        elif own.default is not None:
            found[name] = own.default
    return found


def _combined(figures: list[Figure]) -> float:
    values = [figure.value for figure in figures]
    match figures[0].how:
        case "mean":
            return sum(values) / sum(figure.count for figure in figures)
        case "sum":
            return sum(values)
        case "max":
            return max(values)
        case _:
            return values[0]
