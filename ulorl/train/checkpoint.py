"""Checkpoints: everything that determines the future of a run, written whole or not at all.

Invariants: what is named ``step_...`` is whole, also while it is removed; of the checkpoints the latest are kept, and
besides, where asked for, that of the best validation.

``step_000020/`` holds ``model/`` (Hugging Face safetensors and tokenizer), ``state/`` (DeepSpeed: weights and
optimizer), ``pool.parquet`` (the samples in flight with their partial tokens; of several processes each
has a file of its own, ``pool_rank_0.parquet``) and ``trainer.json`` (counters, the data cursor and what
validations said so far). Randomness needs no state: every seed follows from the run's seed and these counters.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ulorl.engine.base import FinishReason
from ulorl.errors import UserError
from ulorl.files import fsync_dir, fsync_tree, link_file, write_table
from ulorl.problem import Problem
from ulorl.train.learner import Learner
from ulorl.train.pool import Group, Sample
from ulorl.train.state import TrainerState, read_state, write_state
from ulorl.verify import Verdict

GENERATION_CONFIG = "generation_config.json"

POOL_SCHEMA = pa.schema(
    [
        ("group", pa.int64()),
        ("problem_id", pa.string()),
        ("born_step", pa.int64()),
        ("prompt_ids", pa.list_(pa.int32())),
        ("index", pa.int32()),
        ("seed", pa.int64()),
        ("token_ids", pa.list_(pa.int32())),
        ("logprobs", pa.list_(pa.float64())),
        ("segment_lengths", pa.list_(pa.int32())),
        ("segment_versions", pa.list_(pa.int32())),
        ("finish_reason", pa.string()),
        ("finished_step", pa.int64()),
        ("left_step", pa.int64()),
        ("reward", pa.float64()),
        ("verdict", pa.string()),
    ]
)


def save_model(learner: Learner, directory: Path, start: Path) -> None:
    """A Hugging Face directory that transformers and vLLM load as it is: the learner's weights, and all else of the
    model in ``start``, whose configurations are copied, because training sets some of their values otherwise."""
    from huggingface_hub import save_torch_state_dict
    from transformers import AutoTokenizer

    first = learner.ranks.first  # the others take part in gathering the weights, and drop them
    weights = {name: tensor.cpu().clone() for name, tensor in learner.named_tensors() if first}
    if not first:
        return
    directory.mkdir(parents=True, exist_ok=True)
    save_torch_state_dict(weights, directory, metadata={"format": "pt"})
    config = json.loads((start / "config.json").read_text(encoding="utf-8"))
    config.pop("torch_dtype", None)  # an older name of the same
    config["dtype"] = str(learner.hf_model.dtype).removeprefix("torch.")
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    if (start / GENERATION_CONFIG).is_file():
        shutil.copyfile(start / GENERATION_CONFIG, directory / GENERATION_CONFIG)
    AutoTokenizer.from_pretrained(start).save_pretrained(directory)


def save_checkpoint(
    root: Path,
    learner: Learner,
    state: TrainerState,
    groups: Sequence[Group],
    start: Path,
    keep: int,
    keep_best: bool = False,
) -> Path:
    """Write a checkpoint, then remove all but the latest ``keep`` and, with ``keep_best``, that of the best validation.

    All ranks together, in a directory they share.
    """
    ranks = learner.ranks
    final = _named(root, state.step)
    partial = _hidden(final)
    ranks.once(lambda: _begin(partial))
    with ranks.watch("write a checkpoint"):
        save_model(learner, partial / "model", start)
        learner.save(partial / "state")
    write_table(partial / f"pool{ranks.suffix}.parquet", pool_table(groups))
    ranks.meet("finish a checkpoint")
    ranks.once(lambda: _finish(partial, final, replace(state, processes=ranks.world), keep, keep_best))
    return final


def remove_partial(root: Path) -> None:
    """Remove checkpoints that a killed attempt had half written, or half removed."""
    for path in root.glob(".step_*.tmp"):
        shutil.rmtree(path)


def _begin(partial: Path) -> None:
    remove_partial(partial.parent)
    partial.mkdir(parents=True)


def _hidden(checkpoint: Path) -> Path:
    """Where a checkpoint lies while it is not whole: no reader looks there."""
    return checkpoint.with_name(f".{checkpoint.name}.tmp")


def _remove(checkpoint: Path) -> None:
    shutil.rmtree(checkpoint.rename(_hidden(checkpoint)))


def _finish(partial: Path, final: Path, state: TrainerState, keep: int, keep_best: bool) -> None:
    """Make it durable and give it its name."""
    write_state(partial, state)
    fsync_tree(partial)
    assert not final.exists(), "a step that has its checkpoint is not done again"
    partial.rename(final)
    fsync_dir(final.parent)
    best = best_checkpoint(final.parent, state) if keep_best else None
    for old in checkpoints(final.parent)[:-keep]:
        if old != best:
            _remove(old)


def checkpoints(root: Path) -> list[Path]:
    """Whole checkpoints, oldest first."""
    return sorted(root.glob("step_[0-9]*"))


def best_checkpoint(root: Path, state: TrainerState) -> Path | None:
    """The checkpoint of the best validation so far; None where there is none."""
    path = _named(root, state.progress.best_step)
    return path if path.is_dir() else None


def save_result(directory: Path, root: Path, state: TrainerState, final: str) -> int:
    """The model that a run ends with, in ``directory``, out of a checkpoint in ``root``; the step whose weights it has.

    ``final`` is "last", or "best": that of the best validation.
    """
    best = best_checkpoint(root, state) if final == "best" else None
    shutil.copytree((best or _named(root, state.step)) / "model", directory, copy_function=_copy)
    return state.progress.best_step if best else state.step


def _copy(source: str, target: str) -> None:
    """Of weights a second name, which takes no room; of the rest a copy, which people may change."""
    (link_file if source.endswith(".safetensors") else shutil.copy2)(source, target)


def _named(root: Path, step: int) -> Path:
    return root / f"step_{step:06d}"


def load_checkpoint(path: Path, learner: Learner, problems: Sequence[Problem]) -> tuple[TrainerState, list[Group]]:
    """Restore the learner; return the counters and this rank's groups in flight."""
    ranks = learner.ranks
    state = read_state(path)
    if state.processes != ranks.world:
        ranks.once(lambda: _refuse(path, state.processes, ranks.world))
    with ranks.watch("read a checkpoint"):
        learner.load(path / "state")
    assert learner.version == state.version, "the weights and the counters of the checkpoint disagree"
    return state, pool_groups(pq.read_table(path / f"pool{ranks.suffix}.parquet"), problems)


def _refuse(path: Path, before: int, now: int) -> None:
    raise UserError(
        f"{path}: was written by a run of {before} processes, this one has {now}; optimizer state and samples "
        f"in flight are divided over them. Start it with --nproc {before}, or anew with --force"
    )


def pool_table(groups: Sequence[Group]) -> pa.Table:
    """One row a sample, partial or finished."""
    rows = [
        {
            "group": group.number,
            "problem_id": group.problem.id,
            "born_step": group.born_step,
            "prompt_ids": group.prompt_ids,
            **{name: getattr(sample, name) for name in POOL_SCHEMA.names[4:-1]},
            "verdict": json.dumps(asdict(sample.verdict)) if sample.verdict else None,
        }
        for group in groups
        for sample in group.samples
    ]
    return pa.Table.from_pylist(rows, POOL_SCHEMA)


def pool_groups(table: pa.Table, problems: Sequence[Problem]) -> list[Group]:
    """Undo ``pool_table``."""
    by_id = {problem.id: problem for problem in problems}
    groups: dict[int, Group] = {}
    for row in table.to_pylist():
        if row["problem_id"] not in by_id:
            raise UserError(
                f"checkpoint: problem {row['problem_id']} is no longer in the training data; --force starts anew"
            )
        group = groups.setdefault(
            row["group"],
            Group(row["group"], by_id[row["problem_id"]], tuple(row["prompt_ids"]), [], row["born_step"]),
        )
        group.samples.append(_sample(row))
    return list(groups.values())


def _sample(row: dict[str, Any]) -> Sample:
    finish_reason: FinishReason | None = row["finish_reason"]
    return Sample(
        index=row["index"],
        seed=row["seed"],
        token_ids=row["token_ids"],
        logprobs=row["logprobs"],
        segment_lengths=row["segment_lengths"],
        segment_versions=row["segment_versions"],
        finish_reason=finish_reason,
        finished_step=row["finished_step"],
        left_step=row["left_step"],
        verdict=Verdict(**json.loads(row["verdict"])) if row["verdict"] else None,
        reward=row["reward"],
    )
