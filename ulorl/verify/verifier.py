"""Judges whether responses state the reference answer.

Invariants: one verdict an item, in order; nothing a response contains can raise, hang or be executed; a
reference that cannot be read never makes anything equivalent. Instances are immutable and have no global
state, so they may be used from any thread or process. No reward is decided here: callers count undecided
verdicts apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from ulorl.recipe import VerifyRecipe
from ulorl.verify.extract import Extraction, extract
from ulorl.verify.outcome import Outcome
from ulorl.verify.policy import Policy, policy_of
from ulorl.verify.tiers import RULES, Answer, Tier, decide, read_answer
from ulorl.verify.values import Group, Listing, Union
from ulorl.verify.verdict import Item, Verdict

MAX_COMPARED_BOXES = 8


class Verifier:
    """The cascade: extraction, then the tiers in order until one decides."""

    def __init__(self, config: VerifyRecipe, tiers: tuple[Tier, ...] = RULES) -> None:
        self._config = config
        self._tiers = tiers
        self._policy = policy_of(config)

    def verify(self, items: Sequence[Item]) -> list[Verdict]:
        """One verdict an item, in the same order."""
        references: dict[str, tuple[Answer, str | None]] = {}
        verdicts = []
        for item in items:
            if item.reference not in references:
                references[item.reference] = self.read_reference(item.reference)
            verdicts.append(self._judge(item, *references[item.reference]))
        return verdicts

    def check_reference(self, reference: str) -> str | None:
        """Why nothing can be judged against ``reference``; None where it is well formed and equals itself.

        Words and notation that only equal text can match are well formed.
        """
        answer, problem = self.read_reference(reference)
        if problem is not None:
            return problem
        rule, outcome = decide(self._tiers, answer, answer, self._policy)
        return None if outcome.relation == "equal" else f"does not equal itself ({rule}: {outcome.reason})"

    def read_reference(self, reference: str) -> tuple[Answer, str | None]:
        """The parsed reference, and what makes it unusable, if anything does."""
        solution = reference.rpartition("####")[2].strip()  # GSM8K references are whole solutions
        answer = read_answer(", ".join(_given(solution).answers))
        return answer, _malformed(answer)

    def _judge(self, item: Item, reference: Answer, problem: str | None) -> Verdict:
        extraction = self.extraction(item)
        answers = extraction.answers
        policy = self._policy if item.policy is None else policy_of(self._config, item.policy)
        if problem is not None:
            return Verdict(None, answers[-1] if answers else None, "undecided", f"reference: {problem}")
        if not answers:
            return Verdict(None, None, "undecided", "no_answer")
        if len(answers) == 1:
            return self._verdict(reference, answers[0], policy)
        return self._judge_several(reference, answers, policy)

    def extraction(self, item: Item) -> Extraction:
        """The final answers that ``item`` states."""
        if not item.is_answer:
            return extract(item.response, last_number=self._config.last_number)
        return _given(item.response)

    def _verdict(self, reference: Answer, text: str, policy: Policy) -> Verdict:
        rule, outcome = decide(self._tiers, reference, read_answer(text), policy)
        return _as_verdict(text, rule, outcome)

    def _judge_several(self, reference: Answer, answers: tuple[str, ...], policy: Policy) -> Verdict:
        """Several boxes: parts of a list where the reference is one, otherwise all must agree with it."""
        if isinstance(reference.value, Listing | Union) or (
            isinstance(reference.value, Group) and reference.value.opening == "{"
        ):
            for text in (answers[-1], ", ".join(answers)):
                verdict = self._verdict(reference, text, policy)
                if verdict.equivalent:
                    return verdict
            return verdict
        if len(answers) > MAX_COMPARED_BOXES:
            return Verdict(False, answers[-1], "hedge", f"{len(answers)} different boxes")
        verdicts = [self._verdict(reference, text, policy) for text in answers]
        relations = {verdict.equivalent for verdict in verdicts}
        if len(relations) == 1:
            return verdicts[-1]
        if False in relations:
            return Verdict(False, answers[-1], "hedge", f"{len(answers)} different boxes")
        return Verdict(None, answers[-1], "undecided", "several boxes, not all understood")


def _given(text: str) -> Extraction:
    """A bare answer: what it says it is ("the answer is 5", a box), else the whole text."""
    text = text.strip()
    if any(mark in text for mark in ("boxed", "####", "nswer", "答案")):
        stated = extract(text)
        if stated.answers and stated.how != "bold":
            return stated
    return Extraction((text,) if text else (), "given")


def _as_verdict(text: str, rule: str, outcome: Outcome) -> Verdict:
    equivalent = {"equal": True, "different": False, "undecided": None}[outcome.relation]
    return Verdict(equivalent, text, rule, outcome.reason)


def _malformed(answer: Answer) -> str | None:
    """What makes a reference unusable: then not even the same text is accepted."""
    if answer.problem == "answer too long":
        return answer.problem
    if not any(character.isalnum() for character in answer.normal):
        return "no number, word or symbol in it"
    depth = 0
    for before, character in zip(" " + answer.normal, answer.normal, strict=False):
        depth += {"{": 1, "}": -1}.get(character, 0) if before != "\\" else 0
        if depth < 0:
            break
    return "unbalanced braces" if depth else None
