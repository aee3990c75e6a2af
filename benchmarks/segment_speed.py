"""Speed of segment rollout: the same training with the maximum length in 1, 2, 4 and 8 segments.

    python benchmarks/segment_speed.py --seeds 0 1 2

Each run has one thread; nothing else should run beside it. Training goes on from a model that the quickstart made, on
problems of its kind whose answers have a long tail: one in ``--short`` + 1 takes 200 tokens or more of the 256 that
it may, when it is worked in full, the others at most 40. The learning rate is the paper's, which keeps lengths as they
are, and every sample trains (`dynamic_sampling = "off"`), so that all contestants do the same work. They take turns, in
another order for each seed. Measured are the steps after the pool has filled. ``--prompts`` and ``--group`` set the
samples that enter in a step: what the engine decodes at a time with one segment. Prints a Markdown table and writes
docs/evidence/segment_speed.svg.
"""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from training_runs import (
    TRAINED,
    Options,
    Rows,
    metrics,
    options,
    spread,
    train,
    ulorl_command,
    ulorl_train,
    write_plot,
)

from ulorl.quickstart.problems import draw_task, word
from ulorl.report.plot import Curve, Figure
from ulorl.seeds import derive_seed

SEGMENTS = (1, 2, 4, 8)
PROBLEMS, MAX_TOKENS = 240, 256
LONG, SHORT = range(200, MAX_TOKENS - 8), range(41)
"""Bytes of a worked answer without its box, which are tokens."""
FILLING = 10
"""Steps until the pool holds samples of every age, of at most 8 segments."""


@dataclass(frozen=True)
class Speed:
    """Of one run after the pool has filled. ``step`` is seconds for as many trained samples as enter in a step."""

    step: float
    tokens_per_s: float
    samples: float
    rollout_share: float


def speed(rows: Rows, batch: int, left_out: int = FILLING) -> Speed:
    """What the steps after the first ``left_out`` say; ``batch`` samples enter in a step."""
    rows = [row for row in rows if row["step"] > left_out]
    seconds = sum(row["time/step_s"] for row in rows)
    samples = sum(row.get("objective/samples", 0.0) for row in rows)
    tokens = sum(row.get("objective/tokens", 0.0) for row in rows)
    rollout = sum(row["time/rollout_s"] for row in rows)
    return Speed(seconds / samples * batch, tokens / seconds, samples / len(rows), rollout / seconds)


def long_tailed(directory: Path, short: int, seed: int) -> Path:
    """A curated problem set: one long problem, then ``short`` short ones, and so on."""
    if not (directory / "manifest.json").exists():
        rng, rows = random.Random(derive_seed(seed, "segment speed")), []
        while len(rows) < PROBLEMS:
            task = draw_task("train", rng)
            worked, _ = task.work(lambda _, value: value)
            if sum(len(step.full) for step in worked) in (SHORT if len(rows) % (short + 1) else LONG):
                rows.append({"problem": word(task, rng), "answer": task.answer})
        directory.parent.mkdir(parents=True, exist_ok=True)
        source = directory.with_suffix(".jsonl")
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
        ulorl_command("curate", str(source), "--steps", "normalise,answers", "-o", str(directory))
    return directory


def measured(given: Options, start: Path, seed: int, segments: int) -> Speed:
    """One run of ``segments`` segments from the model ``start``."""
    prompts, group, short = given.parsed.prompts, given.parsed.group, given.parsed.short
    settings = {
        "steps": FILLING + given.steps,
        "checkpoint_every": 1000,
        "rollout.max_tokens": MAX_TOKENS,
        "rollout.segments": segments,
        "rollout.prompts_per_step": prompts,
        "rollout.group_size": group,
        "rollout.dynamic_sampling": "off",
        "learner.lr": 1e-6,
    }
    problems = long_tailed(given.runs / f"long-tailed-{short}-seed{seed}", short, seed)
    directory = given.runs / f"segments-{segments}-of-{prompts}x{group}-short-{short}-steps-{given.steps}-seed{seed}"
    ulorl_train(directory, problems, settings, seed, model=start)
    (rows,) = metrics([directory])
    return speed(rows, prompts * group)


def main() -> None:
    given = options(__doc__, steps=24, extra=[("prompts", int, 4), ("group", int, 2), ("short", int, 1)])
    batch: int = given.parsed.prompts * given.parsed.group
    found: dict[int, list[Speed]] = {segments: [] for segments in SEGMENTS}
    for place, seed in enumerate(given.seeds):
        start = train(given, TRAINED, seed) / "model"
        for segments in (*SEGMENTS[place % 4 :], *SEGMENTS[: place % 4]):
            found[segments].append(measured(given, start, seed, segments))
    print(f"{batch} samples enter in a step; means over seeds {given.seeds} (least to greatest)")
    print("\n".join(table(found)))
    write_plot(given, figure(found, batch))


def table(found: dict[int, list[Speed]]) -> list[str]:
    """The Markdown table; ratios are within a seed."""
    lines = [
        "| segments | seconds a step | times as fast | trained tokens/s | times as many | trained samples a step "
        "| share of rollout |",
        "|---|---|---|---|---|---|---|",
    ]
    for segments, runs in found.items():
        faster, more = ratios(found[1], runs)
        lines.append(
            f"| {segments} | {spread([run.step for run in runs], '.2f')} | {spread(faster, '.2f')} "
            f"| {spread([run.tokens_per_s for run in runs], '.0f')} | {spread(more, '.2f')} "
            f"| {statistics.fmean(run.samples for run in runs):.1f} "
            f"| {statistics.fmean(run.rollout_share for run in runs):.0%} |"
        )
    return lines


def ratios(base: Sequence[Speed], runs: Sequence[Speed]) -> tuple[list[float], list[float]]:
    """Of each seed: how many times as fast a step is as with one segment, and how many times the tokens a second."""
    pairs = list(zip(base, runs, strict=True))
    return [one.step / many.step for one, many in pairs], [many.tokens_per_s / one.tokens_per_s for one, many in pairs]


def figure(found: dict[int, list[Speed]], batch: int) -> Figure:
    """Times as fast against segments, beside the paper's figures."""
    gains = {segments: ratios(found[1], runs)[0] for segments, runs in found.items()}
    points = [(float(segments), statistics.fmean(gain)) for segments, gain in gains.items()]
    band = [(float(segments), min(gain), max(gain)) for segments, gain in gains.items()]
    paper = Curve("paper", [(1.0, 1.0), (2.0, 1240 / 774), (4.0, 1240 / 601)], 5, dashed=True)
    return Figure(
        "segment_speed",
        "Speed by number of segments",
        curves=[Curve("ulorl", points, 1, dots=True, band=band), paper],
        unit=f"times as fast as one segment, {batch} samples a step",
        x_label="segments",
        log_x=True,
        limits=(0.0, 2.5),
    )


if __name__ == "__main__":
    main()
