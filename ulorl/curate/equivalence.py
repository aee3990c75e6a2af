"""Are two short references the same? By their spelling, else by the verifier's rules (no algebra system).

Invariant: symmetric, and undecided counts as not the same. Microseconds for a pair; the verifier is imported when the
first pair differs in spelling.
"""

from __future__ import annotations

from functools import lru_cache

from ulorl.curate.answers import same_text
from ulorl.recipe import VerifyRecipe


def same_answer(left: str, right: str) -> bool:
    """Whether ``left`` and ``right`` are the same answer."""
    return left == right or same_text(left, right) or _equal_by_rules(*sorted((left, right)))


@lru_cache(maxsize=1 << 12)
def _equal_by_rules(left: str, right: str) -> bool:
    from ulorl.verify.policy import policy_of
    from ulorl.verify.tiers import RULES, decide, read_answer

    policy = policy_of(VerifyRecipe())
    one, other = read_answer(left), read_answer(right)
    return any(decide(RULES, *pair, policy)[1].relation == "equal" for pair in ((one, other), (other, one)))
