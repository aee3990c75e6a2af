"""Numbers of a training run, one line a step: metrics.jsonl, TensorBoard where it is installed, W&B where asked for.

Invariants:
- steps only grow; after a resume from step N nothing later than N is left of the earlier attempt;
- every line is on disk before the next step begins, and is whole, valid JSON: a number that is not finite is the
  string "nan", "inf" or "-inf";
- every name is in ``METRICS`` with its meaning and unit, so no number is written that no one can read.

Does not compute any of the numbers, and does not decide what a reader sees (``ulorl.report.display``).
"""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from ulorl.errors import UserError
from ulorl.train.mastered import ENTROPY_DEFINITION

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

log = logging.getLogger(__name__)

FILE = "metrics.jsonl"
TENSORBOARD = "tensorboard"

METRICS: dict[str, str] = {
    "reward/mean": "mean reward of the samples that left the pool in this step, 0 to 1",
    "reward/undecided_share": "share of the samples finished in this step that the verifier could not decide "
    "(reward 0)",
    "reward/error_share": "share of the samples finished in this step on which the verifier failed or was too slow "
    "(reward 0)",
    "reward/no_answer_share": "share of the samples finished in this step that state no final answer (reward 0)",
    "reward/groups_all_right": "share of the groups that left whose samples are all right: nothing to learn",
    "reward/groups_all_wrong": "share of the groups that left whose samples are all wrong: nothing to learn",
    "reward/judge_undecided": "answers of this step that no rule decided, which went to the judge",
    "reward/judge_accepted": "of these, answers that the judge called equal to the reference",
    "reward/judge_rejected": "of these, answers that the judge called different",
    "reward/judge_reviewed": "answers of this step that rules rejected and the judge looked at again",
    "reward/judge_overturned": "of these, answers that the judge called equal to the reference",
    "reward/judge_gated": "answers of this step, of either kind, that were kept from the judge's model",
    "reward/judge_failed": "answers of this step, of either kind, to which the judge's model gave no verdict",
    "entropy/mean": f"entropy in {ENTROPY_DEFINITION}",
    "entropy/target": "sigma in nats: mastered positive tokens are masked while entropy is below it",
    "length/mean": "mean length of the samples that left the pool in this step, tokens",
    "length/max": "the longest of them, tokens",
    "length/truncated_share": "share of them cut at the global maximum length (reward 0)",
    "segment/per_sample": "mean number of segments they were decoded in",
    "segment/rounds": "segments decoded in this step: 1, more where a step is refilled",
    "segment/tokens": "tokens decoded in this step, all samples together",
    "pool/unfinished_samples": "samples that go on in the next step",
    "pool/unfinished_groups": "groups in the pool after this step",
    "pool/waiting_samples": "finished samples in the pool, which wait for the rest of their group",
    "pool/waiting_steps_mean": "mean steps that they have waited so far",
    "pool/straggler_groups": "groups of which all members but one are finished: they wait for one straggler",
    "pool/new_prompts": "prompts that entered in this step",
    "pool/age_mean": "mean age of the groups in the pool, steps since their prompt entered",
    "pool/oldest_age": "age of the oldest group in the pool, steps",
    "objective/loss": "value of the objective's loss, without unit",
    "objective/grad_norm": "global gradient norm before clipping",
    "objective/lr": "learning rate of this step",
    "objective/kl": "KL to the reference policy by the recipe's estimator, nats a token; 0 without a reference",
    "objective/masked_share": "share of response tokens left out of the loss by the mastered-token mask",
    "objective/mastered_share": "share of response tokens that are mastered positive tokens, masked or not",
    "objective/clipped_share": "share of response tokens whose ratio was clipped",
    "segment/age_0_share": "share of trained tokens that the policy of this step sampled",
    "segment/age_1_share": "share of trained tokens sampled by the policy one update ago",
    "segment/age_2_share": "share of trained tokens sampled by the policy two updates ago",
    "segment/age_3_or_more_share": "share of trained tokens sampled by a policy three updates ago or more",
    "objective/samples": "samples in the update",
    "objective/tokens": "response tokens in the update, masked ones included: the loss is divided by it",
    "mismatch/mean": "mean |trainer - engine| log-prob of the newest segment's tokens, nats, before any mask",
    "mismatch/max": "largest |trainer - engine| log-prob difference, nats, before any mask",
    "mismatch/share_above_0.1": "share of tokens off by more than 0.1 nats, before any mask",
    "validation/avg": "mean reward on the validation problems with the weights after this step, 0 to 1",
    "validation/stderr": "its standard error over problems of the kind, from the spread between problems",
    "validation/best": "highest validation/avg of any step from 1 on, so far",
    "validation/since_improvement": "validations in a row that did not improve, before a reset on this step",
    "validation/truncated_share": "share of validation samples cut at the maximum length (reward 0)",
    "validation/error_share": "share of validation samples on which the verifier failed or was too slow (reward 0)",
    "validation/length_mean": "mean length of validation samples, tokens",
    "reference/age": "steps since the reference policy was set to the policy",
    "reference/resets": "resets of the reference policy so far, each with an empty optimizer state",
    "run/phase": "number of the phase of the schedule, from 1",
    "time/rollout_s": "seconds of decoding",
    "time/verify_s": "seconds of waiting for verdicts after decoding",
    "time/train_s": "seconds of the update, log-probs included",
    "time/sync_s": "seconds of loading the new weights into the engine",
    "time/validation_s": "seconds of validation, in steps that have one",
    "time/step_s": "seconds of the whole step",
    "time/tokens_per_s": "tokens generated a second of decoding",
    "memory/peak_rss_gib": "peak resident memory of the process since it began, GiB; the largest of several",
    "memory/gpu_peak_gib": "peak GPU memory that torch allocated in this step, GiB; the largest of several processes",
    "memory/gpu_used_gib": "memory in use on the GPU after this step, the engine's too, GiB; the largest of several",
}
"""Every metric: name -> one line of meaning and unit. The part before the slash is its group."""

BY_TASK: dict[str, str] = {
    "reward/": "mean reward of the samples of this task that left the pool in this step, 0 to 1",
    "validation/": "mean reward on the validation problems of this task, 0 to 1",
}
"""Metrics that each task has one of, called after it: what comes before the task's name -> meaning and unit."""


def meaning(metric: str) -> str | None:
    """One line of meaning and unit; None for a name that is not documented."""
    group, slash, task = metric.partition("/")
    return METRICS.get(metric) or (BY_TASK.get(f"{group}{slash}") if task else None)


def documented(rows: Sequence[Mapping[str, float]]) -> list[str]:
    """Names of all metrics, those of tasks as they are in ``rows``."""
    found = {name for row in rows for name in row if name not in METRICS and meaning(name) is not None}
    return [*METRICS, *sorted(found)]


class Tracker(Protocol):
    """A service that shows numbers of runs elsewhere (``ulorl.report.wandb_tracker``)."""

    def log(self, step: int, values: Mapping[str, float]) -> None: ...

    def close(self) -> None: ...


class MetricsWriter:
    """Appends the metrics of each step to ``directory``. Use as a context manager, or call ``close``.

    ``resume_after`` is the last step whose lines stay; None starts anew. Opening repairs the file: later
    lines and a last line torn by a crash are cut. TensorBoard is optional; without it one warning is logged.
    ``tracker`` gets the same numbers, and is closed with the writer.
    """

    def __init__(self, directory: Path, resume_after: int | None = None, tracker: Tracker | None = None) -> None:
        self._tracker = tracker
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / FILE
        self._last_step = _cut(self._path, -1 if resume_after is None else resume_after)
        self._file = self._path.open("a", encoding="utf-8")
        self._board = _open_tensorboard(directory / TENSORBOARD, 0 if resume_after is None else resume_after + 1)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Append one line. The step must be later than the last one; every name must be in ``METRICS``."""
        unknown = sorted(name for name in values if meaning(name) is None)
        assert not unknown, f"not documented in METRICS: {', '.join(unknown)}"
        assert step > self._last_step, f"step {step} does not follow step {self._last_step}"
        row = {"step": step, **{name: _encode(float(value)) for name, value in values.items()}}
        self._file.write(json.dumps(row, allow_nan=False) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._last_step = step
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(name, float(value), step)
            self._board.flush()
        if self._tracker is not None:
            self._tracker.log(step, values)

    def close(self) -> None:
        """Flush to disk and close. Idempotent."""
        if not self._file.closed:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        if self._board is not None:
            self._board.close()
        if self._tracker is not None:
            self._tracker.close()
            self._tracker = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_metrics(path: Path) -> list[dict[str, float]]:
    """The rows of a metrics.jsonl in order, ``step`` included; a last line torn by a crash is left out.

    Raises UserError for a damaged line anywhere else, naming file and line.
    """
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    rows: list[dict[str, float]] = []
    for number, line in enumerate(lines, start=1):
        try:
            row = {name: float(value) for name, value in json.loads(line).items()}
            int(row["step"])
            rows.append(row)
        except (ValueError, TypeError, AttributeError, KeyError):
            if number == len(lines):
                break
            raise UserError(f"{path}, line {number}: not a line of metrics; delete the line") from None
    return rows


def _encode(value: float) -> float | int | str:
    if not math.isfinite(value):
        return str(value)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _cut(path: Path, last: int) -> int:
    """Replace the file by its whole lines up to step ``last``; the last step that is left, or -1."""
    rows = [row for row in read_metrics(path) if row["step"] <= last] if path.exists() else []
    partial = path.with_suffix(".jsonl.partial")
    with partial.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps({name: _encode(value) for name, value in row.items()}) + "\n")
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)
    return int(rows[-1]["step"]) if rows else -1


def _open_tensorboard(directory: Path, first_step: int) -> SummaryWriter | None:
    """A writer that hides an earlier attempt's events from ``first_step`` on; None if not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        log.warning("TensorBoard is not installed: metrics go to %s alone", FILE)
        return None
    options: dict[str, Any] = {"purge_step": first_step, "flush_secs": 30}
    return SummaryWriter(str(directory), **options)
