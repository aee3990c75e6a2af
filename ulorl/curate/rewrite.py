r"""Fourth step: problems that can be guessed become problems that cannot.

Multiple choice whose options only hold the value becomes its stem, with the right option's value as the
reference; the rest, and yes/no questions, are dropped with their reason. Invariants: a rewritten row keeps
its first text in ``original_problem`` and its first reference in ``original_answer``; its id and kind stay;
exactly one option fits the reference; the stem asks something and does not speak of its options.

Rules only: what they cannot prove safe is dropped.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ulorl.curate.answers import option_letter, prose_words, same_text, short_answer
from ulorl.curate.enumeration import find_enumerations
from ulorl.curate.kinds import options
from ulorl.curate.reasons import drop
from ulorl.curate.result import StepResult
from ulorl.curate.tasks import starts_task
from ulorl.problem import Dropped, Problem

_SPEAKS_OF_OPTIONS = re.compile(
    r"\bwhich (?!is\b|are\b|has\b|have\b)|\bfollowing\b|\b(?:any|none|one|which|all|each) of these\b|"
    r"\b(?:option|choice|alternative|answer)s?\b|\bchoose\b|\bselect\b|\bbelow\b"
    r"|\b(?:closest|nearest|approximately|approximate|roughly|best)\b|\b(?:is|are|was|equals?) about\b|"
    r"\b(?:could|can|may|might|must|cannot) (?:not )?be\b"
    r"|\bpossible\b|\bis not\b|\btrue\b|\bfalse\b|\bcorrect\b|\bgraph\b|\u4e0b\u5217|\u4ee5\u4e0b|"
    r"\u9009\u9879",
    re.IGNORECASE,
)
_GREATEST_POSSIBLE = re.compile(
    r"\b(?:greatest|largest|smallest|least|maximum|minimum|number of|many|all|sum of (?:all|the)) possible\b",
    re.IGNORECASE,
)
_NO_VALUE = re.compile(
    r"\b(?:none|all|neither|both|either|any|cannot|not (?:enough|possible|determined)|insufficient|"
    r"impossible|depends|other)\b",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"(?:\n|\s)\W{0,4}(?:(?:answer )?(?:options?|choices?)|select one)\s?(?:are)?\s?[:.]?\W{0,4}$",
    re.IGNORECASE,
)
_UNFINISHED = re.compile(r"[^.!;\u3002]$")
_SEPARATORS = re.compile(r"(?:\\qquad|\\quad|\\\\|\\|[\s;,])+$")
_LEADING_SPACE = re.compile(r"^(?:\\[ ,;:]|\\quad|[\s~])+")
_MAX_OPTION_WORDS = 3


def rewrite(problems: list[Problem]) -> StepResult:
    """Rewrite or drop the rows whose kind is multiple_choice or true_false; others pass unchanged."""
    kept: list[Problem] = []
    dropped: list[Dropped] = []
    rewritten = 0
    for problem in problems:
        if problem.kind == "true_false":
            dropped.append(drop(problem, "rewrite", "true_false", f"reference {problem.answer[:60]!r}"))
        elif problem.kind == "multiple_choice":
            outcome = rewrite_choice(problem)
            if isinstance(outcome, Dropped):
                dropped.append(outcome)
            else:
                rewritten += outcome.problem != problem.problem
                kept.append(outcome)
        else:
            kept.append(problem)
    return StepResult(kept, dropped, notes={"problems rewritten": rewritten})


def rewrite_choice(problem: Problem) -> Problem | Dropped:
    """The stem with the value of its right option as the reference, or the row dropped."""
    listed = options(find_enumerations(problem.problem))
    if listed is None:
        return _without_options(problem)
    stem = _HEADING.sub("", listed.preamble.rstrip(" *$\n{")).rstrip()
    reason = unsafe_stem(stem)
    if reason:
        return drop(problem, "rewrite", "option_dependent", reason)
    values = [_option_value(part) for part in listed.parts]
    for label, value in zip(listed.labels, values, strict=True):
        if not value or "\n" in value or _NO_VALUE.search(value) or len(prose_words(value)) > _MAX_OPTION_WORDS:
            return drop(problem, "rewrite", "option_dependent", f"option {label} is no value: {value[:60]!r}")
    index = right_option(problem, listed.labels, values)
    if index is None:
        given = (problem.original_answer or problem.answer)[:60]
        detail = f"reference {given!r}, options {[value[:20] for value in values]}"
        return drop(problem, "rewrite", "option_not_found", detail)
    answer = values[index] if option_letter(problem.answer) else problem.answer
    return replace(
        problem,
        problem=stem,
        answer=answer,
        original_problem=problem.original_problem or problem.problem,
        original_answer=problem.original_answer or (problem.answer if problem.answer != answer else None),
    )


def unsafe_stem(stem: str) -> str:
    """Why a stem cannot stand without its options; empty if it can."""
    found = _SPEAKS_OF_OPTIONS.search(_GREATEST_POSSIBLE.sub(" ", stem))
    if found:
        return f"the stem speaks of its options: {found[0]!r}"
    if len(stem) < 15 or not (starts_task(stem) or _UNFINISHED.search(stem)):
        return f"the stem asks nothing: {stem[-60:]!r}"
    return ""


def right_option(problem: Problem, labels: tuple[str, ...], values: list[str]) -> int | None:
    """Index of the one option that the reference names by letter or by value; None where they disagree."""
    by_value = [index for index, value in enumerate(values) if same_text(value, problem.answer)]
    letter = option_letter(problem.original_answer or problem.answer)
    named = [label.upper() for label in labels].index(letter) if letter and letter in map(str.upper, labels) else None
    if len(set(values)) < len(values):
        return None
    if named is None:
        return by_value[0] if len(by_value) == 1 else None
    return named if option_letter(problem.answer) or by_value == [named] else None


def _without_options(problem: Problem) -> Problem | Dropped:
    """Options that are not in the text: the row stands if its stem does and its reference is a value."""
    reason = unsafe_stem(problem.problem)
    if reason:
        return drop(problem, "rewrite", "option_dependent", reason)
    if option_letter(problem.answer) is not None:
        return drop(problem, "rewrite", "option_not_found", f"no options in the text, reference {problem.answer!r}")
    return problem


def _option_value(part: str) -> str:
    part = _SEPARATORS.sub("", _LEADING_SPACE.sub("", part[:401]))
    if part.count("$") % 2:
        part = part.removesuffix("$").removeprefix("$")
    return short_answer(part)[0]
