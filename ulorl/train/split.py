"""Which problems of a run are trained on, and which validate.

Invariants: no problem does both, also where the data has it several times; which are held out follows from the seed and
their ids, not from their order; every task of the data is among them, as far as it has two problems.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from ulorl.errors import UserError
from ulorl.problem import MATH, Problem, problem_id
from ulorl.recipe import FieldNames, Recipe
from ulorl.recipe_schedule import phases
from ulorl.recipe_validation import HELD_OUT_SHARE, MOST_HELD_OUT
from ulorl.rows import read_problem_table, read_problems
from ulorl.seeds import derive_seed
from ulorl.train.rollout import check_shares
from ulorl.verify.tasks.choices import RowError, choices_of


def validation_inputs(recipe: Recipe) -> list[str]:
    """What validation reads, for the fingerprint of a run."""
    return [recipe.train.validation.problems] if recipe.train.validation.problems else []


@dataclass(frozen=True)
class Split:
    """The problems of a run. ``overlap``: problems of the data that are not trained on because they validate."""

    trained: list[Problem]
    validation: list[Problem]
    overlap: int = 0

    def shown(self, prompted: Callable[[Sequence[Problem]], list[Problem]]) -> Split:
        """The same with the texts that a model is shown (``ulorl.verify.tasks.scorer.Scorer.prompted``)."""
        return replace(self, trained=prompted(self.trained), validation=prompted(self.validation))

    def __str__(self) -> str:
        tasks = Counter(problem.task for problem in self.validation)
        mix = ", ".join(f"{task} {count}" for task, count in sorted(tasks.items()))
        return (
            f"validation on {len(self.validation)} problems ({mix}), which {self.overlap} of the data are; training on "
            f"the other {len(self.trained)}"
        )


def split_problems(path: Path, recipe: Recipe) -> Split:
    """The problems of the table at ``path`` to train on, and those to validate on (none where validation is off).

    UserError where too few are there, an input of validation problems has none, or a phase draws a task without any.
    """
    split = _split(read_problem_table(path), recipe)
    check_shares(phases(recipe.train), split.trained)
    return split


def _split(problems: list[Problem], recipe: Recipe) -> Split:
    settings = recipe.train.validation
    if not settings.every:
        return Split(problems, [])
    if settings.problems:
        validation, _ = read_problems([settings.problems], FieldNames(), seed=recipe.seed)
        validation = distinct(validation)
    else:
        validation = hold_out(problems, settings.size or _default_size(problems), recipe.seed)
    places = same([*validation, *problems])
    known = set(places[: len(validation)])
    trained = [one for one, place in zip(problems, places[len(validation) :], strict=True) if place not in known]
    if not trained:
        raise UserError("train.validation.problems: holds all problems of the training data; there is none to train on")
    return Split(trained, validation, len(problems) - len(trained))


def _default_size(problems: Sequence[Problem]) -> int:
    different = distinct(problems)
    tasks = len({problem.task for problem in different})
    return max(tasks, min(MOST_HELD_OUT, len(different) // HELD_OUT_SHARE))


def same(problems: Sequence[Problem]) -> list[int]:
    """For each problem the place of the first that is the same: they share id or text, perhaps by way of others.

    Ids alone do not tell: rows of the same text have an id each (``ulorl.curate.ids``).
    """
    first, leads = dict[str, int](), list(range(len(problems)))

    def lead(place: int) -> int:
        while leads[place] != place:
            leads[place] = place = leads[leads[place]]
        return place

    for place, problem in enumerate(problems):
        for name in _names(problem):
            one, other = sorted((lead(first.setdefault(name, place)), lead(place)))
            leads[other] = one
    return [lead(place) for place in range(len(problems))]


def distinct(problems: Sequence[Problem]) -> list[Problem]:
    """Every problem once: of those that are the same the one with the least id."""
    groups = defaultdict[int, list[Problem]](list)
    for place, problem in zip(same(problems), problems, strict=True):
        groups[place].append(problem)
    return [min(group, key=lambda one: one.id) for group in groups.values()]


def _names(problem: Problem) -> set[str]:
    """What says which problem it is: its id, and the hashes of its text as it is and as it was, options included."""
    texts, options = {problem.problem, problem.original_problem or problem.problem}, ""
    if problem.task != MATH:
        try:
            choices = choices_of(problem)
        except RowError:  # refused elsewhere
            choices = None
        options = "" if choices is None else "\n".join(sorted(choices.options))
    return {problem.id, *(problem_id(f"{text}\n{options}") for text in texts)}


def hold_out(problems: Sequence[Problem], size: int, seed: int) -> list[Problem]:
    """``size`` different problems, of every task its share (at least one, where there are two), at most half."""
    by_task: dict[str, list[Problem]] = defaultdict(list)
    different = distinct(problems)
    for problem in different:
        by_task[problem.task].append(problem)
    most = {task: len(of_task) // 2 for task, of_task in by_task.items()}
    if size < sum(count > 0 for count in most.values()):
        raise UserError(f"train.validation.size: {size} problems cannot be of all {len(by_task)} tasks of the data")
    if size > sum(most.values()):
        raise UserError(
            f"train.validation.size: {size} problems are to be held out, but at most half of the {len(different)} "
            f"different ones are: {sum(most.values())}"
        )
    counts = dict.fromkeys(by_task, 0)
    for _ in range(size):
        # Sainte-Laguë's rule, but that every task has its first problem before any has a second.
        behind = {
            task: Fraction(2 * counts[task] + 1, len(by_task[task])) if counts[task] else Fraction(-1)
            for task in sorted(by_task)
            if counts[task] < most[task]
        }
        counts[min(behind, key=behind.__getitem__)] += 1
    return [
        problem
        for task in sorted(by_task)
        for problem in sorted(by_task[task], key=lambda one: derive_seed(seed, "held out", one.id))[: counts[task]]
    ]
