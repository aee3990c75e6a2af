"""The decision about a loss: p-values against counting, Holm by hand, false alarms and power by simulation, JUnit."""

from __future__ import annotations

from itertools import product
from xml.etree import ElementTree as Xml

import numpy as np
import pytest
from scipy import stats

from ulorl.evaluate.estimators import ProblemCounts, avg_at_n, cautious_variance
from ulorl.evaluate.gate import decide, junit, sentence
from ulorl.evaluate.significance import EXACT_PROBLEMS, holm, loss_p_value, smallest_loss

PROBLEMS, SAMPLES = 30, 32


@pytest.mark.parametrize(
    "differences", [[-0.5], [-0.2, -0.1, 0.3], [-0.1] * 6, [0.1, -0.1, -0.1], [-0.3, 0.2, 0.0, 0.0]]
)
def test_p_value_is_the_share_of_sign_patterns(differences):
    values = np.array(differences)
    sums = [np.dot(signs, values) for signs in product((1, -1), repeat=len(values))]
    assert loss_p_value(values) == pytest.approx(np.mean(np.array(sums) <= values.sum() + 1e-12))


def test_p_value_of_many_problems_is_close_to_the_normal_one_and_always_the_same():
    rng = np.random.default_rng(0)
    values = rng.normal(-0.02, 0.1, 200)
    expected = stats.norm.cdf(values.sum() / np.sqrt(np.sum(values**2)))
    assert loss_p_value(values) == pytest.approx(expected, abs=0.004)
    assert loss_p_value(values) == loss_p_value(values)
    few = values[:EXACT_PROBLEMS]
    exact, padded = loss_p_value(few), loss_p_value(np.append(few, 1e-6))
    assert exact == pytest.approx(padded, abs=0.015)  # counted, and drawn


def test_nothing_or_a_gain_is_no_loss():
    assert loss_p_value(np.zeros(30)) == 1.0
    assert loss_p_value(np.full(30, 0.1)) > 0.99
    assert loss_p_value(np.full(30, -0.1)) < 1e-3


def test_holm_by_hand():
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06})
    assert holm({"a": 0.6, "b": 0.7}) == {"a": 1.0, "b": 1.0}
    assert holm({"a": 0.2}) == {"a": 0.2}


def test_a_certain_but_small_loss_never_fails():
    small = np.full(30, -0.005)
    assert loss_p_value(small) < 1e-3
    assert not decide({"b": small}, 0.025, 0.01)["loss"]
    assert decide({"b": small}, 0.025, 0.005)["loss"]
    assert not decide({"b": np.zeros(30)}, 0.025, 0.0)["loss"]


def test_several_benchmarks_share_the_false_alarms():
    rng = np.random.default_rng(1)
    borderline = rng.normal(-0.04, 0.1, 30)
    while not 0.01 < loss_p_value(borderline) < 0.02:
        borderline = rng.normal(-0.04, 0.1, 30)
    assert decide({"a": borderline}, 0.025, 0.01)["loss"]
    together = decide({"a": borderline, "b": np.zeros(30), "c": np.zeros(30)}, 0.025, 0.01)
    assert not together["loss"]
    assert together["benchmarks"]["a"]["p_holm"] == pytest.approx(3 * together["benchmarks"]["a"]["p"])


def drawn(rng: np.random.Generator, loss: float) -> np.ndarray:
    chance_P = rng.beta(0.7, 1.0, PROBLEMS)
    odds_P = np.log(np.clip(chance_P, 1e-9, 1) / np.clip(1 - chance_P, 1e-9, 1))
    shifts = np.linspace(0, 4, 400)
    means = np.array([np.mean(1 / (1 + np.exp(-(odds_P - shift)))) for shift in shifts])
    after_P = 1 / (1 + np.exp(-(odds_P - shifts[np.argmin(np.abs(means - (chance_P.mean() - loss)))])))
    return (rng.binomial(SAMPLES, after_P) - rng.binomial(SAMPLES, chance_P)) / SAMPLES


def test_few_false_alarms_and_a_loss_of_eight_points_is_found():
    rng = np.random.default_rng(2)
    alarms = np.mean([decide({"b": drawn(rng, 0.0)}, 0.025, 0.01)["loss"] for _ in range(300)])
    found = np.mean([decide({"b": drawn(rng, 0.08)}, 0.025, 0.01)["loss"] for _ in range(100)])
    assert alarms <= 0.05
    assert found >= 0.9


def test_the_smallest_loss_is_found_as_often_as_promised():
    rng = np.random.default_rng(3)
    spread, problems = 0.1, 40
    t = stats.t(problems - 1)
    loss = (t.ppf(0.975) + t.ppf(0.9)) * spread / np.sqrt(problems)
    found = [loss_p_value(rng.normal(-loss, spread, problems)) <= 0.025 for _ in range(300)]
    assert np.mean(found) == pytest.approx(0.9, abs=0.06)
    values = rng.normal(0, spread, problems)
    expected = (t.ppf(0.975) + t.ppf(0.9)) * values.std(ddof=1) / np.sqrt(problems)
    assert smallest_loss(values, 0.025, 0.9) == pytest.approx(expected)


def test_too_few_problems_can_show_no_loss():
    assert smallest_loss(np.array([-0.5, -0.4, -0.3]), 0.025, 0.9) is None
    one = decide({"b": np.array([-1.0, -1.0, -0.9])}, 0.025, 0.01)
    assert not one["loss"]
    assert "cannot show how small" in sentence("b", one["benchmarks"]["b"])


def test_junit_has_a_case_a_benchmark_and_fails_the_lost_ones():
    decision = decide({"good": np.full(30, 0.02), "bad & <worse>": np.full(30, -0.2)}, 0.025, 0.01)
    benchmarks = {"good": {"lost": []}, "bad & <worse>": {"lost": ["p1", "p2"]}}
    root = Xml.fromstring(junit({"decision": decision, "benchmarks": benchmarks}))
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    cases = {case.get("name"): case.find("failure") for case in root.iter("testcase")}
    assert cases["good"] is None
    assert "p1, p2" in cases["bad & <worse>"].text
    assert "-20.0 points" in cases["bad & <worse>"].get("message")


def test_few_problems_lost_altogether_are_seen_on_these_problems_alone():
    before = [ProblemCounts(str(i), SAMPLES, 24) for i in range(PROBLEMS)]
    after = [ProblemCounts(str(i), SAMPLES, 0 if i < 3 else 24) for i in range(PROBLEMS)]
    differences = {"b": avg_at_n(after) - avg_at_n(before)}
    noise = {"b": cautious_variance(before) + cautious_variance(after)}
    assert not decide(differences, 0.025, 0.01)["loss"]
    here = decide(differences, 0.025, 0.01, noise)
    assert here["loss"] and here["population"] == "these problems"
    assert 0 < here["benchmarks"]["b"]["smallest_loss"] < 0.075


def test_few_false_alarms_on_these_problems():
    rng = np.random.default_rng(4)
    chance_P = rng.beta(0.7, 1.0, PROBLEMS)
    alarms = 0
    for _ in range(400):
        runs = [[ProblemCounts("p", SAMPLES, int(c)) for c in rng.binomial(SAMPLES, chance_P)] for _ in range(2)]
        noise = {"b": cautious_variance(runs[0]) + cautious_variance(runs[1])}
        alarms += decide({"b": avg_at_n(runs[1]) - avg_at_n(runs[0])}, 0.025, 0.0, noise)["loss"]
    assert alarms / 400 <= 0.05
