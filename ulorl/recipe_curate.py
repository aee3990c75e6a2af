"""Settings of the curation steps that ask models: reading and rewording, references, difficulty.

Part of ``ulorl.recipe``, which re-exports what is here.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from ulorl.recipe_engine import EngineRecipe, ModelRecipe, Section

Share = Annotated[float, Field(ge=0, le=1)]


class ReaderRecipe(Section):
    """A language model that reads the problems which the rules of kinds and rewrite leave undecided."""

    path: str = ""
    """Hugging Face directory or hub name of an instruction model, behind the engine of `engine`; empty: rules alone.
    With the value of `model.path` the start model itself is asked."""
    chat: bool = True
    """Put the questions through the tokenizer's chat template."""
    max_prompt_tokens: int = Field(default=2048, ge=1)
    """Longer questions are not asked; the row stays with what the rules say."""
    max_tokens: int = Field(default=2048, ge=1)
    """Longest reply, its reasoning included."""
    samples: int = Field(default=5, ge=1)
    """Times the model answers each problem that it has rewritten."""
    agree: int = Field(default=3, ge=1)
    """Least number of these answers that must be equivalent to the reference."""
    temperature: float = Field(default=0.7, ge=0)
    """Sampling temperature of these answers."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.agree > self.samples:
            raise ValueError("agree: is above samples, no rewriting would ever be taken")
        return self


class VoterRecipe(Section):
    """A model whose answers are compared with the references."""

    name: str = Field(default="", pattern=r"^[A-Za-z0-9_.-]*$")
    """Name in the votes and of the directory of its samples; empty: the last part of model.path."""
    model: ModelRecipe = ModelRecipe()
    """The model, and how a problem is put to it; problems with a longer prompt are not put."""
    engine: EngineRecipe = EngineRecipe()
    """How it is run. With model and engine of the recipe itself, the engine is shared with the start model."""
    samples: int = Field(default=4, ge=1)
    """Samples a problem."""
    temperature: float = Field(default=0.7, ge=0)
    """Sampling temperature."""
    max_tokens: int = Field(default=4096, ge=1)
    """Longest output."""

    @property
    def label(self) -> str:
        """The name, given or derived."""
        return self.name or self.model.path.rstrip("/").rsplit("/", 1)[-1]


class ConsensusRecipe(Section):
    """Several models' answers against the reference. Off while there are neither voters nor files."""

    voters: tuple[VoterRecipe, ...] = ()
    """Models that are sampled, one after the other."""
    files: tuple[str, ...] = ()
    """Earlier samples: directories that curate or eval left, or files of rows with the problem's text or id, `model`,
    and `response` or `answer`."""
    min_models: int = Field(default=2, ge=1)
    """Least number of models that must vote for the same answer."""
    sample_share: Share = 0.6
    """Least share of a model's samples that must state the same answer for it to be the model's vote."""
    model_share: Share = 0.75
    """Least share of the models asked about a problem that must vote for the same answer."""
    max_for_reference: Share = 0.0
    """Largest share of the models that may vote for a reference that the others call wrong."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        labels = [voter.label for voter in self.voters]
        if len(set(labels)) < len(labels):
            raise ValueError("voters: two have the same name; give them names")
        return self


class GuessRecipe(Section):
    """Asking the start model for the bare answer: problems that it guesses teach no reasoning."""

    samples: int = Field(default=0, ge=0)
    """Guesses a problem; 0 asks for none."""
    right: int = Field(default=2, ge=1)
    """Problems guessed right at least so often are dropped."""
    max_tokens: int = Field(default=32, ge=1)
    """Longest output: room for an answer and not for reasoning."""
    temperature: float = Field(default=0.85, ge=0)
    """Sampling temperature."""
    prompt: str = "{problem}\n\nGive only the final answer, without any reasoning, within \\boxed{}."
    """Text that takes the place of model.prompt."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if 0 < self.samples < self.right:
            raise ValueError("right: is above samples, nothing would ever be dropped")
        if "{problem}" not in self.prompt:
            raise ValueError("prompt: must contain {problem}")
        return self


class DifficultyRecipe(Section):
    """Sampling the start model on every problem."""

    samples: int = Field(default=8, ge=1)
    """Samples a problem."""
    temperature: float = Field(default=0.85, ge=0)
    """Sampling temperature."""
    max_tokens: int = Field(default=1024, ge=1)
    """Longest output."""
    min_pass_rate: Share = 0.0
    """Problems solved less often are dropped as too hard."""
    max_pass_rate: Share = 0.999
    """Problems solved more often are dropped as too easy; the default drops those always solved."""
    drop_unsolved: bool = False
    """Also drop problems that are never solved, whatever min_pass_rate says."""
    guess: GuessRecipe = GuessRecipe()
    """Dropping what is right without reasoning; off by default."""
    earlier: str = ""
    """Directory of a curation whose samples are used where they were made with the same model and settings."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.min_pass_rate > self.max_pass_rate:
            raise ValueError("min_pass_rate: is above max_pass_rate, nothing would be kept")
        return self
