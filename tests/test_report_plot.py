"""Markup, scales and plots: escaping, ticks, and no spike lost."""

import math
import re
import xml.etree.ElementTree as Xml

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from report_run import metrics

from ulorl.evaluate.scores import SCORES_SCHEMA
from ulorl.report.chosen_samples import pick_changed, shortened
from ulorl.report.curves_evaluation import ProblemChange, changes, chosen_ks
from ulorl.report.curves_training import always_zero, metric_summaries, training_figures
from ulorl.report.markup import Markup, element, escape, join
from ulorl.report.plot import MOST_POINTS, Curve, Figure, draw, standalone
from ulorl.report.scale import compact, fewer, log_ticks, moving_mean, runs, ticks

FINITE = st.floats(-1e12, 1e12, allow_nan=False)


@given(st.text())
def test_any_text_survives_as_xml_and_reads_as_itself(text):
    shown = Xml.fromstring(element("p", text, title=text))
    kept = "".join(letter if letter.isprintable() or letter in "\t\n\r " else "?" for letter in text)
    assert len(shown.text or "") == len(text.replace("\r\n", "\n"))
    if kept == text:
        assert (shown.text or "") == text.replace("\r", "\n")


def test_only_markup_is_not_escaped():
    assert join("<", Markup("<b>")) == "&lt;<b>"
    assert escape("'\"&") == "&#x27;&quot;&amp;"
    for forbidden in ("onclick", "style"):
        with pytest.raises(AssertionError):
            element("p", **{forbidden: "x"})


@given(FINITE, FINITE)
@example(0.0, -5e-324)
def test_ticks_enclose_the_data_and_are_few(one, other):
    low, high = sorted((one, other))
    found = ticks(low, high)
    assert found == sorted(found)
    assert 2 <= len(found) <= 12
    if high - low > 1e-6 * max(abs(low), abs(high), 1e-290):
        slack = 1e-6 * (high - low)
        assert found[0] <= low + slack and found[-1] >= high - slack


@given(st.floats(1e-9, 1e9), st.floats(1, 1e9))
def test_logarithmic_ticks_enclose_the_data(low, ratio):
    found = log_ticks(low, low * ratio)
    assert found[0] <= low * 1.0001 and found[-1] >= low * ratio * 0.9999
    assert 2 <= len(found) <= 9


@given(st.lists(FINITE, min_size=1, max_size=3000), st.integers(4, 200))
def test_fewer_points_keep_ends_and_extremes(values, most):
    points = list(enumerate(values))
    kept = fewer(points, most)
    assert len(kept) <= max(most, min(len(points), most))
    assert kept[0] == points[0] and kept[-1] == points[-1]
    assert min(y for _, y in kept) == min(values) and max(y for _, y in kept) == max(values)
    assert [x for x, _ in kept] == sorted({x for x, _ in kept})


def test_lines_break_where_a_value_is_not_finite():
    points = [(0, 1.0), (1, math.nan), (2, 2.0), (3, math.inf), (4, -math.inf), (5, 3.0)]
    assert runs(points) == [[(0, 1.0)], [(2, 2.0)], [(5, 3.0)]]


def test_a_moving_mean_of_a_line_is_the_line_inside():
    line = [(float(x), 2.0 * x) for x in range(50)]
    assert moving_mean(line, 5)[10:40] == line[10:40]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.25, "0.25"), (1234, "1,234"), (12500, "12.5k"), (2.5e6, "2.5M"), (1e-4, "1e-4"), (math.nan, "–")],
)
def test_numbers_are_short(value, text):
    assert compact(value) == text


def test_ten_thousand_steps_are_drawn_small_and_keep_a_spike_of_one_step():
    rows = [{name: float(value) for name, value in metrics(step).items()} for step in range(1, 10_001)]
    figure = next(one for one in training_figures(rows) if one.title == "Length")
    assert max(y for _, y in figure.curves[0].points) == 9000
    drawn = draw(figure)
    assert len(drawn) < 60_000
    axis_top = min(float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", drawn))
    assert axis_top < 30, "the spike reaches the upper edge"
    assert drawn.count("L") < 8 * MOST_POINTS
    mismatch = next(one for one in training_figures(rows) if one.title == "Trainer against engine")
    assert any("not a finite number in 1 step, first in step 3" in note for note in mismatch.notes)


def test_what_is_always_zero_is_named_and_not_drawn_but_reward_always_is():
    rows = [{"step": float(step), "objective/kl": 0.0, "reward/mean": 0.0} for step in range(5)]
    assert [figure.title for figure in training_figures(rows)] == ["Reward"]
    assert always_zero(rows) == ["KL to the reference"]


@given(
    st.lists(st.tuples(st.integers(0, 100), st.floats(allow_nan=True, allow_infinity=True, width=32)), max_size=30),
    st.booleans(),
)
def test_any_curve_gives_a_well_formed_drawing_within_its_box(points, log):
    series = [(float(x), y) for x, y in sorted(points, key=lambda point: point[0])]
    figure = Figure("any", "Any <title>", curves=[Curve("a&b", series), Curve("other", [(1.0, 2.0)])], log_y=log)
    root = Xml.fromstring(standalone(figure))
    assert root.attrib["viewBox"] == "0 0 360 216"
    for circle in root.iter("{http://www.w3.org/2000/svg}circle"):
        assert -1 <= float(circle.attrib["cx"]) <= 361 and -1 <= float(circle.attrib["cy"]) <= 217


def test_metric_summaries_name_the_steps_of_the_extremes():
    rows = [{"step": 1.0, "a": 3.0}, {"step": 2.0, "a": math.nan}, {"step": 3.0, "a": -1.0}, {"step": 4.0}]
    (one,) = metric_summaries(rows, ["a", "b"])
    assert (one.first, one.last, one.least_step, one.greatest_step, one.not_finite) == (3.0, -1.0, 3, 1, 1)


@pytest.mark.parametrize("samples", [1, 2, 32, 40, 64, 1000])
def test_every_chosen_k_can_be_estimated(samples):
    ks = chosen_ks(samples)
    assert ks == sorted(set(ks)) and ks[0] == 1 and ks[-1] == samples and len(ks) <= 52


def test_problems_are_chosen_for_what_they_show():
    def change(name, before, after, **more):
        return ProblemChange(name, "text", "1", before, after, **more)

    changed = [change(f"g{n}", 0.0, 1 - n / 10) for n in range(5)]
    changed += [change(f"same{n}", 0.5, 0.5) for n in range(9)] + [change("never", 0.0, 0.0)]
    changed += [change("odd", 0.5, 0.5, undecided=3), change("long", 0.5, 0.5, truncated=2)]
    changed += [change("l1", 0.5, 0.4), change("l2", 1.0, 0.0)]
    picked = {one.problem_id: why for one, why in pick_changed(changed, 8)}
    assert len(picked) == 8
    assert picked["g0"] == "gained" and picked["l2"] == "lost" and picked["never"] == "not solved"
    assert picked["odd"] == "undecided" and picked["long"] == "truncated"
    assert len(pick_changed(changed, 3)) == 3 and pick_changed([], 5) == []


@given(st.text(max_size=300), st.integers(0, 40), st.integers(1, 40))
def test_shortened_texts_account_for_every_character(text, head, tail):
    first, left, last = shortened(text, head, tail)
    assert len(first) + left + len(last) == len(text)
    assert text.startswith(first) and text.endswith(last)


def test_a_change_is_of_the_mean_reward():
    row = {
        "benchmark": "b", "problem": "p", "reference": "", "samples": 4, "correct": 0, "undecided": 0, "no_answer": 0,
        "verifier_errors": 0, "truncated": 0, "other_classes": [4], "mean_length": 1.0, "task": "code", "extra": "{}",
        "reward_variance": 0.01,
    }  # fmt: skip
    tables = [
        pa.Table.from_pylist(
            [
                row | {"problem_id": str(n), "reward": reward, "reward_variance": 0.01}
                for n, reward in enumerate(rewards)
            ],
            schema=SCORES_SCHEMA,
        )
        for rewards in ([0.2, 0.9, 0.3], [0.9, 0.2, 0.3])
    ]
    assert [(one.problem_id, one.before, one.after) for one in changes(*tables)] == [
        ("0", 0.2, 0.9),
        ("2", 0.3, 0.3),
        ("1", 0.9, 0.2),
    ]
