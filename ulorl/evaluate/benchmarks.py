"""Sets of problems to evaluate on, and what is known about the public ones.

Invariants: a benchmark is whole, of the published size where it is a known one, and every row of it is
usable; a benchmark with a known name is that benchmark, wherever its file lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from ulorl.errors import UserError
from ulorl.problem import Problem
from ulorl.recipe import Benchmark, FieldNames
from ulorl.rows import read_problems


@dataclass(frozen=True)
class KnownBenchmark:
    """A public benchmark: where the hub has it, how many items it has, and its columns."""

    source: str
    items: int
    problem: str = "problem"
    answer: str = "answer"


KNOWN = {
    "aime2024": KnownBenchmark("hub:HuggingFaceH4/aime_2024@train", 30),
    "aime2025": KnownBenchmark("hub:math-ai/aime25@test", 30),
    "amc23": KnownBenchmark("hub:math-ai/amc23@test", 40, problem="question"),
    "beyondaime": KnownBenchmark("hub:ByteDance-Seed/BeyondAIME@test", 100),
    "gsm8k": KnownBenchmark("hub:openai/gsm8k/main@test", 1319, problem="question"),
    "hmmt_feb_2025": KnownBenchmark("hub:MathArena/hmmt_feb_2025@train", 30),
    "math500": KnownBenchmark("hub:HuggingFaceH4/MATH-500@test", 500),
    "minerva_math": KnownBenchmark("hub:math-ai/minervamath@test", 272, problem="question"),
}
"""By name; a benchmark of the recipe with one of these names must be of this size."""


def benchmark_named(name: str, limit: int = 0) -> Benchmark:
    """The known benchmark of that name, from the hub. UserError lists the names there are."""
    if name not in KNOWN:
        raise UserError(f"no benchmark {name!r}; known are {', '.join(KNOWN)}; name others in evaluate.benchmarks")
    return Benchmark(name=name, source=KNOWN[name].source, limit=limit)


def parse_benchmarks(text: str) -> tuple[Benchmark, ...]:
    """``aime2025,mine=problems.jsonl``: known names, or NAME=SOURCE, separated by commas."""
    benchmarks = []
    for entry in text.split(","):
        name, equals, source = entry.strip().partition("=")
        try:
            benchmarks.append(Benchmark(name=name, source=source) if equals else benchmark_named(name))
        except ValidationError as error:
            raise UserError(f"--bench: {name!r} is no name; give NAME=SOURCE with letters, digits, - _ .") from error
    return tuple(benchmarks)


def load_benchmark(benchmark: Benchmark, seed: int) -> list[Problem]:
    """Its problems, at most ``benchmark.limit`` of them, drawn with ``seed``.

    Raises UserError when a row cannot be used, a problem appears twice, or a known benchmark is not whole.
    """
    known = KNOWN.get(benchmark.name)
    from_hub = known is not None and benchmark.source == known.source
    fields = FieldNames(problem=known.problem, answer=known.answer) if known and from_hub else FieldNames()
    problems, bad = read_problems([benchmark.source], fields, 0, seed)
    if bad:
        first = bad[0]
        raise UserError(
            f"benchmark {benchmark.name}: {len(bad)} rows cannot be used, first {first.source}:{first.line}: "
            f"{first.reason}; mend or remove them"
        )
    if known and len(problems) != known.items:
        raise UserError(
            f"benchmark {benchmark.name}: {benchmark.source} has {len(problems)} problems, not "
            f"{known.items}; if it is another set, give it another name"
        )
    _refuse_repeated(benchmark, problems)
    if 0 < benchmark.limit < len(problems):
        problems, _ = read_problems([benchmark.source], fields, benchmark.limit, seed)
    return problems


def _refuse_repeated(benchmark: Benchmark, problems: Sequence[Problem]) -> None:
    first: dict[str, int] = {}
    for row, problem in enumerate(problems, 1):
        if problem.id in first:
            raise UserError(
                f"benchmark {benchmark.name}: problems {first[problem.id]} and {row} of "
                f"{benchmark.source} are the same ({problem.problem[:60]!r}); remove one, or it counts twice"
            )
        first[problem.id] = row
