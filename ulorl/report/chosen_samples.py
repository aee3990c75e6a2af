"""Samples worth reading: of problems gained, lost and never solved, and of training steps early and late.

Invariants: the choice depends on the files alone (lowest sample index first), never on chance; texts are shortened
in the middle, saying by how much; only the chosen problems' rows are kept in memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ulorl.errors import UserError
from ulorl.report.curves_evaluation import ProblemChange

HEAD, TAIL = 1400, 1800
"""Characters of a long text that are shown, at its beginning and its end."""
PROBLEMS = 12
"""Problems of which samples are shown, over all benchmarks."""
_COLUMNS = (
    "problem_id",
    "sample_index",
    "text",
    "token_ids",
    "tokens",
    "finish_reason",
    "answer",
    "equivalent",
    "rule",
    "reason",
    "segment_lengths",
    "segment_versions",
)
_STEP = re.compile(r"step_(\d+)(?:_rank_0)?\.parquet")


@dataclass(frozen=True)
class ShownSample:
    """One sample. ``verdict`` is right, wrong, undecided or no answer; ``origin`` says where it is from."""

    origin: str
    text: str
    verdict: str
    answer: str | None
    rule: str
    reason: str
    finish: str
    tokens: int | None
    segments: str = ""


@dataclass(frozen=True)
class ShownProblem:
    """A problem with the samples shown of it. ``why`` it was chosen, in words."""

    problem_id: str
    problem: str
    reference: str
    why: str
    samples: tuple[ShownSample, ...]


def shortened(text: str, head: int = HEAD, tail: int = TAIL) -> tuple[str, int, str]:
    """Beginning, characters left out, end; ("...", 0, "") where the text is short enough."""
    if len(text) <= head + tail + 100:
        return text, 0, ""
    return text[:head], len(text) - head - tail, text[-tail:]


def pick_changed(changed: Sequence[ProblemChange], most: int) -> list[tuple[ProblemChange, str]]:
    """Up to ``most`` problems, each once and with the reason: the most gained and lost, some never solved, some with
    samples that the verifier could not decide or that were cut."""
    gained = [one for one in changed if one.after > one.before]
    lost = [one for one in reversed(changed) if one.after < one.before]
    same = [one for one in changed if one.before == one.after != 0]
    queues = {
        "gained": gained,
        "lost": lost,
        "not solved": [one for one in changed if one.before == one.after == 0],
        "undecided": sorted((one for one in changed if one.undecided), key=lambda one: -one.undecided)[:2],
        "truncated": sorted((one for one in changed if one.truncated), key=lambda one: -one.truncated)[:2],
        "as before": same[:2] if gained or lost else same,
    }
    picked: dict[str, tuple[ProblemChange, str]] = {}
    while len(picked) < most and any(queues.values()):
        for why, queue in queues.items():
            while queue and queue[0].problem_id in picked:
                queue.pop(0)
            if queue and len(picked) < most:
                one = queue.pop(0)
                picked[one.problem_id] = (one, why)
    order = list(queues)
    return sorted(picked.values(), key=lambda item: (order.index(item[1]), item[0].problem_id))


def evaluation_samples(directory: Path, benchmark: str, ids: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """The kept samples of these problems, by problem, lowest index first. UserError for a shard that is damaged."""
    folder = directory / "samples" / benchmark
    paths = sorted(folder.glob("*.parquet")) if folder.is_dir() else sorted((directory / "samples").glob("*.parquet"))
    return _by_problem(paths, ids)


def evaluated_problems(
    benchmark: str,
    picked: Sequence[tuple[ProblemChange, str]],
    directories: Mapping[str, Path],
) -> list[ShownProblem]:
    """One sample of each evaluation (by its label) for each problem: one that shows what changed."""
    ids = [change.problem_id for change, _ in picked]
    kept = {label: evaluation_samples(directory, benchmark, ids) for label, directory in directories.items()}
    shown = []
    for change, why in picked:
        samples = []
        for label in directories:
            rows = kept[label].get(change.problem_id, [])
            row = next((row for row in rows if _shows(row, why, label)), rows[0] if rows else None)
            if row is not None:
                samples.append(shown_sample(label, row))
        if len(directories) > 1:
            why_text = f"{why}: {100 * change.before:.0f} % of samples right before, {100 * change.after:.0f} % after"
        else:
            why_text = f"{100 * change.after:.0f} % of samples right"
        shown.append(ShownProblem(change.problem_id, change.problem, change.reference, why_text, tuple(samples)))
    return shown


def _shows(row: Mapping[str, Any], why: str, label: str) -> bool:
    """Whether a sample of the evaluation ``label`` shows why its problem was chosen."""
    if why == "truncated":
        return bool(row.get("finish_reason") == "length")
    right = why == "as before" or (why, label) in (("gained", "after"), ("lost", "before"))
    return verdict_of(row) == ("undecided" if why == "undecided" else "right" if right else "wrong")


def training_samples(directory: Path, problems: Mapping[str, tuple[str, str]]) -> list[ShownProblem]:
    """One right and one wrong sample of the first, a middle and the last step that kept rollouts.

    ``problems``: text and reference by id, where they are known.
    """
    shown = []
    for step, path in sorted(_chosen_steps(directory).items()):
        table = _read(path, None)
        verdicts = [verdict_of(row) for row in table.select(["answer", "equivalent"]).to_pylist()]
        for verdict in ("right", "wrong"):
            if verdict in verdicts:
                row = table.slice(verdicts.index(verdict), 1).to_pylist()[0]
                text, reference = problems.get(row["problem_id"], ("", ""))
                sample = shown_sample(f"step {step}", row)
                shown.append(ShownProblem(row["problem_id"], text, reference, "", (sample,)))
    return shown


def trained_problems(directory: Path) -> list[str]:
    """The problems of which ``training_samples`` may show something."""
    paths = _chosen_steps(directory).values()
    return sorted(
        {problem for path in paths for problem in _read(path, None, ("problem_id",))["problem_id"].to_pylist()}
    )


def _chosen_steps(directory: Path) -> dict[int, Path]:
    matches = ((_STEP.fullmatch(path.name), path) for path in (directory / "rollouts").glob("step_*.parquet"))
    steps = sorted((int(match.group(1)), path) for match, path in matches if match)
    return {steps[place][0]: steps[place][1] for place in (0, len(steps) // 2, -1)} if steps else {}


def problem_texts(path: Path, ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Text and reference of these problems from a problems.parquet; {} where there is none or it is damaged."""
    if not path.is_file():  # Of a directory pyarrow would read every file.
        return {}
    try:
        table = pq.read_table(path, columns=["id", "problem", "answer"], filters=pc.field("id").isin(list(ids)))
    except (OSError, pa.ArrowException, ValueError):
        return {}
    return {row["id"]: (row["problem"], row["answer"]) for row in table.to_pylist()}


def verdict_of(row: Mapping[str, Any]) -> str:
    """right, wrong, undecided, or no answer."""
    if row.get("equivalent") is True:
        return "right"
    if row.get("answer") is None:
        return "no answer"
    return "wrong" if row.get("equivalent") is False else "undecided"


def shown_sample(origin: str, row: Mapping[str, Any]) -> ShownSample:
    """A row of a samples file, as it is shown."""
    lengths, versions = row.get("segment_lengths") or [], row.get("segment_versions") or []
    segments = ""
    if len(lengths) > 1:
        segments = f"{len(lengths)} segments of {', '.join(map(str, lengths))} tokens"
        segments += f" by policies {', '.join(map(str, versions))}" if versions else ""
    tokens = row.get("tokens")
    if tokens is None and row.get("token_ids"):  # Other people's responses have none.
        tokens = len(row["token_ids"])
    return ShownSample(
        origin,
        row.get("text") or "",
        verdict_of(row),
        row.get("answer"),
        row.get("rule") or "",
        row.get("reason") or "",
        row.get("finish_reason") or "",
        tokens if isinstance(tokens, int) else None,
        segments,
    )


def _by_problem(paths: Sequence[Path], ids: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for path in paths:
        for row in _read(path, ids).to_pylist():
            found.setdefault(row["problem_id"], []).append(row)
    for rows in found.values():
        rows.sort(key=lambda row: row.get("sample_index") or 0)
    return found


def _read(path: Path, ids: Sequence[str] | None, columns: Sequence[str] = _COLUMNS) -> pa.Table:
    """The rows of these problems, or all; those of the columns that the file has."""
    try:
        there = set(pq.read_schema(path).names)
        chosen = None if ids is None else pc.field("problem_id").isin(list(ids))
        return pq.read_table(path, columns=[name for name in columns if name in there], filters=chosen)
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{path}: not a readable samples file ({error})") from error
