"""Settings of evaluation: benchmarks, sampling, estimates, and when a difference counts.

The evaluate section of ``ulorl.recipe``.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ulorl.recipe_engine import Section


class Benchmark(Section):
    """One set of problems to evaluate on. Three lines make one of your own: the header, `name` and `source`."""

    name: str = Field(min_length=1, pattern=r"^[A-Za-z0-9_.-]+$")
    """Name in tables and file names; that of a known benchmark must be that benchmark, whole."""
    source: str = ""
    """An input as in `data.inputs`, or `quickstart-test:N` for generated problems that are never trained on; empty for
    a known benchmark, or for a file called like the benchmark in `bench_dir`."""
    limit: int = Field(default=0, ge=0)
    """Use only this many problems, drawn with the run's seed; 0 for all."""
    problem: str = ""
    """Column of the problem text; empty looks for the common spellings."""
    answer: str = ""
    """Column of the reference; empty looks for the common spellings."""
    task: str = "math"
    """Task of the rows that name none in a column `task`."""
    prompt: str = ""
    """Text around each problem, `{problem}`, inside `model.prompt`; empty for none."""
    items: int = Field(default=0, ge=0)
    """Number of problems it must have; 0 for any."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.prompt and "{problem}" not in self.prompt:
            raise ValueError("prompt: must contain {problem}")
        return self


class BoundaryRecipe(Section):
    """`ulorl eval --boundary BASE TRAINED`: what training made solvable, and what it lost."""

    samples: int = Field(default=256, ge=2)
    """Samples of each problem from a model that is not evaluated yet; pass@k for every k up to it."""
    significance: float = Field(default=0.05, gt=0, lt=0.5)
    """Chance that luck alone makes any of the problems called gained beyond luck, over all problems and benchmarks
    together; the same for those lost."""


class EvaluateRecipe(Section):
    """Estimates with honest errors. Sampling defaults to the paper's settings for reasoning models."""

    benchmarks: tuple[Benchmark, ...] = (Benchmark(name="quickstart-test", source="quickstart-test:100"),)
    """Sets to evaluate on."""
    bench_dir: str = ""
    """Directory of benchmark files that stands in for the hub."""
    instructions: bool = False
    """Put a known benchmark's own instruction (to box the final answer) around its problems. `ulorl eval` without a
    recipe does."""
    samples: int = Field(default=32, ge=1)
    """Samples a problem. More samples later extend the set."""
    pass_k: tuple[Annotated[int, Field(ge=1)], ...] = (1, 2, 4, 8, 16, 32)
    """The k of pass@k and maj@k."""
    temperature: float = Field(default=0.85, ge=0)
    """Sampling temperature."""
    top_p: float = Field(default=0.95, gt=0, le=1)
    """Nucleus; 1 is off."""
    top_k: int = Field(default=20, ge=0)
    """Most likely tokens to draw from; 0 is off."""
    max_tokens: int = Field(default=1024, ge=1)
    """Longest output. `ulorl eval` without a recipe takes what the model's positions leave, at most 32,768."""
    yarn: float = Field(default=0.0, ge=0)
    """Factor by which YaRN stretches the model's positions; 0 leaves the model as it is. For `ulorl eval` only."""
    yarn_original: int = Field(default=0, ge=0)
    """Positions that the factor multiplies; 0 takes the model's max_position_embeddings."""
    significance: float = Field(default=0.025, gt=0, lt=0.5)
    """False alarms that a comparison allows, over all its benchmarks together: the lower side of a 95 % interval."""
    population: Literal["problems like these", "these problems"] = "problems like these"
    """Where a loss must be real to fail a comparison: beyond what differs between problems, or on the benchmark's very
    problems, beyond the noise of sampling (which also sees few problems that are lost altogether)."""
    min_effect: float = Field(default=0.01, ge=0, lt=1)
    """Smaller losses in avg never fail a comparison, however certain they are."""
    boundary: BoundaryRecipe = BoundaryRecipe()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.pass_k and max(self.pass_k) > self.samples:
            raise ValueError(f"pass_k: pass@{max(self.pass_k)} needs samples >= {max(self.pass_k)}, not {self.samples}")
        names = [benchmark.name for benchmark in self.benchmarks]
        if len(set(names)) < len(names):
            raise ValueError("benchmarks: two have the same name")
        if 0 < self.yarn <= 1:
            raise ValueError("yarn: a factor above 1 stretches, 0 is off")
        if self.yarn_original and not self.yarn:
            raise ValueError("yarn_original: has no effect without yarn")
        return self
