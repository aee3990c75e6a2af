"""Training runs for the scripts behind docs/evidence.md: settings by seeds, one process a run, finished runs kept.

A run is named after what differs from the quickstart's recipe, so that scripts that need the same run share it, and
an interrupted script goes on where it stopped. Curation is once a seed, for all settings alike.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import ulorl.quickstart
from ulorl.report.metrics import read_metrics
from ulorl.report.plot import Curve, Figure, standalone

QUICKSTART_STEPS = 50
RECIPE = Path(ulorl.quickstart.__file__).parent / "recipe.toml"
PROBLEMS = 400
COMMON: dict[str, object] = {"rollout.prompts_per_step": 12, "checkpoint_every": 25}
"""Settings of all runs, under the contestants': half the quickstart's batch, so that all of them end in a morning."""
Rows = list[dict[str, float]]


@dataclass(frozen=True)
class Contestant:
    """Settings under one name; keys are those of the recipe below ``train``."""

    label: str
    settings: Mapping[str, object] = field(default_factory=dict)


TRAINED = Contestant("quickstart", {"steps": QUICKSTART_STEPS})
"""What scripts begin with whose subject is a model that has learned to work problems out."""


@dataclass(frozen=True)
class Options:
    """What every script is asked: which seeds, how many steps, where runs lie, where the plots go."""

    seeds: list[int]
    steps: int
    runs: Path
    plots: Path
    jobs: int
    parsed: argparse.Namespace


def options(description: str | None, *, steps: int, extra: Iterable[tuple[str, type, object]] = ()) -> Options:
    """Parse the command line; ``extra`` are further options (name, type, default)."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=steps, help="training steps of each run")
    parser.add_argument("--runs", type=Path, default=Path("runs/evidence"), help="directory of the runs")
    parser.add_argument("--plots", type=Path, default=Path("docs/evidence"), help="directory of the plots")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    for name, kind, default in extra:
        parser.add_argument(f"--{name}", type=kind, default=default)
    parsed = parser.parse_args()
    return Options(parsed.seeds, parsed.steps, parsed.runs, parsed.plots, parsed.jobs, parsed)


def train_all(
    contestants: Sequence[Contestant], given: Options, *, start: Contestant | None = None
) -> dict[str, list[Path]]:
    """The run directories of every contestant, one a seed; what is not there yet is trained.

    They begin with the quickstart's model, or with that of ``start``, a run of the same seed.
    """
    starts = {seed: started(given, start, seed) for seed in given.seeds}
    tasks = [(one, seed) for seed in given.seeds for one in contestants]
    with ThreadPoolExecutor(given.jobs) as pool:
        done = list(pool.map(lambda task: train(given, task[0], task[1], starts[task[1]]), tasks))
    found: dict[str, list[Path]] = {one.label: [] for one in contestants}
    for (one, _), directory in zip(tasks, done, strict=True):
        found[one.label].append(directory)
    return found


def started(given: Options, start: Contestant | None, seed: int) -> Path | None:
    """The model that a seed begins with; None for the quickstart's. Curates the seed's problems."""
    curated(given.runs, seed)
    return train(given, start, seed) / "model" if start else None


def curated(runs: Path, seed: int) -> Path:
    """The quickstart's problems of a seed."""
    directory = runs / f"problems-seed{seed}"
    if not (directory / "manifest.json").exists():
        source = f"quickstart:{PROBLEMS}"
        ulorl_command("curate", source, "--recipe", str(RECIPE), "-o", str(directory), "--set", f"seed={seed}")
    return directory


def train(given: Options, contestant: Contestant, seed: int, start: Path | None = None) -> Path:
    """One run of the quickstart's recipe with a contestant's settings; ``start`` is another model to begin with."""
    settings = {"steps": given.steps, **contestant.settings}
    directory = given.runs / f"{'continued,' if start else ''}{run_name(settings)}-seed{seed}"
    ulorl_train(directory, curated(given.runs, seed), COMMON | settings, seed, model=start)
    return directory


def ulorl_train(
    directory: Path,
    problems: Path,
    settings: Mapping[str, object],
    seed: int,
    *,
    model: Path | None = None,
    processor_time: bool = False,
) -> None:
    """`ulorl train` into ``directory``, unless it is there; ``model`` is where it starts, else the quickstart's.

    With ``processor_time`` the seconds of its metrics are those of the processor (``PROCESSOR_CLOCK``).
    """
    if (directory / "manifest.json").exists():
        return
    print(f"{directory.name} ...", file=sys.stderr, flush=True)
    words = [f"seed={seed}", *(f"train.{name}={json.dumps(value)}" for name, value in settings.items())]
    words += [f"model.path={json.dumps(str(model.resolve()))}"] if model else []
    flags = [flag for word in words for flag in ("--set", word)]
    ulorl_command(
        "train", str(RECIPE), "--problems", str(problems), "-o", str(directory), *flags, processor_time=processor_time
    )


def run_name(settings: Mapping[str, object]) -> str:
    """Settings as a directory's name, whatever their order: 'objective.sigma=0.1,steps=60'."""
    words = sorted(f"{name}={value}" for name, value in settings.items())
    return re.sub(r"[^\w.=,+-]+", "_", ",".join(words))


def evaluated(run: Path, *, samples: int, max_tokens: int) -> float:
    """pass@1 of a run's model on the quickstart's test problems; sampled once and kept beside the run."""
    directory = run.with_name(f"{run.name}-eval-{samples}x{max_tokens}")
    if not (directory / "manifest.json").exists():
        flags = ["--pass-k", str(samples), "--max-tokens", str(max_tokens), "-o", str(directory)]
        ulorl_command("eval", str(run), *flags)
    (benchmark,) = json.loads((directory / "estimates.json").read_text())["benchmarks"].values()
    return float(benchmark["avg"])


PROCESSOR_CLOCK = "import time; time.perf_counter = time.process_time; from ulorl.cli import main; main()"
"""`ulorl` whose clock is the processor time of its process: with one thread it is what the wall clock shows on an idle
machine, and other processes do not disturb it much."""


def ulorl_command(*words: str, processor_time: bool = False) -> None:
    """Run `ulorl` in a process of its own; its output is shown where it fails."""
    python = [sys.executable, *(["-c", PROCESSOR_CLOCK] if processor_time else ["-m", "ulorl"])]
    done = subprocess.run([*python, *words], env=environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")


def environment() -> dict[str, str]:
    """One thread a process: runs must not wait for each other's threads."""
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def metrics(runs: Sequence[Path]) -> list[Rows]:
    """The rows of metrics.jsonl of each run."""
    return [read_metrics(run / "metrics.jsonl") for run in runs]


def last_mean(rows: Rows, metric: str, share: float = 0.25) -> float:
    """Mean of a metric over the last ``share`` of the steps that report it; nan where none does."""
    values = [row[metric] for row in rows if metric in row]
    return statistics.fmean(values[-max(1, round(share * len(values))) :]) if values else math.nan


def first_mean(rows: Rows, metric: str, steps: int = 3) -> float:
    """Mean of a metric over the first steps that report it."""
    values = [row[metric] for row in rows if metric in row]
    return statistics.fmean(values[:steps]) if values else math.nan


def curve(label: str, slot: int, seeds: Sequence[Rows], metric: str, *, width: int = 5) -> Curve:
    """Mean over seeds of a metric's moving mean over ``width`` steps, with the seeds' least and greatest as a band."""
    smooth = [moving(rows, metric, width) for rows in seeds]
    steps = sorted(set.intersection(*(set(one) for one in smooth)))
    values = [[one[step] for one in smooth] for step in steps]
    points = [(step, statistics.fmean(row)) for step, row in zip(steps, values, strict=True)]
    band = [(step, min(row), max(row)) for step, row in zip(steps, values, strict=True)]
    return Curve(label, points, slot, band=band if len(seeds) > 1 else ())


def moving(rows: Rows, metric: str, width: int) -> dict[float, float]:
    """Step -> mean of the metric over the ``width`` steps that end there (fewer at the beginning)."""
    there = [(row["step"], row[metric]) for row in rows if metric in row]
    return {
        step: statistics.fmean(value for _, value in there[max(0, at + 1 - width) : at + 1])
        for at, (step, _) in enumerate(there)
    }


def spread(values: Sequence[float], form: str = ".3f") -> str:
    """'mean (least to greatest)'."""
    return f"{statistics.fmean(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def write_plot(given: Options, figure: Figure) -> None:
    """The figure as an SVG file, named after it."""
    given.plots.mkdir(parents=True, exist_ok=True)
    (given.plots / f"{figure.name}.svg").write_text(standalone(figure))
