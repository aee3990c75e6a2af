r"""Third step: what kind of problem is it, and is it of a kind that has one short answer?

Rules only, tried from the most to the least certain: multiple choice, several parts, proof, yes/no, missing
figure, open-ended, nothing asked; else short answer. A rule that cannot be certain says so (``Finding.certain``),
and a language model decides those rows where one is configured (``ask``). Invariants: only the text and the
reference decide; every rule is linear in the text and looks at its last 20,000 characters at most.

Does not rewrite (``rewrite``): multiple choice, proofs and yes/no problems go on with their kind in
``Problem.kind``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, get_args

from ulorl.curate.choices import choice_evidence
from ulorl.curate.enumeration import find_enumerations
from ulorl.curate.features import without_drawings
from ulorl.curate.figures import figure_evidence
from ulorl.curate.parts import parts_evidence
from ulorl.curate.reasons import drop
from ulorl.curate.result import StepResult
from ulorl.curate.tasks import asks, sentences, starts_task
from ulorl.curate.yes_no import asks_yes_no
from ulorl.problem import Dropped, Problem

Kind = Literal[
    "short_answer", "multi_part", "multiple_choice", "proof", "true_false", "open_ended", "missing_figure", "other"
]
KINDS: tuple[Kind, ...] = get_args(Kind)
DROPPED_KINDS: tuple[Kind, ...] = ("multi_part", "open_ended", "missing_figure", "other")
REWRITTEN_KINDS: tuple[Kind, ...] = ("multiple_choice", "proof", "true_false")


class Finding(NamedTuple):
    """What the rules say of one problem. ``certain`` is False where a reader could well disagree."""

    kind: Kind
    evidence: str
    certain: bool = True


_MAX_CHARS = 20_000
_PROOF_WORDS = ("prove", "show", "demonstrate", "verify", "\u8bc1\u660e", "\u6c42\u8bc1")
_PROOF = re.compile(
    r"(?:^|[.,;:?!]\s{0,3}|\n\s{0,9}|\b(?:then|and|to|also|please|\)) )"
    r"(?:\(?prove|show|demonstrate|verify) (?:that|the|this|:|if|for|using|there|also)|^prove\b|\bprove[:,]|"
    r"(?:^|[.;:?!,]\s{0,3}|\n\s{0,9})prove\b|\u8bc1\u660e|\u6c42\u8bc1",
    re.IGNORECASE,
)
_VALUE_ASKED = re.compile(
    r"\b(?:find|determine|calculate|compute|evaluate|what (?:is|are)|how many|how much)\b", re.IGNORECASE
)
_VALUE_TASK = re.compile(
    r"^(?:[^.?!]{0,200}[,;] )?(?:(?:and|also|then|please) )?(?:find|determine|calculate|compute|evaluate|"
    r"what (?:is|are)|how (?:many|much))\b(?! (?:whether|if)\b)",
    re.IGNORECASE,
)
_COMPLETES = re.compile(
    r"\\q?quad\b|\\boxed\b|_{2}|\( ?\)|\bto be (?:found|calculated|determined)\b|=\s?[$\\)]{0,3}\s?\.?\s*$|"
    r"(?:^|[.;]\s{1,3}|\n)(?:expand|enter|add|subtract|multiply|divide|formulate|restore|round|rewrite|approximate|count)\b",
    re.IGNORECASE,
)
_YES_NO_ANSWER = re.compile(
    r"^\W{0,6}(?:\\(?:text|textbf|mathrm)\s?\{)?\W{0,6}(?:yes|"
    r"no(?! (?:real |integer |positive |such |other )?(?:solution|root|value)s?\b)|true|false|not (?:possible|exists?|"
    r"necessarily|true|always)|impossible|possible|(?:there )?(?:does not|doesn't|do not|exists)|"
    r"it is (?:not )?(?:possible|true)|cannot|can not|incorrect|correct|\u662f|\u5426)\b",
    re.IGNORECASE,
)
_MAX_VALUE_CHARS = 60
_ORDERED = (
    r"[^?!]{0,300}\b(?:(?:ascending|descending|increasing|decreasing|alphabetical|numerical|chronological) order|"
    r"in order(?! (?:so|such|that|to)\b)|order of (?:size|magnitude)|from (?:the )?(?:small|larg|least|great|low|high|"
    r"short|long|light|heav)|as follows|in (?:\w+ )?(?:columns|rows|brackets))"
)
"""What follows "arrange" where there is one arrangement only: an order, or a pattern that the text gives."""
_OPEN = re.compile(
    r"(?:^|[.;:?!]\s{0,3}|\n\s{0,9})(?:explain (?:how|why|what)|describe (?:how|a|an|all the ways)|"
    r"construct\b|give an? "
    r"(?:\w+ )?example|divide (?:them|it|the (?!sum|product|result))|write (?:\w+ ){1,4}several|draw\b|"
    r"sketch\b|arrange\b(?!" + _ORDERED + r")|"
    r"design\b|propose\b|find an? (?:\w+ )?(?:nonzero |non-zero )?(?:polynomial|function|example|"
    r"sequence|set|number) "
    r"(?:\S+ )?such that|come up with|(?:please )?(?:write|list) (?:down )?(?:any|one|an example))",
    re.IGNORECASE,
)
_CLOSED = re.compile(
    r"\bhow (?:many|much|long|far)\b|[?]|_{3}|\\_|\\qquad|\b(?:number|value|ratio|length|area|sum|part|"
    r"total|minimum|maximum|probability) (?:of|that)\b"
    r"|\b(?:as the|the final) answer\b|\banswer in\b|\bthe (?:larger|smaller|total|ratio)\b|\bis\W*$",
    re.IGNORECASE,
)


def kinds(
    problems: Sequence[Problem], decide: Callable[[Sequence[Problem]], Mapping[str, Kind]] | None = None
) -> StepResult:
    """Write the kind of every row; rows of a kind without one short answer are dropped.

    ``decide`` (a language model) receives the rows of which the rules are not certain and returns id -> kind for
    those it could decide; the others keep the kind of the rules.
    """
    found = [classify(one.problem, one.answer, one.original_answer) for one in problems]
    unsure = [one for one, finding in zip(problems, found, strict=True) if not finding.certain]
    decided = decide(unsure) if decide is not None and unsure else {}
    kept: list[Problem] = []
    dropped: list[Dropped] = []
    notes = {"kinds the rules are not certain of": len(unsure)}
    if decide is not None:
        notes["kinds a model decided"] = len(decided)
        notes["kinds a model did not name"] = len(unsure) - len(decided)
        notes["kinds a model changed"] = 0
    for problem, finding in zip(problems, found, strict=True):
        kind, evidence, _ = finding
        if decided.get(problem.id, kind) != kind:
            kind, evidence = decided[problem.id], f"a model's reading; the rules said {kind}"
            notes["kinds a model changed"] += 1
        problem = replace(problem, kind=kind)  # noqa: PLW2901
        if kind in DROPPED_KINDS:
            dropped.append(drop(problem, "kinds", kind, evidence))
        else:
            notes[f"kind {kind}"] = notes.get(f"kind {kind}", 0) + 1
            kept.append(problem)
    return StepResult(kept, dropped, notes=notes)


def classify(problem: str, answer: str = "", original_answer: str | None = None) -> Finding:
    """The kind of one problem, the evidence for it, and whether the rules are certain."""
    text = without_drawings(problem[-_MAX_CHARS:]).strip()
    reference = original_answer or answer or ""
    enumerations = find_enumerations(text)
    evidence, certain = choice_evidence(text, reference, enumerations)
    if evidence:
        return Finding("multiple_choice", evidence, certain)
    evidence, sure = parts_evidence(text, reference, answer or "", enumerations)
    if evidence:
        return Finding("multi_part", evidence, sure)
    if _mentions(text, _PROOF_WORDS) and _PROOF.search(text) and "prove or disprove" not in text.lower():
        valued = answer and _VALUE_ASKED.search(_PROOF.sub(" ", text))
        if not valued and not any(_VALUE_TASK.match(sentence) for sentence in sentences(text)):
            return Finding("proof", "asks for a proof and for no value")
        certain = False
    answered = bool(_YES_NO_ANSWER.match(answer or ""))
    yes_no, alone = _yes_no_questions(text)
    if yes_no and (answered or alone):
        return Finding("true_false", "a yes/no question without another question", answered or not _is_value(answer))
    evidence, sure = ("", True) if len(text) < len(problem.strip()) else figure_evidence(text)
    if evidence:
        return Finding("missing_figure", evidence, sure)
    certain = certain and sure
    found = _OPEN.search(text)
    if found and not _VALUE_ASKED.search(text) and not _CLOSED.search(text):
        return Finding("open_ended", f"asks for one of many answers: {found[0].strip()!r}", False)
    return Finding("short_answer", "", certain and _clearly_asks(text))


def _mentions(text: str, words: tuple[str, ...]) -> bool:
    """A cheap test before a dear one: whether any of the words is in ``text``, in any case."""
    lowered = text.lower()
    return any(word in lowered for word in words)


def _is_value(answer: str | None) -> bool:
    """Whether a reference is a number or an expression with one, not words."""
    return bool(answer and len(answer) < _MAX_VALUE_CHARS and re.search(r"\d", answer))


def _yes_no_questions(text: str) -> tuple[bool, bool]:
    """(whether there is a yes/no question, whether nothing else is asked)."""
    parts = sentences(text)
    yes_no = [one for one in parts if asks_yes_no(one)]
    if not yes_no:
        return False, False
    others = [one for one in parts if one not in yes_no and starts_task(one, strict=True)]
    return True, not others and not re.search(
        r"\bhow (?:many|much)\b|\bif (?:so|not|yes|it (?:does|is|exists)|such)\b", text, re.IGNORECASE
    )


def _clearly_asks(text: str) -> bool:
    """Whether one thing is asked in so many words."""
    return text.count("?") < 2 and (asks(text) or starts_task(text) or bool(_COMPLETES.search(text)))
