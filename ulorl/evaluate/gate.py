"""From a comparison to a decision: has the second run really lost on some benchmark?

A loss is real where avg fell by at least the minimum effect and the test, Holm-corrected over the benchmarks
compared, stays within the false alarms allowed. Pure: JSON types and arrays in, JSON types out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as Xml

import numpy as np
from numpy.typing import NDArray

from ulorl.evaluate.significance import holm, loss_p_value, noise_p_value, smallest_loss, smallest_noise_loss

FloatArray = NDArray[np.float64]
FOUND = 0.9
"""Probability with which ``smallest_loss`` is found."""
_TESTS = {True: "sign flips", False: "sampling noise, normal"}
_ROUNDING = 1e-9


def decide(
    differences: Mapping[str, FloatArray],
    significance: float,
    min_effect: float,
    noise: Mapping[str, FloatArray] | None = None,
) -> dict[str, Any]:
    """The decision for after - before in avg of each problem, by benchmark: for problems like these or, with the
    sampling variances of the differences in ``noise``, for these problems.

    ``loss`` is the answer; ``benchmarks`` has for each the ``difference``, ``p`` (one-sided), ``p_holm``, ``loss``, and
    ``smallest_loss`` that would have been found nine times in ten (null: none could have been).
    """
    if noise is None:
        p_values = {name: loss_p_value(difference_P) for name, difference_P in differences.items()}
    else:
        p_values = {name: noise_p_value(difference_P, noise[name]) for name, difference_P in differences.items()}
    alpha = significance / len(differences)
    adjusted = holm(p_values)
    benchmarks = {}
    for name, difference_P in differences.items():
        mean = float(np.mean(difference_P))
        benchmarks[name] = {
            "difference": mean,
            "p": p_values[name],
            "p_holm": adjusted[name],
            "smallest_loss": smallest_loss(difference_P, alpha, FOUND)
            if noise is None
            else smallest_noise_loss(noise[name], alpha, FOUND),
            "loss": adjusted[name] <= significance and -mean >= min_effect - _ROUNDING and mean < 0,
        }
    return {
        "loss": any(one["loss"] for one in benchmarks.values()),
        "population": "problems like these" if noise is None else "these problems",
        "test": f"{_TESTS[noise is None]}, paired by problem, one-sided; Holm over benchmarks",
        "significance": significance,
        "min_effect": min_effect,
        "found": FOUND,
        "benchmarks": benchmarks,
    }


def sentence(name: str, one: Mapping[str, Any]) -> str:
    """The decision on a benchmark for people, in points."""
    text = f"{name}: avg {100 * one['difference']:+.1f} points, p = {one['p_holm']:.3g}"
    verdict = "a real loss" if one["loss"] else "no real loss"
    if one["smallest_loss"] is None:
        return f"{text}: {verdict}" + (
            "" if one["loss"] else "; these problems cannot show how small a loss would be seen"
        )
    return f"{text}: {verdict}; a loss of {100 * one['smallest_loss']:.1f} points would be found 9 times in 10"


def junit(comparison: Mapping[str, Any]) -> str:
    """The decision as JUnit XML: a test case a benchmark, failed where the loss is real."""
    decision = comparison["decision"]
    failures = sum(one["loss"] for one in decision["benchmarks"].values())
    counts = {"tests": str(len(decision["benchmarks"])), "failures": str(failures), "errors": "0"}
    root = Xml.Element("testsuites", counts)
    suite = Xml.SubElement(root, "testsuite", {"name": "ulorl compare", **counts})
    for name, one in decision["benchmarks"].items():
        case = Xml.SubElement(suite, "testcase", {"classname": "ulorl.compare", "name": name, "time": "0"})
        detail = sentence(name, one)
        lost = ", ".join(comparison["benchmarks"][name]["lost"]) or "none"
        if one["loss"]:
            Xml.SubElement(case, "failure", {"message": detail, "type": "loss"}).text = f"problems lost: {lost}"
        Xml.SubElement(case, "system-out").text = detail
    Xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"
