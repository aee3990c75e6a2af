"""Entropy under DMMPTs: mastered positive tokens masked never, always, and while entropy is below sigma.

    python benchmarks/entropy.py --seeds 0 1 2

Training goes on from a model that the quickstart made, at temperature 1.5: there this small model's tokens are about as
uncertain as those of a language model at the paper's 0.85 (entropy 0.3; at 1, 0.05). Tokens count as mastered from
0.7, since few reach 0.99 there. The batch's entropy is held against sigma. Groups of one reward stay in the update, so
that entropy is that of all samples. Prints a Markdown table and writes docs/evidence/entropy.svg.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from training_runs import (
    TRAINED,
    Contestant,
    Rows,
    curve,
    first_mean,
    last_mean,
    metrics,
    options,
    spread,
    train_all,
    write_plot,
)

from ulorl.report.plot import Curve, Figure

SIGMA = 0.25
TOLERANCE = 0.25
COMMON: dict[str, object] = {
    "rollout.temperature": 1.5,
    "rollout.dynamic_sampling": "off",
    "learner.lr": 5e-4,
}
MASKED = COMMON | {"objective.tau": 0.7}
CONTESTANTS = (
    Contestant("never", COMMON | {"objective.mastered": "never"}),
    Contestant("always", MASKED | {"objective.mastered": "always"}),
    Contestant("dynamic", MASKED | {"objective.sigma": SIGMA, "objective.entropy_scope": "batch"}),
)


def main() -> None:
    given = options(__doc__, steps=45)
    found = {label: metrics(runs) for label, runs in train_all(CONTESTANTS, given, start=TRAINED).items()}
    print("\n".join(table(found)))
    write_plot(given, figure(found))


def table(found: dict[str, list[Rows]]) -> list[str]:
    """The Markdown table: entropy at the beginning and in the last quarter of the steps."""
    lines = [
        f"| masked | entropy of the first 3 steps | of the last quarter | within {TOLERANCE:.0%} of sigma = {SIGMA} "
        "| reward of the last quarter | masked share |",
        "|---|---|---|---|---|---|",
    ]
    for label, seeds in found.items():
        last = [last_mean(rows, "entropy/mean") for rows in seeds]
        lines.append(
            f"| {label} | {spread([first_mean(rows, 'entropy/mean') for rows in seeds])} | {spread(last)} "
            f"| {near(last)} of {len(last)} | {spread([last_mean(rows, 'reward/mean') for rows in seeds])} "
            f"| {statistics.fmean(last_mean(rows, 'objective/masked_share') for rows in seeds):.0%} |"
        )
    return lines


def near(entropies: Sequence[float]) -> int:
    """How many are within the tolerance of sigma."""
    return sum(abs(entropy - SIGMA) <= TOLERANCE * SIGMA for entropy in entropies)


def figure(found: dict[str, list[Rows]]) -> Figure:
    """Entropy against steps, with sigma."""
    slots = dict(zip(found, (2, 3, 1, 4), strict=False))
    curves = [curve(label, slots[label], seeds, "entropy/mean") for label, seeds in found.items()]
    steps = [x for x, _ in curves[0].points]
    target = Curve("sigma", [(steps[0], SIGMA), (steps[-1], SIGMA)], 5, dashed=True)
    return Figure("entropy", "Entropy under DMMPTs", curves=[*curves, target], unit="nats, mean of 5 steps and 3 seeds")


if __name__ == "__main__":
    main()
