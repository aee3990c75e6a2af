"""With and without resets of the reference, at the same KL coefficient: reward and KL of a run long enough to stall.

    python benchmarks/reference_reset.py --seeds 0 1 2

The quickstart's problems and model with a KL penalty strong enough to hold the policy near its reference: without
resets the reference is the start model for good. The other makes the policy its reference and empties the optimizer's
state when validation stalls (ProRL). Validations are of held-out problems, the same for all contestants. A run has
stalled at the first validation with which as many in a row as the patience did not improve on the best by more than the
least gain. Prints a Markdown table and writes docs/evidence/reset_reward.svg and reset_kl.svg.
"""

from __future__ import annotations

import statistics

from training_runs import Contestant, Rows, curve, last_mean, metrics, options, spread, train_all, write_plot

from ulorl.report.plot import Figure

KL, ESTIMATOR = 1.0, "k2"
EVERY, PATIENCE, LEAST_GAIN = 10, 3, 0.02
COMMON: dict[str, object] = {
    "objective.kl": KL,
    "objective.kl_estimator": ESTIMATOR,
    "objective.mastered": "never",
    "validation.every": EVERY,
    "validation.size": 48,
    "validation.samples": 4,
}
CONTESTANTS = (
    Contestant("without", COMMON),
    Contestant(
        "on stall",
        COMMON | {"objective.reference_reset_patience": PATIENCE, "objective.reference_reset_min_delta": LEAST_GAIN},
    ),
)
VALIDATED = "validation/avg"


def main() -> None:
    given = options(__doc__, steps=100)
    runs = train_all(CONTESTANTS, given)
    found = {label: metrics(directories) for label, directories in runs.items()}
    print("\n".join(table(found)))
    for name, metric, width, title, unit in (
        ("reset_reward", VALIDATED, 1, "Resets of the reference: validation", "share of held-out samples right"),
        ("reset_kl", "objective/kl", 5, "Resets of the reference: KL to it", f"{ESTIMATOR}, mean of 5 steps"),
    ):
        curves = [
            curve(label, slot, seeds, metric, width=width) for slot, (label, seeds) in enumerate(found.items(), start=1)
        ]
        write_plot(given, Figure(name, title, curves=curves, unit=unit))


def stalled(rows: Rows) -> tuple[int, float]:
    """Step of the first validation that ends a stall, and the best until then; (0, the best of all) where none does."""
    best, since = 0.0, 0
    for row in rows:
        if VALIDATED not in row:
            continue
        if row[VALIDATED] > best + LEAST_GAIN:
            best, since = row[VALIDATED], 0
        else:
            since += 1
        if since == PATIENCE:
            return int(row["step"]), best
    return 0, best


def table(found: dict[str, list[Rows]]) -> list[str]:
    """The Markdown table."""
    lines = [
        "| resets | in a run | first stall at step | validation at the stall | at the end | reward of the last quarter "
        "| KL of the last quarter |",
        "|---|---|---|---|---|---|---|",
    ]
    for label, seeds in found.items():
        resets = [rows[-1]["reference/resets"] for rows in seeds]
        stalls = [stalled(rows) for rows in seeds]
        steps = ", ".join(str(step) if step else "never" for step, _ in stalls)
        lines.append(
            f"| {label} | {statistics.fmean(resets):.1f} | {steps} "
            f"| {spread([value for _, value in stalls], '.1%')} "
            f"| {spread([last_mean(rows, VALIDATED, 0.2) for rows in seeds], '.1%')} "
            f"| {spread([last_mean(rows, 'reward/mean') for rows in seeds], '.1%')} "
            f"| {spread([last_mean(rows, 'objective/kl') for rows in seeds])} |"
        )
    return lines


if __name__ == "__main__":
    main()
