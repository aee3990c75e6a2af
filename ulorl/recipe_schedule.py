"""Settings that change while a run trains: ``[[train.schedule]]``, and the phases that they make of it.

Invariants: the phase of a step follows from the recipe and the step alone; every entry changes something.

Part of the train section of ``ulorl.recipe``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from ulorl.recipe_engine import Section

if TYPE_CHECKING:
    from ulorl.recipe_train import TrainRecipe


class PhaseRecipe(Section):
    """What changes from a step on; what is not given stays as it was."""

    from_step: int = Field(ge=2)
    """First step of the phase."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Global maximum output length of groups that enter from now on, divided into `rollout.segments` as before; groups
    in flight keep theirs."""
    tasks: dict[str, Annotated[float, Field(gt=0)]] | None = None
    """Shares of the tasks among new prompts, as in `{ math = 2, logic = 1 }`; tasks without one are not drawn. Empty:
    as in the data."""
    clip_high: float | None = Field(default=None, gt=0)
    """Upper clip of the ratio."""
    kl: float | None = Field(default=None, ge=0)
    """Coefficient of the KL penalty."""
    lr_factor: float | None = Field(default=None, gt=0)
    """Factor on `learner.lr`."""
    reset_reference: bool = False
    """Begin with the reference as a copy of the policy and an empty optimizer state."""


@dataclass(frozen=True)
class Phase:
    """The settings of a stretch of steps, which begins with ``from_step``. ``tasks`` without an entry: as in the
    data."""

    number: int
    from_step: int
    max_tokens: int
    clip_high: float
    kl: float
    tasks: Mapping[str, float] = field(default_factory=dict)
    lr_factor: float = 1.0
    reset_reference: bool = False

    @property
    def settings(self) -> dict[str, object]:
        """What a schedule can change, by the name it has there."""
        return {name: getattr(self, name) for name in ("max_tokens", "tasks", "clip_high", "kl", "lr_factor")}


def phases(train: TrainRecipe) -> tuple[Phase, ...]:
    """The phases of a run, numbered from 1; the first is that of the sections themselves."""
    found = [Phase(1, 1, train.rollout.max_tokens, train.objective.clip_high, train.objective.kl)]
    for number, entry in enumerate(train.schedule, 2):
        given = {name: value for name in found[0].settings if (value := getattr(entry, name)) is not None}
        found.append(
            replace(
                found[-1],
                number=number,
                from_step=entry.from_step,
                reset_reference=entry.reset_reference,
                **given,  # type: ignore[arg-type]
            )
        )
    return tuple(found)


def phase_at(all_phases: Sequence[Phase], step: int) -> Phase:
    """The phase that ``step`` belongs to."""
    return [phase for phase in all_phases if phase.from_step <= max(1, step)][-1]


def settings_in(phase: Phase, train: TrainRecipe) -> TrainRecipe:
    """The settings of training as they are in ``phase``."""
    objective, learner, rollout = train.objective, train.learner, train.rollout
    changed = {
        "rollout": rollout.model_copy(update={"max_tokens": phase.max_tokens}),
        "objective": objective.model_copy(update={"clip_high": phase.clip_high, "kl": phase.kl}),
        "learner": learner.model_copy(update={"lr": learner.lr * phase.lr_factor}),
    }
    return train.model_copy(update=changed)


def changes(before: Phase, after: Phase) -> str:
    """What a phase changes, for people: ``max_tokens 64 to 128, tasks math 2 logic 1, reference reset``."""
    said = [
        f"tasks {_mix(after.tasks)}" if name == "tasks" else f"{name} {getattr(before, name):g} to {value:g}"
        for name, value in after.settings.items()
        if value != getattr(before, name)
    ]
    return ", ".join([*said, *(["reference reset"] if after.reset_reference else [])])


def check_schedule(train: TrainRecipe) -> None:
    """Raise ValueError where an entry cannot be followed or would change nothing."""
    found = phases(train)
    for index, (before, after, entry) in enumerate(zip(found, found[1:], train.schedule, strict=False)):

        def refuse(what: str, index: int = index) -> None:
            raise ValueError(f"schedule[{index}].{what}")

        if after.from_step <= before.from_step:
            refuse(f"from_step: {after.from_step} is not after the phase before, from step {before.from_step}")
        if after.from_step > train.steps:
            refuse(f"from_step: {after.from_step} is after the last step, {train.steps}")
        for name, value in before.settings.items():
            if getattr(entry, name) == value:
                refuse(f"{name}: is what it was before; leave it out")
        if not changes(before, after):
            refuse("from_step: the phase changes nothing")
        if after.max_tokens % train.rollout.segments:
            refuse(f"max_tokens: {after.max_tokens} must be a multiple of rollout.segments = {train.rollout.segments}")
        if after.max_tokens < train.objective.soft_buffer:
            refuse(f"max_tokens: {after.max_tokens} is below objective.soft_buffer = {train.objective.soft_buffer}")
        if train.objective.kl == 0 and entry.kl is not None:
            refuse("kl: goes with objective.kl > 0, since a reference is held from the start or never")
        if entry.reset_reference and after.kl == 0:
            refuse("reset_reference: has no effect with kl = 0")
        if entry.clip_high and train.objective.updates_per_step == 1 and train.objective.ratio != "sais":
            refuse("clip_high: has no effect with one update a step, where the ratio is 1")


def _mix(tasks: Mapping[str, float]) -> str:
    return " ".join(f"{task} {weight:g}" for task, weight in tasks.items()) or "as in the data"
