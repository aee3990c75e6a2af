"""Settings of text generation: the base of every section, the model's, the engine's, and the judge's of the verifier.

Part of ``ulorl.recipe``, which re-exports what is here.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Section(BaseModel):
    """Strict base of every section."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        validate_default=True,
    )


class ModelRecipe(Section):
    """Which model is trained and how a problem is put to it."""

    path: str = "quickstart"
    """Hugging Face directory or hub name; `quickstart` is the small model inside the package."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Precision of the weights in the engine and in the trainer's forward pass."""
    chat: bool = False
    """Put the problem through the tokenizer's chat template, as one user turn after `system`."""
    system: str = ""
    """System message of the chat template; empty for none."""
    prompt: str = "{problem}"
    """Text of the prompt (of the user turn when `chat` is on); `{problem}` is replaced."""
    max_prompt_tokens: int = Field(default=1024, ge=1)
    """Problems whose prompt is longer are dropped by curate and refused by train and eval."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if "{problem}" not in self.prompt:
            raise ValueError("prompt: must contain {problem}")
        if self.system and not self.chat:
            raise ValueError("system: has no effect unless chat = true")
        return self


class EngineRecipe(Section):
    """Text generation."""

    kind: Literal["auto", "vllm", "server", "hf"] = "auto"
    """`vllm` in this process, `server` for an OpenAI-compatible endpoint, `hf` for plain transformers; `auto`
    takes vllm where it is installed, else hf."""
    max_model_len: int = Field(default=0, ge=0)
    """Longest prompt + output in tokens; 0 derives it from the longest prompt and output of the recipe."""
    max_num_seqs: int = Field(default=256, ge=1)
    """Sequences decoded together."""
    kv_cache_gib: float = Field(default=1.0, gt=0)
    """KV cache on a CPU, in GiB."""
    gpu_memory_utilization: float = Field(default=0.5, gt=0, le=1)
    """Share of a GPU's memory that vLLM takes (the trainer needs the rest unless the engine sleeps)."""
    threads: int = Field(default=0, ge=0)
    """CPU threads of engine and trainer; 0 takes OMP_NUM_THREADS, else every core the process may use."""
    url: str = ""
    """Base URL of the server, such as http://127.0.0.1:8000/v1."""
    served_model: str = ""
    """Name under which the server knows the model; empty asks the server for its only one."""
    concurrency: int = Field(default=32, ge=1)
    """Requests to the server in flight at a time."""
    timeout_s: float = Field(default=600.0, gt=0)
    """Time-out of one request to the server, in seconds."""
    retries: int = Field(default=5, ge=0)
    """Retries of a failed request, with exponential back-off."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.kind == "server" and not self.url:
            raise ValueError('url: kind = "server" needs the URL of the endpoint')
        if self.url and self.kind != "server":
            raise ValueError('url: has no effect unless kind = "server"')
        return self


class JudgeEngineRecipe(EngineRecipe):
    """The engine of the judge: beside the one that holds the policy, so that training does not disturb it."""

    kind: Literal["auto", "vllm", "server", "hf"] = "hf"
    """As in [engine]. `hf` may live beside the policy's vLLM and reads one token a question; a large judge is
    better served elsewhere (`server`)."""


class JudgeRecipe(Section):
    """A language model that compares what rules leave undecided. Off while `model` is empty."""

    model: str = ""
    """Directory that `ulorl verify train` made, any other Hugging Face directory, or a hub name; empty: no judge."""
    ask: Literal["undecided", "also_rejected"] = "undecided"
    """What it is asked: pairs that no rule decides, or also those that rules reject (it may overturn them)."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Precision of its weights."""
    accept: float = Field(default=0.9, gt=0.5, lt=1)
    """Least probability of "equivalent" for equal (with reasoning: least share of the votes)."""
    reject: float = Field(default=0.1, gt=0, lt=0.5)
    """Largest probability of "equivalent" for different; in between, the pair stays undecided."""
    both_orders: bool = True
    """Ask with reference and answer in either order and take the mean of the log-odds."""
    question_chars: int = Field(default=400, ge=0)
    """Characters of the problem that are quoted to it; 0 for none. A trained judge brings its own number."""
    max_answer_chars: int = Field(default=200, ge=1)
    """Longer answers or references are not put to it."""
    reasoning_tokens: int = Field(default=0, ge=0)
    """Tokens it may think for before its label, the last of which counts; 0 reads the label's log-probs alone."""
    votes: int = Field(default=1, ge=1)
    """Samples a question when it reasons."""
    temperature: float = Field(default=0.6, gt=0)
    """Sampling temperature when it reasons."""
    cache: str = ""
    """File of the answers it gave (SQLite); empty for ulorl/judge.sqlite in the user's cache directory."""
    engine: JudgeEngineRecipe = JudgeEngineRecipe()
    """How it is run."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.votes > 1 and not self.reasoning_tokens:
            raise ValueError("votes: has no effect unless reasoning_tokens > 0")
        return self
