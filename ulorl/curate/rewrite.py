r"""Fourth step: problems that can be guessed or that have no value to compare become problems that cannot and do.

Multiple choice whose options only hold the value becomes its stem, with the right option's value as the reference, by
rule. The rest, proofs and yes/no questions go to a language model where one is configured (``reword``), and are
dropped with their reason where there is none. Invariants: a rewritten row keeps its first text in
``original_problem`` and its first reference in ``original_answer``; its id and kind stay; exactly one option fits the
reference; the stem asks something and does not speak of its options.

Not by rule: what the rules cannot prove safe.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from ulorl.curate.answers import option_letter, prose_words, same_text
from ulorl.curate.choices import option_value, options
from ulorl.curate.enumeration import find_enumerations
from ulorl.curate.features import without_drawings
from ulorl.curate.figures import figure_evidence
from ulorl.curate.kinds import REWRITTEN_KINDS
from ulorl.curate.reasons import drop
from ulorl.curate.result import StepResult
from ulorl.curate.tasks import asks, sentences, starts_task
from ulorl.problem import Dropped, Problem
from ulorl.recipe import VerifyRecipe
from ulorl.verify.verdict import Item

if TYPE_CHECKING:
    from ulorl.verify import Verifier

_SPEAKS_OF_OPTIONS = re.compile(
    r"\bwhich (?!is\b|are\b|has\b|have\b)|\bfollowing\b|\b(?:any|none|one|which|all|each) of these\b|"
    r"\b(?:option|choice|alternative|answer)s?\b|\bchoose\b|\bselect\b|\bbelow\b"
    r"|\b(?:closest|nearest|approximately|approximate|roughly|best)\b|\b(?:is|are|was|equals?) about\b|"
    r"\b(?:could|can|may|might|must|cannot) (?:not )?be\b"
    r"|\bpossible\b|\bis not\b|\btrue\b|\bfalse\b|\bcorrect\b|\bgraph\b|\u4e0b\u5217|\u4ee5\u4e0b|"
    r"\u9009\u9879",
    re.IGNORECASE,
)
_DATUM = r"(?:list|series|sum|expression|equation|sequence|system|inequality|integral|product|table|data)\b"
"""What may follow, one of it: part of what is given, no option."""
_ALWAYS_SPEAKS = re.compile(
    rf"\bof (?:the following\b(?! {_DATUM})|"
    r"(?:these|those)(?=\s?[?,.:]|\s?$| (?:is|are|must|can|could|has|have|cannot|statements?|"
    r"conclusions?|propositions?)\b))|\bfollowing (?:statements?|conclusions?|propositions?|answers?|"
    r"options?|choices?|is|are|must|can|could)\b|\b(?:option|choices|alternative)s?\b|\bchoose the\b|\bselect the\b|"
    r"\b(?:shown|graphs?|figures?) below\b|\u4e0b\u5217|\u4ee5\u4e0b|\u9009\u9879",
    re.IGNORECASE,
)
_RELATIVE_WHICH = re.compile(
    r"(?:\b(?:for|in|of|at|on|to|by|from|with|during|through|after|under)|,) which\b(?! (?:one|of)\b)"
    rf"|\bfollowing (?={_DATUM})"
    r"|\bcorrect to\b",
    re.IGNORECASE,
)
_ONE_EXTREME = re.compile(
    r"\b(?:how many|number of|smallest|largest|greatest|least|maximum|minimum|probability|longest|shortest)\b",
    re.IGNORECASE,
)
_MODAL = re.compile(r"\b(?:could|can|may|might|must|cannot) (?:not )?be\b|\bpossible\b|\bis not\b", re.IGNORECASE)
_LETTER_EQUALS = re.compile(r"([A-H])\s?=")
_OPTION_LEFT = re.compile(r"(?:^|\n|\s|\$)[(*]{0,3}[A-E][).:]")
_LEFT_OPTIONS = 3
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
_MAX_OPTION_WORDS = 3


def rewrite(
    problems: Sequence[Problem], reword: Callable[[Sequence[Problem]], Mapping[str, Problem | Dropped]] | None = None
) -> StepResult:
    """Rewrite or drop the rows whose kind is multiple_choice, proof or true_false; others pass unchanged.

    ``reword`` (a language model) receives what no rule rewrites and returns for each id the new problem or the row
    dropped. Without it those rows are dropped with the reason of the rules.
    """
    outcomes = {place: _by_rule(problem) for place, problem in enumerate(problems) if problem.kind in REWRITTEN_KINDS}
    left = [problems[place] for place, outcome in outcomes.items() if isinstance(outcome, Dropped)]
    reworded = reword(left) if reword is not None and left else {}
    kept: list[Problem] = []
    dropped: list[Dropped] = []
    by_rule = by_model = 0
    for place, problem in enumerate(problems):
        outcome = outcomes.get(place, problem)
        if isinstance(outcome, Dropped) and problem.id in reworded:
            outcome = reworded[problem.id]
            by_model += isinstance(outcome, Problem)
        elif isinstance(outcome, Problem):
            by_rule += outcome.problem != problem.problem
        if isinstance(outcome, Dropped):
            dropped.append(outcome)
        else:
            kept.append(outcome)
    notes = {"problems rewritten": by_rule + by_model}
    if reword is not None:
        notes["problems rewritten by a model"] = by_model
    return StepResult(kept, dropped, notes=notes)


def _by_rule(problem: Problem) -> Problem | Dropped:
    reference = f"reference {problem.answer[:60]!r}"
    if problem.kind == "true_false":
        return drop(problem, "rewrite", "true_false", reference)
    if problem.kind == "proof":
        return drop(problem, "rewrite", "proof", reference)
    return rewrite_choice(problem)


def rewrite_choice(problem: Problem) -> Problem | Dropped:
    """The stem with the value of its right option as the reference, or the row dropped."""
    listed = options(find_enumerations(problem.problem))
    if listed is None:
        return _without_options(problem)
    stem = _HEADING.sub("", _without_opening(listed.preamble)).rstrip()
    reason = unsafe_stem(stem)
    if reason:
        return drop(problem, "rewrite", "option_dependent", reason)
    figure, _ = figure_evidence(without_drawings(stem)) if without_drawings(stem) == stem else ("", True)
    if figure:
        return drop(problem, "rewrite", "missing_figure", figure)
    values = [option_value(part) for part in listed.parts]
    for label, value in zip(listed.labels, values, strict=True):
        if not value or "\n" in value or _NO_VALUE.search(value) or len(prose_words(value)) > _MAX_OPTION_WORDS:
            return drop(problem, "rewrite", "option_dependent", f"option {label} is no value: {value[:60]!r}")
    index = right_option(problem, listed.labels, values)
    if index is None:
        given = (problem.original_answer or problem.answer)[:60]
        detail = f"reference {given!r}, options {[value[:20] for value in values]}"
        return drop(problem, "rewrite", "option_not_found", detail)
    lettered = _LETTER_EQUALS.match(problem.answer)
    named = lettered is not None and lettered[1] == listed.labels[index].upper()
    answer = values[index] if named or option_letter(problem.answer) else problem.answer
    return replace(
        problem,
        problem=stem,
        answer=answer,
        original_problem=problem.original_problem or problem.problem,
        original_answer=problem.original_answer or (problem.answer if problem.answer != answer else None),
    )


def _without_opening(preamble: str) -> str:
    """``preamble`` without the mark-up of the first option; a sign that closes mathematics stays."""
    stem = preamble.rstrip(" *$\n{")
    closes = preamble[len(stem) :].startswith("$") and stem.count("$") % 2
    return f"{stem}$" if closes else stem


def unsafe_stem(stem: str) -> str:
    """Why a stem cannot stand without its options; empty if it can.

    What is told before the question may well say that something "can be" or is "true"; the question may not.
    """
    found = _ALWAYS_SPEAKS.search(stem)
    if found is None:
        told = sentences(stem)
        for sentence in told:
            if sentence is told[-1] or asks(sentence) or starts_task(sentence):
                plain = _RELATIVE_WHICH.sub(" ", _GREATEST_POSSIBLE.sub(" ", sentence))
                plain = _MODAL.sub(" ", plain) if _ONE_EXTREME.search(sentence) else plain
                found = found or _SPEAKS_OF_OPTIONS.search(plain)
    if found:
        return f"the stem speaks of its options: {found[0]!r}"
    if len(stem) < 15 or not (starts_task(stem) or _UNFINISHED.search(stem)):
        return f"the stem asks nothing: {stem[-60:]!r}"
    return ""


def right_option(problem: Problem, labels: tuple[str, ...], values: list[str]) -> int | None:
    """Index of the one option that the reference names by letter or by value; None where they disagree."""
    by_value = [index for index, value in enumerate(values) if same_text(value, problem.answer)]
    if not by_value and not option_letter(problem.answer):
        by_value = [index for index, same in enumerate(_equivalent(problem.answer, values)) if same]
    letter = option_letter(problem.original_answer or problem.answer)
    named = [label.upper() for label in labels].index(letter) if letter and letter in map(str.upper, labels) else None
    if len(set(values)) < len(values):
        return None
    if named is None:
        return by_value[0] if len(by_value) == 1 else None
    return named if option_letter(problem.answer) or by_value == [named] else None


def _equivalent(reference: str, values: Sequence[str]) -> list[bool]:
    """Which values the verifier's rules, without a computer algebra system, find equivalent to the reference."""
    items = [Item(reference, value, is_answer=True) for value in values]
    return [verdict.equivalent is True for verdict in _rules().verify(items)]


@cache
def _rules() -> Verifier:
    from ulorl.verify import Verifier

    return Verifier(VerifyRecipe(symbolic=False))


def _without_options(problem: Problem) -> Problem | Dropped:
    """Options that are not in the text: the row stands if its stem does and its reference is a value."""
    reason = unsafe_stem(problem.problem)
    found = _SPEAKS_OF_OPTIONS.search(_GREATEST_POSSIBLE.sub(" ", problem.problem))
    if found:
        reason = f"the stem speaks of its options: {found[0]!r}"
    if len(_OPTION_LEFT.findall(problem.problem)) >= _LEFT_OPTIONS:
        reason = "options that the rules cannot take off"
    if reason:
        return drop(problem, "rewrite", "option_dependent", reason)
    if option_letter(problem.answer) is not None:
        return drop(problem, "rewrite", "option_not_found", f"no options in the text, reference {problem.answer!r}")
    return problem
