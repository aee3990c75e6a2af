"""Settings of training: rollout, objective, learner.

The train section of ``ulorl.recipe``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from ulorl.recipe_engine import Section
from ulorl.recipe_presets import Preset, with_preset
from ulorl.recipe_schedule import PhaseRecipe, check_schedule, phases
from ulorl.recipe_validation import ValidationRecipe
from ulorl.recipe_wandb import WandbRecipe

Ratio = Literal["tois", "pois", "sais"]
Correction = Literal["none", "truncated", "two_sided"]
Advantage = Literal["grpo", "centred", "leave_one_out"]
Aggregation = Literal["token", "sequence", "constant"]
Truncated = Literal["wrong", "masked", "soft"]
KLEstimator = Literal["k1", "k2", "k3"]
Packing = Literal["auto", "always", "never"]
LRSchedule = Literal["constant", "linear", "cosine"]


class RolloutRecipe(Section):
    """Sampling for training, segment by segment (UloRL, Algorithm 1)."""

    prompts_per_step: int = Field(default=128, ge=1)
    """New prompts entering at each step; with `dynamic_sampling = "refill"`, groups that each update is made of."""
    in_flight: int = Field(default=0, ge=0)
    """Samples kept in flight: so many new prompts enter that unfinished samples number at least this; 0 lets
    `prompts_per_step` enter, whatever is unfinished."""
    max_age: int = Field(default=0, ge=0)
    """No new prompt enters while the oldest unfinished group is this many steps old; 0 is no bound. Nothing is ever
    thrown away for its age."""
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
    reward_timeout_s: float = Field(default=120.0, gt=0)
    """Seconds to wait for verdicts after a segment; samples without one count as `reward/error_share` and score 0."""
    group_policy: Literal["group", "sample"] = "group"
    """`group`: members wait until the whole group is done and train together. `sample`: a member trains as soon as it
    and another with another reward are done, compared with those done so far (biased towards short samples)."""
    dynamic_sampling: Literal["off", "drop", "refill"] = "drop"
    """Groups whose members all have the same reward carry no advantage: `off` keeps them, `drop` leaves them out of the
    update, `refill` goes on sampling until `prompts_per_step` others are there (DAPO)."""
    max_rounds: int = Field(default=8, ge=1)
    """Segments decoded in one step, at most, to refill it; what is accepted until then is trained on."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.max_tokens % self.segments:
            raise ValueError(
                f"segments: max_tokens = {self.max_tokens} must be a multiple of segments = {self.segments}"
            )
        if self.in_flight % self.group_size:
            raise ValueError(f"in_flight: {self.in_flight} must be a multiple of group_size = {self.group_size}")
        return self

    @property
    def rounds(self) -> int:
        """Segments decoded in one step, at most."""
        return self.max_rounds if self.dynamic_sampling == "refill" else 1

    @property
    def may_leave_surplus(self) -> bool:
        """Whether, with one segment a sample, more groups may be there to train on than a step takes.

        Without `in_flight` no more prompts enter than groups are missing; with it so many enter in every round.
        """
        entering = self.in_flight // self.group_size
        return self.dynamic_sampling == "refill" and entering > 1 and entering * self.rounds > self.prompts_per_step


class ObjectiveRecipe(Section):
    """The loss. The defaults are UloRL's: GRPO advantages, POIS ratios, DMMPTs, token-level mean, no KL."""

    ratio: Ratio = "pois"
    """Old log-probs: `pois`, the policy at the start of the step for all tokens; `sais`, those recorded when each
    segment was sampled; `tois`, true on-policy, which needs one segment and one update a step, and no surplus of
    `refill`."""
    clip_low: float = Field(default=0.2, gt=0, lt=1)
    """Lower clip of the ratio; under `pois` it acts from the second update on a batch."""
    clip_high: float = Field(default=0.2, gt=0)
    """Upper clip of the ratio; under `pois` it acts from the second update on a batch."""
    epochs: int = Field(default=1, ge=1)
    """Passes over each step's experience."""
    minibatches: int = Field(default=1, ge=1)
    """Parts that the experience is divided into, with an optimizer update for each."""
    correction: Correction = "none"
    """Correction of the train/inference mismatch under `pois`, token by token: `truncated` importance sampling, or
    `two_sided`, which drops tokens outside the bounds."""
    correction_low: float = Field(default=0.5, ge=0, le=1)
    """Lower bound of the weight; used by `two_sided`."""
    correction_high: float = Field(default=2.0, ge=1)
    """Upper bound of the weight."""
    advantage: Advantage = "grpo"
    """`grpo`: mean and standard deviation of the group; `centred`: mean alone; `leave_one_out`: the mean of the other
    members."""
    aggregation: Aggregation = "token"
    """`token`: mean over all response tokens of the update; `sequence`: mean over samples of their means;
    `constant`: sum over tokens divided by samples x `constant_length`."""
    constant_length: int = Field(default=0, ge=0)
    """Length that `constant` divides by; 0 takes the maximum output length."""
    truncated: Truncated = "wrong"
    """Samples cut at the maximum length: `wrong` (reward 0), `masked` (reward 0 in the group's statistics, no loss), or
    `soft` (DAPO's punishment, linear within the last `soft_buffer` tokens)."""
    soft_buffer: int = Field(default=0, ge=0)
    """Tokens before the maximum within which `soft` punishes."""
    mastered: Literal["dynamic", "never", "always"] = "dynamic"
    """DMMPTs: mask well-mastered positive tokens while entropy is below `sigma`; `never` and `always` for
    experiments."""
    tau: float = Field(default=0.99, gt=0, lt=1)
    """Probability from which a token of a rewarded sample counts as mastered."""
    sigma: float = Field(default=0.2, gt=0)
    """Entropy target in nats: full vocabulary, sampling temperature, mean over response tokens, before the
    update."""
    entropy_scope: Literal["response", "batch"] = "response"
    """Whose entropy is held against sigma: the response's own (paper's equation) or the batch's (paper's
    prose)."""
    entropy_bonus: float = Field(default=0.0, ge=0)
    """Coefficient of the entropy in the objective; 0 is off."""
    kl: float = Field(default=0.0, ge=0)
    """Coefficient of the KL penalty to the reference policy; 0 is off, and no reference is held."""
    kl_estimator: KLEstimator = "k3"
    """Estimator of the KL from one sample a token (Schulman): k1, k2 or k3."""
    reference_reset_every: int = Field(default=0, ge=0)
    """Steps after which the reference becomes a copy of the policy and the optimizer state is emptied (ProRL);
    0 is never."""
    reference_reset_patience: int = Field(default=0, ge=0)
    """Validations in a row without an improvement, after which the same is done; 0 is never. They are counted from the
    latest reset."""
    reference_reset_min_delta: float = Field(default=0.0, ge=0, lt=1)
    """What the validation's average must gain by, at least, to count as an improvement."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.ratio == "tois" and self.updates_per_step > 1:
            raise ValueError("ratio: tois is on-policy only with epochs = 1 and minibatches = 1")
        if self.correction != "none" and self.ratio == "sais":
            raise ValueError("correction: sais already takes the sampled log-probs; use it with pois or tois")
        if (self.truncated == "soft") != (self.soft_buffer > 0):
            raise ValueError('soft_buffer: goes with truncated = "soft", and must be above 0 there')
        if self.constant_length and self.aggregation != "constant":
            raise ValueError('constant_length: has no effect unless aggregation = "constant"')
        if self.kl == 0 and self.reference_reset_every:
            raise ValueError("reference_reset_every: has no effect with kl = 0")
        if self.kl == 0 and self.reference_reset_patience:
            raise ValueError("reference_reset_patience: has no effect with kl = 0")
        if self.reference_reset_min_delta and not self.reference_reset_patience:
            raise ValueError("reference_reset_min_delta: has no effect with reference_reset_patience = 0")
        return self

    @property
    def updates_per_step(self) -> int:
        """Optimizer updates on each step's experience."""
        return self.epochs * self.minibatches


class LearnerRecipe(Section):
    """The DeepSpeed update."""

    lr: float = Field(default=1e-6, gt=0)
    """Learning rate of AdamW, after the warm-up."""
    warmup_steps: int = Field(default=0, ge=0)
    """Updates of linear warm-up."""
    lr_schedule: LRSchedule = "constant"
    """The learning rate after the warm-up: `constant`, or `linear` or `cosine` decay over the updates of the run (steps
    x epochs x minibatches; a step without an update does not count)."""
    lr_min_ratio: float = Field(default=0.0, ge=0, lt=1)
    """What `linear` and `cosine` come down to, as a part of `lr`."""
    betas: tuple[float, float] = (0.9, 0.999)
    """AdamW's betas."""
    weight_decay: float = Field(default=0.0, ge=0)
    """AdamW's weight decay."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Gradient clipping by global norm."""
    zero_stage: Literal[0, 1, 2, 3] = 0
    """ZeRO stage: what is divided over processes (1 optimizer, 2 gradients too, 3 weights too)."""
    offload_optimizer: bool = False
    """Keep optimizer state in CPU memory, and update there (with zero_stage 1 to 3)."""
    offload_parameters: bool = False
    """Keep the weights in CPU memory where they are not being used (with zero_stage 3)."""
    micro_batch_tokens: int = Field(default=16384, ge=1)
    """Tokens of a micro-batch on each process, with its padding; bounds activation memory, does not change the
    gradient. A longer sample has a micro-batch of its own."""
    packing: Packing = "auto"
    """Sequences of a micro-batch in one row without padding: `auto`, where the model's attention can be kept within
    each; `never`, padded rows; `always` refuses other models. Does not change loss and gradient."""
    sequence_parallel_size: int = Field(default=1, ge=1)
    """Processes that share each row of tokens (Ulysses), for outputs whose activations no single GPU holds. Divides the
    number of processes and the model's attention heads; does not change loss and gradient."""
    activation_checkpointing: bool = False
    """Recompute activations in the backward pass to save memory."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.offload_optimizer and self.zero_stage == 0:
            raise ValueError("offload_optimizer: has no effect with zero_stage = 0")
        if self.offload_parameters and self.zero_stage != 3:
            raise ValueError("offload_parameters: needs zero_stage = 3")
        if self.sequence_parallel_size > 1 and self.packing == "never":
            raise ValueError('packing: sequence_parallel_size above 1 divides packed rows; "never" has none')
        if self.lr_min_ratio and self.lr_schedule == "constant":
            raise ValueError('lr_min_ratio: has no effect with lr_schedule = "constant"')
        return self


class TrainRecipe(Section):
    """Segment-rollout reinforcement learning."""

    preset: Preset = "none"
    """Settings of a paper, under those that are given: `ulorl`, `prorl`, `dapo` or `grpo`."""
    steps: int = Field(default=100, ge=1)
    """Training steps; with a larger number than before the same run goes on."""
    rollout: RolloutRecipe = RolloutRecipe()
    """Sampling."""
    objective: ObjectiveRecipe = ObjectiveRecipe()
    """Loss."""
    learner: LearnerRecipe = LearnerRecipe()
    """Update."""
    validation: ValidationRecipe = ValidationRecipe()
    """Validation while training."""
    schedule: tuple[PhaseRecipe, ...] = ()
    """Phases: what changes from a step on, as in `[[train.schedule]]`, `from_step = 100`, `max_tokens = 2048`."""
    checkpoint_every: int = Field(default=20, ge=1)
    """Steps between checkpoints; the last step has one too."""
    keep_checkpoints: int = Field(default=2, ge=1)
    """Latest checkpoints to keep."""
    keep_best: bool = True
    """Write a checkpoint at each validation that is the best so far (the earlier of equals), and keep it besides."""
    final: Literal["last", "best"] = "last"
    """Which weights are the result: those of the last step, or those of the best validation after a step."""
    timeout_s: float = Field(default=1800.0, gt=0)
    """Seconds that the processes of a run wait for one of them before the run ends with a message that names it; more
    than the longest segment takes. Has no effect on the result."""
    wandb: WandbRecipe = WandbRecipe()
    """Weights & Biases."""

    @model_validator(mode="before")
    @classmethod
    def _preset(cls, settings: Any) -> Any:
        return with_preset(settings) if isinstance(settings, Mapping) else settings

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.objective.ratio == "tois" and self.rollout.segments > 1:
            raise ValueError("objective.ratio: tois needs rollout.segments = 1; pois takes several")
        if self.objective.ratio == "tois" and self.rollout.may_leave_surplus:
            raise ValueError(
                'objective.ratio: tois needs rollout.in_flight = 0 with dynamic_sampling = "refill", which else keeps '
                "surplus groups for the next step; pois takes them"
            )
        if self.objective.soft_buffer > self.rollout.max_tokens:
            raise ValueError("objective.soft_buffer: is above rollout.max_tokens")
        if self.objective.reference_reset_patience and not self.validation.every:
            raise ValueError("objective.reference_reset_patience: needs validations (validation.every)")
        if self.final == "best" and not (self.validation.every and self.keep_best):
            raise ValueError('final: "best" needs validations (validation.every) and keep_best')
        if self.validation.every > self.steps:
            late = (
                f"no step is validated, since validation.every = {self.validation.every} is above steps = {self.steps}"
            )
            if self.final == "best":
                raise ValueError(f'final: "best" has no effect: {late}; lower it')
            if self.objective.reference_reset_patience:
                raise ValueError(f"objective.reference_reset_patience: has no effect: {late}; lower it")
        if not self.keep_best and not self.validation.every:
            raise ValueError("keep_best: has no effect without validations (validation.every)")
        if self.learner.lr_schedule != "constant" and self.learner.warmup_steps >= self.updates:
            raise ValueError(f"learner.warmup_steps: leaves nothing of the {self.updates} updates to decay over")
        check_schedule(self)
        return self

    @property
    def updates(self) -> int:
        """Optimizer updates of the run, at most."""
        return self.steps * self.objective.updates_per_step

    @property
    def longest_output(self) -> int:
        """Longest output of any phase and of validation, in tokens."""
        return max(self.longest_trained, self.validation.max_tokens if self.validation.every else 0)

    @property
    def longest_trained(self) -> int:
        """Longest output of any phase, in tokens."""
        return max(phase.max_tokens for phase in phases(self))
