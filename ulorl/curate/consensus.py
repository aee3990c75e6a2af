"""Do several models agree with each other, and with the reference?

Answers to one problem fall into classes of equivalent ones. A model votes for the class that at least
``sample_share`` of its samples state; there is a consensus where at least ``min_models`` models, and at least
``model_share`` of those asked, vote for the same class. Models share errors, so against a reference it counts only
where at most ``max_for_reference`` of them vote for the reference.

Invariants:
- a reference is wrong only where the verifier finds it *different* from every spelling of the models' answer that it
  was asked about; one equal spelling confirms it, anything else is undecided;
- a comparison that is undecided is never taken for a disagreement: where it alone stands between the models and a
  consensus, the outcome is undecided too;
- the outcome does not depend on the order of models or samples, nor on the other problems of a call.

Does not ask models (``votes``), read files (``earlier``) or drop rows (``references``).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, Protocol

from ulorl.curate.ballots import Ballots, Tally
from ulorl.problem import Problem
from ulorl.recipe import ConsensusRecipe
from ulorl.verify.verdict import Item, Verdict

Outcome = Literal["confirmed", "wrong", "undecided", "split", "few"]
"""The models agree on the reference; on something else; a comparison is undecided; they do not agree; too few were
asked."""
MAX_CLASSES = 6
"""Classes of a problem that are put to the verifier, those with the largest share of the samples: no other can win."""
_SHOWN = 40

Classes = Callable[[Sequence[str]], list[int]]
"""Index of the class of each answer, by fast rules."""


class AnswerVerifier(Protocol):
    """What is needed of ``ulorl.verify.Verifier``."""

    def verify(self, items: list[Item]) -> list[Verdict]: ...


@dataclass(frozen=True)
class Vote:
    """One model's answers to one problem: ``agreeing`` of its ``samples`` state ``answer``, None for no vote."""

    model: str
    answer: str | None
    agreeing: int
    samples: int
    for_reference: bool | None
    """Whether ``answer`` is equivalent to the reference; None where undecided or there is no vote."""


@dataclass(frozen=True)
class Finding:
    """What the models say about one reference."""

    outcome: Outcome
    votes: tuple[Vote, ...]
    answer: str | None = None
    """The answer agreed on."""

    @property
    def share_for_reference(self) -> float | None:
        """Share of the models asked that vote for the reference; None where that is not known."""
        if self.outcome in ("few", "undecided"):
            return None
        return sum(vote.for_reference is True for vote in self.votes) / len(self.votes)

    def told(self) -> str:
        """The votes for people."""
        listed = ", ".join(
            f"{vote.model} {'no vote' if vote.answer is None else repr(vote.answer[:_SHOWN])}"
            + f" ({vote.agreeing} of {vote.samples})"
            for vote in self.votes
        )
        agreeing = sum(vote.answer == self.answer for vote in self.votes) if self.answer is not None else 0
        head = f"{agreeing} of {len(self.votes)} models answer {self.answer[:_SHOWN]!r}: " if self.answer else ""
        return head + listed


class Consensus:
    """Findings about problems, from the answers that there are."""

    def __init__(self, ballots: Ballots, verifier: AnswerVerifier, classes: Classes, settings: ConsensusRecipe) -> None:
        self._ballots, self._verifier, self._classes, self._settings = ballots, verifier, classes, settings

    def findings(self, problems: Sequence[Problem]) -> dict[str, Finding]:
        """Problem id -> finding, for the problems that a model was asked about."""
        cases = [_Case(problem, self._ballots.of(problem), self._classes) for problem in problems]
        asked = [case for case in cases if case.tallies]
        items = [item for case in asked for item in case.questions()]
        verdicts = iter(self._verifier.verify(items) if items else [])
        for case in asked:
            case.hear([next(verdicts).equivalent for _ in case.questions()])
        return {case.problem.id: case.finding(self._settings) for case in asked}


class _Case:
    """One problem, its reference and the classes of its answers."""

    def __init__(self, problem: Problem, tallies: Mapping[str, Tally], classes: Classes) -> None:
        self.problem = problem
        self.tallies = {model: tallies[model] for model in sorted(tallies)}
        weight: defaultdict[str, float] = defaultdict(float)
        for tally in self.tallies.values():
            for text, count in tally.items():
                if text is not None:
                    weight[text] += count / tally.total()
        texts = sorted(weight, key=lambda text: (-weight[text], text))
        self._class = dict(zip(texts, classes(texts), strict=True)) if texts else {}
        total: defaultdict[int, float] = defaultdict(float)
        for text in texts:
            total[self._class[text]] += weight[text]
        first = {number: text for text, number in reversed(self._class.items())}
        largest = sorted(total, key=lambda number: (-total[number], number))[:MAX_CLASSES]
        self._answer = {number: first[number] for number in largest}
        self._pairs = list(combinations(largest, 2))
        self._to_reference: dict[int, bool | None] = {}
        self._joined: dict[int, int] = {}
        self._undecided: list[tuple[int, int]] = []

    def questions(self) -> list[Item]:
        """Each class against the reference, then each pair of classes."""
        text = self.problem.problem
        return [
            *(Item(self.problem.answer, answer, text, is_answer=True) for answer in self._answer.values()),
            *(Item(self._answer[one], self._answer[other], text, is_answer=True) for one, other in self._pairs),
        ]

    def hear(self, verdicts: Sequence[bool | None]) -> None:
        """Take the answers to ``questions``."""
        self._to_reference = dict(zip(self._answer, verdicts, strict=False))
        joined = {number: number for number in self._answer}
        for (one, other), equal in zip(self._pairs, verdicts[len(self._answer) :], strict=True):
            if equal:
                _join(joined, one, other)
            elif equal is None:
                self._undecided.append((one, other))
        self._joined = joined

    def finding(self, settings: ConsensusRecipe) -> Finding:
        votes = self._votes(self._joined, settings)
        shown = tuple(self._shown(model, vote, self._joined) for model, vote in votes.items())
        if len(votes) < settings.min_models:
            return Finding("few", shown)
        winner = _winner(votes, settings)
        if winner is not None:
            outcome = self._against_reference(winner)
            backers = sum(vote.for_reference is True for vote in shown)
            if outcome == "wrong" and backers > settings.max_for_reference * len(votes):
                return Finding("split", shown)
            return Finding(outcome, shown, self._answer[winner])
        loosely = dict(self._joined)
        for one, other in self._undecided:
            _join(loosely, one, other)
        might = _winner(self._votes(loosely, settings), settings)
        return Finding("split" if might is None else "undecided", shown)

    def _votes(self, joined: Mapping[int, int], settings: ConsensusRecipe) -> dict[str, int | None]:
        """Model -> the class it votes for."""
        return {model: self._vote(tally, joined, settings.sample_share) for model, tally in self.tallies.items()}

    def _vote(self, tally: Tally, joined: Mapping[int, int], least: float) -> int | None:
        counts = self._counts(tally, joined).most_common(2)
        if not counts or counts[0][1] < least * tally.total() or (len(counts) > 1 and counts[0][1] == counts[1][1]):
            return None
        return counts[0][0]

    def _counts(self, tally: Tally, joined: Mapping[int, int]) -> Counter[int]:
        counts: Counter[int] = Counter()
        for text, count in tally.items():
            number = joined.get(self._class[text]) if text is not None else None
            if number is not None:
                counts[number] += count
        return counts

    def _shown(self, model: str, vote: int | None, joined: Mapping[int, int]) -> Vote:
        counts = self._counts(self.tallies[model], joined)
        agreeing = counts[vote] if vote is not None else max(counts.values(), default=0)
        answer = None if vote is None else self._answer[vote]
        relation = None if vote is None else self._against_reference(vote)
        told = {"confirmed": True, "wrong": False}.get(relation or "")
        return Vote(model, answer, agreeing, self.tallies[model].total(), told)

    def _against_reference(self, winner: int) -> Outcome:
        relations = [self._to_reference[number] for number, root in self._joined.items() if root == winner]
        if any(relations):
            return "confirmed"
        return "undecided" if None in relations else "wrong"


def _winner(votes: Mapping[str, int | None], settings: ConsensusRecipe) -> int | None:
    counts = Counter(vote for vote in votes.values() if vote is not None).most_common(2)
    if not counts or (len(counts) > 1 and counts[0][1] == counts[1][1]):
        return None
    number, count = counts[0]
    enough = count >= settings.min_models and count >= settings.model_share * len(votes)
    return number if enough else None


def _join(joined: dict[int, int], one: int, other: int) -> None:
    kept, gone = sorted((joined[one], joined[other]))
    for number, root in joined.items():
        if root == gone:
            joined[number] = kept
