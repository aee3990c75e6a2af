"""The tier that asks a computer algebra system, in worker processes, about what the rules leave undecided.

Invariants: this process never imports sympy; only pairs that `worth` finds worth it are sent, so that nearly every
undecided pair costs microseconds; whatever happens to a worker, its pair is undecided with the reason.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, get_args

from ulorl.verify.outcome import Outcome, Relation, undecided
from ulorl.verify.policy import Policy
from ulorl.verify.symbolic.pool import Failure, Reply, WorkerPool
from ulorl.verify.symbolic.process import Limits, worker_command
from ulorl.verify.symbolic.worth import why_not
from ulorl.verify.tiers import Pair

if TYPE_CHECKING:
    from ulorl.recipe import VerifyRecipe

MAX_WORKERS = 2


class SymbolicTier:
    """See the module. Workers start when the first pair is sent, and `close` ends them."""

    name = "symbolic"

    def __init__(self, config: VerifyRecipe) -> None:
        workers = config.symbolic_workers or min(MAX_WORKERS, len(os.sched_getaffinity(0)))
        limits = Limits(workers, config.symbolic_seconds, config.symbolic_memory_mib)
        self._pool = WorkerPool(worker_command("ulorl.verify.symbolic.worker", limits), limits)

    def decide(self, pairs: Sequence[Pair]) -> list[Outcome]:
        """One outcome a pair, in order; equal pairs of texts are compared once."""
        outcomes: list[Outcome | None] = []
        requests: dict[tuple[str, str, Policy], None] = {}
        for pair in pairs:
            reason = why_not(pair.reference, pair.answer)
            outcomes.append(undecided(reason) if reason else None)
            if not reason:
                requests[_key(pair)] = None
        replies = self._pool.run([_request(*key) for key in requests]) if requests else []
        decided = {key: _outcome(reply) for key, reply in zip(requests, replies, strict=True)}
        return [
            decided[_key(pair)] if outcome is None else outcome for pair, outcome in zip(pairs, outcomes, strict=True)
        ]

    def warm_up(self) -> None:
        """Starts the workers now."""
        self._pool.warm_up()

    def close(self) -> None:
        """Ends the workers."""
        self._pool.close()


def _key(pair: Pair) -> tuple[str, str, Policy]:
    return pair.reference.text, pair.answer.text, pair.policy


def _request(reference: str, answer: str, policy: Policy) -> dict[str, Any]:
    settings = asdict(policy) | {"relative_tolerance": str(policy.relative_tolerance)}
    return {"reference": reference, "answer": answer, "policy": settings}


def _outcome(reply: Reply) -> Outcome:
    if isinstance(reply, Failure):
        return undecided(reply.reason)
    for relation in get_args(Relation):
        if relation == reply.get("relation"):
            return Outcome(relation, str(reply.get("reason", ""))[:300])
    return undecided("unreadable reply")
