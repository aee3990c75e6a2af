"""What a recipe says about training that will not do what its author may expect."""

from __future__ import annotations

from ulorl.recipe import TrainRecipe


def advice(train: TrainRecipe) -> list[str]:
    """One line for each setting that has no effect, or another effect than its name says. Pure."""
    objective, rollout = train.objective, train.rollout
    lines = []
    given = objective.model_fields_set
    if objective.updates_per_step == 1 and (clips := sorted(given & {"clip_low", "clip_high"})):
        lines.append(
            f"train.objective.{' and '.join(clips)}: no effect with updates_per_step = 1, where the ratio is 1 (POIS)"
        )
    if not objective.mask_mastered and (unused := sorted(given & {"tau", "sigma", "entropy_scope"})):
        lines.append(f"train.objective.{' and '.join(unused)}: no effect with mask_mastered = false")
    if rollout.top_p < 1 or rollout.top_k > 0:
        lines.append(
            "train.rollout.top_p and top_k: samples come from a truncated distribution, the loss takes the whole one; "
            "mismatch/* will show the difference"
        )
    return lines
