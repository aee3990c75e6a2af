"""Do the intervals cover, does the gate raise false alarms, does it find losses? And the published numbers, re-scored.

    python benchmarks/evaluate.py                        # simulation on 30 problems x 32 samples
    python benchmarks/evaluate.py --intervals            # the coverage of intervals alone
    python benchmarks/evaluate.py --data shared/data     # also responses with published scores, and throughput

Simulated problems have success probabilities from a distribution of difficulties; samples are drawn from those.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np

from ulorl.evaluate.estimators import ProblemCounts, avg_at_n, cautious_variance, pass_at_k, sampling_variance
from ulorl.evaluate.gate import decide
from ulorl.evaluate.responses import score_responses
from ulorl.evaluate.statistics import paired_difference, problems_like_these, these_problems, these_problems_difference
from ulorl.recipe import EvaluateRecipe, Recipe

PROBLEMS, SAMPLES, LOSS = 30, 32, 0.08
GATE = EvaluateRecipe()
Draw = Callable[[np.random.Generator, int], np.ndarray]
DIFFICULTIES: dict[str, Draw] = {
    "even: beta(0.7, 1)": lambda rng, n: rng.beta(0.7, 1.0, n),
    "solved or hopeless: beta(0.25, 0.25)": lambda rng, n: rng.beta(0.25, 0.25, n),
    "mostly hard: beta(0.3, 1.5)": lambda rng, n: rng.beta(0.3, 1.5, n),
    "middling: beta(4, 4)": lambda rng, n: rng.beta(4.0, 4.0, n),
}
PUBLISHED = {
    "gsm8k_abel_7b": 59.74,
    "gsm8k_gsmplus_gpt4": 93.25,
    "gsm8k_gsmplus_metamath_7b": 66.72,
    "gsm8k_tora-70b-v1_0": 84.3,
}


def counted(correct_P: np.ndarray) -> list[ProblemCounts]:
    return [ProblemCounts(str(index), SAMPLES, int(c)) for index, c in enumerate(correct_P)]


def covers(interval: object, truth: float) -> bool:
    return interval is not None and interval.low <= truth <= interval.high  # type: ignore[attr-defined]


def coverage(draw: Draw, k: int, repetitions: int, rng: np.random.Generator) -> tuple[float, float]:
    """Shares of repetitions in which the intervals of pass@k cover: for these problems, for problems like these."""
    population = float(np.mean(1 - (1 - draw(rng, 400_000)) ** k))
    fixed_P = draw(rng, PROBLEMS)
    truth = float(np.mean(1 - (1 - fixed_P) ** k))
    each = counted(np.arange(SAMPLES + 1))  # values by the number of right samples
    values, variances = pass_at_k(each, k), sampling_variance(each, k)
    these = like_these = 0
    for _ in range(repetitions):
        correct_P = rng.binomial(SAMPLES, fixed_P)
        these += covers(these_problems(values[correct_P], variances[correct_P]), truth)
        values_P = values[rng.binomial(SAMPLES, draw(rng, PROBLEMS))]
        like_these += covers(problems_like_these(values_P, step=k / SAMPLES), population)
    return these / repetitions, like_these / repetitions


def lowered(chance_P: np.ndarray, loss: float, shift_P: np.ndarray) -> np.ndarray:
    """Probabilities whose mean is lower by ``loss``: all log-odds fall by one amount, beside their own ``shift_P``."""
    odds_P = np.log(np.clip(chance_P, 1e-9, 1 - 1e-9) / np.clip(1 - chance_P, 1e-9, 1)) + shift_P
    low, high = -60.0, 60.0
    for _ in range(80):
        middle = (low + high) / 2
        mean = np.mean(1 / (1 + np.exp(-(odds_P - middle))))
        low, high = (middle, high) if mean > np.mean(chance_P) - loss else (low, middle)
    return 1 / (1 + np.exp(-(odds_P - low)))


def forgotten(chance_P: np.ndarray, loss: float, rng: np.random.Generator) -> np.ndarray:
    """The whole loss on few problems, which are lost altogether one after the other."""
    after_P, rest = chance_P.copy(), loss * len(chance_P)
    for index in rng.permutation(len(chance_P)):
        taken = min(rest, after_P[index])
        after_P[index] -= taken
        rest -= taken
    return after_P


CHANGES: dict[str, Callable[[np.ndarray, float, np.random.Generator], np.ndarray]] = {
    "all log-odds fall alike": lambda p, loss, rng: lowered(p, loss, np.zeros(len(p))),
    "every chance falls by a share": lambda p, loss, rng: p * max(0.0, 1 - loss / max(p.mean(), 1e-9)),
    "log-odds also move by 0.5 each way": lambda p, loss, rng: lowered(p, loss, rng.normal(0, 0.5, len(p))),
    "log-odds also move by 1 each way": lambda p, loss, rng: lowered(p, loss, rng.normal(0, 1.0, len(p))),
    "few problems lost altogether": forgotten,
}


def alarms(
    draw: Draw, change: str, loss: float, benchmarks: int, repetitions: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Shares of repetitions in which the gate fails: for problems like these, and for these problems."""
    failed = np.zeros(2)
    for _ in range(repetitions):
        differences, noise = {}, {}
        for name in range(benchmarks):
            chance_P = draw(rng, PROBLEMS)
            while chance_P.mean() < loss:  # nothing to lose
                chance_P = draw(rng, PROBLEMS)
            after_P = chance_P if change == "" else CHANGES[change](chance_P, loss, rng)
            before, after = (counted(rng.binomial(SAMPLES, p)) for p in (chance_P, np.clip(after_P, 0, 1)))
            differences[str(name)] = avg_at_n(after) - avg_at_n(before)
            noise[str(name)] = cautious_variance(before) + cautious_variance(after)
        failed += [decide(differences, GATE.significance, GATE.min_effect, one)["loss"] for one in (None, noise)]
    return failed[0] / repetitions, failed[1] / repetitions


def difference_coverage(draw: Draw, repetitions: int, rng: np.random.Generator) -> tuple[float, float]:
    """Coverage of both intervals of a paired difference, under log-odds that fall and move by 0.5."""
    fixed_P = draw(rng, PROBLEMS)
    moved_P = lowered(fixed_P, min(LOSS, fixed_P.mean() / 2), rng.normal(0, 0.5, PROBLEMS))
    large = draw(rng, 400_000)
    spread = rng.normal(0, 0.5, len(large))
    odds = np.log(np.clip(large, 1e-9, 1 - 1e-9) / np.clip(1 - large, 1e-9, 1))
    population = float(np.mean(1 / (1 + np.exp(-(odds + spread - 0.5)))) - large.mean())
    variances = sampling_variance(counted(np.arange(SAMPLES + 1)), 1)
    these = like_these = 0
    for _ in range(repetitions):
        before_P, after_P = (rng.binomial(SAMPLES, p) for p in (fixed_P, moved_P))
        variances_P = variances[before_P] + variances[after_P]
        interval = these_problems_difference(before_P / SAMPLES, after_P / SAMPLES, variances_P)
        these += covers(interval, float(np.mean(moved_P - fixed_P)))
        chance_P = draw(rng, PROBLEMS)
        odds_P = np.log(np.clip(chance_P, 1e-9, 1 - 1e-9) / np.clip(1 - chance_P, 1e-9, 1))
        after_P = 1 / (1 + np.exp(-(odds_P + rng.normal(0, 0.5, PROBLEMS) - 0.5)))
        one_P, other_P = (rng.binomial(SAMPLES, p) / SAMPLES for p in (chance_P, after_P))
        like_these += covers(paired_difference(one_P, other_P, step=1 / SAMPLES).interval, population)
    return these / repetitions, like_these / repetitions


def simulate(repetitions: int, intervals_only: bool) -> dict[str, object]:
    rng = np.random.default_rng(0)
    found: dict[str, object] = {"repetitions": repetitions}
    print(f"{PROBLEMS} problems x {SAMPLES} samples, {repetitions} repetitions")
    for name, draw in DIFFICULTIES.items():
        row = {f"pass@{k}" if k > 1 else "avg": coverage(draw, k, repetitions, rng) for k in (1, 8, 16)}
        row["difference"] = difference_coverage(draw, repetitions, rng)
        found[f"coverage, {name}"] = row
        shown = "; ".join(f"{key} {100 * a:.1f} / {100 * b:.1f} %" for key, (a, b) in row.items())
        print(f"coverage, these problems / problems like these, {name}: {shown}")
    if intervals_only:
        return found
    for name, draw in DIFFICULTIES.items():
        rates = {n: alarms(draw, "", 0.0, n, repetitions // (n + 1), rng) for n in (1, 3)}
        found[f"false alarms, {name}"] = rates
        shown = "; ".join(f"{n} benchmarks {100 * a:.1f} / {100 * b:.1f} %" for n, (a, b) in rates.items())
        print(f"false alarms, problems like these / these problems, {name}: {shown}")
    for name, draw in DIFFICULTIES.items():
        for change in CHANGES:
            power = alarms(draw, change, LOSS, 1, repetitions // 4, rng)
            found[f"power, {name}, {change}"] = power
            shown = " / ".join(f"{100 * one:.1f}" for one in power)
            print(f"power for a loss of {100 * LOSS:g} points, {name}, {change}: {shown} %")
    return found


def rescored(data: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted((data / "responses").glob("*.jsonl.gz")):
        started = time.perf_counter()
        result = score_responses(path, Recipe(), 0, None)
        seconds = time.perf_counter() - started
        (name,) = result["benchmarks"]
        one = result["benchmarks"][name]
        row = {"accepted": 100 * one["accepted"], "published": PUBLISHED.get(name), "seconds": seconds}
        row["labels agree"] = None if one["labels"] is None else 100 * one["labels"]["agreement"]
        if one["samples"] > 1:
            row |= {"pass_at_k": one["pass_at_k"], "maj_at_k": one["maj_at_k"], "by labels": by_labels(path)}
        found[name] = row
        print(f"{name}: {json.dumps(row)}")
    return found


def by_labels(path: Path) -> dict[str, float]:
    """pass@k and the vote of all samples from the file's own labels and extracted answers, over all subsets."""
    problems: dict[str, list[tuple[bool, str]]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            problems.setdefault(row["problem"], []).append((bool(row["label"]), str(row["pred"])))
    n = min(map(len, problems.values()))
    values = {f"pass@{k}": np.mean([_any(rows, k) for rows in problems.values()]) for k in (1, 2, 4, n)}
    votes = []
    for rows in problems.values():
        answers = ["right" if label else text for label, text in rows]
        most = max(answers.count(answer) for answer in answers)
        winners = {answer for answer in answers if answers.count(answer) == most}
        votes.append(("right" in winners) / len(winners))
    return {key: float(value) for key, value in values.items()} | {f"maj@{n}": float(np.mean(votes))}


def _any(rows: list[tuple[bool, str]], k: int) -> float:
    return float(np.mean([any(label for label, _ in subset) for subset in combinations(rows, k)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory that holds responses/")
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--intervals", action="store_true", help="simulate the coverage of intervals alone")
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    found: dict[str, object] = {"simulation": simulate(arguments.repetitions, arguments.intervals)}
    if arguments.data:
        found["responses"] = rescored(arguments.data)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
