"""Sixth step: no benchmark item among the training problems.

Two levels, each with the item and the evidence:
- the *same problem*: the normal form of the texts is the same; or, against one item, words have Jaccard similarity
  >= ``leak_words``, numbers >= ``leak_numbers``, what they share is not commonplace (``convincing``), nothing that is
  asked was replaced (``same_question``), and the references agree by the verifier's rules. Where the references
  differ, only nearly identical texts are the same problem: another question about the same figure is not;
- the same *template*: what they share is rare and plenty, but data, question or reference differ. Such a row is kept
  with the item in its column ``template``, or dropped with ``drop_templates``.

n-gram overlap is not used: contest problems share stock phrases without being the same.

Invariants: exact, no hashing estimates: an inverted index from words to benchmark items yields each row's
similarity to all items at once. Work is linear in the rows (about 0.15 ms a row against 3,300 items), and
memory does not grow with them. Does not read benchmarks (``ulorl.rows``).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ulorl.curate.equivalence import same_answer
from ulorl.curate.features import (
    Features,
    exact_key,
    features,
    jaccard,
    letter_grams,
    normal_form,
    without_drawings,
)
from ulorl.curate.questions import same_question
from ulorl.curate.reasons import drop
from ulorl.curate.result import StepResult
from ulorl.problem import Dropped, Problem
from ulorl.recipe import CurateRecipe

_NEARLY_IDENTICAL, _IDENTICAL_SHARE = 0.7, 0.85
"""Least similarity of five-letter grams, and by rarity, of texts with different references that are one problem."""
_TOLD_WORDS = 0.7
"""Share of ``leak_words`` that is enough where numbers and references tell."""
_LEAST_SHARE, _LEAST_NATS = 0.35, 20.0
_COMMAND = re.compile(r"\\[A-Za-z]+")
_NOWHERE = np.empty(0, dtype=np.int64)
_TEMPLATE_SHARE, _TEMPLATE_NATS = 0.6, 60.0
"""What a template shares: this part of its information, and this much of it."""


@dataclass(frozen=True)
class Match:
    """A benchmark item that a row is like."""

    benchmark: str
    item: Problem
    same_problem: bool
    evidence: str

    @property
    def item_id(self) -> str:
        """The item's own id, where it has one."""
        return self.item.source_id or self.item.id

    @property
    def detail(self) -> str:
        """Benchmark, evidence, and the beginning of the item."""
        return f"{self.benchmark}: {self.evidence}; item: {self.item.problem[:120]!r}"


def contamination(
    problems: list[Problem], recipe: CurateRecipe, benchmarks: Mapping[str, Sequence[Problem]] | BenchmarkIndex
) -> StepResult:
    """Drop every row that is an item of ``benchmarks`` (name -> items), and mark or drop those of the same template.

    ``other_id`` of a dropped row is the item's id.
    """
    index = benchmarks
    if not isinstance(index, BenchmarkIndex):
        index = BenchmarkIndex(index, recipe.leak_words, recipe.leak_numbers)
    kept: list[Problem] = []
    dropped: list[Dropped] = []
    marked = 0
    for problem in problems:
        match = index.find(problem)
        if match is None:
            kept.append(problem)
        elif match.same_problem:
            dropped.append(drop(problem, "contamination", "benchmark_leak", match.detail, match.item_id))
        elif recipe.drop_templates:
            dropped.append(drop(problem, "contamination", "benchmark_template", match.detail, match.item_id))
        else:
            marked += 1
            kept.append(replace(problem, template=f"{match.item_id} of {match.benchmark}: {match.evidence}"))
    return StepResult(kept, dropped, notes={"rows marked as a benchmark's template": marked})


def convincing(numbers: float, weighted: float, shared: float) -> bool:
    """Whether two similar texts share more than what many problems share.

    ``numbers`` is the Jaccard similarity of the numbers, ``weighted`` that of words and numbers weighted by
    their rarity, ``shared`` the information in what they share, in nats. The limits separate 133 labelled
    pairs from the pairs that 15,000 training rows form with 3,200 benchmark items by chance.
    """
    if weighted < 0.5:
        return False
    enough = 40.0 if numbers >= 0.8 else 75.0
    if numbers == 1.0:
        enough = 20.0 if weighted >= 0.75 else 35.0 if weighted >= 0.6 else enough
    return shared >= enough


class BenchmarkIndex:
    """Finds the benchmark item that a problem is like."""

    def __init__(self, benchmarks: Mapping[str, Sequence[Problem]], words: float, numbers: float) -> None:
        self.items = [(name, item) for name, listed in benchmarks.items() for item in listed]
        self._features = [features(item.problem) for _, item in self.items]
        self._exact = {exact_key(item.problem): place for place, (_, item) in enumerate(self.items)}
        self._least_words, self._least_numbers = words, numbers
        self._sizes = np.array([len(one.words) for one in self._features], dtype=np.int64)
        self._frequency = Counter(token for one in self._features for token in one.tokens)
        postings: dict[str, list[int]] = {}
        for place, one in enumerate(self._features):
            for token in one.tokens:
                postings.setdefault(token, []).append(place)
        self._postings = {token: np.array(places, dtype=np.int64) for token, places in postings.items()}
        self._totals = np.array([sum(map(self._weight, sorted(one.tokens))) for one in self._features])

    def find(self, problem: Problem) -> Match | None:
        """The item that is the same problem, else one of the same template, else None; the most similar one."""
        if not self.items:
            return None
        texts = [problem.problem] + ([problem.original_problem] if problem.original_problem else [])
        for text in texts:
            place = self._exact.get(exact_key(text))
            if place is not None:
                return Match(*self.items[place], True, "the same text")
        row = features(problem.problem)
        words, weighted, shared = self._similar(row)
        likely = (words >= _TOLD_WORDS * self._least_words) & (weighted >= _LEAST_SHARE) & (shared >= _LEAST_NATS)
        best: tuple[tuple[bool, float, int], Match] | None = None
        for place in np.flatnonzero(likely).tolist():
            overlap = _Overlap(
                float(words[place]),
                jaccard(row.numbers, self._features[place].numbers),
                _contained(row.numbers, self._features[place].numbers),
                float(weighted[place]),
                float(shared[place]),
            )
            match = self._compare(problem, place, overlap)
            if match is not None and (best is None or (match.same_problem, overlap.words, -place) > best[0]):
                best = (match.same_problem, overlap.words, -place), match
        return None if best is None else best[1]

    def _compare(self, problem: Problem, place: int, overlap: _Overlap) -> Match | None:
        name, item = self.items[place]
        known = _reference_nats(item.answer)
        near = overlap.words >= self._least_words and overlap.numbers >= self._least_numbers
        alike = near and overlap.convincing()
        with_reference = alike or (near and overlap.convincing(known)) or overlap.told(known)
        if with_reference and same_answer(problem.answer, item.answer):
            certain = known > 0 and overlap.shared >= _TEMPLATE_NATS and overlap.same_data
            if certain or same_question(problem.problem, item.problem):
                return Match(name, item, True, f"{overlap}, the same reference")
        elif alike and overlap.numbers == 1.0 and overlap.weighted >= _IDENTICAL_SHARE:
            letters = jaccard(letter_grams(problem.problem), letter_grams(item.problem))
            if letters >= _NEARLY_IDENTICAL and _same_task(problem.problem, item.problem):
                return Match(name, item, True, f"{overlap}, {letters:.2f} letter by letter, another reference")
        if (
            overlap.words >= self._least_words
            and overlap.weighted >= _TEMPLATE_SHARE
            and overlap.shared >= _TEMPLATE_NATS
        ):
            return Match(name, item, False, str(overlap))
        return None

    def _weight(self, token: str) -> float:
        """Information of a word or number, in nats: -log of the share of benchmark items that hold it."""
        return math.log((len(self.items) + 1) / (self._frequency[token] + 1))

    def _similar(self, row: Features) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(items,) Jaccard similarity of the words, of words and numbers by information, and what is shared in nats.

        Tokens are added in one order, so that sums are the same in every process.
        """
        tokens = [*sorted(row.words), *sorted(row.numbers)]
        places = [self._postings.get(token, _NOWHERE) for token in tokens]
        weights = [self._weight(token) for token in tokens]
        lengths = list(map(len, places))
        together = np.concatenate([_NOWHERE, *places])
        items = len(self.items)
        common = np.bincount(together[: sum(lengths[: len(row.words)])], minlength=items)
        shared = np.bincount(together, weights=np.repeat(weights, lengths), minlength=items)
        words = common / np.maximum(len(row.words) + self._sizes - common, 1)
        return words, shared / np.maximum(sum(weights) + self._totals - shared, 1e-9), shared


@dataclass(frozen=True)
class _Overlap:
    """What a row and an item share."""

    words: float
    numbers: float
    contained: bool
    """All numbers of one are numbers of the other."""
    weighted: float
    shared: float

    @property
    def same_data(self) -> bool:
        """All numbers agree, or nearly all and nearly everything else."""
        return self.numbers == 1.0 or (self.numbers >= 0.75 and self.weighted >= 0.9)

    def convincing(self, known: float = 0.0) -> bool:
        """Enough for the same problem; ``known`` is what the same references tell beside it, in nats."""
        return convincing(self.numbers, self.weighted, self.shared + known)

    def told(self, known: float) -> bool:
        """Enough for the same problem in other words, where the references tell ``known`` nats."""
        if not known:
            return False
        least = 0.5 if self.weighted >= 0.85 else 0.6
        added = self.contained and self.numbers >= least and self.weighted >= 0.6
        return (added or self.numbers >= 0.8) and self.shared + known >= 65 and self.weighted >= 0.4

    def __str__(self) -> str:
        return (
            f"word Jaccard {self.words:.2f}, number Jaccard {self.numbers:.2f}, {self.weighted:.2f} by rarity, "
            f"{self.shared:.0f} nats shared"
        )


def _reference_nats(answer: str) -> float:
    """What the agreement of a reference tells: nothing for one digit, as much as a rare word for each of three."""
    characters = sum(character.isalnum() for character in _COMMAND.sub("", answer))
    return 7.0 * min(characters, 3) if characters > 1 and any(map(str.isdigit, answer)) else 0.0


def _same_task(left: str, right: str) -> bool:
    """Whether nothing was replaced, and each operator and relation is there equally often."""
    if not same_question(left, right):
        return False
    here, there = Counter(normal_form(without_drawings(left))), Counter(normal_form(without_drawings(right)))
    return all(here[sign] == there[sign] for sign in "+-*/<>=^|!")


def _contained(left: frozenset[str], right: frozenset[str]) -> bool:
    return left <= right or right <= left
