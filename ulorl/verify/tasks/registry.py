"""Tasks by name: those of the package, and those that installed packages register by entry point.

    [project.entry-points."ulorl.tasks"]
    chess = "my_package.chess:Chess"

Invariants: a name means one task; a built-in one is never replaced. Nothing is imported before it is asked for.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from ulorl.errors import UserError
from ulorl.verify.grammar.tokens import words
from ulorl.verify.tasks.base import Task

if TYPE_CHECKING:
    from ulorl.recipe import VerifyRecipe

GROUP = "ulorl.tasks"
BUILT_IN = {
    "code": "ulorl.verify.tasks.code:CodeTask",
    "ifollow": "ulorl.verify.tasks.ifollow:InstructionTask",
    "logic": "ulorl.verify.tasks.logic:LogicTask",
    "math": "ulorl.verify.tasks.mathematics:MathTask",
    "stem": "ulorl.verify.tasks.stem:StemTask",
}
"""Name in the problem's ``task`` column to where its class is."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
NO_NAMES = words(
    """avg mean stderr best since_improvement error_share undecided_share no_answer_share truncated_share length_mean
    groups_all_right groups_all_wrong judge_undecided judge_accepted judge_rejected judge_reviewed judge_overturned
    judge_gated judge_failed"""
)
"""What follows ``reward/`` or ``validation/`` in metrics that are not those of a task."""


def task_names() -> list[str]:
    """Every name that a ``task`` column may hold, sorted."""
    return sorted({*BUILT_IN, *_registered()})


def summaries() -> dict[str, str]:
    """What each task is, in a line: the first of its class's docstring, or why it cannot be loaded."""
    found = {}
    for name in task_names():
        try:
            documented = sys.modules[_class(name).__module__].__doc__ if name in BUILT_IN else _class(name).__doc__
            found[name] = (documented or "").strip().partition("\n")[0].removeprefix(f"Task ``{name}``: ")
        except Exception as error:  # whatever a registered package does when it is imported
            found[name] = f"cannot be loaded: {type(error).__name__}: {error}"
    return found


def unknown_task(name: str) -> str:
    """What to say of a name that is no task's."""
    return f"no task {name!r}; there are {', '.join(task_names())} (own ones: entry points of the group {GROUP})"


def load_task(name: str, config: VerifyRecipe) -> Task:
    """The task called ``name``. UserError where there is none, or where what is registered cannot be used."""
    if name not in BUILT_IN and name not in _registered():
        raise UserError(unknown_task(name))
    try:
        made = _class(name)(config)
    except UserError:
        raise
    except Exception as error:  # whatever a registered package does when it is imported
        where = _registered()[name].value if name in _registered() else BUILT_IN[name]
        raise UserError(f"task {name} ({where}) cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(made, Task):
        raise UserError(f"task {name}: {type(made).__name__} is no ulorl.verify.tasks.base.Task")
    return made


def _class(name: str) -> type[Task]:
    if name in _registered():
        found: type[Task] = _registered()[name].load()
        return found
    module, _, attribute = BUILT_IN[name].partition(":")
    built_in: type[Task] = getattr(import_module(module), attribute)
    return built_in


@cache
def _registered() -> dict[str, EntryPoint]:
    """Entry points by name. UserError for a name that cannot be one of a task, or that is taken."""
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUP):
        if _NAME.fullmatch(point.name) is None or point.name in NO_NAMES:
            raise UserError(
                f"entry point {point.name!r} of {GROUP} ({point.value}): a task is named by small letters, digits and "
                "_, and not as a metric is"
            )
        taken = BUILT_IN.get(point.name) or (found[point.name].value if point.name in found else point.value)
        if taken != point.value:
            raise UserError(f"two tasks are called {point.name}: {taken} and {point.value}; rename or uninstall one")
        found[point.name] = point
    return found
