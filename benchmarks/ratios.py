"""POIS against SAIS and TOIS: accuracy and entropy while training.

    python benchmarks/ratios.py --seeds 0 1 2

The quickstart with 8 segments of 48 tokens, so that the tokens of long samples come from several policies; TOIS, which
needs it, with one segment. No mastered tokens are masked. With ``--samples 0`` nothing is tested. Prints a
Markdown table and writes docs/evidence/ratios_accuracy.svg and ratios_entropy.svg.
"""

from __future__ import annotations

import statistics

from training_runs import (
    Contestant,
    Rows,
    curve,
    evaluated,
    last_mean,
    metrics,
    options,
    spread,
    train_all,
    write_plot,
)

from ulorl.report.plot import Figure

MAX_TOKENS = 384
NEVER: dict[str, object] = {"objective.mastered": "never"}
SEGMENTS: dict[str, object] = NEVER | {"rollout.segments": 8}
CONTESTANTS = (
    Contestant("TOIS", NEVER | {"rollout.segments": 1, "objective.ratio": "tois"}),
    Contestant("POIS", SEGMENTS),
    Contestant("SAIS", SEGMENTS | {"objective.ratio": "sais"}),
)


def main() -> None:
    given = options(__doc__, steps=40, extra=[("samples", int, 8)])
    runs = train_all(CONTESTANTS, given)
    tests = {
        label: [evaluated(run, samples=given.parsed.samples, max_tokens=MAX_TOKENS) for run in found]
        for label, found in runs.items()
        if given.parsed.samples
    }
    found = {label: metrics(directories) for label, directories in runs.items()}
    print("\n".join(table(found, tests)))
    for name, metric, unit in (("accuracy", "reward/mean", "share right"), ("entropy", "entropy/mean", "nats")):
        curves = [curve(label, slot, seeds, metric) for slot, (label, seeds) in enumerate(found.items(), start=1)]
        title = f"Importance sampling: {name} of training samples"
        write_plot(given, Figure(f"ratios_{name}", title, curves=curves, unit=f"{unit}, mean of 5 steps"))


def table(found: dict[str, list[Rows]], tests: dict[str, list[float]]) -> list[str]:
    """The Markdown table."""
    lines = [
        "| ratio | test pass@1 | training accuracy, last quarter | entropy, last quarter | tokens of older policies "
        "| clipped tokens |",
        "|---|---|---|---|---|---|",
    ]
    for label, seeds in found.items():
        older = [1 - last_mean(rows, "segment/age_0_share") for rows in seeds]
        clipped = [last_mean(rows, "objective/clipped_share", 1.0) for rows in seeds]
        lines.append(
            f"| {label} | {spread(tests[label], '.1%') if tests else 'not tested'} "
            f"| {spread([last_mean(rows, 'reward/mean') for rows in seeds], '.1%')} "
            f"| {spread([last_mean(rows, 'entropy/mean') for rows in seeds])} "
            f"| {statistics.fmean(older):.0%} | {statistics.fmean(clipped):.2%} |"
        )
    return lines


if __name__ == "__main__":
    main()
