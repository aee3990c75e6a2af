"""Longer outputs help: accuracy against the maximum output length that a model is trained and tested with.

    python benchmarks/longer_outputs.py --seeds 0 1 2

The quickstart, each maximum with the same steps and samples; segments of 96 tokens (48 where that is the maximum).
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
    print("| maximum | test pass@1 at that maximum | mean length in training, last quarter | truncated |")
    print("|---|---|---|---|")
    points, band = [], []
    for maximum in MAXIMA:
        directories = runs[str(maximum)]
        right = [evaluated(run, samples=given.parsed.samples, max_tokens=maximum) for run in directories]
        seeds = metrics(directories)
        length = [last_mean(rows, "length/mean") for rows in seeds]
        cut = statistics.fmean(last_mean(rows, "length/truncated_share") for rows in seeds)
        print(f"| {maximum} | {spread(right, '.1%')} | {spread(length, '.0f')} | {cut:.1%} |", flush=True)
        points.append((float(maximum), statistics.fmean(right)))
        band.append((float(maximum), min(right), max(right)))
    write_plot(
        given,
        Figure(
            "longer_outputs",
            "Accuracy by maximum output length",
            curves=[Curve("pass@1", points, 1, dots=True, band=band)],
            unit="test problems right",
            x_label="maximum output length, tokens",
            share=True,
            log_x=True,
            limits=(0.0, 1.0),
        ),
    )


if __name__ == "__main__":
    main()
