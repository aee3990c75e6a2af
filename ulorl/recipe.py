"""The recipe: every setting of a run, one section a stage, each with one default and one docstring.

The docstrings below are the reference documentation; ``ulorl show RECIPE`` renders them beside the resolved
values. Reading and overriding recipes is in ``ulorl.recipe_file``; sizes that follow from a recipe are in
``ulorl.sizes``. Unknown keys and wrong types are errors.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

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
Share = Annotated[float, Field(ge=0, le=1)]


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


class FieldNames(Section):
    """Column names of the input; empty means: look for the common spellings."""

    problem: str = ""
    """Column of the problem text (looked for: problem, question, prompt, ...)."""
    answer: str = ""
    """Column of the reference (looked for: answer, reference, gold, ground_truth, solution, ...)."""
    id: str = ""
    """Column of the input's own id (looked for: id, source_id, uid, ...)."""


class DataRecipe(Section):
    """Where problems come from."""

    inputs: tuple[str, ...] = ("quickstart:700",)
    """Files (JSON lines, JSON, CSV, TSV, Parquet; gzipped or not), directories of them, `hub:OWNER/NAME` or
    `hub:OWNER/NAME/CONFIG@SPLIT` for a Hugging Face data set (split train unless named), or `quickstart:N`
    for N generated problems. Paths are relative to the current directory."""
    fields: FieldNames = FieldNames()
    """Column names, where they are not the common ones."""
    limit: int = Field(default=0, ge=0)
    """Use only this many rows, drawn with the run's seed; 0 for all."""


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


class CurateRecipe(Section):
    """Cleaning. Every dropped row keeps its reason."""

    steps: tuple[CurateStep, ...] = CURATE_STEPS
    """Steps to run, always in the default's order."""
    max_answer_chars: int = Field(default=100, ge=1)
    """Longer short answers are dropped as too long."""
    keep_matrices: bool = False
    """Keep problems whose answer is a matrix."""
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
    difficulty: DifficultyRecipe = DifficultyRecipe()
    """The difficulty step."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.steps:
            raise ValueError("steps: must name at least one step")
        if self.difficulty.min_pass_rate > self.difficulty.max_pass_rate:
            raise ValueError("difficulty: min_pass_rate is above max_pass_rate, nothing would be kept")
        return self


class VerifyRecipe(Section):
    """When two answers are equivalent."""

    last_number: bool = False
    """Take the last number of a response that states no final answer."""
    relative_tolerance: float = Field(default=0.0, ge=0, lt=0.1)
    """Largest relative difference of equal numbers; 0 compares them exactly, as rationals."""
    rounding: Literal["reference", "never"] = "reference"
    """`reference`: a decimal reference that is not the exact answer equals what rounds to its digits; `never`: a
    decimal is exactly the number it spells."""
    missing_unit: Literal["accept", "reject"] = "accept"
    """A number without the other side's unit or currency."""
    percent: Literal["either", "value", "strict"] = "either"
    """p% equals p and p/100 (`either`), only p/100 (`value`), or only another percentage (`strict`)."""
    order: Literal["free", "strict"] = "free"
    """Order of a list without brackets; the order of a tuple always counts."""


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


class RolloutRecipe(Section):
    """Sampling for training, segment by segment (UloRL, Algorithm 1)."""

    prompts_per_step: int = Field(default=128, ge=1)
    """New prompts entering at each step."""
    group_size: int = Field(default=8, ge=2)
    """Samples a prompt (one GRPO group)."""
    max_tokens: int = Field(default=1024, ge=1)
    """Global maximum output length; longer samples are truncated and score 0."""
    segments: int = Field(default=4, ge=1)
    """Segments the maximum is divided into; a step decodes at most max_tokens / segments tokens a sample."""
    temperature: float = Field(default=0.85, gt=0)
    """Sampling temperature; log-probs and entropy are taken at it too."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Nucleus; 1 is off."""
    top_k: int = Field(default=0, ge=0)
    """Most likely tokens to draw from; 0 is off."""
    drop_uniform: bool = True
    """Leave groups whose members all have the same reward out of the update (they carry no advantage)."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.max_tokens % self.segments:
            raise ValueError(
                f"segments: max_tokens = {self.max_tokens} must be a multiple of segments = {self.segments}"
            )
        return self


class ObjectiveRecipe(Section):
    """The loss: GRPO advantages, POIS ratios, DMMPTs, token-level mean."""

    clip_low: float = Field(default=0.2, gt=0, lt=1)
    """Lower clip of the ratio; acts from the second update on a batch."""
    clip_high: float = Field(default=0.2, gt=0)
    """Upper clip of the ratio; acts from the second update on a batch."""
    updates_per_step: int = Field(default=1, ge=1)
    """Optimizer updates on each step's experience."""
    mask_mastered: bool = True
    """DMMPTs: mask well-mastered positive tokens while entropy is below `sigma`."""
    tau: float = Field(default=0.99, gt=0, lt=1)
    """Probability from which a token of a rewarded sample counts as mastered."""
    sigma: float = Field(default=0.2, gt=0)
    """Entropy target in nats: full vocabulary, sampling temperature, mean over response tokens, before the
    update."""
    entropy_scope: Literal["response", "batch"] = "response"
    """Whose entropy is held against sigma: the response's own (paper's equation) or the batch's (paper's
    prose)."""


class LearnerRecipe(Section):
    """The DeepSpeed update."""

    lr: float = Field(default=1e-6, gt=0)
    """Learning rate of AdamW, constant after the warm-up."""
    warmup_steps: int = Field(default=0, ge=0)
    """Steps of linear warm-up."""
    betas: tuple[float, float] = (0.9, 0.999)
    """AdamW's betas."""
    weight_decay: float = Field(default=0.0, ge=0)
    """AdamW's weight decay."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Gradient clipping by global norm."""
    zero_stage: Literal[0, 1, 2, 3] = 0
    """ZeRO stage: what is divided over processes (1 optimizer, 2 gradients too, 3 weights too)."""
    offload_optimizer: bool = False
    """Keep optimizer state in CPU memory (a GPU run with zero_stage 1 to 3)."""
    micro_batch_tokens: int = Field(default=16384, ge=1)
    """Padded tokens of a micro-batch; bounds activation memory, does not change the gradient."""
    activation_checkpointing: bool = False
    """Recompute activations in the backward pass to save memory."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.offload_optimizer and self.zero_stage == 0:
            raise ValueError("offload_optimizer: has no effect with zero_stage = 0")
        return self


class TrainRecipe(Section):
    """Segment-rollout reinforcement learning."""

    steps: int = Field(default=100, ge=1)
    """Training steps."""
    rollout: RolloutRecipe = RolloutRecipe()
    """Sampling."""
    objective: ObjectiveRecipe = ObjectiveRecipe()
    """Loss."""
    learner: LearnerRecipe = LearnerRecipe()
    """Update."""
    checkpoint_every: int = Field(default=20, ge=1)
    """Steps between checkpoints; the last step is always kept."""
    keep_checkpoints: int = Field(default=2, ge=1)
    """Latest checkpoints to keep."""


class Benchmark(Section):
    """One set of problems to evaluate on."""

    name: str = Field(min_length=1, pattern=r"^[A-Za-z0-9_.-]+$")
    """Name in tables and file names."""
    source: str
    """An input as in `data.inputs`, or `quickstart-test:N` for generated problems that are never trained
    on."""
    limit: int = Field(default=0, ge=0)
    """Use only this many problems, drawn with the run's seed; 0 for all."""


class EvaluateRecipe(Section):
    """Estimates with honest errors. Defaults are the paper's for reasoning models."""

    benchmarks: tuple[Benchmark, ...] = (Benchmark(name="quickstart-test", source="quickstart-test:100"),)
    """Sets to evaluate on."""
    samples: int = Field(default=32, ge=1)
    """Samples a problem."""
    pass_k: tuple[Annotated[int, Field(ge=1)], ...] = (1, 2, 4, 8, 16, 32)
    """The k of pass@k."""
    temperature: float = Field(default=0.85, ge=0)
    """Sampling temperature."""
    top_p: float = Field(default=0.95, gt=0, le=1)
    """Nucleus; 1 is off."""
    top_k: int = Field(default=20, ge=0)
    """Most likely tokens to draw from; 0 is off."""
    max_tokens: int = Field(default=1024, ge=1)
    """Longest output."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.pass_k and max(self.pass_k) > self.samples:
            raise ValueError(f"pass_k: pass@{max(self.pass_k)} needs samples >= {max(self.pass_k)}, not {self.samples}")
        names = [benchmark.name for benchmark in self.benchmarks]
        if len(set(names)) < len(names):
            raise ValueError("benchmarks: two have the same name")
        return self


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
            raise ValueError(f"engine.max_model_len: {given} is below the longest prompt + output, {needed}")
        return self

    @property
    def longest_sequence(self) -> int:
        """Longest prompt + output of any stage, in tokens."""
        outputs = (self.train.rollout.max_tokens, self.evaluate.max_tokens, self.curate.difficulty.max_tokens)
        return self.model.max_prompt_tokens + max(outputs)

    @property
    def max_model_len(self) -> int:
        """Length the engine is opened with, in tokens."""
        return self.engine.max_model_len or self.longest_sequence
