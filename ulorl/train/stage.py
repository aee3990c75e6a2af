"""The train stage: a directory that holds metrics, rollouts, checkpoints and, at the end, the trained model.

Invariants: every finished step is in metrics.jsonl once; of several processes the first alone begins and finishes the
directory and writes what is of all of them; what is lost by ``kill -9`` is at most the steps since
the latest checkpoint, and they are repeated with the same seeds.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Protocol

from ulorl import artifact
from ulorl.engine.base import Engine
from ulorl.engine.prompts import Prompter
from ulorl.errors import UserError
from ulorl.files import write_atomic, write_table
from ulorl.problem import Problem
from ulorl.recipe import Recipe
from ulorl.recipe_file import TRAINED_RECIPE, dump_recipe
from ulorl.recipe_train import RolloutRecipe
from ulorl.rows import read_problem_table
from ulorl.train.advice import advice
from ulorl.train.experience import histogram
from ulorl.train.loop import StepResult
from ulorl.train.ranks import Ranks, open_ranks
from ulorl.train.step_metrics import rollout_table, step_metrics
from ulorl.verify import Verifier

BARREN_STEPS = 10
"""Steps in a row without any group to learn from, after which the run says so."""


class TrainDisplay(Protocol):
    """Where progress goes (``ulorl.report.display.Display``)."""

    def step(self, step: int, total: int, metrics: Mapping[str, float]) -> None: ...

    def log(self, line: str) -> None: ...


def train(
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
    """Train ``model_dir`` on the problems of ``problems_path``; returns ``output``, with the result in ``model/``.

    ``engine`` opens the engine, and is called only when there is something to do. Resumes a run of the same
    recipe that was interrupted. Raises UserError where the problems cannot be used.
    """
    ranks = open_ranks(recipe.train.timeout_s)
    check_processes(recipe.train.rollout, ranks.world)
    work = ranks.once(
        lambda: artifact.begin(
            output,
            stage="train",
            config=train_config(recipe),
            inputs=[problems_path, model_dir],
            seed=recipe.seed,
            force=force,
        )
    )
    if work.done:
        return work.path
    try:
        counts = _run(recipe, work.path, problems_path, model_dir, engine(), prompter, display, ranks)
        return ranks.once(lambda: work.finish(counts))
    finally:
        work.release()


def train_config(recipe: Recipe) -> dict[str, object]:
    """The part of the recipe that determines the trained model."""
    return {
        "model": recipe.model.model_dump(mode="json"),
        "train": recipe.train.model_dump(mode="json", exclude={"timeout_s"}),
        "verify": recipe.verify.model_dump(mode="json"),
    }


def check_processes(rollout: RolloutRecipe, processes: int) -> None:
    """Raise UserError where the prompts of a step cannot be divided evenly over the processes."""
    for name, prompts in (
        ("prompts_per_step", rollout.prompts_per_step),
        ("in_flight / group_size", rollout.in_flight // rollout.group_size),
    ):
        if prompts % processes:
            raise UserError(
                f"train.rollout.{name}: {prompts} is not a multiple of the {processes} processes of the run"
            )


def check_problems(problems: list[Problem], prompter: Prompter, verifier: Verifier, recipe: Recipe) -> None:
    """Raise UserError when a problem has no usable reference or too long a prompt."""
    if not problems:
        raise UserError("train: there is no problem to train on")
    for problem in problems:
        reason = verifier.check_reference(problem.answer)
        if reason is not None:
            raise UserError(
                f"train: problem {problem.id}: the reference {problem.answer!r} cannot be verified ({reason}). "
                "The curate steps answers and references drop such problems"
            )
        length = len(prompter.encode(problem.problem))
        if length > recipe.model.max_prompt_tokens:
            raise UserError(
                f"train: problem {problem.id}: its prompt has {length} tokens, model.max_prompt_tokens is "
                f"{recipe.model.max_prompt_tokens}. Curate drops such problems"
            )


def _run(
    recipe: Recipe,
    directory: Path,
    problems_path: Path,
    model_dir: Path,
    engine: Engine,
    prompter: Prompter,
    display: TrainDisplay,
    ranks: Ranks,
) -> dict[str, object]:
    from ulorl.report.metrics import MetricsWriter
    from ulorl.train.checkpoint import (
        TrainerState,
        checkpoints,
        load_checkpoint,
        save_checkpoint,
        save_model,
    )
    from ulorl.train.learner import Learner
    from ulorl.train.loop import Trainer
    from ulorl.train.sync import sync_weights

    settings, root = recipe.train, directory / "checkpoints"
    ranks.once(lambda: _prepare(directory, recipe))
    for line in advice(settings):
        display.log(f"train: {line}")
    problems, verifier = read_problem_table(problems_path), Verifier(recipe.verify)
    ranks.once(lambda: check_problems(problems, prompter, verifier, recipe))
    learner = Learner(
        model_dir,
        recipe.model,
        settings.learner,
        settings.objective,
        settings.rollout.temperature,
        settings.rollout.max_tokens,
        ranks,
    )
    trainer = Trainer(
        recipe, problems, engine=engine, prompter=prompter, verifier=verifier, learner=learner, ranks=ranks
    )
    ranks.bound_waits()
    found = ranks.once(lambda: checkpoints(root))
    if found:
        state, groups = load_checkpoint(found[-1], learner, problems)
        trainer.restore(state.step, state.drawn, state.reference_step, groups)
        display.log(f"train: resuming after step {state.step} of {settings.steps} from {found[-1]}")
    sync_weights(learner, engine, ranks)
    barren = 0
    with MetricsWriter(directory, resume_after=trainer.step) if ranks.first else nullcontext() as writer:
        while trainer.step < settings.steps:
            result = trainer.run_step()
            values = step_metrics(result, trainer.pool, settings.objective.sigma, ranks)
            write_table(
                directory / "rollouts" / f"step_{result.step:06d}{ranks.suffix}.parquet",
                rollout_table(result.experience.all(), prompter),
            )
            if writer is not None:
                writer.write(result.step, values)
            display.step(result.step, settings.steps, values)
            barren = _warn_when_barren(barren, result.tally is None, values, display)
            if result.exhausted:
                display.log(exhaustion(result, settings.rollout, ranks))
            if result.step % settings.checkpoint_every == 0 and result.step < settings.steps:
                save_checkpoint(
                    root,
                    learner,
                    TrainerState(result.step, learner.version, trainer.stream.drawn, trainer.reference_step),
                    list(trainer.pool.groups.values()),
                    model_dir,
                    settings.keep_checkpoints,
                )
    trainer.rewards.close()
    ranks.once(lambda: _check_learned(directory, learner.version, settings.steps))
    save_model(learner, directory / "model", model_dir)
    return {"steps": trainer.step, "updates": learner.version, "prompts": trainer.stream.drawn}


def _prepare(directory: Path, recipe: Recipe) -> None:
    write_atomic(directory / TRAINED_RECIPE, dump_recipe(recipe))
    (directory / "rollouts").mkdir(exist_ok=True)


def _check_learned(directory: Path, updates: int, steps: int) -> None:
    """Raise UserError where nothing was learned; else make place for the model."""
    if updates == 0:
        raise UserError(
            f"train: {steps} steps without one update: no group of samples had both right and wrong "
            "answers. Check the difficulty of the data (curate.difficulty) and the answers in rollouts/"
        )
    shutil.rmtree(directory / "model", ignore_errors=True)


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


def _warn_when_barren(barren: int, no_update: bool, values: Mapping[str, float], display: TrainDisplay) -> int:
    """Count steps without an update; every BARREN_STEPS of them, say what the rewards were."""
    barren = barren + 1 if no_update else 0
    if barren and barren % BARREN_STEPS == 0:
        right, wrong = values.get("reward/groups_all_right"), values.get("reward/groups_all_wrong")
        shares = "no group was complete" if right is None else f"all right {right:.0%}, all wrong {wrong:.0%}"
        display.log(f"train: {barren} steps without an update ({shares} of this step's groups): nothing to learn from")
    return barren
