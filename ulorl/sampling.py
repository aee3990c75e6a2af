"""Samples of problems: generated, verified, kept as they finish, and found again.

Invariants:
- a sample is determined by the problem's prompt, its index, and the settings of its directory: the seed is
  ``derive_seed(seed, "sample", problem id, index)``, so asking again finds kept samples and asking for more
  extends them;
- what finished is on disk within about FLUSH_SECONDS, whatever happens to the process, and at once when the
  engine fails or the user interrupts;
- the returned table holds exactly problems x samples rows; anything missing is an error.

Does not: choose settings or compute estimates; training has its own sampling, segment by segment.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from ulorl.background import Background
from ulorl.engine.base import Engine, Generation, GenerationRequest, Sampling
from ulorl.errors import UserError
from ulorl.files import canonical_json
from ulorl.problem import MATH, SAMPLE_SCHEMA, Problem
from ulorl.sample_store import STORE_SCHEMA, SampleStore
from ulorl.seeds import derive_seed
from ulorl.verify.verdict import Item, Verdict

FLUSH_SECONDS = 30.0
FLUSH_SAMPLES = 256
Progress = Callable[[int, int], None]


class Prompter(Protocol):
    """What sampling needs of ``ulorl.engine.prompts.Prompter``."""

    def encode(self, problem_text: str) -> tuple[int, ...]: ...

    def decode(self, token_ids: Sequence[int]) -> str: ...


class Judge(Protocol):
    """What sampling needs of ``ulorl.verify.tasks.scorer.Scorer``, or of a ``Verifier`` where all is mathematics."""

    def verify(self, items: list[Item]) -> list[Verdict]: ...


def sample_problems(
    problems: Sequence[Problem],
    *,
    engine: Engine,
    prompter: Prompter,
    verifier: Judge,
    samples: int,
    sampling: Sampling,
    max_tokens: int,
    seed: int,
    directory: Path,
    key: Mapping[str, Any] | None = None,
    earlier: Path | None = None,
    on_progress: Progress | None = None,
) -> pa.Table:
    """Sample every problem ``samples`` times and judge each final answer.

    Samples already in ``directory`` are used, the others are generated and added to it. ``key`` holds what
    else determines a sample or its verdict (JSON values: the model's fingerprint, the verifier's settings).
    An empty ``directory`` starts from the samples in ``earlier``, if those were made with the same settings.
    ``on_progress`` receives (samples done, samples asked for), kept ones counted, as they finish.

    Returns SAMPLE_SCHEMA sorted by (order of problems, sample index). ``reward`` is the verdict's, for mathematics 1
    when it is equivalent and 0 otherwise; an undecided verdict leaves ``equivalent`` null. Truncated samples
    (``finish_reason`` "length") are judged like the others.

    Raises UserError when the directory holds samples of other settings, when two problems have one id, or
    when a prompt leaves no room for ``max_tokens``; EngineError when a request got no answer.
    """
    plan = _plan(problems, engine, prompter, max_tokens)
    settings = {
        "engine": engine.name,
        "key": dict(key or {}),
        "max_tokens": max_tokens,
        "sampling": dataclasses.asdict(sampling),
        "seed": seed,
    }
    store = SampleStore(directory, settings)
    if earlier is not None:
        store.adopt(earlier)
    kept = {name for name, _ in _chosen(store.read(), plan, samples)}
    requests = [
        GenerationRequest(
            id=f"{problem_id}#{index}",
            prompt_ids=planned.prompt_ids,
            max_tokens=max_tokens,
            seed=derive_seed(seed, "sample", problem_id, index),
            sampling=sampling,
        )
        for problem_id, planned in plan.items()
        for index in range(samples)
        if (problem_id, index) not in kept
    ]
    progress = _Counter(len(kept), len(plan) * samples, on_progress)
    if requests:
        seeds = {request.id: request.seed for request in requests}

        def keep(batch: list[Generation]) -> None:
            store.append(_rows(batch, seeds, plan, prompter, verifier))

        with Background(keep, max_items=FLUSH_SAMPLES, max_seconds=FLUSH_SECONDS) as background:

            def on_done(generation: Generation) -> None:
                background.add(generation)
                progress.advance()

            engine.generate(requests, on_done)
    return _assemble(store.read(), plan, samples, verifier)


class _Counter:
    """Reports (done, total) at once and after each ``advance``."""

    def __init__(self, done: int, total: int, report: Progress | None) -> None:
        self._done, self._total, self._report = done - 1, total, report
        self.advance()

    def advance(self) -> None:
        self._done += 1
        if self._report is not None:
            self._report(self._done, self._total)


@dataclass(frozen=True)
class _Planned:
    problem: Problem
    prompt_ids: tuple[int, ...]
    prompt_hash: str


_Plan = dict[str, _Planned]


def _plan(problems: Sequence[Problem], engine: Engine, prompter: Prompter, max_tokens: int) -> _Plan:
    plan: _Plan = {}
    for problem in problems:
        if problem.id in plan:
            raise UserError(f"problem {problem.id} appears twice among the problems to sample; remove duplicates")
        prompt_ids = tuple(prompter.encode(problem.problem))
        if len(prompt_ids) + max_tokens > engine.max_model_len:
            raise UserError(
                f"problem {problem.id}: prompt of {len(prompt_ids)} tokens and max_tokens = {max_tokens} "
                f"exceed the engine's {engine.max_model_len}; raise engine.max_model_len or lower max_tokens"
            )
        digest = hashlib.sha256(",".join(map(str, prompt_ids)).encode()).hexdigest()[:16]
        plan[problem.id] = _Planned(problem, prompt_ids, digest)
    return plan


def _rows(
    generations: Sequence[Generation],
    seeds: Mapping[str, int],
    plan: _Plan,
    prompter: Prompter,
    verifier: Judge,
) -> pa.Table:
    texts = [prompter.decode(generation.token_ids) for generation in generations]
    names = [generation.id.rsplit("#", 1) for generation in generations]
    planned = [plan[problem_id] for problem_id, _ in names]
    rows = [
        {
            "problem_id": problem_id,
            "sample_index": int(index),
            "seed": seeds[generation.id],
            **generated_columns(generation, text),
            "prompt_hash": one.prompt_hash,
            "reference": judged_by(one.problem),
            **judged,
        }
        for (problem_id, index), generation, text, one, judged in zip(
            names, generations, texts, planned, _judge(planned, texts, verifier), strict=True
        )
    ]
    return pa.Table.from_pylist(rows, schema=STORE_SCHEMA)


def generated_columns(generation: Generation, text: str) -> dict[str, Any]:
    """What SAMPLE_SCHEMA has of a sample that was generated in one piece; ``text`` is its decoded form."""
    return {
        "text": text,
        "token_ids": generation.token_ids,
        "logprobs": generation.logprobs,
        "segment_lengths": [len(generation.token_ids)],
        "segment_versions": [generation.policy_version],
        "finish_reason": generation.finish_reason,
    }


def verdict_columns(verdict: Verdict, reward: float) -> dict[str, Any]:
    """What SAMPLE_SCHEMA has of a verdict; ``reward`` is the verdict's own, or what training makes of it."""
    return {
        "answer": verdict.answer,
        "equivalent": verdict.equivalent,
        "reward": reward,
        "rule": verdict.rule,
        "reason": verdict.reason,
    }


def _judge(planned: Sequence[_Planned], texts: Sequence[str], verifier: Judge) -> list[dict[str, Any]]:
    """The verdict columns of each text."""
    return judged_columns([one.problem for one in planned], texts, verifier)


def judged_columns(problems: Sequence[Problem], texts: Sequence[str], verifier: Judge) -> list[dict[str, Any]]:
    """The verdict columns of SAMPLE_SCHEMA, by name, for each text as a response to the problem at its place."""
    items = [Item.of(problem, text) for problem, text in zip(problems, texts, strict=True)]
    return [verdict_columns(verdict, verdict.reward) for verdict in verifier.verify(items)]


def judged_by(problem: Problem) -> str:
    """All that a verdict depends on beside the response: the reference, in tasks other than mathematics the row too."""
    if problem.task == MATH:
        return problem.answer
    row = canonical_json({"task": problem.task, "extra": problem.extra})
    return f"{problem.answer}\n{hashlib.sha256(row.encode()).hexdigest()}"


def _chosen(kept: pa.Table, plan: _Plan, samples: int) -> list[tuple[tuple[str, int], int]]:
    """((problem id, sample index), row of ``kept``) of the rows that answer the plan, first of equals."""
    found: dict[tuple[str, int], int] = {}
    columns = (kept[name].to_pylist() for name in ("problem_id", "sample_index", "prompt_hash"))
    for row, (problem_id, index, prompt_hash) in enumerate(zip(*columns, strict=True)):
        planned = plan.get(problem_id)
        if planned is not None and index < samples and planned.prompt_hash == prompt_hash:
            found.setdefault((problem_id, index), row)
    return list(found.items())


def _assemble(kept: pa.Table, plan: _Plan, samples: int, verifier: Judge) -> pa.Table:
    """The asked-for rows in order; rows whose reference has changed since are judged against the new one."""
    found = dict(_chosen(kept, plan, samples))
    wanted = [(problem_id, index) for problem_id in plan for index in range(samples)]
    missing = [name for name in wanted if name not in found]
    if missing:
        raise RuntimeError(f"{len(missing)} of {len(wanted)} samples are missing after sampling, first {missing[0]}")
    table = kept.take(pa.array([found[name] for name in wanted], pa.int64()))
    planned = [plan[problem_id] for problem_id, _ in wanted]
    references = table["reference"].to_pylist()
    stale = [row for row, one in enumerate(planned) if references[row] != judged_by(one.problem)]
    if stale:
        columns = {name: table[name].to_pylist() for name in ("answer", "equivalent", "reward", "rule", "reason")}
        texts = table["text"].take(pa.array(stale, pa.int64())).to_pylist()
        for row, judged in zip(stale, _judge([planned[row] for row in stale], texts, verifier), strict=True):
            for name, value in judged.items():
                columns[name][row] = value
        for name, values in columns.items():
            field = SAMPLE_SCHEMA.field(name)
            table = table.set_column(table.schema.get_field_index(name), field, pa.array(values, field.type))
    return table.select(SAMPLE_SCHEMA.names).cast(SAMPLE_SCHEMA).combine_chunks()
