"""What is kept and shown of every step: its metrics, its samples, and words where something is amiss.

Invariants: a step's samples, those of all processes, are on disk before its line of metrics is, so that a line stands
for a whole step; of several processes each keeps its own samples, the first alone writes metrics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from ulorl.engine.prompts import Prompter
from ulorl.files import write_table
from ulorl.recipe import Recipe
from ulorl.recipe_train import RolloutRecipe
from ulorl.report.metrics import MetricsWriter
from ulorl.train.experience import histogram
from ulorl.train.figures import Figure, total
from ulorl.train.loop import StepResult
from ulorl.train.mastered import ENTROPY_DEFINITION
from ulorl.train.pool import UnfinishedPool
from ulorl.train.ranks import Ranks
from ulorl.train.replay import rollout_table, write_rollouts
from ulorl.train.step_metrics import JUDGED, step_metrics
from ulorl.train.validation import VALIDATIONS, Validation
from ulorl.train.watch import watched
from ulorl.verify.tasks.scorer import Scorer

BARREN_STEPS = 10
"""Steps in a row without any group to learn from, after which the run says so."""
MISMATCH = 0.1
"""Nats, the mean over tokens, by which the engine's log-probs may differ from the learner's before the run says so."""


class TrainDisplay(Protocol):
    """Where progress goes (``ulorl.report.display.Display``)."""

    def step(self, step: int, total: int, metrics: Mapping[str, float]) -> None: ...

    def samples(self, step: int, shown: Sequence[str]) -> None: ...

    def log(self, line: str) -> None: ...


class Recorder:
    """Keeps and shows the steps of one run. ``directory`` is the run's, ``writer`` None on all ranks but the first.

    Without a ``verifier`` nothing is sampled: samples are those of another run, and are not kept. ``without``:
    beginnings of the names of metrics that are not defined in this kind of run.
    """

    def __init__(
        self,
        directory: Path,
        recipe: Recipe,
        *,
        prompter: Prompter,
        verifier: Scorer | None,
        display: TrainDisplay,
        ranks: Ranks,
        writer: MetricsWriter | None,
        without: tuple[str, ...] = (),
    ) -> None:
        self._directory, self._recipe, self._prompter, self._verifier = directory, recipe, prompter, verifier
        self._display, self._ranks, self._writer, self._without = display, ranks, writer, without
        self._barren = self._mismatched = 0
        self._judged = self._judge_counts()
        display.log(f"train: entropy is in {ENTROPY_DEFINITION}")

    def step(self, result: StepResult, pool: UnfinishedPool, steps: int) -> dict[str, float]:
        """Keep and show what one of ``steps`` steps did; returns its metrics."""
        figures = self._judge_figures()
        values = step_metrics(result, pool, self._recipe.train.objective.sigma, self._ranks, figures)
        values = {name: value for name, value in values.items() if not name.startswith(self._without)}
        entries = result.experience.all()
        if self._verifier is not None:
            write_rollouts(self._directory, result.step, rollout_table(entries, self._prompter), self._ranks)
        if result.validation is not None:
            self._keep(result.validation)
        self._ranks.meet("keep the samples of the step")
        if self._writer is not None:
            self._writer.write(result.step, values)
        for note in result.notes:
            self._display.log(f"train: {note}")
        self._display.step(result.step, steps, values)
        self._display.samples(result.step, watched(entries, self._prompter))
        return values

    def start(self, validation: Validation | None) -> None:
        """Keep and show the validation before the first step, if there is one."""
        if validation is None:
            return
        self._keep(validation)
        if self._writer is not None:
            self._writer.write(0, validation.metrics)
        self._display.log(f"train: {validation}")

    def _keep(self, validation: Validation) -> None:
        """Samples of a validation: one file a rank, as of rollouts."""
        folder = self._directory / VALIDATIONS
        folder.mkdir(exist_ok=True)
        write_table(folder / f"step_{validation.step:06d}{self._ranks.suffix}.parquet", validation.table)

    def warn(self, result: StepResult, values: Mapping[str, float]) -> None:
        """Say where a step could not be refilled, nothing was learned for long, or the engine samples otherwise."""
        self._barren = warn_when_barren(self._barren, result.tally is None, values, self._display)
        self._mismatched = warn_when_mismatched(self._mismatched, values, self._display)
        if result.exhausted:
            self._display.log(exhaustion(result, self._recipe.train.rollout, self._ranks))

    def _judge_counts(self) -> dict[str, int] | None:
        counts = None if self._verifier is None else self._verifier.judge_counts
        return None if counts is None else {name: getattr(counts, name) for name in JUDGED}

    def _judge_figures(self) -> dict[str, Figure]:
        """What the judge of the verifier did since the last step; nothing without one."""
        before, self._judged = self._judged, self._judge_counts()
        if before is None or self._judged is None:
            return {}
        return {f"reward/judge_{name}": total(count - before[name]) for name, count in self._judged.items()}


def exhaustion(result: StepResult, rollout: RolloutRecipe, ranks: Ranks | None = None) -> str:
    """What a step that could not be refilled says: how far it came, and the pass rates of the groups it saw."""
    ranks = ranks or Ranks()
    found = ranks.total(len(result.experience.trained))
    return (
        f"train: step {result.step}: {found} of {rollout.prompts_per_step} groups with right "
        f"and wrong answers after {result.rounds} rounds; the update takes those. Right answers a group: "
        f"{histogram(result.experience.all(), ranks)}. Change the difficulty of the data (curate.difficulty), or "
        "train.rollout.max_rounds"
    )


def warn_when_barren(barren: int, no_update: bool, values: Mapping[str, float], display: TrainDisplay) -> int:
    """Count steps without an update; every BARREN_STEPS of them, say what the rewards were."""
    barren = barren + 1 if no_update else 0
    if barren and barren % BARREN_STEPS == 0:
        right, wrong = values.get("reward/groups_all_right"), values.get("reward/groups_all_wrong")
        shares = "no group was complete" if right is None else f"all right {right:.0%}, all wrong {wrong:.0%}"
        display.log(f"train: {barren} steps without an update ({shares} of this step's groups): nothing to learn from")
    return barren


def warn_when_mismatched(mismatched: int, values: Mapping[str, float], display: TrainDisplay) -> int:
    """Count steps whose engine has other log-probs than the learner; of the first and every BARREN_STEPS more, say so.

    Steps without a token to compare are not counted.
    """
    mean = values.get("mismatch/mean", math.nan)
    if math.isnan(mean):
        return mismatched
    mismatched = mismatched + 1 if mean > MISMATCH else 0
    if mismatched % BARREN_STEPS == 1:
        display.log(
            f"train: mismatch/mean is {mean:.2g} nats: the engine samples from another policy than is trained. Look at "
            "train.rollout.top_p and top_k (1 and 0 sample from the whole distribution) and model.dtype; where those "
            'are right, compare with engine.kind = "hf"'
        )
    return mismatched
