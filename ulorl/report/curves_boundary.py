"""A boundary as data for plots: pass@k of both models, the change, problems gained and lost, gains by rate. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ulorl.report.plot import Curve, Figure

BASE, TRAINED, GAINED, LOST, QUIET = 5, 1, 3, 2, 5
"""Colours, as in the other plots of before and after."""


def boundary_plots(stem: str, benchmark: str, one: Mapping[str, Any]) -> list[Figure]:
    """The plots of one benchmark of ``boundary.json``; ``stem`` begins the names of their files."""
    bounds = one["bounds"]
    plots = [_curves(stem, benchmark, bounds), _difference(stem, benchmark, bounds), _changes(stem, benchmark, one)]
    rates = _by_rate(stem, benchmark, one["by_base_rate"])
    return plots if rates is None else [*plots, rates]


def _curves(stem: str, benchmark: str, bounds: Sequence[Mapping[str, Any]]) -> Figure:
    curves = [
        Curve(side, [(float(row["k"]), row[side]) for row in bounds], slot, band=_band(bounds, f"{side}_interval"))
        for side, slot in (("base", BASE), ("trained", TRAINED))
    ]
    caption = "Unbiased. Bands: 95 % intervals at each k, for problems like these."
    return Figure(
        f"{stem}-pass-{benchmark}",
        f"pass@k of base and trained model, {benchmark}",
        caption,
        curves,
        unit="pass@k",
        x_label="k (samples a problem)",
        share=True,
        limits=(0.0, 1.0),
        log_x=True,
    )


def _difference(stem: str, benchmark: str, bounds: Sequence[Mapping[str, Any]]) -> Figure:
    points = [(float(row["k"]), row["difference"]) for row in bounds]
    curves = [
        Curve("no change", [(k, 0.0) for k, _ in points], QUIET, dashed=True),
        Curve("change", points, TRAINED, band=_band(bounds, "band")),
    ]
    return Figure(
        f"{stem}-change-{benchmark}",
        f"Change in pass@k, {benchmark}",
        "Trained minus base, paired by problem. The band covers the whole curve with 95 %, for problems like these.",
        curves,
        unit="change",
        x_label="k (samples a problem)",
        share=True,
        log_x=True,
    )


def _changes(stem: str, benchmark: str, one: Mapping[str, Any]) -> Figure:
    shown = [row["k"] for row in one["bounds"]]
    found = one["curves"]

    def points(name: str) -> list[tuple[float, float]]:
        return [(float(k), found[name][k - 1]) for k in shown if k <= len(found[name])]

    curves = [
        Curve("gained", points("gained"), GAINED),
        Curve("lost", points("lost"), LOST),
        Curve("base again", points("base_again"), QUIET, dashed=True),
    ]
    return Figure(
        f"{stem}-gained-{benchmark}",
        f"Problems gained and lost with k samples, {benchmark}",
        "Gained: none of k samples of the base is right, one of k of the trained model is. Base again: what k more "
        "samples of the base solve, which is no gain.",
        curves,
        unit="share of problems",
        x_label="k (samples a problem)",
        share=True,
        log_x=True,
    )


def _by_rate(stem: str, benchmark: str, table: Mapping[str, Any] | None) -> Figure | None:
    rows = [row for row in (table or {"bins": []})["bins"] if row["interval"] is not None]
    if table is None or len(rows) < 2:
        return None
    band = [
        (row["base"], max(0.0, row["base"] + row["interval"][0]), min(1.0, row["base"] + row["interval"][1]))
        for row in rows
    ]
    curves = [
        Curve("no change", [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0)], QUIET, dashed=True),
        Curve("trained", [(row["base"], row["trained"]) for row in rows], TRAINED, dots=True, band=band),
    ]
    return Figure(
        f"{stem}-rate-{benchmark}",
        f"Trained model's rate by the base's, {benchmark}",
        f"Problems by the base's rate in {table['samples']} of its samples; both rates are from the others, so that "
        "bad luck is no gain. Band: 95 % intervals of the change.",
        curves,
        unit="trained model's rate",
        x_label="base's rate, share",
        share=True,
        limits=(0.0, 1.0),
    )


def _band(bounds: Sequence[Mapping[str, Any]], name: str) -> list[tuple[float, float, float]]:
    return [(float(row["k"]), row[name][0], row[name][1]) for row in bounds if row[name] is not None]
