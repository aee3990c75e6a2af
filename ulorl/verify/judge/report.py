"""The evaluation of a judge as lines of text: before, after, and where it is worse than the rules alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def render(report: dict[str, Any]) -> Iterator[str]:
    """Lines of the report that `train_judge` keeps as ``evaluation.json``."""
    for name in ("before", "after"):
        if name in report:
            yield from _section(name, report[name])
    if "after" in report:
        yield from _worse(report["after"])
        yield from _advice(report["after"]["keep"])


def _section(name: str, one: dict[str, Any]) -> Iterator[str]:
    yield f"{name} training, on {one['n']} labelled items"
    for title, rates in (
        ("rules alone", one["rules"]),
        ("rules, judge on undecided", one["rules_and_judge"]),
        ("rules, judge on undecided and rejected", one["rules_and_judge_also_rejected"]),
    ):
        yield (
            f"  {title}: accuracy {percent(rates['accuracy'])},"
            f" false positives {percent(rates['false_positive_rate'])},"
            f" false negatives {percent(rates['false_negative_rate'])}"
        )
    for title in ("undecided", "rejected"):
        rates = one[title]
        yield (
            f"  {title} by rules: {rates['n']}, {rates['reached_the_model']} reached the model; accuracy"
            f" {percent(rates['accuracy'])} (accepting none: {percent(rates['rules_accuracy'])}),"
            f" {rates['rightly_accepted']} rightly and {rates['false_positives']} wrongly accepted; the model alone at"
            f" one half: {percent(rates['model_accuracy'])}"
        )
    for title, rates in one["attacks"].items():
        yield (
            f"  attacks ({title.replace('_', ' ')}): {rates['passed']} of {rates['n']} pass,"
            f" {rates['passed_without_the_gate']} would without the gate"
        )


def _worse(one: dict[str, Any]) -> Iterator[str]:
    worse = [row["name"] for row in one["by_kind"] if row["wrongly_accepted"] > row["rightly_accepted"]]
    yield "worse than rules alone (more wrongly than rightly accepted): " + (", ".join(worse) or "on no kind")
    for row in one["by_kind"]:
        yield (
            f"  {row['name']}: {row['n']} asked, {row['equivalent']} equivalent; {row['rightly_accepted']} rightly,"
            f" {row['wrongly_accepted']} wrongly accepted"
        )


def _advice(keep: dict[str, bool]) -> Iterator[str]:
    if keep["undecided"]:
        yield 'worth having for what rules leave undecided: set verify.judge.model (ask = "undecided")'
        if keep["also_rejected"]:
            yield 'worth having for what they reject too: ask = "also_rejected"'
    else:
        yield "not better than rules alone: keep the default, no judge"


def percent(value: float | None) -> str:
    """A share as text."""
    return "-" if value is None else f"{100 * value:.1f} %"
