"""Judges whether responses state the reference answer.

Invariants: one verdict an item, in order; nothing a response contains can raise, hang or be executed; a
reference that cannot be read never makes anything equivalent. Verdicts do not depend on the thread, the process
or the other items of a call. No reward is decided here: callers count undecided verdicts apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ulorl.recipe import VerifyRecipe
from ulorl.verify.cases import Case, conclude, has_parts, may_be_reviewed, open_case
from ulorl.verify.extraction.extract import Extraction, extract, given
from ulorl.verify.policy import Policy, policy_of
from ulorl.verify.symbolic.tier import SymbolicTier
from ulorl.verify.tiers import RULES, Answer, BatchTier, Pair, decide, read_answer
from ulorl.verify.verdict import Item, Verdict

if TYPE_CHECKING:
    from ulorl.verify.judge.tier import GenerativeTier, JudgeCounts

BATCH = 4096
"""Items whose parsed answers are in memory at a time."""


class Verifier:
    """The cascade: extraction, the rules item by item, then what they leave undecided as one batch a tier.

        with Verifier(recipe.verify) as verifier:
            verdicts = verifier.verify([Item("27 cm", "so it is \\boxed{0.27 m}")])

    May be called from any thread, and from a forked or spawned process, each of which gets workers of its own.
    Leaving the context, or `close`, ends them; the end of the process does so too.
    """

    def __init__(self, config: VerifyRecipe, tiers: Sequence[BatchTier] | None = None) -> None:
        self._config = config
        self._given = tiers
        self._policy = policy_of(config)
        self._tiers = tuple(_tiers_of(config) if tiers is None else tiers)
        self._judge = _judge_of(config)

    def __reduce__(self) -> tuple[type[Verifier], tuple[Any, ...]]:
        return Verifier, (self._config, self._given)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends worker processes and frees the judge; what would need them is undecided from now on."""
        for tier in self._tiers:
            tier.close()
        if self._judge is not None:
            self._judge.close()

    @property
    def judge_counts(self) -> JudgeCounts | None:
        """What the judge was asked and how often it overturned a rejection; None without a judge."""
        return None if self._judge is None else self._judge.counts

    def verify(self, items: Sequence[Item]) -> list[Verdict]:
        """One verdict an item, in the same order."""
        verdicts: list[Verdict] = []
        rest: Iterator[Item] = iter(items)
        while batch := list(islice(rest, BATCH)):
            verdicts += self._verify_batch(batch)
        return verdicts

    async def verify_async(self, items: Sequence[Item]) -> list[Verdict]:
        """As `verify`, without blocking the event loop."""
        import asyncio

        return await asyncio.to_thread(self.verify, items)

    def check_reference(self, reference: str) -> str | None:
        """Why nothing can be judged against ``reference``; None where it is well formed and equals itself.

        Words and notation that only equal text can match are well formed.
        """
        answer, problem = self.read_reference(reference)
        if problem is not None:
            return problem
        rule, outcome = decide(RULES, answer, answer, self._policy)
        return None if outcome.relation == "equal" else f"does not equal itself ({rule}: {outcome.reason})"

    def read_reference(self, reference: str) -> tuple[Answer, str | None]:
        """The parsed reference, and what makes it unusable, if anything does."""
        answer = reference_answer(reference)
        return answer, _malformed(answer)

    def extraction(self, item: Item, *, parts: bool = False) -> Extraction:
        """The final answers that ``item`` states; several may be ``parts`` where the reference has parts."""
        if not item.is_answer:
            return extract(item.response, last_number=self._config.last_number, parts=parts)
        return given(item.response, parts=parts)

    def _verify_batch(self, items: Sequence[Item]) -> list[Verdict]:
        references: dict[str, tuple[Answer, str | None]] = {}
        cases = []
        for item in items:
            if item.reference not in references:
                references[item.reference] = self.read_reference(item.reference)
            cases.append(self._open(item, *references[item.reference]))
        for tier in (*self._tiers, *([self._judge] if self._judge else [])):
            _descend(cases, tier)
        if self._judge is not None and self._judge.also_rejected:
            _review(cases, self._judge)
        return [conclude(case) for case in cases]

    def _open(self, item: Item, reference: Answer, problem: str | None) -> Case:
        answers = self.extraction(item, parts=has_parts(reference)).answers
        if problem is not None or not answers:
            reason = "no_answer" if problem is None else f"reference: {problem}"
            return Case(verdict=Verdict(None, answers[-1] if answers else None, "undecided", reason))
        return open_case(reference, answers, self._policy_of(item), item.problem)

    def _policy_of(self, item: Item) -> Policy:
        return self._policy if item.policy is None else policy_of(self._config, item.policy)


def reference_answer(reference: str) -> Answer:
    """The parsed answer that a reference states; never raises."""
    solution = reference.rpartition("####")[2].strip()  # GSM8K references are whole solutions
    return read_answer(", ".join(given(solution).answers))


def _tiers_of(config: VerifyRecipe) -> list[BatchTier]:
    return [SymbolicTier(config)] if config.symbolic else []


def _judge_of(config: VerifyRecipe) -> GenerativeTier | None:
    if not config.judge.model:
        return None
    from ulorl.verify.judge.tier import GenerativeTier

    return GenerativeTier.from_config(config)


def _descend(cases: Sequence[Case], tier: BatchTier) -> None:
    """Asks ``tier`` about every undecided pair on which the verdict of its case depends."""
    open_pairs = [
        (case, index)
        for case in cases
        if case.pairs and conclude(case).equivalent is None
        for index, outcome in enumerate(case.outcomes)
        if outcome.relation == "undecided"
    ]
    if not open_pairs:
        return
    outcomes = tier.decide([case.pairs[index] for case, index in open_pairs])
    for (case, index), outcome in zip(open_pairs, outcomes, strict=True):
        case.record(index, tier.name, outcome)


def _review(cases: Sequence[Case], judge: GenerativeTier) -> None:
    """Lets the judge overturn what rules rejected."""
    rejected: list[tuple[Case, Pair]] = [(case, case.pairs[-1]) for case in cases if may_be_reviewed(case)]
    if not rejected:
        return
    outcomes = judge.review([pair for _, pair in rejected])
    for (case, pair), outcome in zip(rejected, outcomes, strict=True):
        if outcome.relation == "equal":
            case.record(case.pairs.index(pair), judge.name, outcome)


def _malformed(answer: Answer) -> str | None:
    """What makes a reference unusable: then not even the same text is accepted."""
    if answer.problem == "answer too long":
        return answer.problem
    if answer.value is None and not any(character.isalnum() for character in answer.normal):
        return "no number, word or symbol in it"
    depth = 0
    for before, character in zip(" " + answer.normal, answer.normal, strict=False):
        depth += {"{": 1, "}": -1}.get(character, 0) if before != "\\" else 0
        if depth < 0:
            break
    return "unbalanced braces" if depth else None
