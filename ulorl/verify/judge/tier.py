"""The last tier: a language model compares what rules and symbolic algebra leave undecided.

    tier = GenerativeTier.from_config(config)     # cheap: weights are loaded at the first question that is not cached
    outcomes = tier.decide(pairs)                 # pairs that nothing has decided
    outcomes = tier.review(pairs)                 # pairs that rules rejected; only where tier.also_rejected
    tier.counts.overturned                        # rejections it turned into "equal" so far

Invariants: one outcome a pair, in order; equal only where the model was asked, answered, and is surer than
``judge.accept``; a pair that the gate refuses, a question that does not fit, and an engine that fails are undecided,
each with its reason. In ``review`` anything but equal leaves the rejection as it was. Safe from any thread.

Training holds the policy in its own engine; the judge opens a second one (``judge.engine``, plain transformers unless
set), in the process that judges and only when it is first needed.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ulorl.recipe import JudgeRecipe, VerifyRecipe
from ulorl.verify.judge.ask import Judge, open_judge_engine
from ulorl.verify.judge.cache import ScoreCache, default_cache
from ulorl.verify.judge.gate import refusal
from ulorl.verify.judge.prompts import Question, shown
from ulorl.verify.outcome import DIFFERENT, EQUAL, Outcome, undecided
from ulorl.verify.tiers import Pair

GATED = "judge not asked"
UNSURE = "judge unsure"
FAILED = "judge failed"


@dataclass
class JudgeCounts:
    """What came in and what came out since the tier was made."""

    undecided: int = 0
    """Pairs that no rule decided."""
    accepted: int = 0
    """Of these, how many it called equal."""
    rejected: int = 0
    """Of these, how many it called different."""
    reviewed: int = 0
    """Pairs that rules rejected."""
    overturned: int = 0
    """Of these, how many it called equal."""
    gated: int = 0
    """Pairs of either kind that never reached the model."""
    failed: int = 0
    """Pairs of either kind to which the engine gave no answer."""
    reasons: dict[str, int] = field(default_factory=dict)
    """Gated pairs by reason."""

    @property
    def overturn_rate(self) -> float | None:
        """Share of reviewed rejections that it overturned: the live false-negative rate of the rules."""
        return self.overturned / self.reviewed if self.reviewed else None

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self) | {"overturn_rate": self.overturn_rate}


class GenerativeTier:
    """See the module. Construct it with `from_config`, or from a `Judge`."""

    name = "generative"

    def __init__(self, judge: Judge, config: JudgeRecipe) -> None:
        self._judge = judge
        self._config = config
        self._lock = threading.Lock()
        self.counts = JudgeCounts()
        self.also_rejected = config.ask == "also_rejected"
        """Whether rejected pairs are to be reviewed."""

    @classmethod
    def from_config(cls, config: VerifyRecipe) -> GenerativeTier:
        """The judge of a recipe. Raises UserError where there is no such model, or it is no judge."""
        from ulorl.engine.prompts import resolve_model

        judge = config.judge
        assert judge.model, "no judge in this recipe: do not make its tier"
        cache = ScoreCache(Path(judge.cache).expanduser() if judge.cache else default_cache())
        return cls(
            Judge(resolve_model(judge.model, setting="verify.judge.model"), judge, cache, open_judge_engine(judge)),
            judge,
        )

    def decide(self, pairs: Sequence[Pair]) -> list[Outcome]:
        """One outcome a pair that nothing has decided."""
        outcomes = self._outcomes(pairs)
        with self._lock:
            self.counts.undecided += len(pairs)
            self.counts.accepted += outcomes.count(EQUAL)
            self.counts.rejected += outcomes.count(DIFFERENT)
        return outcomes

    def review(self, pairs: Sequence[Pair]) -> list[Outcome]:
        """One outcome a pair that rules rejected; counts how many it overturns."""
        outcomes = self._outcomes(pairs)
        with self._lock:
            self.counts.reviewed += len(pairs)
            self.counts.overturned += outcomes.count(EQUAL)
        return outcomes

    def close(self) -> None:
        """Frees the model. Idempotent."""
        self._judge.close()

    def _outcomes(self, pairs: Sequence[Pair]) -> list[Outcome]:
        outcomes: list[Outcome | None] = []
        refused: dict[str, int] = {}
        for pair in pairs:
            reason = refusal(pair.reference, pair.answer, self._config.max_answer_chars)
            outcomes.append(None if reason is None else undecided(f"{GATED}: {reason}"))
            if reason is not None:
                refused[reason] = refused.get(reason, 0) + 1
        asked = [pair for pair, outcome in zip(pairs, outcomes, strict=True) if outcome is None]
        judged = iter([self._outcome(p) for p in self._judge.probabilities([_question(pair) for pair in asked])])
        result = [next(judged) if outcome is None else outcome for outcome in outcomes]
        with self._lock:
            self.counts.gated += sum(refused.values())
            self.counts.failed += sum(outcome.reason.startswith(FAILED) for outcome in result)
            for name, count in refused.items():
                self.counts.reasons[name] = self.counts.reasons.get(name, 0) + count
        return result

    def _outcome(self, probability: float | None) -> Outcome:
        if probability is None:
            return undecided(f"{FAILED}: {self._judge.failure or 'the question is too long'}")
        if probability >= self._config.accept:
            return EQUAL
        if probability <= self._config.reject:
            return DIFFERENT
        return undecided(UNSURE)


def _question(pair: Pair) -> Question:
    return Question(shown(pair.reference), shown(pair.answer), pair.problem or "")
