"""When validation stalls, which validation is the best, and when the reference is due for a reset. Pure.

Invariants: of equal validations the earlier is the best; what counts towards a stall is counted from the latest reset,
whatever its reason was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ulorl.recipe_train import ObjectiveRecipe


@dataclass(frozen=True)
class Progress:
    """The validations of a run so far. A checkpoint holds it.

    ``best`` is the highest average of a trained policy and ``best_step`` its step (0: none yet; the start model's
    average, of step 0, is never the best). ``level`` is what an improvement is measured from, ``since`` the
    validations without one. ``latest`` is the last average.
    """

    latest: float | None = None
    best: float | None = None
    best_step: int = 0
    level: float | None = None
    since: int = 0

    def __str__(self) -> str:
        return (
            "no validation yet"
            if self.best is None
            else f"best validation {self.best:.4f}, after step {self.best_step}"
        )

    def seen(self, step: int, average: float, min_delta: float) -> Progress:
        """With the validation after ``step``; one that gains more than ``min_delta`` is an improvement."""
        improved = self.level is None or average > self.level + min_delta
        best = step > 0 and (self.best is None or average > self.best)
        return Progress(
            latest=average,
            best=average if best else self.best,
            best_step=step if best else self.best_step,
            level=average if improved else self.level,
            since=0 if improved else self.since + 1,
        )

    def restarted(self) -> Progress:
        """After a reset of the reference: improvements are measured from where the policy is."""
        return replace(self, level=self.latest, since=0)


def reset_reason(objective: ObjectiveRecipe, age: int, progress: Progress) -> str | None:
    """Why a reference that was set ``age`` steps ago is reset now; None where it is not."""
    every, patience = objective.reference_reset_every, objective.reference_reset_patience
    if patience and progress.since >= patience:
        assert progress.level is not None
        by = f" by more than {objective.reference_reset_min_delta:g}" if objective.reference_reset_min_delta else ""
        return f"validation stalled: {progress.since} in a row did not improve on {progress.level:.4f}{by}"
    if every and age >= every:
        return f"interval: {age} steps since it was set"
    return None
