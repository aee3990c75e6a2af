"""Training on the page: how far it came, the curves, and every number."""

from __future__ import annotations

from datetime import UTC, datetime
from math import isfinite

from ulorl.report.curves_training import always_zero, drawing_notes, metric_summaries, series, training_figures
from ulorl.report.curves_validation import event_notes
from ulorl.report.markup import Markup, element
from ulorl.report.metrics import documented, meaning
from ulorl.report.page.parts import figures, missing, plural, section, table
from ulorl.report.progress import duration
from ulorl.report.run_data import RunData
from ulorl.report.scale import compact


def training_section(data: RunData) -> Markup:
    """The curves of the run so far."""
    if data.files.train is None:
        return section("training", "Training", missing("No training run is here."))
    if not data.metrics:
        return section("training", "Training", missing(f"{training_state(data)}; no step has been recorded."))
    parts = [element("p", training_state(data) + ".", class_="lead" if data.files.train.finished else "missing")]
    if notes := drawing_notes(data.metrics):
        parts.append(element("p", notes, class_="quiet"))
    if marked := event_notes(data.metrics, data.files.train.identity.get("config")):
        parts.append(element("p", marked, class_="quiet"))
    parts.append(figures(training_figures(data.metrics)))
    if zeros := always_zero(data.metrics):
        parts.append(element("p", f"Not drawn, because always 0: {', '.join(zeros)}.", class_="quiet"))
    rows = [
        [
            one.metric,
            compact(one.first),
            compact(one.last),
            f"{compact(one.least)} (step {one.least_step})",
            f"{compact(one.greatest)} (step {one.greatest_step})",
            (meaning(one.metric) or "") + (f"; not finite in {one.not_finite} steps" if one.not_finite else ""),
        ]
        for one in metric_summaries(data.metrics, documented(data.metrics))
    ]
    heads = ["metric", "first", "last", "least", "greatest", "meaning"]
    numbers = element("details", element("summary", "Every number"), table(heads, rows, range(1, 5)), class_="long")
    return section("training", "Training", *parts, numbers)


def training_state(data: RunData) -> str:
    """How many of the planned steps are done, in what time; when the last was written where it is unfinished."""
    stage, rows = data.files.train, data.metrics
    assert stage is not None
    done, planned = int(rows[-1]["step"]) if rows else 0, data.steps_planned
    text = f"{done:,} of {plural(planned, 'step')}" if planned else plural(done, "step")
    seconds = sum(value for _, value in series(rows, "time/step_s") if isfinite(value))
    if seconds:
        text += f" in {duration(seconds)}"
    tokens = sum(value for _, value in series(rows, "segment/tokens") if isfinite(value))
    if tokens:
        text += f", {compact(tokens)} tokens generated"
    if stage.finished:
        return text
    when = ""
    if data.metrics_written:
        when = f", last written {datetime.fromtimestamp(data.metrics_written, UTC):%Y-%m-%d %H:%M} UTC"
    return f"Unfinished (running or interrupted): {text}{when}"
