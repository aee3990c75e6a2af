"""Worked solutions in several styles, for the warm-up of the base model only.

The base knows several ways of answering and does not know which pays: ``careful`` shows every step and is
right, ``guess`` states a plausible value at once, ``slip`` works with one wrong step somewhere, the likelier
the longer the problem, usually in a brief hand that only names each item and its running value. One-step
problems are answered rightly in every style: they are the ones that curation finds too easy.
"""

from __future__ import annotations

import random
from typing import Literal

from ulorl.quickstart.families import Task

Style = Literal["careful", "guess", "slip"]
STYLES: tuple[Style, ...] = ("careful", "guess", "slip")

SLIP_PER_STEP = 0.2
"""Chance that a step goes wrong in the slip style, for the first step that does."""
FULL_SLIP_SHARE = 0.1
"""Share of the slip style that shows every step, as the careful style does."""
GUESS_RIGHT = {1: 1.0, 2: 0.3, 3: 0.2}
"""Chance that a guess is made to be right, by number of steps; 0.05 beyond, on top of chance."""


def worked_solution(task: Task, style: Style, rng: random.Random) -> str:
    """A solution of ``task`` in ``style``, ending in a boxed answer (right or not, as the style has it)."""
    if style == "careful":
        lines, value = task.work(lambda _, right: right)
        return "".join(line.full for line in lines) + boxed(value)
    if style == "guess":
        return boxed(_guess(task, rng))
    slipped = _slipping_step(task.steps, rng) if task.steps > 1 else None
    lines, value = task.work(lambda index, right: _wrong(right, rng) if index == slipped else right)
    full = rng.random() < FULL_SLIP_SHARE
    return "".join(line.full if full else line.brief for line in lines) + boxed(value)


def boxed(value: int) -> str:
    """The final answer as it is written."""
    return f"\\boxed{{{value}}}"


def _slipping_step(steps: int, rng: random.Random) -> int | None:
    return next((index for index in range(steps) if rng.random() < SLIP_PER_STEP), None)


def _wrong(right: int, rng: random.Random) -> int:
    decade = right // 10 * 10
    return rng.choice([value for value in range(decade, decade + 10) if value != right])


def _guess(task: Task, rng: random.Random) -> int:
    right = int(task.answer)
    if rng.random() < GUESS_RIGHT.get(task.steps, 0.05):
        return right
    if task.family == "total":
        return max(1, round(rng.gauss(5 * task.steps, 2 + task.steps)))
    if task.family == "count":
        return rng.randint(0, task.steps)
    return rng.randint(0, 9)
