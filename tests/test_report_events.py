"""Validation and the marks of phases and resets on the plots of a run."""

import math
from itertools import pairwise
from xml.etree import ElementTree as Xml

from ulorl.report.curves_training import training_figures
from ulorl.report.curves_validation import event_notes, run_events, validation_figure
from ulorl.report.plot import Curve, Event, Figure, draw, standalone

SVG = "{http://www.w3.org/2000/svg}"


def rows(count=12, phases=(5,), resets=(3, 5, 9)):
    found = [{"step": 0.0, "validation/avg": 0.1, "validation/stderr": 0.02, "validation/math": 0.1}]
    for step in range(1, count + 1):
        found.append(
            {
                "step": float(step),
                "reward/mean": 0.1 * step,
                "time/step_s": 1.0,
                "run/phase": 1.0 + sum(first <= step for first in phases),
                "reference/resets": float(sum(at <= step for at in resets)),
            }
        )
        if step % 4 == 0:
            found[-1] |= {"validation/avg": 0.05 * step, "validation/stderr": 0.01, "validation/math": 0.04 * step}
    return found


def test_phases_and_resets_are_marked_on_every_plot_of_a_run():
    events = run_events(rows())
    assert events == (Event(3.0, "reset"), Event(5.0, "phase 2, reset", chief=True), Event(9.0, "reset"))
    figures = training_figures(rows())
    assert [figure.title for figure in figures] == ["Reward", "Validation", "Time of a step", "Decoding speed"][:3]
    for figure in figures:
        root = Xml.fromstring(standalone(figure))
        lines = [line for line in root.iter(f"{SVG}line") if line.attrib["class"] == "event"]
        assert [line.find(f"{SVG}title").text for line in lines] == [
            "step 5: phase 2, reset",
            "step 3: reset",
            "step 9: reset",
        ]
        assert all(line.attrib["x1"] == line.attrib["x2"] for line in lines)
        assert "phase 2, reset at 5" in draw(figure)
    assert run_events([]) == ()
    assert run_events([{"step": 1.0}]) == ()


def test_labels_of_events_do_not_run_into_each_other():
    curve = Curve("one", [(float(step), 1.0) for step in range(100)])
    figure = Figure("any", "Any", curves=[curve], events=[Event(float(step), "reset") for step in range(-5, 120)])
    root = Xml.fromstring(standalone(figure))
    places = [float(text.attrib["x"]) for text in root.iter(f"{SVG}text") if text.text == "reset"]
    assert len(places) > 5
    assert all(later - earlier > 30 for earlier, later in pairwise(places))
    assert sum(line.attrib["class"] == "event" for line in root.iter(f"{SVG}line")) == 100


def test_validation_has_a_band_and_a_curve_for_each_of_several_tasks():
    one = validation_figure(rows())
    assert [curve.label for curve in one.curves] == ["average"]
    assert [step for step, _, _ in one.curves[0].band] == [0, 4, 8, 12]
    assert one.curves[0].band[1] == (4.0, 0.2 - 0.01, 0.2 + 0.01)
    several = validation_figure([row | {"validation/logic": 0.3} for row in rows() if "validation/avg" in row])
    assert [curve.label for curve in several.curves] == ["all tasks", "logic", "math"]
    assert validation_figure([{"step": 1.0, "reward/mean": 1.0}]) is None
    assert validation_figure([{"step": 1.0, "validation/avg": math.nan}]) is None


def test_what_the_marks_are_is_said_in_words():
    schedule = [
        {"from_step": 5, "max_tokens": 64, "tasks": {"math": 2.0, "logic": 1.0}, "kl": None, "reset_reference": True}
    ]
    assert event_notes(rows(), {"train": {"schedule": schedule}}) == (
        "Vertical lines mark phases of the schedule and resets of the reference. "
        "Phase 2 from step 5: max tokens 64, tasks math 2.0 logic 1.0, reset reference. Resets of the reference: 3."
    )
    assert event_notes(rows(phases=(), resets=()), None) == ""
    assert event_notes(rows(), {"train": "damaged"}).startswith("Vertical lines")
