"""Wrong references found by consensus: how many, and how many right ones are lost.

    python benchmarks/curate_references.py [SHARED]

1. ``curate/wrong_references.jsonl`` (hand-labelled): its rows have a true answer each and no models' answers, so
   voters are *simulated*: each of M models states the true answer with a probability drawn for the problem, and else,
   half of the time, the wrong reference itself (the worst case: errors that agree) or a number nobody else says. The
   figures say what the rule does with such votes, not how good real models are.
2. Real samples as files of earlier samples: four models on GSM8K (1,319 problems, a sample each), and one model on 100
   problems of MATH, 8 samples each. First with the references as they are, then each replaced by the next problem's.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from functools import partial
from pathlib import Path

from curate_kinds import shared_directory

from ulorl.curate.ballots import Ballot, Ballots, text_key
from ulorl.curate.consensus import Consensus
from ulorl.curate.earlier import EarlierSamples
from ulorl.curate.references import references
from ulorl.problem import Problem
from ulorl.raw_rows import RawRow, read_file
from ulorl.recipe import ConsensusRecipe, VerifyRecipe
from ulorl.verify import Item, Verifier, equivalence_classes

SAMPLES = 4


def main() -> None:
    """Print both tables."""
    shared = shared_directory(__doc__)
    responses = shared / "data/responses"
    with Verifier(VerifyRecipe()) as verifier:
        _simulated(shared / "data/curate/wrong_references.jsonl", verifier)
        print("\nreal samples\n| models, references | confirmed | wrong | split | undecided |\n|---|---|---|---|---|")
        _real("four", sorted(responses.glob("gsm8k_*.jsonl.gz")), ConsensusRecipe(), verifier)
        _real("one x 8", [responses / "math100_qwen25math_x8.jsonl.gz"], ConsensusRecipe(min_models=1), verifier)


def _simulated(path: Path, verifier: Verifier) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    problems = [Problem(f"r{n}", row["problem"], row["reference"]) for n, row in enumerate(rows)]
    conflicts = {problem.id: f"g{row['group']}" for problem, row in zip(problems, rows, strict=True)}
    right = {problem.id for problem, row in zip(problems, rows, strict=True) if row["reference_correct"]}
    groups = len(set(conflicts.values()))
    print(f"simulated voters, {len(rows)} rows of {groups} groups, {len(right)} with the right reference")
    print("| models | accuracy | wrong dropped as wrong | right dropped as wrong | wrong kept | right kept |")
    print("|---|---|---|---|---|---|")
    for models in (0, 2, 3, 5):
        for accuracy in (0.9, 0.7, 0.5) if models else (0.0,):
            ballots = _votes(rows, models, accuracy)
            findings = _consensus(ballots, verifier, ConsensusRecipe()).findings(problems)
            result = references(problems, verifier, conflicts, findings)
            wrong = [row for row in result.dropped if row.reason == "wrong_reference"]
            kept = Counter(problem.id in right for problem in result.kept)
            found = Counter(row.problem.id in right for row in wrong)
            print(
                f"| {models} | {accuracy} | {found[False]} of {len(rows) - len(right)} | {found[True]} of {len(right)} "
                f"| {kept[False]} | {kept[True]} |"
            )


def _votes(rows: list[dict[str, object]], models: int, accuracy: float) -> Ballots:
    """Answers of models whose errors are half the time the group's wrong reference."""
    draw = random.Random(f"{models} {accuracy}")
    ballots = Ballots()
    wrong: dict[str, list[str]] = {}
    truth: dict[str, str] = {}
    for row in rows:
        text = text_key(str(row["problem"]))
        truth[text] = str(row["true_answer"])
        wrong.setdefault(text, [])
        if not row["reference_correct"]:
            wrong[text].append(str(row["reference"]))
    for text in sorted(truth):
        for model in range(models):
            # Models find the same problems hard: the chance is the problem's, spread around the accuracy.
            chance = min(1.0, max(0.0, draw.gauss(accuracy, 0.2)))
            for _ in range(SAMPLES):
                if draw.random() < chance:
                    answer = truth[text]
                else:
                    invented = str(draw.randrange(10**6))
                    answer = draw.choice(wrong[text]) if wrong[text] and draw.random() < 0.5 else invented
                ballots.add([Ballot(f"model-{model}", answer, text)])
    return ballots


def _real(name: str, paths: list[Path], settings: ConsensusRecipe, verifier: Verifier) -> None:
    start = time.perf_counter()

    def extract(response: str) -> str | None:
        return ", ".join(verifier.extraction(Item("", response)).answers) or None

    ballots = Ballots()
    ballots.add(EarlierSamples(tuple(map(str, paths)), extract, {}))
    problems: dict[str, Problem] = {}
    for row in read_file(paths[0]):
        if isinstance(row, RawRow):
            problem = Problem(row.columns["id"], row.columns["problem"], row.columns["gold"])
            problems.setdefault(problem.id, problem)
    listed = list(problems.values())
    shifted = [
        Problem(one.id, one.problem, other.answer) for one, other in zip(listed, listed[1:] + listed[:1], strict=True)
    ]
    for which, chosen in (("as they are", listed), ("of another problem", shifted)):
        findings = _consensus(ballots, verifier, settings).findings(chosen)
        outcomes = Counter(finding.outcome for finding in findings.values())
        figures = " | ".join(str(outcomes[key]) for key in ("confirmed", "wrong", "split", "undecided"))
        print(f"| {name}, {which} | {figures} |")
    print(f"| ({time.perf_counter() - start:.1f} s) | | | | |")


def _consensus(ballots: Ballots, verifier: Verifier, settings: ConsensusRecipe) -> Consensus:
    return Consensus(ballots, verifier, partial(equivalence_classes, config=VerifyRecipe()), settings)


if __name__ == "__main__":
    main()
