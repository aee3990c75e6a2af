"""The tiers of the cascade that need neither a computer algebra system nor a model.

A tier maps (reference, answer, settings) to equal, different or undecided; only undecided goes down to the
next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ulorl.verify.algebra import Unsupported
from ulorl.verify.answers import other_reading, parse_answer
from ulorl.verify.compare import compare
from ulorl.verify.normalise import normalise
from ulorl.verify.outcome import EQUAL, Outcome, undecided
from ulorl.verify.policy import Policy
from ulorl.verify.values import Listing, Scalar, Value

MAX_TEXT = 20_000


@dataclass(frozen=True)
class Answer:
    """An answer as written, normalised, and parsed; ``value`` is None outside the grammar (``problem``)."""

    text: str
    normal: str
    value: Value | None
    problem: str


def read_answer(text: str) -> Answer:
    """Normalises and parses; never raises."""
    if len(text) > MAX_TEXT:
        return Answer(text, "", None, "answer too long")
    normal = normalise(text)
    try:
        return Answer(text, normal, parse_answer(normal), "")
    except Unsupported as error:
        return Answer(text, normal, None, str(error))


@dataclass(frozen=True)
class Tier:
    """``name`` is the rule that verdicts report."""

    name: str
    compare: Callable[[Answer, Answer, Policy], Outcome]


def exact(reference: Answer, answer: Answer, policy: Policy) -> Outcome:
    """The same normalised text."""
    if reference.normal and reference.normal == answer.normal:
        return EQUAL
    return undecided("other text")


def numeric(reference: Answer, answer: Answer, policy: Policy) -> Outcome:
    """Two rational numbers."""
    a, b = reference.value, answer.value
    if not (isinstance(a, Scalar) and isinstance(b, Scalar)):
        return undecided("not two numbers")
    if a.expression.rational() is None or b.expression.rational() is None:
        return undecided("not two rational numbers")
    return compare(a, b, policy)


def typed(reference: Answer, answer: Answer, policy: Policy) -> Outcome:
    """Two parsed answers of any kind."""
    a, b = reference.value, answer.value
    if a is None or b is None:
        side, problem = ("reference", reference.problem) if a is None else ("answer", answer.problem)
        return undecided(f"unparsable {side}: {problem}")
    if isinstance(a, Listing) and (listing := other_reading(answer.normal)) is not None:
        b = listing
    elif isinstance(b, Listing) and (listing := other_reading(reference.normal)) is not None:
        a = listing
    return compare(a, b, policy)


@dataclass(frozen=True)
class Pair:
    """What the batched tiers judge: two answers, how, and the problem they belong to where it is known."""

    reference: Answer
    answer: Answer
    policy: Policy
    problem: str | None = None


class BatchTier(Protocol):
    """A tier for what `RULES` leave undecided; ``name`` is the rule that verdicts report."""

    name: str

    def decide(self, pairs: Sequence[Pair]) -> list[Outcome]:
        """One outcome a pair, in order; never raises for what a pair contains. Safe from any thread."""
        ...

    def close(self) -> None:
        """Ends worker processes and frees models."""
        ...


RULES: tuple[Tier, ...] = (Tier("exact", exact), Tier("numeric", numeric), Tier("typed", typed))


def decide(tiers: tuple[Tier, ...], reference: Answer, answer: Answer, policy: Policy) -> tuple[str, Outcome]:
    """The first decision of ``tiers`` and the name of the tier, or ("undecided", the last tier's reason)."""
    outcome = undecided("no tier")
    for tier in tiers:
        outcome = tier.compare(reference, answer, policy)
        if outcome.relation != "undecided":
            return tier.name, outcome
    return "undecided", outcome
