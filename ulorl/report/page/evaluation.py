"""Evaluations on the page: estimates before and after, pass@k, and the problems gained and lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ulorl.evaluate.finished import describe_settings
from ulorl.evaluate.gate import sentence
from ulorl.report.curves_evaluation import ProblemChange, change_figure, pass_figure
from ulorl.report.markup import Markup, element
from ulorl.report.page.formulas import rich_text, short_answer
from ulorl.report.page.parts import (
    NOTHING,
    Group,
    clipped,
    figures,
    hundredths,
    missing,
    percent_interval,
    plural,
    points,
    section,
    signed,
    table,
)
from ulorl.report.plot import Figure
from ulorl.report.run_data import Evaluation, RunData

_Measure = tuple[str, str, Callable[[float], str], Callable[[float], str]]
_POPULATIONS = ("problems like these", "these problems")
LISTED = 15
LISTED_CHARS = 600
"""Problems gained, and lost, that are listed, and the characters of their texts."""
_SHARES = ("truncated", "no_answer", "undecided", "verifier_errors")


def evaluation_section(data: RunData) -> Markup:
    """Estimates and differences of every benchmark, with pass@k for every k."""
    parts: list[Markup] = [_unfinished(name, kept) for name, kept in data.sampled.items()]
    if not data.evaluations:
        return section("evaluation", "Evaluation", *parts, missing("No finished evaluation is here."))
    pair = data.pair
    if pair is not None and data.comparison is not None:
        parts.append(_comparison(*pair, data.comparison))
        notes = [_comparison_notes(data.comparison)]
        others = [one for one in data.evaluations if one not in pair]
    else:
        others, notes = list(data.evaluations), []
        if len(others) == 1:
            parts.append(missing(f"Only one finished evaluation ({others[0].stage.name}) is here: nothing to compare."))
    parts += [_estimates(one) for one in others]
    notes += [element("p", _settings(one), class_="quiet") for one in data.evaluations]
    beside = element("div", element("div", *parts), figures(pass_figures(data)), class_="beside")
    return section("evaluation", "Evaluation", beside, *notes)


def problems_section(data: RunData) -> Markup:
    """Which problems were gained and which lost."""
    if data.pair is None:
        return section("problems", "Problems gained and lost", missing("Two finished evaluations are needed for this."))
    parts: list[Markup] = [figures(change_figures(data))]
    for name, changed in data.changed.items():
        compared = (data.comparison or {}).get("benchmarks", {}).get(name, {})
        for title, ids in (("gained", compared.get("gained", [])), ("lost", compared.get("lost", []))):
            parts.append(_listed(name, title, ids, changed))
    return section("problems", "Problems gained and lost", *parts)


def pass_figures(data: RunData) -> list[Figure]:
    """One plot for each benchmark of any finished evaluation."""
    shown = data.pair or tuple(data.evaluations)
    names = dict.fromkeys(name for one in shown for name in one.scores)
    return [pass_figure(name, {one.label: one.scores[name] for one in shown if name in one.scores}) for name in names]


def change_figures(data: RunData) -> list[Figure]:
    """One plot for each benchmark that both evaluations hold."""
    return [change_figure(name, changed) for name, changed in data.changed.items() if changed] if data.pair else []


def _unfinished(name: str, kept: int) -> Markup:
    return missing(f"{name}: not finished; {plural(kept, 'sample')} kept so far, from which nothing is estimated yet.")


def _comparison(before: Evaluation, after: Evaluation, comparison: Mapping[str, Any]) -> Markup:
    rows: list[Sequence[str] | Group] = []
    for name, one in comparison["benchmarks"].items():
        rows.append(Group(name, plural(one["problems"], "problem")))
        rows += [_change(label, one["measures"][key], show, by) for label, key, show, by in _measures(one["measures"])]
        rows += [_change(f"avg, {task}", of["avg"], hundredths, points) for task, of in one.get("by_task", {}).items()]
        for key in _SHARES:
            was, now = (side.estimates["benchmarks"][name].get(key) for side in (before, after))
            if was is not None and now is not None and key not in one["measures"]:
                values = (hundredths(was), hundredths(now), points(now - was))
                rows.append([key.replace("_", " "), *values, NOTHING, NOTHING])
    return table(["", "before", "after", "change", *_POPULATIONS], rows, range(1, 6), "estimates")


def _change(
    label: str, value: Mapping[str, Any], show: Callable[[float], str], change: Callable[[float], str]
) -> list[str]:
    """A line of before, after, their difference and both intervals."""
    bounds = (value.get("interval"), value.get("these_problems"))
    intervals = (NOTHING if two is None else " to ".join(change(bound) for bound in two) for two in bounds)
    return [label, show(value["before"]), show(value["after"]), change(value["difference"]), *intervals]


def _measures(measures: Mapping[str, Any]) -> list[_Measure]:
    """Label, key and formats of what is compared, in reading order."""

    def tokens(value: float) -> str:
        return f"{value:,.1f}"

    by_k = sorted((key for key in measures if "@" in key), key=lambda key: (key[:4] != "pass", int(key.split("@")[1])))
    # pass@1 and maj@1 are avg under other names.
    shown: list[_Measure] = [("avg", "avg", hundredths, points)]
    shown += [(key, key, hundredths, points) for key in by_k if not key.endswith("@1")]
    shown += [("length, tokens", "length", tokens, signed)] if "length" in measures else []
    return shown + [(key.replace("_", " "), key, hundredths, points) for key in _SHARES if key in measures]


def _comparison_notes(comparison: Mapping[str, Any]) -> Markup:
    lines = [
        f"Per cent; changes in points, paired by problem, with {100 * comparison['level']:.0f} % intervals for other "
        "problems of the kind, and for the same ones sampled again."
    ]
    decision = comparison.get("decision") or {"benchmarks": {}}
    lines += [f"{sentence(name, one)}." for name, one in decision["benchmarks"].items()]
    if comparison.get("settings_differ"):
        lines.append("The settings differ: " + "; ".join(comparison["settings_differ"]) + ".")
    return element("p", " ".join(lines), class_="quiet")


def _estimates(one: Evaluation) -> Markup:
    """All estimates of one evaluation, with both intervals."""
    rows: list[Sequence[str] | Group] = []
    for name, found in one.estimates["benchmarks"].items():
        rows.append(Group(name, plural(found["problems"], "problem")))
        intervals = found.get("intervals", {})
        measures = [("avg", f"avg@{found['samples']}", found["avg"])]
        for kind in ("pass", "maj"):
            by_k = sorted(((int(k), value) for k, value in found.get(f"{kind}_at_k", {}).items()))
            measures += [(f"{kind}@{k}", f"{kind}@{k}", value) for k, value in by_k if k > 1]
        for key, label, value in measures:
            interval = intervals.get(key, {})
            rows.append([label, hundredths(value), *_both(interval)])
        rows += [
            [f"avg, {task}", hundredths(of["avg"]), *_both(of["interval"])]
            for task, of in found.get("by_task", {}).items()
        ]
        rows += [[key.replace("_", " "), hundredths(found.get(key)), "", ""] for key in _SHARES]
        length = found.get("length")
        rows.append(["length, tokens", f"{length['mean']:,.1f}" if length else NOTHING, "", ""])
    text = f"{one.stage.name}: estimates in per cent with 95 % intervals"
    heads = ["", "estimate", *_POPULATIONS]
    return element("div", element("p", text, class_="quiet"), table(heads, rows, range(1, 4), "estimates"))


def _both(interval: Mapping[str, Any]) -> list[str]:
    return [percent_interval(interval.get(which)) for which in _POPULATIONS]


def _settings(one: Evaluation) -> str:
    settings = describe_settings(one.estimates.get("settings") or {})
    return f"{one.label}: {one.estimates.get('model', 'model unknown')}. {settings}"


def _listed(name: str, title: str, ids: Sequence[str], changed: Sequence[ProblemChange]) -> Markup:
    by_id = {change.problem_id: change for change in changed}
    listed = [by_id[one] for one in ids if one in by_id]
    listed.sort(key=lambda one: (-abs(one.after - one.before), one.problem_id))
    what = element("summary", f"{name}: ", element("strong", plural(len(listed), "problem")), f" {title}")
    if not listed:
        return element("p", f"{name}: no problem {title}.", class_="quiet")
    rows = [
        [
            element("div", rich_text(clipped(one.problem, LISTED_CHARS)), class_="text question"),
            short_answer(clipped(one.reference, LISTED_CHARS)),
            hundredths(one.before),
            hundredths(one.after),
        ]
        for one in listed[:LISTED]
    ]
    left = len(listed) - LISTED
    more = [element("p", f"{plural(left, 'more problem')} not listed.", class_="quiet")] if left > 0 else []
    return element("details", what, table(["problem", "reference", "before, %", "after, %"], rows, (2, 3)), *more)
