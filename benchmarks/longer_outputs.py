"""Longer outputs help: accuracy against the maximum output length that a model is trained and tested with.

    python benchmarks/longer_outputs.py --seeds 0 1 2

The quickstart, each maximum with the same steps and samples; segments of 96 tokens (48 where that is the maximum).
With ``--samples 0`` accuracy is that of the training samples in the last quarter of the steps, and nothing is tested.
Prints a Markdown table and writes docs/evidence/longer_outputs.svg.
"""

from __future__ import annotations

import statistics

from training_runs import Contestant, evaluated, last_mean, metrics, options, spread, train_all, write_plot

from ulorl.report.plot import Curve, Figure

MAXIMA = {48: 1, 96: 1, 192: 2, 384: 4}
"""Maximum length -> segments."""


def contestant(maximum: int) -> Contestant:
    """The quickstart with that maximum; 384 is the recipe's own."""
    if maximum == 384:
        return Contestant("384")
    return Contestant(str(maximum), {"rollout.max_tokens": maximum, "rollout.segments": MAXIMA[maximum]})


def main() -> None:
    given = options(__doc__, steps=50, extra=[("samples", int, 8)])
    runs = train_all([contestant(maximum) for maximum in MAXIMA], given)
    samples: int = given.parsed.samples
    print("| maximum | test pass@1 | training accuracy, last quarter | mean length, last quarter | truncated |")
    print("|---|---|---|---|---|")
    points, band = [], []
    for maximum in MAXIMA:
        directories = runs[str(maximum)]
        seeds = metrics(directories)
        trained = [last_mean(rows, "reward/mean") for rows in seeds]
        tested = [evaluated(run, samples=samples, max_tokens=maximum) for run in directories] if samples else []
        right = tested or trained
        length = [last_mean(rows, "length/mean") for rows in seeds]
        cut = statistics.fmean(last_mean(rows, "length/truncated_share") for rows in seeds)
        test = spread(tested, ".1%") if tested else "not tested"
        words = f"{spread(trained, '.1%')} | {spread(length, '.0f')}"
        print(f"| {maximum} | {test} | {words} | {cut:.1%} |", flush=True)
        points.append((float(maximum), statistics.fmean(right)))
        band.append((float(maximum), min(right), max(right)))
    write_plot(
        given,
        Figure(
            "longer_outputs",
            "Accuracy by maximum output length",
            curves=[Curve("accuracy", points, 1, dots=True, band=band)],
            unit="test problems right" if samples else "training samples right",
            x_label="maximum output length, tokens",
            share=True,
            log_x=True,
            limits=(0.0, 1.0),
        ),
    )


if __name__ == "__main__":
    main()
