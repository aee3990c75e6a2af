"""A step's numbers under their documented names (``ulorl.report.metrics.METRICS``)."""

from __future__ import annotations

import resource
from collections import defaultdict
from collections.abc import Mapping, Sequence

import torch

from ulorl.train.experience import Leaving
from ulorl.train.figures import Figure, combine, largest, mean, same, total
from ulorl.train.loop import StepResult
from ulorl.train.pool import UnfinishedPool, rewards
from ulorl.train.ranks import Ranks
from ulorl.train.rewards import is_error

GIB = 1024**3
JUDGED = ("undecided", "accepted", "rejected", "reviewed", "overturned", "gated", "failed")
"""Counts of a judge (``ulorl.verify.judge.tier.JudgeCounts``) that a step tells."""


def step_metrics(
    result: StepResult,
    pool: UnfinishedPool,
    sigma: float,
    ranks: Ranks | None = None,
    more: Mapping[str, Figure] | None = None,
) -> dict[str, float]:
    """All values of the step, of all ranks together and on every rank; ``more``: figures known elsewhere.

    What left the pool is described by reward/, length/ and segment/per_sample.
    """
    figures = _experience(result.experience.all()) | _verdicts(result) | _pool(pool, result.step)
    figures |= _memory() | dict(more or {})
    figures |= {f"time/{name}_s": largest([seconds]) for name, seconds in result.seconds.items()}
    figures |= {
        "time/step_s": largest([sum(result.seconds.values())]),
        "segment/tokens": total(result.grown_tokens),
        "segment/rounds": same(result.rounds),
        "pool/new_prompts": same(result.new_prompts),
        "entropy/target": same(sigma),
        "run/phase": same(result.phase),
    }
    values = combine((ranks or Ranks()).gather(figures))
    values["time/tokens_per_s"] = values["segment/tokens"] / max(1e-9, values.get("time/rollout_s", 0.0))
    if result.tally is not None:
        values |= result.tally.metrics()
    if result.reference_age is not None:
        values |= {"reference/age": result.reference_age, "reference/resets": result.reference_resets}
    if result.validation is not None:
        values |= result.validation.metrics | {"validation/since_improvement": result.progress.since}
    if result.progress.best is not None:
        values["validation/best"] = result.progress.best
    return values


def _verdicts(result: StepResult) -> dict[str, Figure]:
    verdicts = result.verdicts
    no_answer = [verdict.reason == "no_answer" for verdict in verdicts]
    errors = [is_error(verdict) for verdict in verdicts]
    undecided = [verdict.equivalent is None for verdict in verdicts]
    return {
        "reward/error_share": mean(errors),
        "reward/undecided_share": mean(
            one and not (two or three) for one, two, three in zip(undecided, no_answer, errors, strict=True)
        ),
        "reward/no_answer_share": mean(no_answer),
    }


def _experience(entries: Sequence[Leaving]) -> dict[str, Figure]:
    samples = [sample for entry in entries for sample in entry.samples]
    lengths = [len(sample.token_ids) for sample in samples]
    peers = [rewards(entry.peers) for entry in entries]
    return {
        "reward/mean": mean(rewards(samples)),
        **{f"reward/{task}": mean(of_task) for task, of_task in _by_task(entries).items()},
        "reward/groups_all_right": mean(min(row) == 1 for row in peers),
        "reward/groups_all_wrong": mean(max(row) == 0 for row in peers),
        "length/mean": mean(lengths),
        "length/max": largest(lengths),
        "length/truncated_share": mean(sample.finish_reason == "length" for sample in samples),
        "segment/per_sample": mean(len(sample.segment_lengths) for sample in samples),
    }


def _by_task(entries: Sequence[Leaving]) -> dict[str, list[float]]:
    """Rewards of the samples that left, by task."""
    found: dict[str, list[float]] = defaultdict(list)
    for entry in entries:
        found[entry.group.problem.task] += rewards(entry.samples)
    return dict(found)


def _pool(pool: UnfinishedPool, step: int) -> dict[str, Figure]:
    waiting = [step - sample.finished_step for sample in pool.waiting() if sample.finished_step is not None]
    stragglers = [
        sum(not sample.finished for sample in group.samples) == 1 < len(group.samples) for group in pool.groups.values()
    ]
    return {
        "pool/unfinished_samples": total(sum(1 for _ in pool.unfinished())),
        "pool/unfinished_groups": total(len(pool.groups)),
        "pool/waiting_samples": total(len(waiting)),
        "pool/straggler_groups": total(sum(stragglers)),
        "pool/waiting_steps_mean": mean(waiting, default=0.0),
        "pool/age_mean": mean((step - group.born_step for group in pool.groups.values()), default=0.0),
        "pool/oldest_age": largest((step - group.born_step for group in pool.groups.values()), default=0),
    }


def _memory() -> dict[str, Figure]:
    """Peaks of this process: of its memory since it began, of what torch gave out on the GPU since the last call."""
    figures = {"memory/peak_rss_gib": largest([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB])}
    if torch.cuda.is_available():
        free, whole = torch.cuda.mem_get_info()
        figures["memory/gpu_peak_gib"] = largest([torch.cuda.max_memory_allocated() / GIB])
        figures["memory/gpu_used_gib"] = largest([(whole - free) / GIB])
        torch.cuda.reset_peak_memory_stats()
    return figures
