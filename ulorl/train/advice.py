"""What a recipe says about training that will not do what its author may expect."""

from __future__ import annotations

from ulorl.recipe_train import TrainRecipe


def advice(train: TrainRecipe) -> list[str]:
    """One line for each setting that has no effect, or another effect than its name says. Pure."""
    objective, rollout = train.objective, train.rollout
    lines = []
    given = objective.model_fields_set
    on_policy = objective.ratio != "sais" and objective.updates_per_step == 1
    if on_policy and (clips := sorted(given & {"clip_low", "clip_high"})):
        lines.append(
            f"train.objective.{' and '.join(clips)}: no effect with one update a step, where the ratio is 1 "
            f"({objective.ratio})"
        )
    idle = {"correction_low", "correction_high"} if objective.correction == "none" else set()
    idle |= {"correction_low"} if objective.correction == "truncated" else set()
    idle |= {"kl_estimator"} if objective.kl == 0 else set()
    lines += [f"train.objective.{name}: no effect with the other settings" for name in sorted(given & idle)]
    if objective.mastered == "never" and (unused := sorted(given & {"tau", "sigma", "entropy_scope"})):
        lines.append(f'train.objective.{" and ".join(unused)}: no effect with mastered = "never"')
    if not train.validation.every and (unused := sorted(train.validation.model_fields_set - {"every"})):
        lines.append(f"train.validation.{' and '.join(unused)}: no effect with every = 0")
    if rollout.top_p < 1 or rollout.top_k > 0:
        lines.append(
            "train.rollout.top_p and top_k: samples come from a truncated distribution, the loss takes the whole one; "
            "mismatch/* will show the difference"
        )
    return lines
