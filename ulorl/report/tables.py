"""Results as rich tables. Takes what the evaluate stage wrote; computes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from ulorl.evaluate.gate import sentence

NOTHING = "–"
LENGTH = "length"


def evaluation_table(estimates: Mapping[str, Any]) -> Table:
    """Every benchmark's estimates with both intervals, from ``estimates.json``."""
    level = f"{estimates['level']:.0%}".replace("%", " %")
    table = Table(title=Text(f"Evaluation of {estimates['model']}"), caption=_interval_caption(), title_justify="left")
    table.caption_justify = "left"
    table.add_column("benchmark")
    table.add_column("measure")
    table.add_column("estimate", justify="right")
    table.add_column(f"{level} interval:\nproblems like these", justify="right")
    table.add_column(f"{level} interval:\nthese problems", justify="right")
    for name, one in estimates["benchmarks"].items():
        intervals = one["intervals"]
        rows = [(f"avg@{one['samples']}", _percent(one["avg"]), intervals["avg"])]
        for kind in ("pass", "maj"):
            rows += [
                (f"{kind}@{k}", _percent(value), intervals[f"{kind}@{k}"]) for k, value in _by_k(one[f"{kind}_at_k"])
            ]
        rows += [
            (f"avg@{one['samples']} {task}", _percent(part["avg"]), part["interval"])
            for task, part in one.get("by_task", {}).items()
        ]
        rows += [(label, _percent(one[key]), {}) for label, key in _SHARES.items() if one.get(key) is not None]
        length = one["length"] or {}
        rows += [(f"{key} length", _tokens(value), {}) for key in _LENGTHS if (value := length.get(key)) is not None]
        for row, (label, value, interval) in enumerate(rows):
            table.add_row(
                _heading(name, one["problems"], row),
                label,
                value,
                _range(interval.get("problems like these"), _hundredths),
                _range(interval.get("these problems"), _hundredths),
                end_section=row == len(rows) - 1,
            )
    return table


def comparison_table(before: Mapping[str, Any], after: Mapping[str, Any], comparison: Mapping[str, Any]) -> Table:
    """Before, after and the paired difference with its interval, for every shared benchmark.

    ``before`` and ``after`` are the two ``estimates.json``, ``comparison`` is what ``compare`` made of them.
    """
    level = f"{comparison['level']:.0%}".replace("%", " %")
    table = Table(title=Text("Before and after"), title_justify="left", caption_justify="left", box=SIMPLE_HEAD)
    table.pad_edge = False
    table.add_column("benchmark", no_wrap=True)
    table.add_column("measure", no_wrap=True)
    for header in ("before", "after", "difference", f"{level} interval"):
        table.add_column(header, justify="right", no_wrap=True)
    for name, one in comparison["benchmarks"].items():
        samples = (before["benchmarks"][name]["samples"], after["benchmarks"][name]["samples"])
        measures = one["measures"]
        ks = sorted(int(key.removeprefix("pass@")) for key in measures if key.startswith("pass@"))
        shown = [(_label(key, samples), measures[key]) for key in ("avg", *(f"pass@{k}" for k in ks))]
        shown += [(f"{_label('avg', samples)} {task}", of["avg"]) for task, of in one.get("by_task", {}).items()]
        shown += [(_label(key, samples), measures[key]) for key in ("truncated", LENGTH) if key in measures]
        for row, (label, value) in enumerate(shown):
            of_tokens = label == _label(LENGTH, samples)
            show, change = (_tokens, _tokens_change) if of_tokens else (_percent, _points)
            table.add_row(
                _heading(name, one["problems"], row),
                label,
                show(value["before"]),
                show(value["after"]),
                change(value["difference"]),
                _range(value["interval"], change),
                end_section=row == len(shown) - 1,
            )
    table.caption = Text("\n".join(_comparison_notes(comparison)))
    return table


_SHARES = {
    "truncated": "truncated",
    "no answer": "no_answer",
    "undecided": "undecided",
    "verifier failed": "verifier_errors",
}
_LENGTHS = ("mean", "median", "p95", "max")


def _heading(name: str, problems: int, row: int) -> Text:
    return Text({0: name, 1: f"{problems} problems"}.get(row, ""))


def _interval_caption() -> Text:
    return Text(
        "Intervals for problems like these: other problems of the kind (clustered by problem); "
        "for these problems: the same ones sampled again. Lengths in tokens."
    )


def _comparison_notes(comparison: Mapping[str, Any]) -> list[str]:
    notes = [
        "Differences are paired by problem, in percentage points (length: tokens); intervals are for "
        f"{comparison['population']}; {NOTHING} where all problems changed alike."
    ]
    for name, one in comparison["benchmarks"].items():
        gained, lost = len(one["gained"]), len(one["lost"])
        notes.append(f"{name}: problems gained {gained}, lost {lost} (right in most samples).")
    decision = comparison.get("decision")
    if decision is not None:
        notes += [f"{sentence(name, one)}." for name, one in decision["benchmarks"].items()]
    if comparison["settings_differ"]:
        notes.append("Settings differ: " + "; ".join(comparison["settings_differ"]) + ".")
    return notes


def _label(key: str, samples: Sequence[int]) -> str:
    if key == "avg":
        first, second = samples
        return f"avg@{first}" if first == second else f"avg@{first} / avg@{second}"
    return {LENGTH: "mean length"}.get(key, key)


def _by_k(values: Mapping[str, float]) -> list[tuple[int, float]]:
    return sorted((int(k), value) for k, value in values.items())


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _hundredths(value: float) -> str:
    return f"{100 * value:.1f}"


def _points(value: float) -> str:
    return f"{100 * value:+.1f}"


def _tokens(value: float) -> str:
    return f"{value:,.1f}"


def _tokens_change(value: float) -> str:
    return f"{value:+,.1f}"


def _range(interval: Sequence[float] | None, show: Callable[[float], str]) -> str:
    return NOTHING if interval is None else f"{show(interval[0])} to {show(interval[1])}"
