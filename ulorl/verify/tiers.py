"""The tiers of the cascade that need neither a computer algebra system nor a model.

A tier maps (reference, answer, settings) to equal, different or undecided; only undecided goes down to the
next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ulorl.verify.comparison.compare import compare
from ulorl.verify.exact.algebra import Unsupported
from ulorl.verify.grammar.answers import other_reading, parse_answer
from ulorl.verify.grammar.normalise import normalise
from ulorl.verify.grammar.values import Listing, Scalar, Value
from ulorl.verify.outcome import EQUAL, Outcome, undecided
from ulorl.verify.policy import Policy

MAX_TEXT = 20_000
FAULT = "a fault of the verifier:"
"""How the reason begins where our own code failed; nothing is known to do this."""


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
    except Exception as error:  # as in `decide`
        return Answer(text, normal, None, f"{FAULT} {type(error).__name__}")


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
        try:
            outcome = tier.compare(reference, answer, policy)
        except Exception as error:  # a fault of ours must not end a training run
            return "undecided", undecided(f"{FAULT} {type(error).__name__}")
        if outcome.relation != "undecided":
            return outcome.rule or tier.name, outcome
    return "undecided", outcome
