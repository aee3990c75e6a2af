"""The DeepSpeed update on a step's experience.

Invariants:
- loss and gradient are those of the whole update, however it is cut into micro-batches: the normaliser is the
  update's count of response tokens, and gradients are summed;
- old log-probs are at the sampling temperature: those of the policy at the start of the step (POIS, TOIS), or
  those recorded when the token was sampled (SAIS);
- every rank computes as many micro-batches as the others (``ulorl.train.share``); DeepSpeed averages gradients over the
  ranks, so each multiplies its part of the loss by their number. Ranks that share rows (Ulysses) all compute the loss
  of whole rows, each with the gradient of its own tokens, so that it is the number of all ranks there too;
- ``version`` counts the updates applied: the weights that ``named_tensors`` yields carry it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from ulorl.errors import UserError
from ulorl.process import launched_processes
from ulorl.recipe import ModelRecipe
from ulorl.recipe_train import LearnerRecipe, ObjectiveRecipe
from ulorl.train.batch import Batch, Trajectory, collate
from ulorl.train.deepspeed_config import deepspeed_config, initialise_process_group
from ulorl.train.lr import learning_rate
from ulorl.train.mastered import masked_tokens, mastered_tokens, response_entropy
from ulorl.train.objective import correction_weights, policy_loss, token_weights
from ulorl.train.policy import Policy
from ulorl.train.ranks import Ranks
from ulorl.train.reference import Reference
from ulorl.train.sequence_parallel import open_sequence_group
from ulorl.train.share import share
from ulorl.train.tally import UpdateTally
from ulorl.train.weights import file_form, layers

REFERENCE = "reference.safetensors"


class Learner:
    """Holds the policy and its optimizer. One per process."""

    def __init__(
        self,
        directory: Path,
        model: ModelRecipe,
        learner: LearnerRecipe,
        objective: ObjectiveRecipe,
        temperature: float,
        max_tokens: int,
        ranks: Ranks | None = None,
        planned_updates: int = 0,
    ) -> None:
        """``planned_updates``: those of the whole run, over which the learning rate decays, where it does."""
        assert planned_updates or learner.lr_schedule == "constant", "a rate decays over a known number of updates"
        self.ranks = ranks or Ranks()
        assert self.ranks.world == launched_processes(), "a learner spans all processes of the launcher"
        initialise_process_group()
        import deepspeed

        self.recipe, self.objective, self.temperature, self.max_tokens = learner, objective, temperature, max_tokens
        self.planned_updates = planned_updates
        group = open_sequence_group(learner.sequence_parallel_size)
        policy = Policy(
            directory,
            model.dtype,
            activation_checkpointing=learner.activation_checkpointing,
            packing=learner.packing,
            group=group,
        )
        self.packed = policy.packed
        self.engine, *_ = deepspeed.initialize(
            model=policy,
            model_parameters=policy.parameters(),
            config=deepspeed_config(learner, model.dtype),
        )
        # DeepSpeed's bf16 optimizer without ZeRO takes a step with zero gradients to allocate its state, which AdamW
        # counts: its first real update would be too small.
        self.engine.basic_optimizer.state.clear()
        self.engine.train()
        # In float32 without ZeRO, DeepSpeed averages gradients inside step() and keeps no norm: both are done here.
        self._plain = learner.zero_stage == 0 and model.dtype == "float32"
        self.engine.enable_backward_allreduce = not self._plain
        self.version = 0
        self.reference = (
            Reference(directory, model.dtype, self.device, temperature, learner.packing, group)
            if objective.kl
            else None
        )

    @property
    def device(self) -> str:
        return str(self.engine.device)

    @property
    def rows(self) -> str:
        """How sequences are laid out, in a line."""
        shared = self.recipe.sequence_parallel_size
        return self.engine.module.rows + (f", each shared by {shared} processes" if shared > 1 else "")

    @property
    def hf_model(self) -> Any:
        """The Hugging Face model inside."""
        return self.engine.module.model

    def update(self, trajectories: Sequence[Trajectory]) -> UpdateTally:
        """All optimizer updates of one step on every rank's ``trajectories`` (not all of them empty)."""
        with self.ranks.watch("update the policy"):
            parts = self._batches(trajectories)
            self.ranks.meet("update the policy")
            # Ranks that share rows counted the same.
            return UpdateTally.merged(self.ranks.gather(self._update(parts))[:: self.recipe.sequence_parallel_size])

    def _update(self, parts: list[list[Batch]]) -> UpdateTally:
        """This rank's share of the step's updates; ``parts``: its micro-batches, by minibatch."""
        objective, self._start_version = self.objective, self.version
        tally = UpdateTally(self.version, len(parts) * objective.epochs, objective.epochs)
        # What is decided by the policy at the start of the step needs a pass of its own before anything changes.
        first = None
        if objective.updates_per_step > 1 or objective.entropy_scope == "batch":
            first = [[self._measure(batch) for batch in part] for part in parts]
        batch_entropy = self._mean_entropy(parts, first) if first else math.nan
        for epoch in range(objective.epochs):
            for number, part in enumerate(parts):
                for index, batch in enumerate(part):
                    start = first[number][index] if first else None
                    self._accumulate(batch, start, batch_entropy, tally, count=epoch == 0)
                self._apply(tally)
        return tally

    def _batches(self, trajectories: Sequence[Trajectory]) -> list[list[Batch]]:
        """This rank's micro-batches, by minibatch."""
        objective = self.objective
        constant = objective.constant_length or self.max_tokens
        dealt = share(
            trajectories,
            self.ranks,
            minibatches=objective.minibatches,
            micro_batch_tokens=self.recipe.micro_batch_tokens,
            packed=self.packed,
            group_size=self.recipe.sequence_parallel_size,
            token_weights=lambda lengths: token_weights(lengths, objective.aggregation, constant),
        )
        return [[collate(one.trajectories, one.weights, self.device) for one in part] for part in dealt]

    def _accumulate(
        self,
        batch: Batch,
        start: tuple[torch.Tensor, torch.Tensor] | None,
        batch_entropy: float,
        tally: UpdateTally,
        *,
        count: bool,
    ) -> None:
        """Add one micro-batch's gradient; ``start``: log-probs and entropies at the start of the step, if not now."""
        objective = self.objective
        logprobs_BT, entropy_BT = self.engine(batch.tokens_BL, batch.response_BT, self.temperature)
        start_BT, start_entropy_BT = start or (logprobs_BT.detach(), entropy_BT.detach())
        masked_BT, mastered_BT = self._mask(batch, start_BT, start_entropy_BT, batch_entropy)
        result = policy_loss(
            logprobs_BT,
            batch.behaviour_logprobs_BT if objective.ratio == "sais" else start_BT,
            batch.advantages_B,
            batch.response_BT,
            batch.weights_BT,
            clip_low=objective.clip_low,
            clip_high=objective.clip_high,
            masked_BT=masked_BT,
            correction_BT=self._correction(batch, start_BT),
            entropy_BT=entropy_BT,
            entropy_bonus=objective.entropy_bonus,
            reference_BT=None if self.reference is None else self.reference.logprobs(batch),
            kl_coefficient=objective.kl,
            kl_estimator=objective.kl_estimator,
        )
        self.engine.backward(result.loss * self.ranks.world)
        tally.add_loss(result)
        if count:
            tally.add_batch(batch, start_BT, start_entropy_BT, masked_BT, mastered_BT)

    @torch.no_grad()
    def _measure(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        return self.engine(batch.tokens_BL, batch.response_BT, self.temperature)

    def _mean_entropy(self, parts: list[list[Batch]], first: list[list[tuple[torch.Tensor, torch.Tensor]]]) -> float:
        """Over the response tokens of the whole step, on all ranks."""
        tokens = self.ranks.total(sum(int(batch.response_BT.sum()) for part in parts for batch in part))
        entropy = self.ranks.total(sum(float(entropy_BT.sum()) for part in first for _, entropy_BT in part))
        return entropy / tokens

    def _mask(
        self, batch: Batch, logprobs_BT: torch.Tensor, entropy_BT: torch.Tensor, batch_entropy: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(masked, mastered), both (B, T)."""
        mastered_BT = mastered_tokens(logprobs_BT, batch.response_BT, batch.rewards_B, self.objective.tau)
        if self.objective.mastered != "dynamic":
            always = self.objective.mastered == "always"
            return (mastered_BT if always else torch.zeros_like(mastered_BT)), mastered_BT
        entropy_B = response_entropy(entropy_BT, batch.response_BT)
        if self.objective.entropy_scope == "batch":
            entropy_B = torch.full_like(entropy_B, batch_entropy)
        return masked_tokens(mastered_BT, entropy_B, self.objective.sigma), mastered_BT

    def _correction(self, batch: Batch, start_BT: torch.Tensor) -> torch.Tensor:
        current_BT = batch.response_BT & (batch.versions_BT == self._start_version)
        return correction_weights(
            start_BT,
            batch.behaviour_logprobs_BT,
            current_BT,
            self.objective.correction,
            self.objective.correction_low,
            self.objective.correction_high,
        )

    def adopt(self, objective: ObjectiveRecipe, recipe: LearnerRecipe, max_tokens: int) -> None:
        """Train by these settings from the next update on; what shaped the engine stays as it is."""
        self.objective, self.recipe, self.max_tokens = objective, recipe, max_tokens

    def reset_reference(self) -> None:
        """The reference becomes a copy of the policy, and the optimizer starts anew (ProRL)."""
        assert self.reference is not None, "there is no reference to reset"
        with self.ranks.watch("reset the reference"):
            self.reference.copy_from(item for layer in self._layers() for item in layer.items())
        self.engine.basic_optimizer.state.clear()

    def _apply(self, tally: UpdateTally) -> None:
        tally.lr = learning_rate(self.recipe, self.version, self.planned_updates)
        for parameter_group in self.engine.optimizer.param_groups:
            parameter_group["lr"] = tally.lr
        if self._plain:
            self.engine.buffered_allreduce_fallback()
            tally.grad_norm = self._gradient_norm()
        self.engine.step()
        if not self._plain:
            norm = self.engine.get_global_grad_norm()
            assert norm is not None, "DeepSpeed kept no gradient norm"
            tally.grad_norm = float(norm)
        if not math.isfinite(tally.grad_norm):
            raise UserError(
                f"update {self.version + 1}: the gradient norm is {tally.grad_norm}. "
                "Lower train.learner.lr, or train in float32 (model.dtype)"
            )
        self.version += 1

    def _gradient_norm(self) -> float:
        """Global norm of the gradients that lie in the parameters."""
        gradients = [parameter.grad for parameter in self.hf_model.parameters() if parameter.grad is not None]
        return float(torch.nn.utils.get_total_norm(gradients)) if gradients else math.nan

    def named_tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Every weight as in the start model's files, whole (gathered a layer at a time under ZeRO stage 3)."""
        for layer in self._layers():
            yield from file_form(self.hf_model, layer).items()

    def _layers(self) -> Iterator[dict[str, torch.Tensor]]:
        """Every weight as in the modules, whole, a layer at a time."""
        import deepspeed

        for layer in layers(self.hf_model):
            parameters = [tensor for tensor in layer.values() if isinstance(tensor, torch.nn.Parameter)]
            with deepspeed.zero.GatheredParameters(parameters, enabled=self.recipe.zero_stage == 3):
                yield {name: tensor.detach() for name, tensor in layer.items()}

    def save(self, directory: Path) -> None:
        """Optimizer, weights and counters in DeepSpeed's format, and the reference beside them."""
        self.engine.save_checkpoint(str(directory), tag="state", client_state={"version": self.version})
        if self.reference is not None and self.ranks.first:
            self.reference.save(directory / REFERENCE)

    def load(self, directory: Path) -> None:
        """Undo ``save``."""
        path, client_state = self.engine.load_checkpoint(str(directory), tag="state")
        if path is None:
            raise UserError(f"{directory}: no DeepSpeed state to resume from; --force starts anew")
        self.version = client_state["version"]
        if self.reference is not None:
            self.reference.load(directory / REFERENCE)
