"""The two halves of a step on their own, to look into one of them: rollouts without updates, updates without an engine.

``roll_out`` decodes, scores and keeps samples with the start model; ``train_from_rollouts`` makes the updates of a run
from the samples it kept. Both write metrics, as far as they are defined, into a directory of their own.

Invariants: a half does what it does in a whole run: step 1 of either is that of ``train``, to the bit, and so are all
steps of ``train_from_rollouts`` under the recipe of the run that sampled.

Does not: write checkpoints; an interrupted run begins anew.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ulorl import artifact
from ulorl.engine.base import Engine, Generation
from ulorl.engine.prompts import Prompter
from ulorl.recipe import Recipe, VerifyRecipe
from ulorl.recipe_validation import ValidationRecipe
from ulorl.train.loop import Clock, StepResult, Trainer
from ulorl.train.ranks import Ranks
from ulorl.train.record import Recorder, TrainDisplay
from ulorl.train.replay import SavedRollouts, rollouts_in
from ulorl.train.split import split_problems, validation_inputs
from ulorl.train.stage import check_problems, in_directory, open_learner, open_writer, prepare
from ulorl.verify.tasks.scorer import Scorer

if TYPE_CHECKING:
    from ulorl.train.learner import Learner

OF_ROLLOUTS = ("pool/", "segment/tokens", "segment/rounds", "time/rollout", "time/sync", "time/tokens_per_s")
"""Beginnings of the metrics that a run from saved rollouts does not have."""


def roll_out(
    recipe: Recipe,
    output: Path,
    *,
    problems_path: Path,
    model_dir: Path,
    engine: Callable[[], Engine],
    prompter: Prompter,
    display: TrainDisplay,
    force: bool = False,
) -> Path:
    """``train.steps`` steps up to the experience, which is kept in ``output``/rollouts; the policy stays as it is.

    Raises UserError where the problems cannot be used.
    """

    def make(work: artifact.Work, ranks: Ranks) -> dict[str, object]:
        prepare(work.path, recipe, display, ranks)
        split, verifier = ranks.once(lambda: split_problems(problems_path, recipe)), Scorer(recipe.verify)
        trained = split.trained
        ranks.once(lambda: check_problems(trained, prompter, verifier, recipe))
        trained = verifier.prompted(trained)
        trainer = _RolloutOnly(recipe, trained, engine(), prompter, verifier, ranks)
        samples = _steps(trainer, recipe, work.path, recipe.train.steps, display, verifier=verifier)
        return {"steps": trainer.step, "samples": samples, "prompts": trainer.stream.drawn}

    inputs: list[str | Path] = [problems_path, model_dir, *validation_inputs(recipe)]
    return in_directory(recipe, output, make, inputs=inputs, force=force, mode="rollouts without updates")


def train_from_rollouts(
    recipe: Recipe,
    output: Path,
    *,
    rollouts: Path,
    model_dir: Path,
    prompter: Prompter,
    display: TrainDisplay,
    force: bool = False,
) -> Path:
    """Updates of ``model_dir`` on the samples that a run kept in ``rollouts``, step by step from the first; the result
    is in ``output``/model.

    Raises UserError where there are no whole rollouts.
    """
    folder = rollouts_in(rollouts)

    def make(work: artifact.Work, ranks: Ranks) -> dict[str, object]:
        from ulorl.train.checkpoint import save_model

        prepare(work.path, recipe, display, ranks)
        learner = open_learner(recipe, model_dir, ranks)
        saved = SavedRollouts(folder, ranks, learner.hf_model.config.vocab_size)
        trainer = _FromRollouts(recipe, saved, learner, prompter, ranks)
        if saved.note:
            display.log(f"train: {saved.note}")
        steps = min(recipe.train.steps, len(saved))
        if steps < recipe.train.steps:
            display.log(f"train: {folder} holds the rollouts of {steps} steps, of {recipe.train.steps} in the recipe")
        samples = _steps(trainer, recipe, work.path, steps, display, without=OF_ROLLOUTS)
        save_model(learner, work.path / "model", model_dir)
        if recipe.train.final == "best":
            display.log(f'train: final = "best" needs validations; the model is that of step {trainer.step}')
        return {"steps": trainer.step, "updates": learner.version, "samples": samples, "model_step": trainer.step}

    return in_directory(
        recipe, output, make, inputs=[folder, model_dir], force=force, mode="updates from saved rollouts"
    )


def _steps(
    trainer: Trainer,
    recipe: Recipe,
    directory: Path,
    steps: int,
    display: TrainDisplay,
    *,
    verifier: Scorer | None = None,
    without: tuple[str, ...] = (),
) -> int:
    """Take ``steps`` steps, keep and show them; how many samples they were, on all ranks."""
    ranks, samples = trainer.ranks, 0
    ranks.bound_waits()
    with open_writer(directory, recipe, ranks, after=0) as writer:
        record = Recorder(
            directory,
            recipe,
            prompter=trainer.prompter,
            verifier=verifier,
            display=display,
            ranks=ranks,
            writer=writer,
            without=without,
        )
        while trainer.step < steps:
            result = trainer.run_step()
            record.step(result, trainer.pool, steps)
            samples += ranks.total(sum(len(entry.samples) for entry in result.experience.all()))
    trainer.rewards.close()
    return samples


class _RolloutOnly(Trainer):
    """Steps that end with their experience."""

    def __init__(
        self, recipe: Recipe, problems: Any, engine: Engine, prompter: Prompter, verifier: Scorer, ranks: Ranks
    ) -> None:
        super().__init__(
            recipe,
            problems,
            engine=engine,
            prompter=prompter,
            verifier=verifier,
            learner=cast("Learner", _NoLearner()),
            ranks=ranks,
        )

    def _reset_reference(self, result: StepResult, reason: str, step: int) -> None:
        pass

    def learn(self, result: StepResult, clock: Clock) -> None:
        pass

    def conclude(self, result: StepResult, clock: Clock) -> None:
        pass


class _FromRollouts(Trainer):
    """Steps that begin with saved experience. Without an engine there is no validation."""

    def __init__(
        self, recipe: Recipe, saved: SavedRollouts, learner: Learner, prompter: Prompter, ranks: Ranks
    ) -> None:
        # Verdicts are saved too: the verifier is never asked.
        verifier = Scorer(VerifyRecipe(symbolic=False))
        train = recipe.train.model_copy(update={"validation": ValidationRecipe()})
        recipe = recipe.model_copy(update={"train": train})
        super().__init__(
            recipe, [], engine=_NoEngine(), prompter=prompter, verifier=verifier, learner=learner, ranks=ranks
        )
        self._saved = saved

    def roll_out(self, result: StepResult, clock: Clock) -> None:
        uniform_train = self.rollout.dynamic_sampling == "off"
        result.experience = self._saved.experience(self.step, uniform_train=uniform_train, version=self.learner.version)
        clock.lap(result.seconds, "rollout")


class _NoLearner:
    """In the place of a learner in a run without updates: it is told of phases, and does nothing."""

    version = 0

    def adopt(self, *settings: Any) -> None:
        pass


class _NoEngine:
    """An engine that holds no model: it takes the weights' version and no weights."""

    name = "none"
    policy_version = 0
    max_model_len = 0

    def generate(self, requests: Any, on_done: Any = None) -> list[Generation]:
        raise AssertionError("there is no engine in a run from saved rollouts")

    def load_weights(self, named_tensors: Any, version: int) -> None:
        self.policy_version = version

    def sleep(self) -> None:
        pass

    def wake(self) -> None:
        pass

    def close(self) -> None:
        pass
