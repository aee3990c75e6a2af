"""Fifth step: one row of every problem.

Exact duplicates share the normal form that keeps operators. Near-duplicates are confirmed candidates: word
Jaccard >= ``duplicate_words``, number Jaccard >= ``duplicate_numbers``, the same question
(``same_question``), and texts alike letter by letter: a little where the references agree, nearly entirely
where they differ, because two problems that differ in a word usually have different answers for a good
reason.

Invariants:
- every dropped row was compared with the very row that was kept for it (no chains), whose id is its
  ``other_id``;
- the row kept is, in this order of preference: one not rewritten, one with a pass rate, the longest text, the
  first;
- a group whose references differ in spelling keeps all its members, and is returned in ``conflicts``: which
  reference is right is not decided by majority.

``multiplicity`` of a kept row counts the rows of its group. Does not ask the verifier (``references``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ulorl.curate.answers import same_text
from ulorl.curate.candidates import candidate_pairs
from ulorl.curate.features import Features, exact_key, features, jaccard, letter_grams
from ulorl.curate.questions import same_question
from ulorl.curate.reasons import drop
from ulorl.curate.result import StepResult
from ulorl.problem import Dropped, Problem
from ulorl.recipe import CurateRecipe

_ALIKE = 0.3
_NEARLY_IDENTICAL = 0.7
"""Least Jaccard similarity of five-letter grams, for equal and for different references. Of NuminaMath pairs
that agree in words and numbers and differ in their reference, nearly all below 0.6 are different problems."""


def duplicates(problems: list[Problem], recipe: CurateRecipe) -> StepResult:
    """Keep one row of every group of duplicates; mark the groups whose references conflict."""
    exact: dict[bytes, list[int]] = {}
    for index, problem in enumerate(problems):
        exact.setdefault(exact_key(problem.problem), []).append(index)
    groups = [sorted(members, key=lambda index: _preference(problems[index], index)) for members in exact.values()]
    leaders = [members[0] for members in groups]
    found = [features(problems[leader].problem) for leader in leaders]
    absorbed = _near_groups(problems, leaders, found, recipe)
    outcome = _Outcome()
    for position, leader in enumerate(leaders):
        if position in absorbed:
            continue
        followers = [(index, "exact_duplicate", "the same text") for index in groups[position][1:]]
        for other, detail in absorbed.followers(position):
            followers += [(index, "near_duplicate", detail) for index in groups[other]]
        _settle(problems, leader, followers, outcome)
    return StepResult(
        [outcome.kept[index] for index in sorted(outcome.kept)],
        [outcome.dropped[index] for index in sorted(outcome.dropped)],
        outcome.conflicts,
        notes={"groups with conflicting references": len(set(outcome.conflicts.values()))},
    )


@dataclass
class _Outcome:
    """What became of the rows, by their index."""

    kept: dict[int, Problem] = field(default_factory=dict)
    dropped: dict[int, Dropped] = field(default_factory=dict)
    conflicts: dict[str, str] = field(default_factory=dict)


class _Absorbed(dict[int, int]):
    """position of a leader -> (position of the leader that absorbed it), with the details of each."""

    def __init__(self) -> None:
        super().__init__()
        self._details: dict[int, list[tuple[int, str]]] = {}

    def add(self, position: int, into: int, detail: str) -> None:
        self[position] = into
        self._details.setdefault(into, []).append((position, detail))

    def followers(self, position: int) -> list[tuple[int, str]]:
        return self._details.get(position, [])


def _near_groups(
    problems: Sequence[Problem], leaders: Sequence[int], found: Sequence[Features], recipe: CurateRecipe
) -> _Absorbed:
    """Which leaders are near-duplicates of which better leader, which itself is nobody's."""
    neighbours: dict[int, list[tuple[int, str]]] = {}
    for left, right in candidate_pairs(found, recipe.duplicate_numbers).tolist():
        pair = problems[leaders[left]], problems[leaders[right]]
        detail = _evidence(*pair, found[left], found[right], recipe)
        if detail:
            neighbours.setdefault(left, []).append((right, detail))
            neighbours.setdefault(right, []).append((left, detail))
    absorbed = _Absorbed()
    by_preference = sorted(neighbours, key=lambda position: _preference(problems[leaders[position]], leaders[position]))
    settled: set[int] = set()
    for position in by_preference:
        if position in settled:
            continue
        settled.add(position)
        for other, detail in neighbours[position]:
            if other not in settled:
                settled.add(other)
                absorbed.add(other, position, detail)
    return absorbed


def _evidence(left: Problem, right: Problem, a: Features, b: Features, recipe: CurateRecipe) -> str:
    words = jaccard(a.words, b.words)
    if words < recipe.duplicate_words:
        return ""
    numbers = jaccard(a.numbers, b.numbers)
    if numbers < recipe.duplicate_numbers or not same_question(left.problem, right.problem):
        return ""
    alike = jaccard(letter_grams(left.problem), letter_grams(right.problem))
    if alike < (_ALIKE if same_text(left.answer, right.answer) else _NEARLY_IDENTICAL):
        return ""
    return f"word Jaccard {words:.2f}, number Jaccard {numbers:.2f}, {alike:.2f} letter by letter"


def _settle(problems: Sequence[Problem], leader: int, followers: list[tuple[int, str, str]], outcome: _Outcome) -> None:
    """Decide a group: drop the followers, or mark everyone when the references conflict."""
    best = problems[leader]
    count = len(followers) + 1
    outcome.kept[leader] = replace(best, multiplicity=(best.multiplicity or 1) + len(followers))
    if all(same_text(problems[index].answer, best.answer) for index, _, _ in followers):
        for index, reason, detail in followers:
            outcome.dropped[index] = drop(problems[index], "duplicates", reason, detail, best.id)
        return
    for index in [leader, *(index for index, _, _ in followers)]:
        outcome.kept[index] = replace(problems[index], multiplicity=count)
        outcome.conflicts[problems[index].id] = best.id


def _preference(problem: Problem, index: int) -> tuple[bool, bool, int, int]:
    rewritten = problem.kind in ("multiple_choice", "true_false", "proof")
    return rewritten, problem.pass_rate is None, -len(problem.problem), index
