"""A step's numbers under their documented names (``ulorl.report.metrics.METRICS``), and its samples as a table."""

from __future__ import annotations

import resource
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ulorl.engine.prompts import Prompter
from ulorl.problem import SAMPLE_SCHEMA
from ulorl.train.experience import Leaving
from ulorl.train.loop import StepResult
from ulorl.train.pool import UnfinishedPool, rewards
from ulorl.train.rewards import is_error


def step_metrics(result: StepResult, pool: UnfinishedPool, sigma: float) -> dict[str, float]:
    """All values of the step. What left the pool is described by reward/, length/ and segment/per_sample."""
    values: dict[str, float] = {"entropy/target": sigma}
    values |= _experience(result.experience.all())
    values |= _pool(pool, result.step)
    if result.verdicts:
        no_answer = sum(verdict.reason == "no_answer" for verdict in result.verdicts)
        errors = sum(is_error(verdict) for verdict in result.verdicts)
        undecided = sum(verdict.equivalent is None for verdict in result.verdicts) - no_answer - errors
        values["reward/error_share"] = errors / len(result.verdicts)
        values["reward/undecided_share"] = undecided / len(result.verdicts)
        values["reward/no_answer_share"] = no_answer / len(result.verdicts)
    if result.tally is not None:
        values |= result.tally.metrics()
    if result.reference_age is not None:
        values["objective/reference_age"] = result.reference_age
    values |= {f"time/{name}_s": seconds for name, seconds in result.seconds.items()}
    values["time/step_s"] = sum(result.seconds.values())
    values["time/tokens_per_s"] = result.grown_tokens / max(1e-9, result.seconds.get("rollout", 0.0))
    values["segment/tokens"] = result.grown_tokens
    values["segment/rounds"] = result.rounds
    values["pool/new_prompts"] = result.new_prompts
    values["memory/rss_gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return values


def _experience(entries: Sequence[Leaving]) -> dict[str, float]:
    if not entries:
        return {}
    samples = [sample for entry in entries for sample in entry.samples]
    lengths = [len(sample.token_ids) for sample in samples]
    peers = [rewards(entry.peers) for entry in entries]
    return {
        "reward/mean": float(np.mean(rewards(samples))),
        "reward/groups_all_right": float(np.mean([min(row) == 1 for row in peers])),
        "reward/groups_all_wrong": float(np.mean([max(row) == 0 for row in peers])),
        "length/mean": float(np.mean(lengths)),
        "length/max": max(lengths),
        "length/truncated_share": float(np.mean([sample.finish_reason == "length" for sample in samples])),
        "segment/per_sample": float(np.mean([len(sample.segment_lengths) for sample in samples])),
    }


def _pool(pool: UnfinishedPool, step: int) -> dict[str, float]:
    waiting = [step - sample.finished_step for sample in pool.waiting() if sample.finished_step is not None]
    return {
        "pool/unfinished_samples": sum(1 for _ in pool.unfinished()),
        "pool/unfinished_groups": len(pool.groups),
        "pool/waiting_samples": len(waiting),
        "pool/straggler_groups": sum(
            sum(not sample.finished for sample in group.samples) == 1 < len(group.samples)
            for group in pool.groups.values()
        ),
        "pool/waiting_steps_mean": float(np.mean(waiting)) if waiting else 0.0,
        "pool/oldest_age": max((step - group.born_step for group in pool.groups.values()), default=0),
    }


def rollout_table(entries: Sequence[Leaving], prompter: Prompter) -> pa.Table:
    """The samples that left the pool in a step."""
    rows = []
    for entry in entries:
        for sample in entry.samples:
            verdict = sample.verdict
            assert verdict is not None
            rows.append(
                {
                    "problem_id": entry.group.problem.id,
                    "sample_index": sample.index,
                    "seed": sample.seed,
                    "text": prompter.decode(sample.token_ids),
                    "token_ids": sample.token_ids,
                    "logprobs": sample.logprobs,
                    "segment_lengths": sample.segment_lengths,
                    "segment_versions": sample.segment_versions,
                    "finish_reason": sample.finish_reason,
                    "answer": verdict.answer,
                    "equivalent": verdict.equivalent,
                    "reward": sample.reward,
                    "rule": verdict.rule,
                    "reason": verdict.reason,
                }
            )
    return pa.Table.from_pylist(rows, SAMPLE_SCHEMA)
