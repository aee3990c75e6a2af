"""Numbers of a training run, one line a step: metrics.jsonl and, where it is installed, TensorBoard.

Invariants:
- steps only grow; after a resume from step N nothing later than N is left of the earlier attempt;
- every line is whole, valid JSON: a number that is not finite is the string "nan", "inf" or "-inf";
- every name is in ``METRICS`` with its meaning and unit, so no number is written that no one can read.

Does not compute any of the numbers, and does not decide what a reader sees (``ulorl.report.display``).
"""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ulorl.errors import UserError

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

log = logging.getLogger(__name__)

FILE = "metrics.jsonl"
TENSORBOARD = "tensorboard"

METRICS: dict[str, str] = {
    "reward/mean": "mean reward of the samples finished in this step, 0 to 1",
    "reward/undecided_share": "share of finished samples that the verifier could not decide (reward 0)",
    "reward/error_share": "share of finished samples for which the verifier failed or was too slow (reward 0)",
    "reward/no_answer_share": "share of finished samples that state no final answer (reward 0)",
    "reward/groups_all_right": "share of finished groups whose samples are all right: nothing to learn",
    "reward/groups_all_wrong": "share of finished groups whose samples are all wrong: nothing to learn",
    "entropy/mean": "entropy in nats: full vocabulary, sampling temperature, mean over response tokens, "
    "before the update",
    "entropy/target": "sigma in nats: mastered positive tokens are masked while entropy is below it",
    "length/mean": "mean length of finished samples, tokens",
    "length/max": "longest finished sample, tokens",
    "length/truncated_share": "share of finished samples cut at the global maximum length (reward 0)",
    "segment/per_sample": "mean number of segments a finished sample was decoded in",
    "segment/rounds": "segments decoded in this step: 1, more where a step is refilled",
    "segment/tokens": "tokens decoded in this step, all samples together",
    "pool/unfinished_samples": "samples that go on in the next step",
    "pool/unfinished_groups": "groups with at least one sample that goes on in the next step",
    "pool/waiting_samples": "finished samples that wait for the rest of their group",
    "pool/waiting_steps_mean": "mean steps that the samples trained in this step had waited for their group",
    "pool/straggler_groups": "groups that wait for their last member",
    "pool/new_prompts": "prompts that entered in this step",
    "pool/oldest_age": "age of the oldest unfinished group, steps",
    "objective/loss": "value of the objective's loss, without unit",
    "objective/grad_norm": "global gradient norm before clipping",
    "objective/lr": "learning rate of this step",
    "objective/kl": "KL to the reference policy by the recipe's estimator, nats a token; 0 without a reference",
    "objective/reference_age": "steps since the reference policy was set to the policy",
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
    "time/rollout_s": "seconds of decoding",
    "time/verify_s": "seconds of scoring answers",
    "time/train_s": "seconds of the update, log-probs included",
    "time/sync_s": "seconds of loading the new weights into the engine",
    "time/step_s": "seconds of the whole step",
    "time/tokens_per_s": "tokens generated a second of decoding",
    "memory/rss_gib": "resident memory of the process, GiB; the largest of several",
}
"""Every metric: name -> one line of meaning and unit. The part before the slash is its group."""


class MetricsWriter:
    """Appends the metrics of each step to ``directory``. Use as a context manager, or call ``close``.

    ``resume_after`` is the last step whose lines stay; None starts anew. Opening repairs the file: later
    lines and a last line torn by a crash are cut. TensorBoard is optional; without it one warning is logged.
    """

    def __init__(self, directory: Path, resume_after: int | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / FILE
        self._last_step = _cut(self._path, -1 if resume_after is None else resume_after)
        self._file = self._path.open("a", encoding="utf-8")
        self._board = _open_tensorboard(directory / TENSORBOARD, 0 if resume_after is None else resume_after + 1)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Append one line. The step must be later than the last one; every name must be in ``METRICS``."""
        unknown = sorted(set(values) - set(METRICS))
        assert not unknown, f"not documented in METRICS: {', '.join(unknown)}"
        assert step > self._last_step, f"step {step} does not follow step {self._last_step}"
        row = {"step": step, **{name: _encode(float(value)) for name, value in values.items()}}
        self._file.write(json.dumps(row, allow_nan=False) + "\n")
        self._file.flush()
        self._last_step = step
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(name, float(value), step)
            self._board.flush()

    def close(self) -> None:
        """Flush to disk and close. Idempotent."""
        if not self._file.closed:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        if self._board is not None:
            self._board.close()

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
