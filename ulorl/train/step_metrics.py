"""A step's numbers under their documented names (``ulorl.report.metrics.METRICS``), and its samples as a table."""

from __future__ import annotations

import resource
from collections.abc import Sequence

import pyarrow as pa

from ulorl.engine.prompts import Prompter
from ulorl.problem import SAMPLE_SCHEMA
from ulorl.train.experience import Leaving
from ulorl.train.figures import Figure, combine, largest, mean, same, total
from ulorl.train.loop import StepResult
from ulorl.train.pool import UnfinishedPool, rewards
from ulorl.train.ranks import Ranks
from ulorl.train.rewards import is_error


def step_metrics(
    result: StepResult, pool: UnfinishedPool, sigma: float, ranks: Ranks | None = None
) -> dict[str, float]:
    """All values of the step, of all ranks together and on every rank.

    What left the pool is described by reward/, length/ and segment/per_sample.
    """
    figures = _experience(result.experience.all()) | _verdicts(result) | _pool(pool, result.step)
    figures |= {f"time/{name}_s": largest([seconds]) for name, seconds in result.seconds.items()}
    figures |= {
        "time/step_s": largest([sum(result.seconds.values())]),
        "segment/tokens": total(result.grown_tokens),
        "segment/rounds": same(result.rounds),
        "pool/new_prompts": same(result.new_prompts),
        "memory/rss_gib": largest([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2]),
        "entropy/target": same(sigma),
    }
    values = combine((ranks or Ranks()).gather(figures))
    values["time/tokens_per_s"] = values["segment/tokens"] / max(1e-9, values.get("time/rollout_s", 0.0))
    if result.tally is not None:
        values |= result.tally.metrics()
    if result.reference_age is not None:
        values["objective/reference_age"] = result.reference_age
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
        "reward/groups_all_right": mean(min(row) == 1 for row in peers),
        "reward/groups_all_wrong": mean(max(row) == 0 for row in peers),
        "length/mean": mean(lengths),
        "length/max": largest(lengths),
        "length/truncated_share": mean(sample.finish_reason == "length" for sample in samples),
        "segment/per_sample": mean(len(sample.segment_lengths) for sample in samples),
    }


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
        "pool/oldest_age": largest((step - group.born_step for group in pool.groups.values()), default=0),
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
