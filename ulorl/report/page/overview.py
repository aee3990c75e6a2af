"""The head of the page: the numbers of the run at a glance, and what is not there."""

from __future__ import annotations

from ulorl.report.brief import benchmark_changes, stage_states
from ulorl.report.markup import Markup, element
from ulorl.report.page.parts import percent_interval, points, share
from ulorl.report.page.training import training_state
from ulorl.report.run_data import RunData


def overview_section(data: RunData) -> Markup:
    """The facts of the run, then stages that are missing or unfinished, then files that could not be read."""
    facts = _results(data)
    if data.funnel is not None:
        rows_in, rows_out = data.funnel["rows_in"], data.funnel["rows_out"]
        facts.append(_fact("problems kept", f"{rows_out:,}", f"of {rows_in:,} rows"))
    if data.metrics:
        done, planned = int(data.metrics[-1]["step"]), data.steps_planned
        rewards = [row["reward/mean"] for row in data.metrics if "reward/mean" in row]
        more = f"reward {rewards[0]:.2f} → {rewards[-1]:.2f}" if rewards else ""
        facts.append(_fact("training steps", f"{done:,}" + (f" of {planned:,}" if planned else ""), more))
    parts = [element("dl", *facts, class_="facts")] if facts else []
    unfinished = [f"{name}: {state}" for name, state in stage_states(data).items() if state != "finished"]
    if unfinished:
        parts.append(element("p", "Not complete. " + "; ".join(unfinished) + ".", class_="missing"))
    if data.files.train is not None and not data.files.train.finished:
        parts.append(element("p", "Training. " + training_state(data) + ".", class_="missing"))
    parts += [element("p", trouble, class_="bad") for trouble in data.troubles]
    return element("section", *parts, id="overview")


def _results(data: RunData) -> list[Markup]:
    facts = []
    changes = benchmark_changes(data)
    for name, one in changes.items():
        value = f"{share(one['before'])} → {share(one['after'])}"
        interval = percent_interval(one["interval"], changes=True)
        facts.append(_fact(f"{name}, avg@{one['samples']}", value, f"{points(one['difference'])} ({interval})"))
    if changes:
        return facts
    for evaluation in data.evaluations:
        for name, found in evaluation.estimates["benchmarks"].items():
            interval = percent_interval(found.get("intervals", {}).get("avg", {}).get("problems like these"))
            label = f"{name}, avg@{found['samples']}, {evaluation.label}"
            facts.append(_fact(label, share(found["avg"]), interval))
    return facts


def _fact(label: str, value: str, more: str) -> Markup:
    return element("div", element("dt", label), element("dd", value, element("div", more, class_="more")))
