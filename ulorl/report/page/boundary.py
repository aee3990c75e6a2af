"""The boundary on the page: pass@k of both models, problems gained against luck, gains by the base's pass rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ulorl.report.curves_boundary import boundary_plots
from ulorl.report.markup import Markup, element
from ulorl.report.page.formulas import rich_text, short_answer
from ulorl.report.page.parts import (
    Group,
    clipped,
    figures,
    hundredths,
    missing,
    percent_interval,
    plural,
    points,
    section,
    table,
)
from ulorl.report.plot import Figure
from ulorl.report.run_data import Boundary, RunData
from ulorl.report.tables_boundary import LEAST_SHOWN, bin_name, boundary_sentences, shown_rows

LISTED, LISTED_CHARS = 15, 600
"""Problems gained, and lost, that are listed, and the characters of their texts."""


def boundary_section(data: RunData) -> Markup:
    """What training made solvable, and what it lost, for every boundary that is here."""
    unfinished = [stage.name for stage in data.files.boundaries if not stage.finished]
    parts = [missing(f"{name}: not finished.") for name in unfinished]
    for one in data.boundaries:
        parts += _boundary(one, titled=len(data.boundaries) > 1)
    return section("boundary", "Boundary", *parts)


def boundary_figures(data: RunData) -> list[Figure]:
    """All plots of all boundaries, in the order of the page."""
    return [
        figure
        for boundary in data.boundaries
        for name, one in boundary.found["benchmarks"].items()
        for figure in boundary_plots(boundary.name, name, one)
    ]


def _boundary(boundary: Boundary, titled: bool) -> list[Markup]:
    found = boundary.found
    parts: list[Markup] = [element("h3", boundary.name)] if titled else []
    models = f"Base: {found['base']['model']}. Trained: {found['trained']['model']}."
    parts.append(element("p", models, class_="quiet"))
    if found["settings_differ"]:
        parts.append(element("p", "The settings differ: " + "; ".join(found["settings_differ"]) + ".", class_="bad"))
    for name, one in found["benchmarks"].items():
        sentences = [element("li", f"{line[0].upper()}{line[1:]}.") for line in _sentences(one, found)]
        parts += [_kinds(name, one), element("ul", *sentences), _passes(one)]
        parts += [figures(boundary_plots(boundary.name, name, one)), *_rates(one)]
        rows = [row for row in boundary.problems.to_pylist() if row["benchmark"] == name]
        parts += [_listed(name, kind, rows) for kind in ("gained", "lost")]
    return parts


def _sentences(one: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    return boundary_sentences(one, found["significance"])


def _passes(one: Mapping[str, Any]) -> Markup:
    rows = [
        [
            f"pass@{row['k']}",
            hundredths(row["base"]),
            hundredths(row["trained"]),
            points(row["difference"]),
            percent_interval(row["interval"], changes=True),
            percent_interval(row["band"], changes=True),
        ]
        for row in shown_rows(one)
    ]
    return table(["", "base", "trained", "change", "95 % interval", "95 % band"], rows, range(1, 6), "estimates")


def _kinds(name: str, one: Mapping[str, Any]) -> Markup:
    heads = ["problems solved by", "both", "trained only", "base only", "neither"]
    title = Group(name, f"{plural(one['problems'], 'problem')}, {one['samples']} samples each of both models")
    counts = [f"{one['kinds'][kind]:,}" for kind in ("both", "gained", "lost", "never")]
    rows: list[Sequence[str] | Group] = [title, ["", *counts]]
    for row in one["luck"]["by_successes"]:
        label = f"at least {row['at_least']} right in all; by luck {row['expected']:.2g}"
        rows.append([label, "", f"{row['gained']:,}", f"{row['lost']:,}", ""])
    return table(heads, rows, range(1, 5), "estimates")


def _rates(one: Mapping[str, Any]) -> list[Markup]:
    found = one["by_base_rate"]
    if found is None:
        return []
    rows = [
        [
            bin_name(row),
            f"{row['problems']:.1f}",
            hundredths(row["base"]),
            hundredths(row["trained"]),
            points(row["difference"]),
            percent_interval(row["interval"], changes=True),
            f"{hundredths(row['base_solves'])} → {hundredths(row['trained_solves'])}",
        ]
        for row in found["bins"]
        if row["problems"] >= LEAST_SHOWN
    ]
    text = (
        f"Gains by the base's pass rate in {found['samples']} of its samples, in per cent; all else is measured with "
        "the others (mean over all ways of halving them), so that bad luck in one half is no gain."
    )
    heads = ["base's rate", "problems", "base", "trained", "change", "95 % interval", "problems solved"]
    return [element("p", text, class_="quiet"), table(heads, rows, range(1, 7), "estimates")]


def _listed(name: str, kind: str, rows: Sequence[Mapping[str, Any]]) -> Markup:
    listed = [row for row in rows if row["kind"] == kind]
    side = "trained_correct" if kind == "gained" else "base_correct"
    listed.sort(key=lambda row: (-row[side], row["problem_id"]))
    if not listed:
        return element("p", f"{name}: no problem {kind}.", class_="quiet")
    what = element("summary", f"{name}: ", element("strong", plural(len(listed), "problem")), f" {kind}")
    cells = [
        [
            element("div", rich_text(clipped(row["problem"], LISTED_CHARS)), class_="text question"),
            short_answer(clipped(row["reference"], LISTED_CHARS)),
            f"{row['base_correct']} → {row['trained_correct']}",
            f"{row['luck']:.2g}",
            f"{row['luck_any']:.2g}",
        ]
        for row in listed[:LISTED]
    ]
    heads = ["problem", "reference", f"right of {listed[0]['samples']}", "luck", "luck, any problem"]
    left = len(listed) - LISTED
    more = [element("p", f"{plural(left, 'more problem')} not listed.", class_="quiet")] if left > 0 else []
    return element("details", what, table(heads, cells, (2, 3, 4)), *more)
