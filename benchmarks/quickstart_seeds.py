"""The quickstart with several seeds: pass@1 before and after, the difference with its interval, wall time.

    .venv/bin/python benchmarks/quickstart_seeds.py --seeds 0 1 2 --output runs/seeds

Each seed is a whole run of its own (problems, curation, training, evaluation), one after the other; nothing else
should be busy on the machine. Prints a Markdown table. Finished runs are not repeated.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from ulorl.report.metrics import read_metrics


def main() -> None:
    """Run every seed and print the table."""
    parser = argparse.ArgumentParser(description="The quickstart with several seeds.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--output", type=Path, default=Path("runs/seeds"))
    options, settings = parser.parse_known_args()
    print("| seed | pass@1 before | after | difference (95 % interval) | pass@32 | mean length | entropy | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for seed in options.seeds:
        print(row(seed, options.output / f"seed{seed}", settings), flush=True)


def row(seed: int, directory: Path, settings: list[str]) -> str:
    """Run one seed; the table's line of it."""
    command = [sys.executable, "-m", "ulorl", "run", "--json", "--set", f"seed={seed}", "--set", f"output={directory}"]
    began = time.perf_counter()
    done = subprocess.run([*command, *settings], check=True, stdout=subprocess.PIPE, text=True)
    seconds = time.perf_counter() - began
    (benchmark,) = json.loads(done.stdout)["comparison"]["benchmarks"].values()
    first, best, length = (benchmark["measures"][name] for name in ("pass@1", "pass@32", "length"))
    low, high = first["interval"]
    steps = [step for step in read_metrics(directory / "train" / "metrics.jsonl") if "entropy/mean" in step]
    entropy = [sum(step["entropy/mean"] for step in part) / len(part) for part in (steps[:5], steps[-5:])]
    return (
        f"| {seed} | {first['before']:.1%} | {first['after']:.1%} "
        f"| {100 * first['difference']:+.1f} ({100 * low:+.1f} to {100 * high:+.1f}) "
        f"| {best['before']:.1%} → {best['after']:.1%} | {length['before']:.0f} → {length['after']:.0f} "
        f"| {entropy[0]:.2f} → {entropy[1]:.2f} | {seconds:.0f} |"
    )


if __name__ == "__main__":
    main()
