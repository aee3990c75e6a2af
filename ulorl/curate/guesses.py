"""Judges responses that were asked for a bare answer.

Invariant: a response that states a final answer as responses do is judged by that; of any other, the first line that is
not empty is taken for the answer.
"""

from __future__ import annotations

from dataclasses import replace

from ulorl.sampling import Judge
from ulorl.verify.verdict import Item, Verdict


class BareAnswers:
    """A judge for guesses, around another one."""

    def __init__(self, verifier: Judge) -> None:
        self._verifier = verifier

    def verify(self, items: list[Item]) -> list[Verdict]:
        """One verdict an item, in order."""
        verdicts = self._verifier.verify(items)
        lines = [next((line.strip() for line in item.response.splitlines() if line.strip()), "") for item in items]
        again = [place for place, verdict in enumerate(verdicts) if verdict.answer is None and lines[place]]
        bare = [replace(items[place], response=lines[place], is_answer=True) for place in again]
        for place, verdict in zip(again, self._verifier.verify(bare) if bare else [], strict=True):
            verdicts[place] = verdict
        return verdicts
