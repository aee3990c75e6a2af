"""A boundary as rich tables. Takes what ``ulorl.evaluate.boundary`` found; computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

NOTHING = "–"
LEAST_SHOWN = 0.5
"""Problems, by weight, from which a bin is shown."""


def boundary_tables(found: Mapping[str, Any]) -> list[Table]:
    """pass@k of both models; problems by kind, against luck; for each benchmark, gains by the base's pass rate."""
    rates = [_rates_table(name, one) for name, one in found["benchmarks"].items() if one["by_base_rate"] is not None]
    return [_pass_table(found), _kinds_table(found), *rates]


def boundary_sentences(one: Mapping[str, Any], significance: float) -> list[str]:
    """What is to be read from a benchmark's numbers, for people; each begins with a small letter or a number."""
    luck, lines = one["luck"], list[str]()
    for kind, side in (("gained", "base"), ("lost", "trained model")):
        counted = luck[kind]
        lines.append(
            f"{counted['observed']} {kind}; if nothing had changed, luck would make {counted['expected']:.1f} ± "
            f"{counted['sd']:.1f} (as many or more: p = {counted['p_holm']:.2g}); {counted['beyond']} of them beyond "
            f"luck (chance that luck makes any such: {100 * significance:g} %)"
        )
        shares = one["unsolved_samples"][kind] or {}
        told = [f"{100 * value:.0f} % {key.replace('_', ' ')}" for key, value in shares.items() if value]
        if told:
            lines.append(f"the {side}'s samples of the problems {kind}: {', '.join(told)}")
    for which, places in (("above", one["better"]), ("below", one["worse"])):
        if places:
            ranges = ", ".join(str(low) if low == high else f"{low} to {high}" for low, high in places)
            lines.append(f"the band of the difference lies {which} zero for k = {ranges}")
    if one["crossing"] is not None:
        lines.append(f"from k = {one['crossing']} on the base's curve lies above the trained model's")
    bound = one["unsolved_rate_at_most"]
    lines.append(f"none right in {one['samples']} samples means a rate of at most {100 * bound:.2g} %, not of zero")
    return lines


def shown_rows(one: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The entries of ``bounds`` for powers of two up to ``most_k``, and for it."""
    most = one["most_k"]
    return [row for row in one["bounds"] if row["k"] <= most and (row["k"] & (row["k"] - 1) == 0 or row["k"] == most)]


def bin_name(one: Mapping[str, Any]) -> str:
    """``0``, ``to 25``, in per cent: above the bin before."""
    return "0" if one["above"] is None else f"to {100 * one['up_to']:g}"


def _pass_table(found: Mapping[str, Any]) -> Table:
    level = f"{100 * found['level']:.0f} %"
    table = _table("pass@k in per cent", "benchmark")
    _numbers(table, "k", "base", "trained", "change", "interval", "band")
    for name, one in found["benchmarks"].items():
        rows = shown_rows(one)
        for place, row in enumerate(rows):
            values = (_hundredths(row["base"]), _hundredths(row["trained"]), _points(row["difference"]))
            ranges = (_range(row["interval"]), _range(row["band"]))
            table.add_row(
                _heading(name, one, place), str(row["k"]), *values, *ranges, end_section=place == len(rows) - 1
            )
    table.caption = Text(
        f"Base: {found['base']['model']}. Trained: {found['trained']['model']}. Changes are paired by problem, in "
        f"points; the {level} interval is for one k, the band for all k together, both for problems like these."
    )
    return table


def _kinds_table(found: Mapping[str, Any]) -> Table:
    table = _table("Problems by which model has a right sample", "benchmark")
    _numbers(table, "both", "gained", "lost", "never", "either by luck", "beyond luck")
    notes = list[str]()
    for name, one in found["benchmarks"].items():
        luck, kinds = one["luck"], one["kinds"]
        counts = [str(kinds[kind]) for kind in ("both", "gained", "lost", "never")]
        beyond = f"+{luck['gained']['beyond']} -{luck['lost']['beyond']}"
        table.add_row(name, *counts, f"{luck['gained']['expected']:.1f} ± {luck['gained']['sd']:.1f}", beyond)
        notes += [f"{name}: {line}." for line in boundary_sentences(one, found["significance"])]
    table.caption = Text("\n".join(notes))
    return table


def _rates_table(name: str, one: Mapping[str, Any]) -> Table:
    table = _table(f"{name}: gains by the base's pass rate, in per cent", "base's rate")
    _numbers(table, "problems", "base", "trained", "change", "interval", "base\nsolves", "trained\nsolves")
    for row in one["by_base_rate"]["bins"]:
        if row["problems"] >= LEAST_SHOWN:
            values = (_hundredths(row["base"]), _hundredths(row["trained"]), _points(row["difference"]))
            solves = (_hundredths(row["base_solves"]), _hundredths(row["trained_solves"]))
            table.add_row(bin_name(row), f"{row['problems']:.1f}", *values, _range(row["interval"]), *solves)
    table.caption = Text(
        f"Rates in {one['by_base_rate']['samples']} of the base's samples; all else is measured with the others (mean "
        "over all ways of halving them, so that problems count in parts), so that bad luck in one half is no gain. "
        "Solves: at least one right in as many samples as the other half has."
    )
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(
        title=Text(title), title_justify="left", caption_justify="left", box=SIMPLE_HEAD, collapse_padding=True
    )
    table.pad_edge = False
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def _numbers(table: Table, *columns: str) -> None:
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)


def _heading(name: str, one: Mapping[str, Any], place: int) -> str:
    return {0: name, 1: f"{one['problems']} problems", 2: f"{one['samples']} samples"}.get(place, "")


def _hundredths(value: float) -> str:
    return f"{100 * value:.1f}"


def _points(value: float) -> str:
    return f"{100 * value:+.1f}"


def _range(interval: Sequence[float] | None) -> str:
    return NOTHING if interval is None else f"{_points(interval[0])} to {_points(interval[1])}"
