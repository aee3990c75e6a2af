"""The curation funnel on the page: each step's rows, the reasons, and examples of dropped rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ulorl.curate.reasons import REASONS
from ulorl.report.markup import Markup, element, number
from ulorl.report.page.formulas import rich_text, short_answer
from ulorl.report.page.parts import clipped, missing, plural, section, table
from ulorl.report.run_data import RunData

LONGEST = 400
"""Characters of an example's texts."""


def curation_section(data: RunData) -> Markup:
    """The funnel, or why there is none."""
    stage, funnel = data.files.curate, data.funnel
    if stage is None:
        return section("curation", "Curation", missing("No curation is here."))
    if funnel is None:
        what = "has no readable funnel" if stage.finished else "is not finished: its funnel comes at the end"
        return section("curation", "Curation", missing(f"{stage.name} {what}."))
    rows_in, rows_out = funnel["rows_in"], funnel["rows_out"]
    kept = 100 * rows_out / rows_in if rows_in else 0
    parts = [element("p", f"{plural(rows_in, 'row')} in, {rows_out:,} out ({kept:.1f} %).", class_="lead")]
    parts += [element("p", clipped(str(message), LONGEST), class_="bad") for message in funnel.get("messages", [])]
    parts.append(_steps(funnel))
    if data.kinds:
        kinds = ", ".join(f"{kind.replace('_', ' ')} {count:,}" for kind, count in data.kinds.items())
        parts.append(element("p", f"Kept problems by kind: {kinds}.", class_="quiet"))
    dropped = [_reason(entry, reason, count) for entry in funnel["steps"] for reason, count in entry["dropped"].items()]
    if dropped:
        parts += [element("h3", "What was dropped, with examples"), *dropped]
    return section("curation", "Curation", *parts)


def _steps(funnel: Mapping[str, Any]) -> Markup:
    total = max(1, funnel["rows_in"])
    rows = []
    for entry in funnel["steps"]:
        gone = entry["rows_in"] - entry["rows_out"]
        notes = "; ".join(f"{name}: {value}" for name, value in entry.get("notes", {}).items())
        reasons = ", ".join(f"{reason.replace('_', ' ')} {count:,}" for reason, count in entry["dropped"].items())
        words = f"{entry['step']}: {entry['rows_out']} left, {gone} dropped"
        bar = _bar(entry["rows_out"] / total, gone / total, words)
        why = [reasons] if reasons else []
        why += [element("span", notes, class_="quiet")] if notes else []
        lines = element("div", *(element("div", line) for line in why))
        rows.append([entry["step"], bar, f"{entry['rows_out']:,}", f"−{gone:,}" if gone else "", lines])
    return table(["step", "left of the input", "rows", "dropped", "because"], rows, (2, 3), "funnel")


def _bar(kept: float, gone: float, words: str) -> Markup:
    """Kept rows, then the rows dropped here; the rest of the bar was dropped before."""
    kept, gone = min(1.0, kept), min(1.0, gone)
    # A drop of a few rows among many must not vanish.
    width = max(gone * 100, 0.8) if gone else 0.0
    return element(
        "svg",
        element("rect", class_="rest", width=100, height=8),
        element("rect", class_="kept", width=kept * 100, height=8),
        element("rect", class_="gone", x=kept * 100, width=width, height=8),
        class_="bar",
        viewbox=f"0 0 {number(101)} 8",
        preserveAspectRatio="none",
        role="img",
        aria_label=words,
    )


def _reason(entry: Mapping[str, Any], reason: str, count: int) -> Markup:
    step = entry["step"]
    summary = element(
        "summary",
        element("strong", f"{reason.replace('_', ' ')}"),
        f" {plural(count, 'row')}",
        element("span", f" · {step} · {REASONS.get((step, reason), '')}", class_="quiet"),
    )
    examples = entry.get("examples", {}).get(reason, [])
    listed = element("ul", *(_example(example) for example in examples))
    more = [element("p", "All of them are in dropped.parquet.", class_="quiet")] if count > len(examples) else []
    return element("details", summary, listed, *more)


def _example(example: Mapping[str, Any]) -> Markup:
    because = f" (because of {example['other_id']})" if example.get("other_id") else ""
    return element(
        "li",
        element("div", rich_text(clipped(str(example["problem"]), LONGEST)), class_="text question", dir="auto"),
        element("div", "reference ", short_answer(clipped(str(example.get("answer") or ""), LONGEST)), class_="head"),
        element("div", f"{clipped(str(example['detail']), LONGEST)}{because}", class_="head quiet"),
    )
