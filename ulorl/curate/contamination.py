"""Sixth step: no benchmark item among the training problems.

A row leaks when its normal form is a benchmark item's, or when, against one item, its words have Jaccard
similarity >= ``leak_words``, its numbers >= ``leak_numbers``, and what they share is not commonplace
(``convincing``): short problems about x, 1 and 2 are alike without being the same, and contest problems share
stock phrases, which is why n-gram overlap is not used.

Invariants: exact, no hashing estimates: an inverted index from words to benchmark items yields each row's
similarity to all items at once. Work is linear in the rows (about 0.5 ms a row against 3,300 items), and
memory does not grow with them. Does not read benchmarks (``ulorl.rows``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from ulorl.curate.features import Features, exact_key, features, jaccard
from ulorl.curate.questions import same_question
from ulorl.curate.reasons import drop
from ulorl.curate.result import StepResult
from ulorl.problem import Dropped, Problem
from ulorl.recipe import CurateRecipe


def contamination(
    problems: list[Problem], recipe: CurateRecipe, benchmarks: Mapping[str, Sequence[Problem]]
) -> StepResult:
    """Drop every row that leaks into one of ``benchmarks`` (name -> items); ``other_id`` is the item's id."""
    index = BenchmarkIndex(benchmarks, recipe.leak_words, recipe.leak_numbers)
    kept: list[Problem] = []
    dropped: list[Dropped] = []
    for problem in problems:
        found = index.find(problem)
        if found is None:
            kept.append(problem)
        else:
            identity, detail = found
            dropped.append(drop(problem, "contamination", "benchmark_leak", detail, identity))
    return StepResult(kept, dropped, notes={"benchmark items": len(index.items)})


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
    """Finds the benchmark item that a problem leaks."""

    def __init__(self, benchmarks: Mapping[str, Sequence[Problem]], words: float, numbers: float) -> None:
        self.items = [(name, item) for name, listed in benchmarks.items() for item in listed]
        self._features = [features(item.problem) for _, item in self.items]
        self._exact = {exact_key(item.problem): place for place, (_, item) in enumerate(self.items)}
        self._least_words, self._least_numbers = words, numbers
        self._sizes = np.array([len(one.words) for one in self._features], dtype=np.int64)
        self._frequency = Counter(token for one in self._features for token in one.tokens)
        postings: dict[str, list[int]] = {}
        for place, one in enumerate(self._features):
            for word in one.words:
                postings.setdefault(word, []).append(place)
        self._postings = {word: np.array(places, dtype=np.int64) for word, places in postings.items()}

    def find(self, problem: Problem) -> tuple[str, str] | None:
        """(id of the item, evidence) of the most similar leak, else None."""
        if not self.items:
            return None
        texts = [problem.problem] + ([problem.original_problem] if problem.original_problem else [])
        for text in texts:
            place = self._exact.get(exact_key(text))
            if place is not None:
                return self._leak(place, "the same text")
        row = features(problem.problem)
        similar = self._word_jaccard(row)
        leaks = [
            (similar[place], -place, evidence)
            for place in np.flatnonzero(similar >= self._least_words).tolist()
            if (evidence := self._evidence(problem.problem, row, place))
        ]
        if not leaks:
            return None
        words, place, evidence = max(leaks)
        return self._leak(-place, f"word Jaccard {words:.2f}, {evidence}")

    def _evidence(self, text: str, row: Features, place: int) -> str:
        item = self._features[place]
        numbers = jaccard(row.numbers, item.numbers)
        if numbers < self._least_numbers:
            return ""
        shared = sum(map(self._weight, sorted(row.tokens & item.tokens)))
        weighted = shared / max(sum(map(self._weight, sorted(row.tokens | item.tokens))), 1e-9)
        if not convincing(numbers, weighted, shared) or not same_question(text, self.items[place][1].problem):
            return ""
        return f"number Jaccard {numbers:.2f}, {weighted:.2f} by rarity, {shared:.0f} nats shared"

    def _weight(self, token: str) -> float:
        """Information of a word or number, in nats: -log of the share of benchmark items that hold it."""
        return math.log((len(self.items) + 1) / (self._frequency[token] + 1))

    def _word_jaccard(self, row: Features) -> np.ndarray:
        """(items,) Jaccard similarity of the row's words to every item's."""
        lists = [self._postings[word] for word in row.words if word in self._postings]
        if not lists:
            return np.zeros(len(self.items))
        common = np.bincount(np.concatenate(lists), minlength=len(self.items))
        return common / (len(row.words) + self._sizes - common)

    def _leak(self, place: int, evidence: str) -> tuple[str, str]:
        name, item = self.items[place]
        return item.source_id or item.id, f"{name}: {evidence}; item: {item.problem[:120]!r}"
