"""What one step's update is counted in, over its micro-batches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import torch

from ulorl.train.batch import Batch
from ulorl.train.objective import PolicyLoss

OLDEST = 3
"""Tokens sampled by a policy this many updates old or more are counted together."""
AGES = ("age_0_share", "age_1_share", "age_2_share", "age_3_or_more_share")
MISMATCH_NATS = 0.1
"""A token counts as off when engine and trainer differ by more."""

_SAME = {"version", "updates", "epochs", "lr", "grad_norm"}
_LARGEST = {"mismatch_max"}


@dataclass
class UpdateTally:
    """Sums over micro-batches; ``metrics`` turns them into shares and means.

    ``updates`` are those that are made: fewer than the recipe's where there are fewer trajectories than minibatches.

    Mismatch between the engine's log-probs and the trainer's is taken before any mask, over the tokens that
    the policy of this very step sampled (older tokens differ because the policy does); without any it is not defined.
    """

    version: int
    updates: int
    epochs: int
    loss: float = 0.0
    clipped: int = 0
    kl: float = 0.0
    tokens: int = 0
    samples: int = 0
    entropy: float = 0.0
    masked: int = 0
    mastered: int = 0
    on_policy: int = 0
    by_age: list[int] = field(default_factory=lambda: [0] * (OLDEST + 1))
    mismatch_sum: float = 0.0
    mismatch_max: float = 0.0
    mismatch_off: int = 0
    lr: float = math.nan
    grad_norm: float = math.nan

    def add_loss(self, result: PolicyLoss) -> None:
        self.loss += float(result.loss.detach()) / self.updates
        self.clipped += int(result.clipped)
        self.kl += float(result.kl)

    def add_batch(
        self,
        batch: Batch,
        logprobs_BT: torch.Tensor,
        entropy_BT: torch.Tensor,
        masked_BT: torch.Tensor,
        mastered_BT: torch.Tensor,
    ) -> None:
        """Count one micro-batch with the log-probs and entropies from before the update."""
        self.tokens += int(batch.response_BT.sum())
        self.samples += int(batch.response_BT.any(dim=1).sum())
        self.entropy += float(entropy_BT.sum())
        self.masked += int(masked_BT.sum())
        self.mastered += int(mastered_BT.sum())
        ages_N = (self.version - batch.versions_BT[batch.response_BT]).clamp(0, OLDEST)
        self.by_age = [a + b for a, b in zip(self.by_age, ages_N.bincount(minlength=OLDEST + 1).tolist(), strict=True)]
        current_BT = batch.response_BT & (batch.versions_BT == self.version)
        difference_N = (logprobs_BT - batch.behaviour_logprobs_BT)[current_BT].abs()
        self.on_policy += difference_N.numel()
        if difference_N.numel():
            self.mismatch_sum += float(difference_N.sum())
            self.mismatch_max = max(self.mismatch_max, float(difference_N.max()))
            self.mismatch_off += int((difference_N > MISMATCH_NATS).sum())

    @classmethod
    def merged(cls, tallies: Sequence[UpdateTally]) -> UpdateTally:
        """The tally of all ranks together: sums, but for what is the same on all or the largest of all."""
        values = {}
        for name in (one.name for one in fields(cls)):
            found = [getattr(tally, name) for tally in tallies]
            if name in _SAME:
                values[name] = found[0]
            elif name in _LARGEST:
                values[name] = max(found)
            else:
                values[name] = [sum(row) for row in zip(*found, strict=True)] if name == "by_age" else sum(found)
        return cls(**values)

    def metrics(self) -> dict[str, float]:
        """The step's values under the names of ``ulorl.report.metrics``."""
        mismatch = (
            {
                "mismatch/mean": self.mismatch_sum / self.on_policy,
                "mismatch/max": self.mismatch_max,
                "mismatch/share_above_0.1": self.mismatch_off / self.on_policy,
            }
            if self.on_policy
            else {}
        )
        return {
            "objective/loss": self.loss,
            "objective/grad_norm": self.grad_norm,
            "objective/lr": self.lr,
            "objective/samples": self.samples,
            "objective/tokens": self.tokens,
            "objective/clipped_share": self.clipped / (self.tokens * self.epochs),
            "objective/kl": self.kl / (self.tokens * self.epochs),
            "objective/masked_share": self.masked / self.tokens,
            "objective/mastered_share": self.mastered / self.tokens,
            **{f"segment/{name}": count / self.tokens for name, count in zip(AGES, self.by_age, strict=True)},
            "entropy/mean": self.entropy / self.tokens,
            **mismatch,
        }
