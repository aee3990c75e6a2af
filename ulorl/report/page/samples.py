"""Samples to read on the page: problem, reference, outputs with their verdicts, mathematics rendered."""

from __future__ import annotations

from ulorl.report.chosen_samples import ShownProblem, ShownSample, shortened
from ulorl.report.markup import Markup, element, join
from ulorl.report.page.formulas import available, rich_text, short_answer
from ulorl.report.page.parts import clipped, missing, section
from ulorl.report.run_data import RunData

LONGEST_ANSWER = 300
_MARKS = {"right": "✓ right", "wrong": "✗ wrong", "undecided": "? undecided", "no answer": "– no answer"}


def samples_section(data: RunData) -> Markup:
    """Samples of the evaluations, then some that training used."""
    parts: list[Markup] = []
    if not available():
        parts.append(missing("Formulas are shown as their source: install ulorl[report] to have them rendered."))
    shown = {name: problems for name, problems in data.evaluated.items() if any(one.samples for one in problems)}
    if shown:
        parts.append(element("p", _choice(data), class_="quiet"))
    else:
        parts.append(missing("No samples of a finished evaluation are here."))
    for name, problems in shown.items():
        parts.append(element("h3", name))
        parts += [_problem(one) for one in problems if one.samples]
    if data.trained:
        parts.append(element("h3", "From training"))
        text = "One right and one wrong sample of the first, a middle and the last step whose samples were kept."
        parts.append(element("p", text, class_="quiet"))
        parts += [_problem(one) for one in data.trained]
    return section("samples", "Samples to read", *parts)


def _choice(data: RunData) -> str:
    chosen = sum(len(problems) for problems in data.evaluated.values())
    held = sum(len(changed) for changed in data.changed.values())
    if data.pair is None:
        return f"{chosen} of {held} problems, one sample each: some never solved, some solved."
    return (
        f"{chosen} of {held} problems: those that changed most, and some never solved. One sample of each evaluation, "
        "the first with the verdict that shows the change; all samples lie in the evaluations' directories."
    )


def _problem(one: ShownProblem) -> Markup:
    parts: list[Markup] = []
    if one.why:
        parts.append(element("div", one.why, class_="head quiet"))
    if one.problem:
        parts.append(_text(one.problem, "text question"))
        parts.append(element("div", "reference ", short_answer(clipped(one.reference, LONGEST_ANSWER)), class_="head"))
    else:
        parts.append(element("div", f"problem {one.problem_id}, whose text is not here", class_="head quiet"))
    parts.append(element("div", *(_sample(sample) for sample in one.samples), class_="pair"))
    return element("div", *parts, class_="problem")


def _sample(sample: ShownSample) -> Markup:
    verdict = element("span", _MARKS[sample.verdict], class_=f"verdict {sample.verdict.split()[0]}")
    head = [element("strong", sample.origin), "  ", verdict]
    if sample.answer is not None:
        head += ["  answer ", short_answer(clipped(sample.answer, LONGEST_ANSWER))]
    facts = [f"rule {sample.rule}"] if sample.rule else []
    facts += [clipped(sample.reason, LONGEST_ANSWER)] if sample.reason else []
    facts += [f"{sample.tokens:,} tokens"] if sample.tokens is not None else []
    facts += ["cut at the maximum length"] if sample.finish == "length" else []
    facts += [sample.segments] if sample.segments else []
    text = _text(sample.text, "text output") if sample.text else element("div", "(no text)", class_="output quiet")
    return element(
        "div",
        element("div", *head, class_="head"),
        text,
        element("div", "; ".join(facts), class_="head quiet"),
        class_="sample",
    )


def _text(text: str, name: str) -> Markup:
    head, left, tail = shortened(text)
    if not left:
        return element("div", rich_text(head), class_=name, dir="auto")
    cut = element("span", f"{left:,} characters left out", class_="cut")
    return element("div", join(rich_text(head), cut, rich_text(tail)), class_=name, dir="auto")
