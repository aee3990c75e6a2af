"""Task ``ifollow``: does a response keep verifiable constraints (length, keywords, format, case, language, counts)?

A row has ``instruction_id_list`` and ``kwargs``, a list of objects in the same order, as IFEval's rows have them;
``answer`` may be empty. What is judged is the response without its thinking part.

Invariant: a constraint is kept or not, by `ulorl.verify.tasks.constraints`; nothing is weighed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from ulorl.problem import Problem
from ulorl.verify.tasks.answers import visible
from ulorl.verify.tasks.base import NO_ANSWER, Attempt, Reward, Task
from ulorl.verify.tasks.constraints.registry import CONSTRAINTS


class RowError(ValueError):
    """What is wrong with a row."""


class InstructionTask(Task):
    """1 where all constraints are kept, or the share of those that are (``verify.tasks.ifollow.reward``)."""

    extracts = False

    def check(self, problem: Problem) -> str | None:
        try:
            found = instructions(problem)
        except RowError as error:
            return str(error)
        for name, settings in found:
            fault = CONSTRAINTS[name].fault(settings)
            if fault is not None:
                return f"{name}: {fault}"
        return None

    def score(self, attempts: Sequence[Attempt]) -> list[Reward]:
        return [self._reward(attempt) for attempt in attempts]

    def _reward(self, attempt: Attempt) -> Reward:
        text = visible(attempt.response)
        if not text:
            return Reward(0.0, NO_ANSWER)
        chosen, wanted = self.config.tasks.ifollow, instructions(attempt.problem)
        versions = [text] if chosen.strict else _loosely(text)
        kept = [any(CONSTRAINTS[name].check(one, settings) for one in versions) for name, settings in wanted]
        broken = [name for (name, _), good in zip(wanted, kept, strict=True) if not good]
        share = sum(kept) / len(kept)
        reason = f"broken: {', '.join(broken)}" if broken else "all kept"
        return Reward(share if chosen.reward == "share" else float(not broken), reason, text)


def instructions(problem: Problem) -> list[tuple[str, dict[str, Any]]]:
    """The constraints of a row with their settings. RowError for names that there are not, and what does not match."""
    extra = problem.extra
    names = _listed(extra, "instruction_id_list" if "instruction_id_list" in extra else "instruction_id")
    settings = _listed(extra, "kwargs") or [{} for _ in names]
    if not names:
        raise RowError("no constraint: the column instruction_id_list is missing or empty")
    if len(settings) != len(names):
        raise RowError(f"{len(names)} constraints and {len(settings)} kwargs; give one object for each")
    found = []
    for name, given in zip(names, settings, strict=True):
        if not isinstance(name, str):
            raise RowError(f"instruction_id_list holds {name!r:.40}, not the name of a constraint; {_near('')}")
        if name not in CONSTRAINTS:
            raise RowError(f"no constraint {name!r}; {_near(name)}")
        if given is not None and not isinstance(given, dict):
            raise RowError(f"kwargs of {name}: {given!r} is no object")
        # Tables fill the settings that a row lacks with null.
        found.append((name, {key: value for key, value in (given or {}).items() if value is not None}))
    return found


def _listed(extra: Mapping[str, Any], column: str) -> list[Any]:
    value = extra.get(column)
    if isinstance(value, str) and value.strip()[:1] in ("[", "{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise RowError(f"the column {column} is no JSON list ({error})") from error
    if value is None or value == "":
        return []
    return value if isinstance(value, list) else [value]


def _near(name: object) -> str:
    from difflib import get_close_matches

    near = get_close_matches(str(name), CONSTRAINTS, 3, 0.5)
    return f"do you mean {' or '.join(near)}?" if near else f"there are {', '.join(CONSTRAINTS)}"


@lru_cache(maxsize=1)
def _loosely(text: str) -> list[str]:
    """The text with and without its first line, its last line and its asterisks."""
    lines = text.split("\n")
    cut = ["\n".join(lines[start:end]).strip() for start in (0, 1) for end in (len(lines), -1)]
    return [version for one in cut for version in (one, one.replace("*", "")) if version]
