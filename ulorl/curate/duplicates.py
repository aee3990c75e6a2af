"""Fifth step: one row of every problem.

Exact duplicates share the normal form that keeps operators. Near-duplicates are confirmed candidates: word
Jaccard >= ``duplicate_words``, number Jaccard >= ``duplicate_numbers``, the same question
(``same_question``), and texts alike letter by letter. Where the references differ, one text must moreover be
the other in trivially different words (``restated``): two problems that differ in a word usually have different
answers for a good reason. Where all numbers agree and are telling, and the references too, fewer of the words
need to be the same: that is how one problem looks in another translation.

Invariants:
- every dropped row was compared with the very row that was kept for it (no chains), whose id is its
  ``other_id``;
- the row kept is, in this order of preference: one not rewritten, one with a pass rate, the longest text, the
  first;
- a group whose references differ (by spelling and by the verifier's rules) keeps all its members, each with the
  group's first row in ``conflict``: which reference is right is not decided by majority;
- memory holds hashes and what was decided, and texts only while a pair is compared.

``multiplicity`` of a kept row counts the rows of its group. Does not ask the verifier (``references``).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from ulorl.curate.candidates import Pairs, candidate_pairs, nearest
from ulorl.curate.equivalence import same_answer
from ulorl.curate.features import features, jaccard, letter_grams
from ulorl.curate.questions import same_question
from ulorl.curate.reasons import drop
from ulorl.curate.restated import restated
from ulorl.curate.result import StepResult
from ulorl.curate.signatures import Signatures, signatures
from ulorl.problem import Dropped, Problem
from ulorl.recipe import CurateRecipe

KEPT, EXACT, NEAR, CONFLICT = range(4)
SKIPPED = "pairs not compared, in crowded groups"
"""Name of the note that counts what was left out (``candidates``)."""
_TOLD_WORDS = 0.8
"""Share of ``duplicate_words`` that is enough where numbers and references tell."""
_TOLD_ALIKE, _ALIKE, _RESTATED = 0.2, 0.3, 0.4
"""Least Jaccard similarity of five-letter grams: where they tell, for equal and for different references (where
hardly any pair below is ``restated``, so that it is not asked)."""
_MOST = 64
"""Better rows with which a row is compared, at most. Of 3,160 duplicates in the training sets 38 came after the
first eight, seven after the first 16, the last as the 52nd."""

_COMMONPLACE = frozenset({"0", "1", "2", "-1"})
_TELLING_DIGITS = 3
"""Numbers that are nothing but 0, 1, 2 and one or two digits more agree by chance."""


class Texts(Protocol):
    """Problem and reference of a row, wherever they lie."""

    def text(self, row: int) -> tuple[str, str]:
        """(problem, reference) of row ``row``."""
        ...


@dataclass(frozen=True)
class Groups:
    """What becomes of every row; arrays over rows, but for ``evidence``, which is over ``near``."""

    leader: np.ndarray
    """int64, the row for which a row is dropped, or the first of its conflicting group; itself elsewhere."""
    state: np.ndarray
    """uint8, KEPT, EXACT, NEAR or CONFLICT."""
    multiplicity: np.ndarray
    """int32, rows that a kept row stands for."""
    near: np.ndarray
    """int64, sorted rows that are near-duplicates, dropped or not."""
    evidence: np.ndarray
    """(len(near), 3) float32: similarity of words, of numbers, letter by letter."""
    skipped: int
    """Pairs that were not compared because others were nearer (``candidates``)."""

    def slice(self, start: int, stop: int) -> Groups:
        """The same for rows ``start`` to ``stop``; ``leader`` keeps its numbering."""
        first, last = np.searchsorted(self.near, [start, stop])
        return Groups(
            self.leader[start:stop],
            self.state[start:stop],
            self.multiplicity[start:stop],
            self.near[first:last] - start,
            self.evidence[first:last],
            self.skipped,
        )


def duplicates(problems: list[Problem], recipe: CurateRecipe) -> StepResult:
    """Keep one row of every group of duplicates; mark the groups whose references conflict."""
    groups = group_rows(signatures(problems), _InMemory(problems), recipe)
    result = settle(problems, groups, [problems[row].id for row in groups.leader.tolist()])
    return replace(result, notes=result.notes | {SKIPPED: groups.skipped})


def settle(problems: Sequence[Problem], groups: Groups, leader_ids: Sequence[str]) -> StepResult:
    """Carry out for some rows what ``group_rows`` decided; ``leader_ids`` are the ids of their leaders."""
    kept: list[Problem] = []
    dropped: list[Dropped] = []
    conflicts: dict[str, str] = {}
    evidence = dict(zip(groups.near.tolist(), groups.evidence.tolist(), strict=True))
    for row, (problem, state) in enumerate(zip(problems, groups.state.tolist(), strict=True)):
        other, count = leader_ids[row], int(groups.multiplicity[row])
        if state == KEPT:
            kept.append(replace(problem, multiplicity=count, conflict=None))
        elif state == CONFLICT:
            kept.append(replace(problem, multiplicity=count, conflict=other))
            conflicts[problem.id] = other
        elif state == EXACT:
            dropped.append(drop(problem, "duplicates", "exact_duplicate", "the same text", other))
        else:
            words, numbers, alike = evidence[row]
            detail = f"word Jaccard {words:.2f}, number Jaccard {numbers:.2f}, {alike:.2f} letter by letter"
            dropped.append(drop(problem, "duplicates", "near_duplicate", detail, other))
    notes = {"rows in groups with conflicting references": len(conflicts)}
    return StepResult(kept, dropped, conflicts, notes)


def group_rows(rows: Signatures, texts: Texts, recipe: CurateRecipe) -> Groups:
    """Decide about every row."""
    order = _by_preference(rows)
    exact_leader = _exact_leaders(rows, order)
    leaders = np.flatnonzero(exact_leader == np.arange(len(rows)))
    rank = _rank(order)
    pairs = candidate_pairs(rows, leaders, _TOLD_WORDS * recipe.duplicate_words, recipe.duplicate_numbers)
    pairs = nearest(pairs, rank, _MOST)
    absorbed = _absorb(pairs, texts, rank, recipe.duplicate_words)
    near_leader = np.arange(len(rows))
    near_leader[absorbed.row] = absorbed.into
    leader = near_leader[exact_leader]
    state = np.full(len(rows), EXACT, dtype=np.uint8)
    state[leader == np.arange(len(rows))] = KEPT
    # A row of the same text as a near-duplicate is one too, with the same evidence.
    near = np.flatnonzero(leader != exact_leader)
    state[near] = NEAR
    by_row = np.argsort(absorbed.row)
    evidence = absorbed.evidence[by_row[np.searchsorted(absorbed.row, exact_leader[near], sorter=by_row)]]
    multiplicity = np.zeros(len(rows), dtype=np.int64)
    np.add.at(multiplicity, leader, rows.multiplicity)
    _mark_conflicts(leader, state, texts)
    counts = np.minimum(multiplicity, 2**31 - 1)[leader].astype(np.int32)
    return Groups(leader, state, counts, near, evidence, pairs.skipped)


@dataclass(frozen=True)
class _Absorbed:
    """Rows that another one stands for, with the evidence."""

    row: np.ndarray
    into: np.ndarray
    evidence: np.ndarray


class _InMemory:
    def __init__(self, problems: Sequence[Problem]) -> None:
        self._problems = problems

    def text(self, row: int) -> tuple[str, str]:
        return self._problems[row].problem, self._problems[row].answer


def _by_preference(rows: Signatures) -> np.ndarray:
    return np.argsort(rows.preference, kind="stable")


def _rank(order: np.ndarray) -> np.ndarray:
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank


def _exact_leaders(rows: Signatures, by_preference: np.ndarray) -> np.ndarray:
    """(rows,) the best row of the same normal form."""
    keys = rows.exact[by_preference]
    order = np.lexsort((keys[:, 1], keys[:, 0]))  # stable: within a group by preference
    keys = keys[order]
    starts = np.concatenate([[True], (keys[1:] != keys[:-1]).any(axis=1)]) if len(keys) else np.empty(0, dtype=bool)
    members = by_preference[order]
    leader = np.empty(len(rows), dtype=np.int64)
    leader[members] = members[starts][np.cumsum(starts) - 1] if len(keys) else members
    return leader


def _absorb(pairs: Pairs, texts: Texts, rank: np.ndarray, least_words: float) -> _Absorbed:
    """Which rows are near-duplicates of which better row, which itself is nobody's.

    The best row takes all its duplicates, then the best of those left takes its own, and so on.
    """
    left, right = rank[pairs.left], rank[pairs.right]
    better, worse = np.where(left < right, (pairs.left, pairs.right), (pairs.right, pairs.left))
    order = np.lexsort((rank[worse], rank[better]))
    taken = np.zeros(len(rank), dtype=bool)
    rows, into, evidence = array("q"), array("q"), array("f")
    for better_row, others in _runs(better, worse, order):
        if taken[better_row]:
            continue
        best = _Compared(*texts.text(better_row))
        for pair, other in others:
            if taken[other]:
                continue
            alike = best.alike(
                *texts.text(other), told=pairs.numbers[pair] == 1.0, loose=pairs.words[pair] < least_words
            )
            if alike is not None:
                taken[other] = True
                rows.append(other)
                into.append(better_row)
                evidence.extend((pairs.words[pair], pairs.numbers[pair], alike))
    return _Absorbed(np.array(rows), np.array(into), np.array(evidence, dtype=np.float32).reshape(-1, 3))


class _Compared:
    """A row with which others are compared."""

    def __init__(self, text: str, answer: str) -> None:
        self._text, self._answer = text, answer

    def alike(self, text: str, answer: str, told: bool, loose: bool) -> float | None:
        """Similarity letter by letter of a near-duplicate, None for another problem.

        ``told``: all numbers agree; ``loose``: the words do so less than they must elsewhere.
        """
        told = told and len(answer) > 1 and self._telling
        if loose and not (told and same_answer(self._answer, answer)):
            return None
        if not same_question(self._text, text):
            return None
        alike = jaccard(self._grams, letter_grams(text))
        if alike < (_TOLD_ALIKE if told else _ALIKE):
            return None
        if same_answer(self._answer, answer):
            return alike
        return alike if alike >= _RESTATED and restated(self._text, text) else None

    @cached_property
    def _grams(self) -> frozenset[str]:
        return letter_grams(self._text)

    @cached_property
    def _telling(self) -> bool:
        return sum(map(len, features(self._text).numbers - _COMMONPLACE)) >= _TELLING_DIGITS


def _runs(better: np.ndarray, worse: np.ndarray, order: np.ndarray) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """(row, [(pair, other row)]) for every row that is the better one of a pair."""
    position = 0
    while position < len(order):
        row = int(better[order[position]])
        others: list[tuple[int, int]] = []
        while position < len(order) and better[order[position]] == row:
            others.append((int(order[position]), int(worse[order[position]])))
            position += 1
        yield row, others


def _mark_conflicts(leader: np.ndarray, state: np.ndarray, texts: Texts) -> None:
    """Turn the state of all members of groups with different references to CONFLICT."""
    followers = np.flatnonzero(leader != np.arange(len(leader)))
    differ: set[int] = set()
    for row in followers.tolist():
        best = int(leader[row])
        if best not in differ and not same_answer(texts.text(row)[1], texts.text(best)[1]):
            differ.add(best)
    if differ:
        state[np.isin(leader, np.array(sorted(differ)))] = CONFLICT
