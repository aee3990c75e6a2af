"""Labelled pairs of answers to train a judge on.

Invariants: the same settings, seed and inputs give the same pairs; either answer stands on either side; no pair of the
excluded files, in either order, and no row whose problem they contain; a "not equivalent" that the rules call equal is
left out (the generator was wrong, not they). About four in ten pairs are equivalent: a false positive costs more.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ulorl.recipe import FieldNames
from ulorl.rows import read_problems
from ulorl.seeds import derive_seed
from ulorl.verify.judge.attacks import TRAINED_ON
from ulorl.verify.judge.family import Draw, Family
from ulorl.verify.judge.numbers import NUMBERS
from ulorl.verify.judge.phrases import PHRASES
from ulorl.verify.judge.rewrites import MAX_REFERENCE, rewrite
from ulorl.verify.judge.structures import STRUCTURES
from ulorl.verify.policy import DEFAULT
from ulorl.verify.tiers import RULES, decide, read_answer

SEEDS: tuple[Draw, ...] = (*NUMBERS, *STRUCTURES, *PHRASES)
EQUIVALENT_SHARE = 0.55
ATTACK_SHARE = 0.03
SAME_TEXT_SHARE = 0.02
DECIDED_SHARE = 0.2
"""Of the pairs that rules decide, how many are kept: a judge is asked about the others."""
REFERENCE_SHARE = 0.45
"""Share of the families that come from real references, where inputs are given."""


@dataclass(frozen=True)
class LabelledPair:
    """Two answers, whether they are equivalent, and the kind of answer they are."""

    reference: str
    answer: str
    equivalent: bool
    kind: str

    def texts(self) -> frozenset[str]:
        """Both answers without white space: what two copies of one pair have in common."""
        return frozenset("".join(text.split()) for text in (self.reference, self.answer))


@dataclass(frozen=True)
class Excluded:
    """Pairs and problems that must not be trained on."""

    pairs: frozenset[frozenset[str]] = frozenset()
    problems: frozenset[str] = frozenset()


def read_references(inputs: Sequence[str], excluded: Excluded) -> list[str]:
    """Short references of training files, each once, in order; UserError for what cannot be read."""
    if not inputs:
        return []
    problems, _ = read_problems(inputs, FieldNames())
    kept = (
        problem.answer.strip()
        for problem in problems
        if len(problem.answer) <= MAX_REFERENCE and problem_key(problem.problem) not in excluded.problems
    )
    return list(dict.fromkeys(kept))


def problem_key(text: str) -> str:
    """What two copies of one problem have in common."""
    return "".join(text.split()).lower()


def make_pairs(
    count: int,
    references: Sequence[str],
    excluded: Excluded,
    seed: int,
    say: Callable[[str], None] = lambda text: None,
) -> list[LabelledPair]:
    """``count`` different pairs, fewer where the generators run out. A smaller count gives the first of them."""
    rng = random.Random(derive_seed(seed, "judge pairs"))
    seen: set[tuple[str, str]] = set()
    pairs: list[LabelledPair] = []
    dropped = {"in the evaluation files": 0, "called equal by the rules": 0}
    tries = 0
    while len(pairs) < count and tries < 20 * count:
        tries += 1
        pair = _draw(references, rng)
        if pair is None or (pair.reference, pair.answer) in seen:
            continue
        seen.add((pair.reference, pair.answer))
        if pair.texts() in excluded.pairs:
            dropped["in the evaluation files"] += 1
            continue
        relation = _relation(pair)
        if not pair.equivalent and relation == "equal":
            dropped["called equal by the rules"] += 1
        elif relation == "undecided" or rng.random() < DECIDED_SHARE:
            pairs.append(pair)
    say(f"{len(pairs)} pairs; left out: {', '.join(f'{number} {why}' for why, number in dropped.items())}")
    return pairs


def _draw(references: Sequence[str], rng: random.Random) -> LabelledPair | None:
    if references and rng.random() < REFERENCE_SHARE:
        drawn = rewrite(rng.choice(references), tuple(rng.sample(references, min(2, len(references)))), rng)
    else:
        drawn = rng.choice(SEEDS)(rng)
    return None if drawn is None else _pair(drawn, rng)


def _pair(drawn: Family, rng: random.Random) -> LabelledPair | None:
    dice = rng.random()
    if dice < ATTACK_SHARE:
        return LabelledPair(drawn.forms[0], rng.choice(TRAINED_ON), False, "attack")
    if dice < ATTACK_SHARE + SAME_TEXT_SHARE:
        form = rng.choice(drawn.forms)
        return LabelledPair(form, form, True, drawn.kind)
    if dice < ATTACK_SHARE + SAME_TEXT_SHARE + EQUIVALENT_SHARE:
        if len(drawn.forms) < 2:
            return None
        left, right = rng.sample(drawn.forms, 2)
        return LabelledPair(left, right, True, drawn.kind)
    if not drawn.misses:
        return None
    left, right = rng.choice(drawn.forms), rng.choice(drawn.misses)
    if rng.random() < 0.5:
        left, right = right, left
    return LabelledPair(left, right, False, drawn.kind)


def _relation(pair: LabelledPair) -> str:
    return decide(RULES, read_answer(pair.reference), read_answer(pair.answer), DEFAULT)[1].relation
