"""Groups equivalent answers, for majority votes.

Cost: at most MAX_CLASSES comparisons by the rules an answer; with a verifier one batch of its symbolic tier for each
round of merging. The result depends on the order of the answers only in how classes are numbered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ulorl.recipe import VerifyRecipe
from ulorl.verify.policy import Policy, policy_of
from ulorl.verify.symbolic.tier import SymbolicTier
from ulorl.verify.tiers import RULES, Answer, Pair, decide, read_answer

MAX_CLASSES = 64
MAX_SYMBOLIC_CLASSES = 16
"""Classes among which the symbolic tier looks for equal ones: the most frequent, since only they can win a vote."""


def equivalence_classes(
    answers: Sequence[str | None], config: VerifyRecipe, symbolic: SymbolicTier | None = None
) -> list[int]:
    """Index of the class of each answer, counted from 0 in order of first appearance; -1 for None.

    An answer joins the first class whose first member it equals, by the policies of ``config`` but for rounding: no
    vote is a reference, and what rounds to the same decimal is not equal among itself. Beyond MAX_CLASSES classes
    only equal normalised text joins. With ``symbolic``, classes about which the rules are undecided are merged where
    it finds them equal.
    """
    representatives: list[Answer] = []
    by_text: dict[str, int] = {}
    classes: list[int] = []
    policy = replace(policy_of(config), rounding="never")
    for text in answers:
        if text is None:
            classes.append(-1)
            continue
        answer = read_answer(text)
        key = answer.normal or text
        if key not in by_text:
            by_text[key] = next(
                (
                    index
                    for index, other in enumerate(representatives[:MAX_CLASSES])
                    if decide(RULES, other, answer, policy)[1].relation == "equal"
                ),
                len(representatives),
            )
            if by_text[key] == len(representatives):
                representatives.append(answer)
        classes.append(by_text[key])
    if symbolic is None or len(representatives) < 2:
        return classes
    return _merged(classes, representatives, policy, symbolic)


def _merged(classes: list[int], representatives: list[Answer], policy: Policy, symbolic: SymbolicTier) -> list[int]:
    counts = [classes.count(index) for index in range(len(representatives))]
    largest = sorted(sorted(range(len(counts)), key=lambda index: -counts[index])[:MAX_SYMBOLIC_CLASSES])
    open_pairs = [
        (low, high)
        for position, low in enumerate(largest)
        for high in largest[position + 1 :]
        if decide(RULES, representatives[low], representatives[high], policy)[1].relation == "undecided"
    ]
    outcomes = symbolic.decide([Pair(representatives[low], representatives[high], policy) for low, high in open_pairs])
    joined = list(range(len(representatives)))
    for (low, high), outcome in zip(open_pairs, outcomes, strict=True):
        if outcome.relation == "equal":
            joined = [joined[low] if index == joined[high] else index for index in joined]
    numbers: dict[int, int] = {}
    return [-1 if index < 0 else numbers.setdefault(joined[index], len(numbers)) for index in classes]
