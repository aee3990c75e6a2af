"""Problems that no rule rewrites safely, reworded by a language model and checked.

A rewording is taken only if all of this holds: it has no options and asks neither for a proof nor for a yes or no; its
answer is equivalent to the reference, or, where the reference is no value (a proof, "yes"), stands word for word in
the original; the answer does not stand in the reworded text; and the model's own answers to the reworded problem agree
with it in ``reader.agree`` of ``reader.samples`` tries. Everything else is dropped with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ulorl.curate.answers import answer_fault, option_letter, short_answer
from ulorl.curate.choices import option_value, options
from ulorl.curate.enumeration import find_enumerations
from ulorl.curate.kinds import classify
from ulorl.curate.reader import Reader
from ulorl.curate.reasons import drop
from ulorl.problem import Dropped, Problem
from ulorl.recipe import CurateRecipe

_QUESTION = """Reword the {kind} problem below into a problem with one short final answer: a number, an expression,
or a set.
The reworded problem must stand alone: no answer options, no "which of the following", nothing to prove, no question
that yes or no would answer. Keep every condition that the answer depends on, and do not give the answer away.
{aim}
If this cannot be done, reply IMPOSSIBLE.

Problem:
{problem}

Reference answer: {answer}

Reply in this form, and with nothing after it:
<problem>the reworded problem</problem>
<answer>its final answer</answer>"""
_AIMS: Mapping[str, str] = {
    "multiple_choice": "Ask for the value that the right option holds.",
    "proof": "Ask for the value, the expression or the bound that is to be shown.",
    "true_false": "Ask for the value or the object on which the yes or no depends.",
}
_REPLY = re.compile(r"<problem>(?P<problem>.{15,8000}?)</problem>\s*<answer>(?P<answer>.{1,400}?)</answer>", re.DOTALL)
_OPTIONS_LEFT = re.compile(
    r"\b(?:which|what) (?:\w+ ){0,2}of the (?:following|options|choices|statements)\b"
    r"|\b(?:options?|choices|alternatives)\b|\bfollowing (?:options|answers|statements|choices)\b"
    r"|\b(?:option|choice|answer) \(?[A-H]\b",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"[\s$\\{}]|\\(?:left|right|,|;|!)")
_MIN_GIVEN_AWAY = 3


def reword(problems: Sequence[Problem], reader: Reader, recipe: CurateRecipe) -> dict[str, Problem | Dropped]:
    """id -> the reworded problem, or the row dropped with what was wrong with the rewording."""
    outcome: dict[str, Problem | Dropped] = {}
    proposed: list[tuple[Problem, Problem]] = []
    replies = reader.replies([rewording_prompt(one) for one in problems], "rewordings")
    for problem, reply in zip(problems, replies, strict=True):
        made = proposal(problem, reply or "")
        fault = "the model did not reword it" if made is None else rewording_fault(problem, made, recipe)
        if made is None or fault:
            outcome[problem.id] = drop(problem, "rewrite", "not_rewritten", fault)
        else:
            proposed.append((problem, made))
    grounded = _grounded(proposed, reader)
    for (problem, made), ground in zip(proposed, grounded, strict=True):
        if not ground:
            detail = f"the answer {made.answer[:60]!r} is not that of the original, {problem.answer[:60]!r}"
            outcome[problem.id] = drop(problem, "rewrite", "not_rewritten", detail)
    proposed = [pair for pair, ground in zip(proposed, grounded, strict=True) if ground]
    settings = reader.settings
    for (problem, made), right in zip(proposed, reader.agreeing([made for _, made in proposed]), strict=True):
        detail = f"{right} of {settings.samples} own answers agree with {made.answer[:60]!r}, at least {settings.agree}"
        outcome[problem.id] = (
            made if right >= settings.agree else drop(problem, "rewrite", "unconfirmed_rewrite", detail)
        )
    return outcome


def rewording_prompt(problem: Problem) -> str:
    """The request about one problem."""
    parts = {
        "kind": (problem.kind or "").replace("_", "-"),
        "aim": _AIMS.get(problem.kind or "", ""),
        "problem": problem.problem,
        "answer": reference_value(problem) or problem.original_answer or problem.answer or "(none)",
    }
    return "".join(
        parts[piece] if place % 2 else piece for place, piece in enumerate(re.split(r"\{(\w+)\}", _QUESTION))
    )


def proposal(problem: Problem, reply: str) -> Problem | None:
    """The reworded problem in a reply; None if there is none."""
    replies = list(_REPLY.finditer(reply))
    if not replies:
        return None
    found = replies[-1]
    answer = short_answer(found["answer"].strip())[0]
    if not answer:
        return None
    return replace(
        problem,
        problem=found["problem"].strip(),
        answer=answer,
        original_problem=problem.original_problem or problem.problem,
        original_answer=problem.original_answer or (problem.answer if problem.answer != answer else None),
    )


def rewording_fault(problem: Problem, made: Problem, recipe: CurateRecipe) -> str:
    """What makes a rewording unusable; empty if nothing does."""
    if options(find_enumerations(made.problem)) is not None or _OPTIONS_LEFT.search(made.problem):
        return "the reworded problem still has options"
    fault = answer_fault(made.answer, "as given", recipe)
    if fault:
        return f"the reworded problem's answer is unusable: {fault[1]}"
    found = classify(made.problem, made.answer)
    if found.kind != "short_answer" or not found.certain:
        return f"the reworded problem is of kind {found.kind}{'' if found.certain else ', if at all'}"
    if problem.kind != "multiple_choice":
        answer = _MARKUP.sub("", made.answer)
        if len(answer) >= _MIN_GIVEN_AWAY and answer in _MARKUP.sub("", made.problem):
            return f"the reworded problem gives its answer {made.answer[:60]!r} away"
    return ""


def reference_value(problem: Problem) -> str | None:
    """The value that the reference stands for: its own, or that of the option it names; None for a bare letter of no
    option, for yes and no, and for nothing."""
    letter = option_letter(problem.answer)
    if letter is None:
        return None if problem.kind == "true_false" else problem.answer or None
    listed = options(find_enumerations(problem.problem))
    labels = [label.upper() for label in listed.labels] if listed else []
    return option_value(listed.parts[labels.index(letter)]) if listed and letter in labels else None


def _grounded(proposed: Sequence[tuple[Problem, Problem]], reader: Reader) -> list[bool]:
    """Whether each answer is the reference's or, where that is no value, is written in the original."""
    values = [reference_value(problem) for problem, _ in proposed]
    pairs = [(value, made.answer) for value, (_, made) in zip(values, proposed, strict=True) if value is not None]
    same = iter(reader.equivalent(pairs))
    return [
        (next(same) if value is not None else False) or (problem.kind != "multiple_choice" and _written(problem, made))
        for value, (problem, made) in zip(values, proposed, strict=True)
    ]


def _written(problem: Problem, made: Problem) -> bool:
    text = _MARKUP.sub("", f"{problem.problem} {problem.original_answer or ''} {problem.answer}")
    return _MARKUP.sub("", made.answer) in text
