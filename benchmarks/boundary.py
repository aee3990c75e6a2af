"""The boundary of the quickstart model after a long run, by seed; and by simulation, whether its statistics hold.

    python benchmarks/boundary.py --seeds 0 1 2 --steps 300 --output runs/boundary --plots docs/plots
    python benchmarks/boundary.py --simulate

Each seed is a whole run of its own (problems, curation, training), then 256 samples of each of 100 problems from the
base and from the trained model. Prints Markdown. What is finished is not repeated.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ulorl.evaluate.boundary.bands import bounded, chosen_ks, where
from ulorl.evaluate.boundary.by_rate import by_base_rate
from ulorl.evaluate.boundary.luck import against_chance, any_chance, gain_chances

KS = (1, 4, 16, 64, 256)
Draw = Callable[[np.random.Generator, int], np.ndarray]
DIFFICULTIES: dict[str, Draw] = {
    "even: beta(0.7, 1)": lambda rng, n: rng.beta(0.7, 1.0, n),
    "solved or hopeless: beta(0.25, 0.25)": lambda rng, n: rng.beta(0.25, 0.25, n),
    "mostly hard: beta(0.3, 1.5)": lambda rng, n: rng.beta(0.3, 1.5, n),
    "middling: beta(4, 4)": lambda rng, n: rng.beta(4.0, 4.0, n),
}
SIZES = ((30, 32), (100, 64))
"""Problems and samples of the simulated benchmarks."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--output", type=Path, default=Path("runs/boundary"))
    parser.add_argument("--plots", type=Path, help="directory for the first seed's plots, as SVG and PNG")
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--repetitions", type=int, default=400)
    options, settings = parser.parse_known_args()
    if options.simulate:
        return simulate(options.repetitions)
    found = {seed: measured(seed, options, settings) for seed in options.seeds}
    print_tables(found)
    if options.plots:
        place = options.output / f"seed{options.seeds[0]}" / "boundary"
        command = [sys.executable, "-m", "ulorl", "report", str(place), "--plots", str(options.plots)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def measured(seed: int, options: argparse.Namespace, settings: list[str]) -> dict[str, Any]:
    """Train and measure one seed; boundary.json of its benchmark."""
    directory = options.output / f"seed{seed}"
    ulorl, began = [sys.executable, "-m", "ulorl"], time.perf_counter()
    run = [f"seed={seed}", f"output={directory}", f"train.steps={options.steps}"]
    given = [part for one in run for part in ("--set", one)]
    subprocess.run([*ulorl, "run", *given, *settings], check=True, stdout=sys.stderr)
    command = ["eval", "--boundary", "quickstart", str(directory), "--pass-k", str(options.samples), "--json"]
    done = subprocess.run([*ulorl, *command], check=True, stdout=subprocess.PIPE, text=True)
    (one,) = json.loads(done.stdout)["benchmarks"].values()
    print(f"seed {seed}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    return one


def print_tables(found: dict[int, dict[str, Any]]) -> None:
    """pass@k, the kinds of problems, and gains by the base's rate, of every seed."""
    ks = [k for k in KS if all(k <= one["samples"] for one in found.values())]
    print(f"| seed | {' | '.join(f'pass@{k}' for k in ks)} | band above 0 | below 0 | crossing |")
    print(f"|---|{'---|' * (len(ks) + 3)}")
    for seed, one in found.items():
        rows = {row["k"]: row for row in one["bounds"]}
        cells = [f"{100 * rows[k]['base']:.1f} → {100 * rows[k]['trained']:.1f} %" for k in ks]
        ranges = [", ".join(f"{low} to {high}" for low, high in one[name]) or "–" for name in ("better", "worse")]
        print(f"| {seed} | {' | '.join([*cells, *ranges, str(one['crossing'] or '–')])} |")
    print("\n| seed | both | gained | lost | never | either by luck | p gained | p lost | beyond luck |")
    print("|---|---|---|---|---|---|---|---|---|")
    for seed, one in found.items():
        gained, lost = one["luck"]["gained"], one["luck"]["lost"]
        kinds = " | ".join(str(one["kinds"][kind]) for kind in ("both", "gained", "lost", "never"))
        luck = f"{gained['expected']:.1f} ± {gained['sd']:.1f} | {gained['p']:.2g} | {lost['p']:.2g}"
        print(f"| {seed} | {kinds} | {luck} | {gained['beyond']} gained, {lost['beyond']} lost |")
    print("\n| seed | base's rate, % | problems | base → trained, % | change (95 % interval) | solved, % |")
    print("|---|---|---|---|---|---|")
    for seed, one in found.items():
        for row in one["by_base_rate"]["bins"]:
            if row["problems"] < 0.5:
                continue
            name = "0" if row["above"] is None else f"{100 * row['above']:g} to {100 * row['up_to']:g}"
            interval = row["interval"]
            shown = "–" if interval is None else f"{100 * interval[0]:+.1f} to {100 * interval[1]:+.1f}"
            change = f"{100 * row['difference']:+.1f} ({shown})"
            rates = f"{100 * row['base']:.1f} → {100 * row['trained']:.1f}"
            solved = f"{100 * row['base_solves']:.0f} → {100 * row['trained_solves']:.0f}"
            print(f"| {seed} | {name} | {row['problems']:.1f} | {rates} | {change} | {solved} |")


def moved(rng: np.random.Generator, chance: np.ndarray, shift: float) -> np.ndarray:
    """Chances whose log-odds moved by ``shift`` and by 0.5 each way."""
    odds = np.log(np.clip(chance, 1e-9, 1) / np.clip(1 - chance, 1e-9, 1))
    return 1 / (1 + np.exp(-(odds + rng.normal(shift, 0.5, len(chance)))))


def simulate(repetitions: int) -> None:
    """Coverage of the band of the whole curve and of the interval at each k where log-odds rose by 0.5; where nothing
    changed: how often the band calls a side better, p of the number gained is at most 5 %, and any gain is called
    beyond luck; and the coverage of the intervals by the base's rate."""
    rng = np.random.default_rng(0)
    print(
        "| problems x samples | difficulties | band | intervals | better or worse | p gained | beyond luck | by rate |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for problems, samples in SIZES:
        ks = chosen_ks(samples)
        for name, draw in DIFFICULTIES.items():
            large = draw(rng, 200_000)
            after = moved(rng, large, 0.5)
            truth = np.array([np.mean((1 - large) ** k - (1 - after) ** k) for k in ks])
            counts, rates = np.zeros(5), list[bool]()
            for _ in range(repetitions):
                chance = draw(rng, problems)
                base, trained = (rng.binomial(samples, one) for one in (chance, moved(rng, chance, 0.5)))
                rows = bounded(base, trained, samples, ks)
                counts[0] += all(_covers(row["band"], one) for row, one in zip(rows, truth, strict=True))
                counts[1] += np.mean([_covers(row["interval"], one) for row, one in zip(rows, truth, strict=True)])
                base, trained = (rng.binomial(samples, chance) for _ in range(2))
                rows = bounded(base, trained, samples, ks)
                counts[2] += bool(where(rows, 1) or where(rows, -1))
                chances, gained = gain_chances(samples)[base + trained], (base == 0) & (trained > 0)
                counts[3] += against_chance(chances, int(gained.sum()))["p"] <= 0.05
                counts[4] += bool((any_chance(chances)[gained] <= 0.05).any())
                table = by_base_rate(base, trained, samples)
                assert table is not None
                rates += [_covers(row["interval"], 0.0) for row in table["bins"] if row["interval"] is not None]
            shown = [f"{100 * one / repetitions:.1f} %" for one in counts] + [f"{100 * np.mean(rates):.1f} %"]
            print(f"| {problems} x {samples} | {name} | {' | '.join(shown)} |", flush=True)


def _covers(bounds: list[float] | None, truth: float) -> bool:
    """No bounds say nothing false."""
    return bounds is None or bounds[0] <= truth <= bounds[1]


if __name__ == "__main__":
    main()
