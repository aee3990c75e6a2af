"""Rollouts on disk: the samples that left the pool in each step, written, and read back as experience.

Invariants:
- a step's files hold all that an update needs: token ids, log-probs and policy versions as they were sampled, rewards,
  and the group of each sample; read back they give the same trajectories, to the bit in float32;
- members of a group that left in earlier steps (``group_policy = "sample"``) are peers of those that leave now, as in
  the run that sampled them; whether a uniform group trains follows from the recipe that trains, not from that run's;
- a step counts with the files of all processes that sampled, or not at all;
- a version stands for the step in which it sampled: where the updates of a step are more or fewer than in the run that
  sampled, tokens are as many steps old as they were.

Does not: read the problems; a group read back knows its problem's id and task, and no more.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ulorl.artifact import partial_of
from ulorl.engine.prompts import Prompter
from ulorl.errors import UserError
from ulorl.files import write_table
from ulorl.problem import ROLLOUT_SCHEMA, Problem
from ulorl.sampling import verdict_columns
from ulorl.train.experience import Experience, Leaving
from ulorl.train.pool import Group, Sample
from ulorl.train.ranks import Ranks
from ulorl.verify import Verdict

ROLLOUTS = "rollouts"
_MAY_BE_NULL = {"answer", "equivalent"}
_FILE = re.compile(r"step_(\d+)((?:_rank_\d+)?)\.parquet")


def rollout_table(entries: Sequence[Leaving], prompter: Prompter) -> pa.Table:
    """The samples that left the pool in a step, ROLLOUT_SCHEMA."""
    rows = []
    for entry in entries:
        for sample in entry.samples:
            verdict = sample.verdict
            assert verdict is not None and sample.reward is not None
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
                    **verdict_columns(verdict, sample.reward),
                    "task": entry.group.problem.task,
                    "group": entry.group.number,
                    "prompt_ids": entry.group.prompt_ids,
                    "born_step": entry.group.born_step,
                    "finished_step": sample.finished_step,
                }
            )
    return pa.Table.from_pylist(rows, ROLLOUT_SCHEMA)


def write_rollouts(directory: Path, step: int, table: pa.Table, ranks: Ranks) -> None:
    """Keep a step's samples: one file a rank in ``directory``/rollouts."""
    folder = directory / ROLLOUTS
    folder.mkdir(exist_ok=True)
    write_table(folder / f"step_{step:06d}{ranks.suffix}.parquet", table)


def drop_steps(folders: Iterable[Path], after: int) -> None:
    """Remove what a killed attempt wrote of the steps later than ``after``, which are done again."""
    for step, paths in chain.from_iterable(_files(folder).items() for folder in folders):
        for path in paths if step > after else ():
            path.unlink()


def rollouts_in(directory: Path) -> Path:
    """The folder of step files that ``directory`` is, or that a run, finished or not, holds. UserError if none."""
    places = (directory / ROLLOUTS, directory, partial_of(directory) / ROLLOUTS)
    for place in places:
        if _files(place):
            return place
    raise UserError(
        f"--from-rollouts {directory}: no step_*.parquet there; give the directory of a training run or of one made "
        "with --rollout-only"
    )


class SavedRollouts:
    """The experience of a run that kept its samples, step by step from the first, for one rank of however many.

    ``vocabulary``: the number of token ids that the model to be trained knows. ``note`` tells people of a last step
    that is left out because a kill came between its files. UserError where another step lacks files.
    """

    def __init__(self, folder: Path, ranks: Ranks, vocabulary: int) -> None:
        self._ranks, self._vocabulary, self._groups = ranks, vocabulary, dict[int, Group]()
        self._files, self.note = ranks.once(lambda: _whole_steps(folder))
        self._sampled_in = ranks.once(lambda: _steps_of_versions(self._files))
        self._known = sorted(self._sampled_in)
        self._starts = dict[int, int]()

    def __len__(self) -> int:
        return len(self._files)

    def experience(self, step: int, *, uniform_train: bool, version: int) -> Experience:
        """What left in ``step``, read in order; ``uniform_train``: groups of equal rewards train too; ``version``: the
        learner's, at the beginning of the step.

        Raises UserError for a file that holds no whole samples.
        """
        number, paths = self._files[step - 1]
        if number != step:
            raise UserError(f"{paths[0].parent}: the samples of step {step} are missing")
        self._starts[step] = version
        left = dict[int, list[Sample]]()
        for path in paths:
            for row in _rows(path, self._vocabulary):
                if self._ranks.owns(row["group"]):
                    left.setdefault(row["group"], []).append(self._enter(row, step))
        experience = Experience([], [])
        for group in sorted(left):
            peers = tuple(sorted(self._groups[group].samples, key=lambda sample: sample.index))
            leaving = Leaving(self._groups[group], tuple(left[group]), peers)
            trains = uniform_train or not leaving.uniform
            (experience.trained if trains else experience.uniform).append(leaving)
        return experience

    def _enter(self, row: dict[str, Any], step: int) -> Sample:
        """The row's sample, put into its group."""
        number, born = row["group"], row["born_step"]
        problem = Problem(row["problem_id"], "", "", task=row["task"])
        group = self._groups.setdefault(number, Group(number, problem, tuple(row["prompt_ids"]), [], born))
        versions = [self._version(one, step) for one in row["segment_versions"]]
        sample = replace(_sample(row), left_step=step, segment_versions=versions)
        group.samples.append(sample)
        return sample

    def _version(self, sampled: int, step: int) -> int:
        """The learner's version in the step in which the version ``sampled`` of the other run sampled."""
        at = bisect_right(self._known, sampled) - 1
        found = self._sampled_in[self._known[at]]
        if self._known[at] != sampled:  # nothing finished in its step, which comes after that of the last one known
            found += 1
        return self._starts[min(found, step)]


def _steps_of_versions(steps: Sequence[tuple[int, list[Path]]]) -> dict[int, int]:
    """The first step in which each policy version sampled, as far as a sample finished in it."""
    found = {0: 1}
    for path in (path for _, paths in steps for path in paths):
        with suppress(OSError, pa.ArrowException, ValueError):  # told when its step is read
            table = pq.read_table(path, columns=["segment_versions", "finished_step"])
            for versions, finished in zip(*(table[name].to_pylist() for name in table.column_names), strict=True):
                if versions and finished is not None:
                    found[versions[-1]] = min(found.get(versions[-1], finished), finished)
    return found


def _files(folder: Path) -> dict[int, list[Path]]:
    """Step files by step."""
    found = dict[int, list[Path]]()
    for path in sorted(folder.glob("step_*.parquet")):
        if match := _FILE.fullmatch(path.name):
            found.setdefault(int(match.group(1)), []).append(path)
    return found


def _whole_steps(folder: Path) -> tuple[list[tuple[int, list[Path]]], str]:
    """Steps with their files, in order, and what to tell of a last one that is not whole."""
    steps = sorted(_files(folder).items())
    lacks = _lacking(steps)
    *earlier, last = steps
    for number, paths in earlier:
        if lacks[number]:
            raise UserError(
                f"{paths[0].parent}: step {number} lacks {lacks[number]}, which other steps have; bring the samples of "
                "all processes together, or sample them again"
            )
    if not lacks[last[0]]:
        return steps, ""
    if not earlier:
        raise UserError(f"{folder}: holds no whole step, step {last[0]} lacks {lacks[last[0]]}; sample it again")
    return earlier, f"{folder}: step {last[0]} is left out, since it lacks {lacks[last[0]]}"


def _lacking(steps: Sequence[tuple[int, list[Path]]]) -> dict[int, str]:
    """For each step, the files of processes that it has not; "" where it has all."""
    found = {number: {_FILE.fullmatch(path.name)[2] for path in paths} for number, paths in steps}  # type: ignore[index]
    suffixes = set().union(*found.values())
    numbers = [int(suffix.removeprefix("_rank_")) for suffix in suffixes - {""}]
    # A run of one process has files without a rank; of several there are at least two, from 0 on.
    suffixes |= {f"_rank_{rank}" for rank in range(max(1, *numbers) + 1)} if numbers else set()
    return {
        number: ", ".join(f"step_{number:06d}{suffix}.parquet" for suffix in sorted(suffixes - own))
        for number, own in found.items()
    }


def _rows(path: Path, vocabulary: int) -> list[dict[str, Any]]:
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{path}: not a readable Parquet file ({error})") from None
    if missing := sorted(set(ROLLOUT_SCHEMA.names) - set(table.column_names)):
        raise UserError(f"{path}: no rollouts to train on, without {', '.join(missing)}; sample them again")
    try:
        rows: list[dict[str, Any]] = table.select(ROLLOUT_SCHEMA.names).cast(ROLLOUT_SCHEMA).to_pylist()
    except (pa.ArrowException, ValueError) as error:
        raise UserError(f"{path}: its columns are not those of rollouts ({error})") from None
    for number, row in enumerate(rows, 1):
        if wrong := _wrong(row, vocabulary):
            raise UserError(f"{path}, row {number}: {wrong}")
    return rows


def _wrong(row: dict[str, Any], vocabulary: int) -> str:
    """What makes a row unfit for an update; "" where nothing does."""
    if empty := [name for name in ROLLOUT_SCHEMA.names if row[name] is None and name not in _MAY_BE_NULL]:
        return f"has no {empty[0]}"
    tokens, lengths = len(row["token_ids"]), row["segment_lengths"]
    if not tokens == len(row["logprobs"]) == sum(lengths) > 0 or len(lengths) != len(row["segment_versions"]):
        return "tokens, log-probs and segments do not agree"
    if not row["prompt_ids"] or not math.isfinite(row["reward"]):
        return "its prompt is empty or its reward no number"
    if not 0 <= min(row["prompt_ids"] + row["token_ids"]) <= max(row["prompt_ids"] + row["token_ids"]) < vocabulary:
        return f"its tokens are not of this model, which knows {vocabulary}; model.path must be of those that sampled"
    return ""


def _sample(row: dict[str, Any]) -> Sample:
    return Sample(
        index=row["sample_index"],
        seed=row["seed"],
        token_ids=row["token_ids"],
        logprobs=row["logprobs"],
        segment_lengths=row["segment_lengths"],
        segment_versions=row["segment_versions"],
        finish_reason=row["finish_reason"],
        finished_step=row["finished_step"],
        verdict=Verdict(row["equivalent"], row["answer"], row["rule"], row["reason"]),
        reward=row["reward"],
    )
