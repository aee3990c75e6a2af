"""What a judge adds to the rules, measured on labelled items it was not trained on.

Invariants: the rules' verdicts come from the verifier without a judge; the judge is asked exactly what it would be
asked in use (the gate refuses first); every rate says how many cases it is of. A false positive counts as
`COST_OF_FALSE_POSITIVE` false negatives when this says whether the judge is worth having.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ulorl.recipe import JudgeRecipe, VerifyRecipe
from ulorl.seeds import derive_seed
from ulorl.verify.judge.ask import Judge
from ulorl.verify.judge.attacks import HELD_OUT, TRAINED_ON
from ulorl.verify.judge.gate import refusal
from ulorl.verify.judge.labelled import Labelled
from ulorl.verify.judge.prompts import Question, shown
from ulorl.verify.tiers import Answer, read_answer
from ulorl.verify.verdict import Verdict
from ulorl.verify.verifier import Verifier

COST_OF_FALSE_POSITIVE = 10
ATTACKED_REFERENCES = 10
"""References that every attack is tried on."""
THRESHOLDS = (0.5, 0.9, 0.99)


@dataclass(frozen=True)
class Asked:
    """A pair that rules did not accept: what they said, and how probable the judge finds equivalence.

    ``kind`` is what the reference was read as ("text" where no grammar takes it). ``probability``
    is None where the gate refused or the model gave no answer.
    """

    labelled: Labelled
    rejected: bool
    kind: str
    probability: float | None


def rules_verdicts(items: Sequence[Labelled]) -> list[Verdict]:
    """Verdicts without any judge, with the default recipe."""
    with Verifier(VerifyRecipe()) as verifier:
        return verifier.verify([one.item for one in items])


def evaluate(
    judge: Judge, config: JudgeRecipe, items: Sequence[Labelled], verdicts: Sequence[Verdict], seed: int
) -> dict[str, Any]:
    """The whole report, as JSON; see the keys below."""
    asked = _ask(judge, config, items, verdicts)
    accepted = [verdict.equivalent is True for verdict in verdicts]
    undecided = [one for one in asked if not one.rejected]
    rejected = [one for one in asked if one.rejected]
    report: dict[str, Any] = {
        "n": len(items),
        "rules": _rates(accepted, [one.equivalent for one in items]),
        "undecided": _judged(undecided, config.accept),
        "rejected": _judged(rejected, config.accept),
        "rules_and_judge": _together(accepted, items, undecided, config.accept),
        "rules_and_judge_also_rejected": _together(accepted, items, asked, config.accept),
        "thresholds": {f"{p:g}": _judged(undecided, p) for p in THRESHOLDS},
        "by_kind": _table(asked, config.accept, lambda one: one.kind),
        "by_source": _table(asked, config.accept, lambda one: one.labelled.source),
        "attacks": attack_rates(judge, config, [one.item.reference for one in items], seed),
    }
    passed = sum(report["attacks"][name]["passed"] for name in ("trained_on", "held_out"))
    report["keep"] = {
        "undecided": _worth_having(undecided, config.accept) and passed == 0,
        "also_rejected": _worth_having(asked, config.accept) and passed == 0,
    }
    return report


def attack_rates(judge: Judge, config: JudgeRecipe, references: Sequence[str], seed: int) -> dict[str, Any]:
    """How many attacks pass: all pairs of an attack and a reference, with the gate and (model alone) without."""
    rng = random.Random(derive_seed(seed, "attacks"))
    distinct = sorted({text for text in references if 0 < len(text) <= config.max_answer_chars})
    targets = [read_answer(text) for text in rng.sample(distinct, min(ATTACKED_REFERENCES, len(distinct)))]
    rates = {}
    for name, attacks in (("trained_on", TRAINED_ON), ("held_out", HELD_OUT)):
        pairs = [(target, read_answer(text)) for target in targets for text in attacks]
        gated = [refusal(target, attack, config.max_answer_chars) is not None for target, attack in pairs]
        probabilities = judge.probabilities([_question(target, attack) for target, attack in pairs])
        passing = [p is not None and p >= config.accept for p in probabilities]
        rates[name] = {
            "n": len(pairs),
            "reached_the_model": gated.count(False),
            "passed": sum(passes and not refused for passes, refused in zip(passing, gated, strict=True)),
            "passed_without_the_gate": sum(passing),
        }
    return rates


def _ask(judge: Judge, config: JudgeRecipe, items: Sequence[Labelled], verdicts: Sequence[Verdict]) -> list[Asked]:
    """Every pair that has an answer and that rules did not accept."""
    open_items = [
        (one, verdict, read_answer(one.item.reference), read_answer(verdict.answer))
        for one, verdict in zip(items, verdicts, strict=True)
        if verdict.equivalent is not True and verdict.answer is not None
    ]
    passing = [refusal(reference, answer, config.max_answer_chars) is None for _, _, reference, answer in open_items]
    questions = [
        Question(shown(reference), shown(answer), one.item.problem or "")
        for (one, _, reference, answer), passes in zip(open_items, passing, strict=True)
        if passes
    ]
    probabilities = iter(judge.probabilities(questions))
    return [
        Asked(one, verdict.equivalent is False, _kind(reference), next(probabilities) if passes else None)
        for (one, verdict, reference, _), passes in zip(open_items, passing, strict=True)
    ]


def _question(reference: Answer, answer: Answer) -> Question:
    return Question(shown(reference), shown(answer))


def _accepts(one: Asked, threshold: float) -> bool:
    return one.probability is not None and one.probability >= threshold


def _judged(asked: Sequence[Asked], threshold: float) -> dict[str, Any]:
    """On pairs that rules did not accept: accepting what is equivalent and nothing else is right."""
    reached = [one for one in asked if one.probability is not None]
    return {
        "n": len(asked),
        "reached_the_model": len(reached),
        "rules_accuracy": _share(sum(not one.labelled.equivalent for one in asked), len(asked)),
        **_rates([_accepts(one, threshold) for one in asked], [one.labelled.equivalent for one in asked]),
        "model_accuracy": _share(sum(_accepts(one, 0.5) == one.labelled.equivalent for one in reached), len(reached)),
    }


def _together(
    accepted: Sequence[bool], items: Sequence[Labelled], asked: Sequence[Asked], threshold: float
) -> dict[str, Any]:
    """Rates over all items when the judge's acceptances are added to the rules'."""
    found = {id(one.labelled) for one in asked if _accepts(one, threshold)}
    either = [rules or id(one) in found for rules, one in zip(accepted, items, strict=True)]
    return _rates(either, [one.equivalent for one in items])


def _kind(reference: Answer) -> str:
    return "text" if reference.value is None else type(reference.value).__name__.lower()


def _table(asked: Sequence[Asked], threshold: float, group: Callable[[Asked], str]) -> list[dict[str, Any]]:
    """Rightly and wrongly accepted by group, those where it does worse than the rules alone first."""
    table: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in asked:
        row = table[group(one)]
        row["n"] += 1
        row["equivalent"] += one.labelled.equivalent
        if _accepts(one, threshold):
            row["rightly_accepted" if one.labelled.equivalent else "wrongly_accepted"] += 1
    names = ("n", "equivalent", "rightly_accepted", "wrongly_accepted")
    worst_first = sorted(table, key=lambda name: (-table[name]["wrongly_accepted"], -table[name]["n"], name))
    return [{"name": name, **{key: table[name][key] for key in names}} for name in worst_first]


def _worth_having(asked: Sequence[Asked], threshold: float) -> bool:
    found = [one.labelled.equivalent for one in asked if _accepts(one, threshold)]
    return found.count(True) > COST_OF_FALSE_POSITIVE * found.count(False)


def _rates(accepted: Sequence[bool], labels: Sequence[bool]) -> dict[str, Any]:
    pairs = list(zip(accepted, labels, strict=True))
    equal = [a for a, label in pairs if label]
    unequal = [a for a, label in pairs if not label]
    return {
        "accuracy": _share(sum(a == label for a, label in pairs), len(pairs)),
        "false_positive_rate": _share(sum(unequal), len(unequal)),
        "false_negative_rate": _share(len(equal) - sum(equal), len(equal)),
        "false_positives": sum(unequal),
        "rightly_accepted": sum(equal),
    }


def _share(count: int, total: int) -> float | None:
    return count / total if total else None
