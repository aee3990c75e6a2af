"""The train stage: a directory that holds metrics, rollouts, checkpoints and, at the end, the trained model.

Invariants: every finished step is in metrics.jsonl once; of several processes the first alone begins and finishes the
directory and writes what is of all of them; what is lost by ``kill -9`` is at most the steps since
the latest checkpoint, and they are repeated with the same seeds. The last step has a checkpoint, of which the result is
made and from which a longer run goes on.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ulorl import artifact
from ulorl.engine.base import Engine
from ulorl.engine.prompts import Prompter
from ulorl.errors import UserError
from ulorl.files import write_atomic
from ulorl.problem import Problem
from ulorl.recipe import Recipe
from ulorl.recipe_file import TRAINED_RECIPE, dump_recipe
from ulorl.recipe_train import RolloutRecipe
from ulorl.report.metrics import MetricsWriter
from ulorl.report.wandb_tracker import WandbTracker, check_wandb
from ulorl.train.advice import advice
from ulorl.train.extend import CHECKPOINTS, adopt, extends
from ulorl.train.ranks import Ranks, open_ranks
from ulorl.train.record import Recorder, TrainDisplay
from ulorl.train.replay import ROLLOUTS, drop_steps
from ulorl.train.split import split_problems, validation_inputs
from ulorl.train.validation import VALIDATIONS
from ulorl.verify.tasks.scorer import Scorer, named

if TYPE_CHECKING:
    from ulorl.train.learner import Learner


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

    ``engine`` opens the engine, and is called only when there is something to do. Resumes a run of the same recipe that
    was interrupted, and goes on with one of fewer steps. Raises UserError where the problems cannot be used.
    """

    def make(work: artifact.Work, ranks: Ranks) -> dict[str, object]:
        if note := ranks.once(lambda: adopt(work)):
            display.log(f"train: {note}")
        return _run(recipe, work.path, problems_path, model_dir, engine(), prompter, display, ranks)

    return in_directory(
        recipe,
        output,
        make,
        inputs=[problems_path, model_dir, *validation_inputs(recipe)],
        force=force,
        extends=extends,
    )


def in_directory(
    recipe: Recipe,
    output: Path,
    make: Callable[[artifact.Work, Ranks], dict[str, object]],
    *,
    inputs: Sequence[str | Path],
    force: bool,
    mode: str = "",
    extends: artifact.Extends | None = None,
) -> Path:
    """Begin the directory ``output`` on the first of the launcher's processes, ``make`` it on all, and finish it.

    ``make`` returns the manifest's counts. ``mode`` tells apart what is made of the same recipe.
    """
    from ulorl.train.sequence_parallel import check_group

    check_wandb(recipe.train.wandb)
    ranks = open_ranks(recipe.train.timeout_s)
    check_processes(recipe.train.rollout, ranks.world)
    check_group(recipe.train.learner.sequence_parallel_size, ranks.world)
    config = train_config(recipe) | ({"mode": mode} if mode else {})
    work = ranks.once(
        lambda: artifact.begin(
            output, stage="train", config=config, inputs=inputs, seed=recipe.seed, force=force, extends=extends
        )
    )
    if work.done:
        return work.path
    try:
        counts = make(work, ranks)
        return ranks.once(lambda: work.finish(counts))
    finally:
        work.release()


def train_config(recipe: Recipe) -> dict[str, object]:
    """The part of the recipe that determines the trained model."""
    return {
        "model": recipe.model.model_dump(mode="json"),
        "train": recipe.train.model_dump(mode="json", exclude={"timeout_s", "wandb"}),
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


def check_problems(problems: list[Problem], prompter: Prompter, verifier: Scorer, recipe: Recipe) -> None:
    """Raise UserError when a problem's task cannot judge it, or it has too long a prompt; it names the row."""
    if not problems:
        raise UserError("train: there is no problem to train on")
    for problem in problems:
        reason = verifier.check(problem)
        if reason is not None:
            raise UserError(
                f"train: {named(problem)}, task {problem.task}: {reason}. The curate steps answers and references drop "
                "such problems"
            )
        (shown,) = verifier.prompted([problem])
        length = len(prompter.encode(shown.problem))
        if length > recipe.model.max_prompt_tokens:
            raise UserError(
                f"train: {named(problem)}: its prompt has {length} tokens, model.max_prompt_tokens is "
                f"{recipe.model.max_prompt_tokens}. Curate drops such problems"
            )


def prepare(directory: Path, recipe: Recipe, display: TrainDisplay, ranks: Ranks) -> None:
    """What every run's directory holds from the start; says which settings will not do what they seem to."""
    ranks.once(lambda: write_atomic(directory / TRAINED_RECIPE, dump_recipe(recipe)))
    for line in advice(recipe.train):
        display.log(f"train: {line}")


def open_learner(recipe: Recipe, model_dir: Path, ranks: Ranks) -> Learner:
    """The learner of a recipe, from the start model."""
    from ulorl.train.learner import Learner

    settings = recipe.train
    return Learner(
        model_dir,
        recipe.model,
        settings.learner,
        settings.objective,
        settings.rollout.temperature,
        settings.rollout.max_tokens,
        ranks,
        settings.updates,
    )


def open_writer(
    directory: Path, recipe: Recipe, ranks: Ranks, after: int
) -> AbstractContextManager[MetricsWriter | None]:
    """Where the first rank writes metrics of the steps later than ``after``; None on the others.

    Whatever an earlier attempt left of those steps is removed.
    """
    ranks.once(lambda: drop_steps((directory / ROLLOUTS, directory / VALIDATIONS), after))
    trackers = list[WandbTracker]()
    if recipe.train.wandb.project:
        ranks.once(lambda: trackers.append(WandbTracker(directory, recipe)))
    return MetricsWriter(directory, after or None, trackers[0] if trackers else None) if ranks.first else nullcontext()


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
    from ulorl.train.checkpoint import checkpoints, load_checkpoint, remove_partial, save_checkpoint, save_result
    from ulorl.train.loop import Trainer
    from ulorl.train.sync import sync_weights

    settings, root = recipe.train, directory / CHECKPOINTS
    prepare(directory, recipe, display, ranks)
    split, verifier = ranks.once(lambda: split_problems(problems_path, recipe)), Scorer(recipe.verify)
    ranks.once(lambda: check_problems([*split.trained, *split.validation], prompter, verifier, recipe))
    split = split.shown(verifier.prompted)
    if split.validation:
        display.log(f"train: {split}")
    learner = open_learner(recipe, model_dir, ranks)
    display.log(f"train: {learner.rows}")
    trainer = Trainer(
        recipe,
        split.trained,
        engine=engine,
        prompter=prompter,
        verifier=verifier,
        learner=learner,
        ranks=ranks,
        validation=split.validation,
    )
    ranks.bound_waits()
    ranks.once(lambda: remove_partial(root))
    found = ranks.once(lambda: checkpoints(root))
    if found:
        state, groups = load_checkpoint(found[-1], learner, split.trained)
        trainer.restore(state, groups)
        display.log(f"train: resuming after step {state.step} of {settings.steps} from {found[-1]}")
    sync_weights(learner, engine, ranks)
    with open_writer(directory, recipe, ranks, after=trainer.step) as writer:
        record = Recorder(
            directory, recipe, prompter=prompter, verifier=verifier, display=display, ranks=ranks, writer=writer
        )
        record.start(trainer.validate_start())
        while trainer.step < settings.steps:
            result = trainer.run_step()
            values = record.step(result, trainer.pool, settings.steps)
            record.warn(result, values)
            due = result.step % settings.checkpoint_every == 0 or (settings.keep_best and result.new_best)
            if due or result.step == settings.steps:
                save_checkpoint(
                    root,
                    learner,
                    trainer.state,
                    list(trainer.pool.groups.values()),
                    model_dir,
                    settings.keep_checkpoints,
                    settings.keep_best,
                )
    trainer.rewards.close()
    ranks.once(lambda: _check_learned(directory, learner.version, settings.steps))
    kept = ranks.once(lambda: save_result(directory / "model", root, trainer.state, settings.final))
    counts: dict[str, object] = {"steps": trainer.step, "updates": learner.version, "prompts": trainer.stream.drawn}
    counts["model_step"] = kept
    if trainer.progress.best is not None:
        display.log(f"train: {trainer.progress}; the model is that of step {kept}")
        counts |= {"best_step": trainer.progress.best_step, "best_validation": trainer.progress.best}
    return counts


def _check_learned(directory: Path, updates: int, steps: int) -> None:
    """Raise UserError where nothing was learned; else make place for the model."""
    if updates == 0:
        raise UserError(
            f"train: {steps} steps without one update: no group of samples had both right and wrong "
            "answers. Check the difficulty of the data (curate.difficulty) and the answers in rollouts/"
        )
    shutil.rmtree(directory / "model", ignore_errors=True)
