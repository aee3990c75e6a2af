"""The recipe: every setting of a run, one section a stage, each with one default and one docstring.

The docstrings below are the reference documentation; ``ulorl show RECIPE`` renders them beside the resolved
values. Reading and overriding recipes is in ``ulorl.recipe_file``; sizes that follow from a recipe are in
``ulorl.sizes``. Unknown keys and wrong types are errors.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from ulorl.recipe_curate import ConsensusRecipe, DifficultyRecipe, ReaderRecipe, Share, VoterRecipe
from ulorl.recipe_engine import EngineRecipe, JudgeRecipe, ModelRecipe, Section
from ulorl.recipe_evaluate import EvaluateRecipe
from ulorl.recipe_sandbox import SandboxRecipe
from ulorl.recipe_tasks import TasksRecipe
from ulorl.recipe_train import TrainRecipe

CurateStep = Literal[
    "normalise", "answers", "kinds", "rewrite", "duplicates", "contamination", "references", "difficulty"
]
CURATE_STEPS: tuple[CurateStep, ...] = (
    "normalise",
    "answers",
    "kinds",
    "rewrite",
    "duplicates",
    "contamination",
    "references",
    "difficulty",
)


class FieldNames(Section):
    """Column names of the input; empty means: look for the common spellings."""

    problem: str = ""
    """Column of the problem text (looked for: problem, question, prompt, ...)."""
    answer: str = ""
    """Column of the reference (looked for: answer, reference, gold, ground_truth, solution, ...)."""
    id: str = ""
    """Column of the input's own id (looked for: id, source_id, uid, ...)."""
    pass_rate: str = ""
    """Column of known pass rates from 0 to 1, taken in the place of sampling (looked for: pass_rate)."""
    task: str = "math"
    """Task of the rows that name none in a column `task` (`ulorl tasks list` names them)."""


class DataRecipe(Section):
    """Where problems come from."""

    inputs: tuple[str, ...] = ("quickstart:700",)
    """Files (JSON lines, JSON, CSV, TSV, Parquet; gzipped or not), directories of them, `hub:OWNER/NAME` or
    `hub:OWNER/NAME/CONFIG@SPLIT` for a Hugging Face data set (split train unless named), `quickstart:N`
    for N generated problems, or `logic:NAME:N` for N puzzles of reasoning-gym (`logic:NAME:N:{"max_terms": 2}` with
    settings of theirs; `logic-test:` for others to evaluate on). Paths are relative to the current directory."""
    fields: FieldNames = FieldNames()
    """Column names, where they are not the common ones."""
    limit: int = Field(default=0, ge=0)
    """Use only this many rows, drawn with the run's seed; 0 for all."""


class CurateRecipe(Section):
    """Cleaning. Every dropped row keeps its reason."""

    steps: tuple[CurateStep, ...] = CURATE_STEPS
    """Steps to run, always in the default's order."""
    max_answer_chars: int = Field(default=100, ge=1)
    """Longer short answers are dropped as too long."""
    max_answer_words: int = Field(default=5, ge=0)
    """Short answers with more words are dropped as prose; a unit is a word."""
    keep_matrices: bool = False
    """Keep problems whose answer is a matrix."""
    keep_systems: bool = False
    """Keep problems whose answer is a system or a definition by cases on several lines."""
    duplicate_words: Share = 0.5
    """Least word-unigram Jaccard similarity of near-duplicates."""
    duplicate_numbers: Share = 0.8
    """Least number-set Jaccard similarity of near-duplicates."""
    benchmarks: tuple[str, ...] = ()
    """Benchmarks that must not leak into the data: inputs as in `data.inputs`."""
    leak_words: Share = 0.4
    """Least word-unigram Jaccard similarity to a benchmark item for a leak."""
    leak_numbers: Share = 0.6
    """Least number overlap with a benchmark item for a leak."""
    drop_templates: bool = False
    """Also drop problems that are a benchmark item with other data; else they are marked in `template`."""
    workers: int = Field(default=0, ge=0)
    """Processes for the steps that look at one row at a time; 0 takes every core. The result is the same."""
    reader: ReaderRecipe = ReaderRecipe()
    """The language model of kinds and rewrite; none by default."""
    consensus: ConsensusRecipe = ConsensusRecipe()
    """Other models' answers, with which the references step compares; none by default."""
    difficulty: DifficultyRecipe = DifficultyRecipe()
    """The difficulty step."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.steps:
            raise ValueError("steps: must name at least one step")
        return self


class VerifyRecipe(Section):
    """When two answers are equivalent."""

    last_number: bool = False
    """Take the last number of a response that states no final answer."""
    relative_tolerance: float = Field(default=0.0, ge=0, lt=0.1)
    """Largest relative difference of equal numbers; 0 compares them exactly, as rationals."""
    rounding: Literal["reference", "never"] = "reference"
    """`reference`: a decimal reference of three significant digits or more equals an exact answer, or one with more
    digits, that rounds to it; `never`: a decimal is exactly the number it spells."""
    missing_unit: Literal["accept", "reject"] = "accept"
    """A number without the other side's unit or currency."""
    percent: Literal["either", "value", "strict"] = "either"
    """p% equals p and p/100 (`either`), only p/100 (`value`), or only another percentage (`strict`)."""
    order: Literal["free", "strict"] = "free"
    """Order of a list without brackets; the order of a tuple always counts."""
    symbolic: bool = True
    """Ask a computer algebra system, in worker processes, about what the rules leave undecided."""
    symbolic_workers: int = Field(default=0, ge=0)
    """Worker processes; 0 takes one a core that the process may use, at most 2."""
    symbolic_seconds: float = Field(default=0.5, gt=0)
    """Processor time of one comparison, in seconds; beyond it the answer is undecided."""
    symbolic_memory_mib: int = Field(default=256, ge=128)
    """Memory of one worker process, in MiB."""
    judge: JudgeRecipe = JudgeRecipe()
    """A language model for what rules leave undecided; off by default."""
    tasks: TasksRecipe = TasksRecipe()
    """Tasks other than mathematics."""
    sandbox: SandboxRecipe = SandboxRecipe()
    """Where the programs of the task `code` run."""


class Recipe(Section):
    """Everything that determines a run."""

    name: str = Field(default="quickstart", pattern=r"^[A-Za-z0-9_.-]+$")
    """Name of the run."""
    output: str = ""
    """Directory of the run's artifacts; empty for runs/NAME."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Seed of everything random."""
    model: ModelRecipe = ModelRecipe()
    data: DataRecipe = DataRecipe()
    curate: CurateRecipe = CurateRecipe()
    verify: VerifyRecipe = VerifyRecipe()
    engine: EngineRecipe = EngineRecipe()
    train: TrainRecipe = TrainRecipe()
    evaluate: EvaluateRecipe = EvaluateRecipe()

    @model_validator(mode="after")
    def _check(self) -> Self:
        given, needed = self.engine.max_model_len, self.longest_sequence
        if 0 < given < needed:
            raise ValueError(
                f"engine.max_model_len: {given} is below the longest prompt + output, {needed} ({self.longest_setting})"
            )
        return self

    @property
    def longest_sequence(self) -> int:
        """Longest prompt + output of any stage, in tokens."""
        return max(self._sequences.values())

    @property
    def longest_setting(self) -> str:
        """The setting that ``longest_sequence`` comes from."""
        return max(self._sequences, key=self._sequences.__getitem__)

    @property
    def _sequences(self) -> dict[str, int]:
        """Longest prompt + output of each stage, by the setting of the output."""
        outputs = {
            "the max_tokens settings of train": self.train.longest_output,
            "evaluate.max_tokens": self.evaluate.max_tokens,
            "curate.difficulty.max_tokens": self.curate.difficulty.max_tokens,
        }
        found = {name: self.model.max_prompt_tokens + tokens for name, tokens in outputs.items()}
        shared = [one for one in self.curate.consensus.voters if self.shares_engine(one)]
        votes = [one.model.max_prompt_tokens + one.max_tokens for one in shared]
        return found | ({"curate.consensus.voters": max(votes)} if votes else {})

    def shares_engine(self, voter: VoterRecipe) -> bool:
        """Whether the engine of the start model answers for ``voter``."""
        model = self.model
        return voter.engine == self.engine and (voter.model.path, voter.model.dtype) == (model.path, model.dtype)

    @property
    def max_model_len(self) -> int:
        """Length the engine is opened with, in tokens."""
        return self.engine.max_model_len or self.longest_sequence
