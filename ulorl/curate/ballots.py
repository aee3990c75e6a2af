"""What models answered to problems: tallies of their final answers, by the problem's text or by its id.

Invariants: a sample without a final answer counts for its model and for no answer; a model is one model whatever the
number of files it comes from, if they name it alike; an id that several problems of a run share finds nothing, because
a vote about another problem would drop good rows.

Memory holds one entry for each distinct (problem, model, answer), never a response.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ulorl.curate.load import clean_text
from ulorl.problem import Problem, problem_id

Tally = Counter[str | None]
"""Answer -> samples that state it; None for samples that state none."""
Extract = Callable[[str], str | None]
"""The final answer of a response, None where it states none."""
_REWRITTEN = frozenset({"multiple_choice", "proof", "true_false"})


def text_key(text: str) -> str:
    """What stands for a problem's text, cleaned or not."""
    return problem_id(clean_text(text))


@dataclass(frozen=True)
class Ballot:
    """One sample's final answer. ``text`` is the problem's ``text_key``, where its text is known."""

    model: str
    answer: str | None
    text: str | None = None
    identity: str | None = None


class Ballots:
    """Tallies by problem and model."""

    def __init__(self) -> None:
        self._by_text: dict[str, dict[str, Tally]] = defaultdict(dict)
        self._by_id: dict[str, dict[str, Tally]] = defaultdict(dict)
        self._ambiguous: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._by_text or self._by_id)

    def add(self, ballots: Iterable[Ballot]) -> None:
        """Count samples."""
        for one in ballots:
            if one.text is not None:
                tallies = self._by_text[one.text]
            elif one.identity is not None:
                tallies = self._by_id[one.identity]
            else:
                continue
            tallies.setdefault(one.model, Counter())[one.answer] += 1

    @property
    def needs_ids(self) -> bool:
        """Whether some problems are known by their id alone."""
        return bool(self._by_id)

    def refuse_shared(self, source_ids: Iterable[Iterable[str | None]]) -> int:
        """Let the ids that several rows of a run have find nothing; the number of such ids."""
        seen: set[str] = set()
        for batch in source_ids:
            for identity in batch:
                if identity in self._by_id:
                    (self._ambiguous if identity in seen else seen).add(identity)
        return len(self._ambiguous)

    def of(self, problem: Problem) -> Mapping[str, Tally]:
        """Model -> tally of its answers to ``problem`` as it is posed now; empty where nobody was asked."""
        found = dict(self._by_text.get(text_key(problem.problem), {}))
        # The id of a rewritten problem is that of another question.
        rewritten = problem.kind in _REWRITTEN and problem.original_problem is not None
        for identity in {problem.source_id, problem.id} if self._by_id and not rewritten else ():
            if identity is None or identity in self._ambiguous:
                continue
            for model, tally in self._by_id.get(identity, {}).items():
                found[model] = found[model] + tally if model in found else tally
        return found
