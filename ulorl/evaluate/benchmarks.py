"""Sets of problems to evaluate on: found, read whole, and checked.

Invariants: a benchmark is whole, of the published size where it is a known one, and every row of it is
usable; a benchmark with a known name is that benchmark, wherever its file lies.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from ulorl.errors import UserError
from ulorl.evaluate.registry import KNOWN, KnownBenchmark
from ulorl.problem import Problem
from ulorl.raw_rows import FORMATS
from ulorl.recipe import EvaluateRecipe, FieldNames
from ulorl.recipe_evaluate import Benchmark
from ulorl.rows import read_problems

_INTEGER = re.compile(r"-?\d+(?:\.0+)?")


def parse_benchmarks(text: str) -> tuple[Benchmark, ...]:
    """``aime2025,mine=problems.jsonl``: names, or NAME=SOURCE, separated by commas."""
    benchmarks = []
    for entry in text.split(","):
        name, equals, source = entry.strip().partition("=")
        try:
            benchmarks.append(Benchmark(name=name, source=source if equals else ""))
        except ValidationError as error:
            raise UserError(f"--bench: {name!r} is no name; give NAME=SOURCE with letters, digits, - _ .") from error
    repeated = next((one.name for one in benchmarks if sum(one.name == other.name for other in benchmarks) > 1), None)
    if repeated is not None:
        raise UserError(f"--bench: {repeated} is named twice")
    return tuple(benchmarks)


def located(settings: EvaluateRecipe) -> tuple[Benchmark, ...]:
    """The recipe's benchmarks, each with its source and, where instructions are on, its prompt.

    UserError where a source is missing: it lists the known names, and the files looked for.
    """
    return tuple(_located(benchmark, settings) for benchmark in settings.benchmarks)


def _located(benchmark: Benchmark, settings: EvaluateRecipe) -> Benchmark:
    known = KNOWN.get(benchmark.name)
    filled = dict[str, str]()
    if not benchmark.source:
        filled["source"] = _source(benchmark.name, known, settings.bench_dir)
    if known is not None and settings.instructions and not benchmark.prompt:
        filled["prompt"] = known.prompt
    return benchmark.model_copy(update=filled)


def _source(name: str, known: KnownBenchmark | None, bench_dir: str) -> str:
    if bench_dir:
        directory = Path(bench_dir)
        if not directory.is_dir():
            raise UserError(f"evaluate.bench_dir: {directory} is no directory")
        stems = (name, *(known.files if known else ()))
        candidates = [f"{stem}{suffix}{gz}" for stem in stems for suffix in FORMATS for gz in ("", ".gz")]
        found = next((file for file in candidates if (directory / file).is_file()), None)
        if found is not None:
            return str(directory / found)
        raise UserError(
            f"benchmark {name}: no file of it in {directory}; looked for {' or '.join(stems)} "
            f"with {', '.join(FORMATS)} (also .gz)"
        )
    if known is None:
        raise UserError(
            f"no benchmark {name!r}; known are {', '.join(KNOWN)}; give others as NAME=SOURCE, or in "
            "evaluate.benchmarks"
        )
    return known.source


def load_benchmark(benchmark: Benchmark, seed: int) -> list[Problem]:
    """Its problems, at most ``benchmark.limit`` of them, drawn with ``seed``; ``source`` must be there.

    Raises UserError when a row cannot be used, a problem appears twice, or a known benchmark is not whole or has
    answers of another type.
    """
    known = KNOWN.get(benchmark.name)
    source, fields = benchmark.source or (known.source if known else ""), _fields(benchmark, known)
    problems, bad = read_problems([source], fields, 0, seed)
    if bad:
        first = bad[0]
        raise UserError(
            f"benchmark {benchmark.name}: {len(bad)} rows cannot be used, first {first.source}:{first.line}: "
            f"{first.reason}; mend or remove them"
        )
    sizes = known.items if known else (benchmark.items,) if benchmark.items else ()
    if sizes and len(problems) not in sizes:
        raise UserError(
            f"benchmark {benchmark.name}: {source} has {len(problems)} problems, not "
            f"{' or '.join(map(str, sizes))}; if it is another set, give it another name"
        )
    _refuse_repeated(benchmark, problems)
    if known:
        _refuse_answers(benchmark, known, problems)
    if 0 < benchmark.limit < len(problems):
        problems, _ = read_problems([source], fields, benchmark.limit, seed)
    return problems


def _fields(benchmark: Benchmark, known: KnownBenchmark | None) -> FieldNames:
    if known is None or benchmark.source not in ("", known.source):
        return FieldNames(problem=benchmark.problem, answer=benchmark.answer, task=benchmark.task)
    problem, answer = benchmark.problem or known.problem, benchmark.answer or known.answer
    return FieldNames(problem=problem, answer=answer, task=benchmark.task)


def _refuse_repeated(benchmark: Benchmark, problems: Sequence[Problem]) -> None:
    first: dict[str, int] = {}
    for row, problem in enumerate(problems, 1):
        if problem.id in first:
            raise UserError(
                f"benchmark {benchmark.name}: problems {first[problem.id]} and {row} of "
                f"{benchmark.source} are the same ({problem.problem[:60]!r}); remove one, or it counts twice"
            )
        first[problem.id] = row


def _refuse_answers(benchmark: Benchmark, known: KnownBenchmark, problems: Sequence[Problem]) -> None:
    """References that this benchmark cannot have: the file is another one, or damaged."""
    if known.answers not in ("aime", "integer"):
        return
    for row, problem in enumerate(problems, 1):
        value = problem.answer.rpartition("####")[2].strip().replace(",", "").lstrip("$")
        whole = _INTEGER.fullmatch(value) is not None
        if not whole or (known.answers == "aime" and not 0 <= float(value) <= 999):
            what = "an integer from 0 to 999" if known.answers == "aime" else "an integer"
            raise UserError(
                f"benchmark {benchmark.name}: the answer of problem {row} of {benchmark.source} is "
                f"{problem.answer[-60:]!r}, not {what}; if it is another set, give it another name"
            )
