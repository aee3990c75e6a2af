"""Accuracy, false positives, false negatives and throughput of verdicts, counted one at a time.

Acceptance is compared with the label: undecided is not accepted, and counted apart with its reason.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ulorl.verify.verdict import Verdict


@dataclass
class Rates:
    """Counts so far; ``seconds`` is the time spent judging."""

    n: int = 0
    seconds: float = 0.0
    accepted: int = 0
    rewards: float = 0.0
    equal: int = 0
    equal_accepted: int = 0
    unequal: int = 0
    unequal_accepted: int = 0
    by_rule: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, verdict: Verdict, label: bool | None) -> None:
        accepted = verdict.equivalent is True
        self.n += 1
        self.accepted += accepted
        self.rewards += verdict.reward
        self.by_rule[verdict.rule] += 1
        if verdict.equivalent is None:
            self.reasons[verdict.reason] += 1
        if label is True:
            self.equal += 1
            self.equal_accepted += accepted
        elif label is False:
            self.unequal += 1
            self.unequal_accepted += accepted

    def summary(self) -> dict[str, Any]:
        """``n``, ``labelled``, ``accepted`` (share of all), ``reward`` (mean), ``accuracy`` (share of the labelled
        whose acceptance agrees with the label), ``false_positive_rate`` (accepted among those labelled unequal),
        ``false_negative_rate`` (not accepted among those labelled equal), ``undecided``, ``undecided_reasons``,
        ``pairs_per_second`` and ``by_rule`` (counts). Rates are None where nothing is labelled so."""
        labelled = self.equal + self.unequal
        right = self.equal_accepted + self.unequal - self.unequal_accepted
        return {
            "n": self.n,
            "labelled": labelled,
            "accepted": _share(self.accepted, self.n),
            "reward": _share(self.rewards, self.n),
            "accuracy": _share(right, labelled),
            "false_positive_rate": _share(self.unequal_accepted, self.unequal),
            "false_negative_rate": _share(self.equal - self.equal_accepted, self.equal),
            "undecided": sum(self.reasons.values()),
            "undecided_reasons": dict(self.reasons.most_common()),
            "pairs_per_second": self.n / self.seconds if self.seconds > 0 else 0.0,
            "by_rule": dict(self.by_rule.most_common()),
        }


def _share(count: float, total: int) -> float | None:
    return count / total if total else None
