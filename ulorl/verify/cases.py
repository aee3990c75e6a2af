"""One item on its way through the tiers: the pairs its verdict depends on, and what is known about each.

Invariants: a case with pairs has one outcome and one rule a pair; `conclude` is pure, so a verdict depends only
on the outcomes and not on the order in which the tiers gave them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ulorl.verify.grammar.values import Group, Listing, SetOperation
from ulorl.verify.outcome import Outcome
from ulorl.verify.policy import Policy
from ulorl.verify.tiers import RULES, Answer, Pair, decide, read_answer
from ulorl.verify.verdict import Verdict

MAX_COMPARED_BOXES = 8


@dataclass
class Case:
    """``verdict`` is given where there is nothing to compare; otherwise it follows from the pairs.

    ``needs`` says which pairs: ``any`` one equal pair is enough (ways to read the boxes of a list), or ``all``
    pairs must agree (several boxes).
    """

    verdict: Verdict | None = None
    needs: Literal["any", "all"] = "all"
    pairs: list[Pair] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)

    def record(self, index: int, tier: str, outcome: Outcome) -> None:
        """What ``tier`` found out about a pair; an earlier tier's reason stays where it found nothing."""
        if outcome.relation != "undecided":
            self.outcomes[index], self.rules[index] = outcome, outcome.rule or tier
        elif outcome.reason in _TELLING or outcome.reason.startswith("judge failed"):
            self.outcomes[index] = outcome


_TELLING = frozenset({"timed out", "out of memory", "worker died", "output flood"})
"""Reasons that replace those of the rules."""


def open_case(reference: Answer, answers: tuple[str, ...], policy: Policy, problem: str | None) -> Case:
    """The pairs to compare for the ``answers`` that an item states, judged by the rules."""
    if len(answers) == 1:
        return _judged(Case(), reference, answers, policy, problem)
    if has_parts(reference):
        return _judged(Case(needs="any"), reference, _readings(reference, answers), policy, problem)
    if len(answers) > MAX_COMPARED_BOXES:
        return Case(verdict=Verdict(False, answers[-1], "hedge", f"{len(answers)} different boxes"))
    return _judged(Case(), reference, answers, policy, problem)


def has_parts(reference: Answer) -> bool:
    """Whether several boxes may be the parts of ``reference``: a list, a set, a union, a tuple."""
    value = reference.value
    return isinstance(value, Listing | SetOperation) or (isinstance(value, Group) and value.opening in "{(")


def _readings(reference: Answer, answers: tuple[str, ...]) -> tuple[str, ...]:
    """The last box alone, and all boxes together: each once, and as often as written ("-2 and -2")."""
    if isinstance(reference.value, Group) and reference.value.opening == "(":
        return answers[-1], f"({', '.join(answers)})"
    return tuple(dict.fromkeys((answers[-1], ", ".join(dict.fromkeys(answers)), ", ".join(answers))))


def _judged(case: Case, reference: Answer, texts: tuple[str, ...], policy: Policy, problem: str | None) -> Case:
    for text in texts:
        pair = Pair(reference, read_answer(text), policy, problem)
        rule, outcome = decide(RULES, reference, pair.answer, policy)
        case.pairs.append(pair)
        case.rules.append(rule)
        case.outcomes.append(outcome)
    return case


_EQUIVALENT = {"equal": True, "different": False, "undecided": None}


def conclude(case: Case) -> Verdict:
    """The verdict that the outcomes so far make."""
    if case.verdict is not None:
        return case.verdict
    verdicts = [
        Verdict(_EQUIVALENT[outcome.relation], pair.answer.text, rule, outcome.reason)
        for pair, outcome, rule in zip(case.pairs, case.outcomes, case.rules, strict=True)
    ]
    relations = {verdict.equivalent for verdict in verdicts}
    if case.needs == "any":
        return next((verdict for verdict in verdicts if verdict.equivalent), verdicts[-1])
    if len(relations) == 1:
        return verdicts[-1]
    if False in relations:
        return Verdict(False, verdicts[-1].answer, "hedge", f"{len(verdicts)} different boxes")
    return Verdict(None, verdicts[-1].answer, "undecided", "several boxes, not all understood")


def may_be_reviewed(case: Case) -> bool:
    """Whether it was rejected by comparison, not because it hedges."""
    return bool(case.pairs) and (len(case.pairs) == 1 or case.needs == "any") and conclude(case).equivalent is False
