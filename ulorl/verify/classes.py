"""Groups equivalent answers, for majority votes. Cost: at most MAX_CLASSES comparisons an answer."""

from __future__ import annotations

from collections.abc import Sequence

from ulorl.recipe import VerifyRecipe
from ulorl.verify.policy import policy_of
from ulorl.verify.tiers import RULES, Answer, decide, read_answer

MAX_CLASSES = 64


def equivalence_classes(answers: Sequence[str | None], config: VerifyRecipe) -> list[int]:
    """Index of the class of each answer, counted from 0 in order of first appearance; -1 for None.

    An answer joins the first class whose first member it equals. Beyond MAX_CLASSES classes only equal
    normalised text joins.
    """
    representatives: list[Answer] = []
    by_text: dict[str, int] = {}
    classes: list[int] = []
    policy = policy_of(config)
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
    return classes
