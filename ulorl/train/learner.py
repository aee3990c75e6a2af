"""The DeepSpeed update on a step's experience.

Invariants:
- loss and gradient are those of the whole update, however it is cut into micro-batches: the normaliser is the
  update's count of response tokens, and gradients are summed;
- old log-probs are of the policy at the start of the step (POIS), at the sampling temperature;
- ``version`` counts the updates applied: the weights that ``named_tensors`` yields carry it.

Does not yet: run in more than one process.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from ulorl.errors import UserError
from ulorl.process import join_process_group, quiet_libraries
from ulorl.recipe import LearnerRecipe, ModelRecipe, ObjectiveRecipe
from ulorl.train.batch import Batch, Trajectory, collate, micro_batches
from ulorl.train.mastered import masked_tokens, mastered_tokens, response_entropy
from ulorl.train.objective import policy_loss
from ulorl.train.policy import Policy
from ulorl.train.tally import UpdateTally


def deepspeed_config(learner: LearnerRecipe, dtype: str) -> dict[str, Any]:
    """The DeepSpeed configuration of a recipe. Accumulation is ours: ``step()`` is the boundary."""
    optimizer = {
        "lr": learner.lr,
        "betas": list(learner.betas),
        "weight_decay": learner.weight_decay,
        "torch_adam": not learner.offload_optimizer,
    }
    zero: dict[str, Any] = {"stage": learner.zero_stage}
    if learner.offload_optimizer:
        zero["offload_optimizer"] = {"device": "cpu"}
    return {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "managed_gradient_accumulation": False,
        "gradient_clipping": learner.max_grad_norm,
        "bf16": {"enabled": dtype == "bfloat16"},
        "zero_optimization": zero,
        "optimizer": {"type": "AdamW", "params": optimizer},
    }


class Learner:
    """Holds the policy and its optimizer. One per process."""

    def __init__(
        self,
        directory: Path,
        model: ModelRecipe,
        learner: LearnerRecipe,
        objective: ObjectiveRecipe,
        temperature: float,
    ) -> None:
        _initialise_process_group()
        import deepspeed

        self.recipe, self.objective, self.temperature = learner, objective, temperature
        policy = Policy(directory, model.dtype, activation_checkpointing=learner.activation_checkpointing)
        self.engine, *_ = deepspeed.initialize(
            model=policy,
            model_parameters=policy.parameters(),
            config=deepspeed_config(learner, model.dtype),
        )
        self.engine.train()
        self.version = 0

    @property
    def device(self) -> str:
        return str(self.engine.device)

    @property
    def hf_model(self) -> Any:
        """The Hugging Face model inside."""
        return self.engine.module.model

    def update(self, trajectories: Sequence[Trajectory]) -> UpdateTally:
        """All optimizer updates of one step on ``trajectories`` (not empty)."""
        batches = [
            collate([trajectories[index] for index in indices], self.device)
            for indices in micro_batches(trajectories, self.recipe.micro_batch_tokens)
        ]
        tally = UpdateTally(version=self.version, updates=self.objective.updates_per_step)
        tokens = sum(int(batch.response_BT.sum()) for batch in batches)
        needs_first_pass = self.objective.updates_per_step > 1 or self.objective.entropy_scope == "batch"
        first = [self._measure(batch) for batch in batches] if needs_first_pass else None
        batch_entropy = sum(float(entropy.sum()) for _, entropy in first) / tokens if first else math.nan
        for update in range(self.objective.updates_per_step):
            for number, batch in enumerate(batches):
                logprobs_BT, entropy_BT = self.engine(batch.tokens_BL, batch.response_BT, self.temperature)
                old_BT, start_entropy_BT = first[number] if first else (logprobs_BT.detach(), entropy_BT)
                masked_BT, mastered_BT = self._mask(batch, old_BT, start_entropy_BT, batch_entropy)
                result = policy_loss(
                    logprobs_BT,
                    old_BT,
                    batch.advantages_B,
                    batch.response_BT & ~masked_BT,
                    total_tokens=tokens,
                    clip_low=self.objective.clip_low,
                    clip_high=self.objective.clip_high,
                )
                self.engine.backward(result.loss)
                tally.add_loss(result)
                if update == 0:
                    tally.add_batch(batch, old_BT, start_entropy_BT, masked_BT, mastered_BT)
            self._apply(tally)
        return tally

    @torch.no_grad()
    def _measure(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        return self.engine(batch.tokens_BL, batch.response_BT, self.temperature)

    def _mask(
        self, batch: Batch, logprobs_BT: torch.Tensor, entropy_BT: torch.Tensor, batch_entropy: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(masked, mastered), both (B, T)."""
        mastered_BT = mastered_tokens(logprobs_BT, batch.response_BT, batch.rewards_B, self.objective.tau)
        if not self.objective.mask_mastered:
            return torch.zeros_like(mastered_BT), mastered_BT
        entropy_B = response_entropy(entropy_BT, batch.response_BT)
        if self.objective.entropy_scope == "batch":
            entropy_B = torch.full_like(entropy_B, batch_entropy)
        return masked_tokens(mastered_BT, entropy_B, self.objective.sigma), mastered_BT

    def _apply(self, tally: UpdateTally) -> None:
        tally.lr = self.recipe.lr * min(1.0, (self.version + 1) / max(1, self.recipe.warmup_steps))
        for parameter_group in self.engine.optimizer.param_groups:
            parameter_group["lr"] = tally.lr
        own_norm = self._gradient_norm()
        self.engine.step()
        # DeepSpeed keeps the norm it clipped by, but not for an optimizer that it does not wrap (ZeRO 0 in fp32).
        norm = self.engine.get_global_grad_norm()
        tally.grad_norm = own_norm if norm is None else float(norm)
        if not math.isfinite(tally.grad_norm):
            raise UserError(
                f"update {self.version + 1}: the gradient norm is {tally.grad_norm}. "
                "Lower train.learner.lr, or train in float32 (model.dtype)"
            )
        self.version += 1

    def _gradient_norm(self) -> float:
        """Global norm of the gradients that lie in the parameters; ZeRO keeps its own elsewhere."""
        gradients = [parameter.grad for parameter in self.hf_model.parameters() if parameter.grad is not None]
        return float(torch.nn.utils.get_total_norm(gradients)) if gradients else math.nan

    def named_tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Every weight under its Hugging Face name, whole (gathered one at a time under ZeRO stage 3)."""
        import deepspeed

        for name, parameter in self.hf_model.named_parameters():
            with deepspeed.zero.GatheredParameters([parameter], enabled=self.recipe.zero_stage == 3):
                yield name, parameter.detach()

    def save(self, directory: Path) -> None:
        """Optimizer, weights and counters in DeepSpeed's format."""
        self.engine.save_checkpoint(str(directory), tag="state", client_state={"version": self.version})

    def load(self, directory: Path) -> None:
        """Undo ``save``."""
        path, client_state = self.engine.load_checkpoint(str(directory), tag="state")
        if path is None:
            raise UserError(f"{directory}: no DeepSpeed state to resume from; --force starts anew")
        self.version = client_state["version"]


def _initialise_process_group() -> None:
    """Join the default process group, whoever made it (vLLM in this process, or nobody yet)."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UserError("WORLD_SIZE > 1: training runs in one process so far; start it without torchrun")
    quiet_libraries()
    on_gpu = torch.cuda.is_available()
    if not on_gpu:
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    import deepspeed

    # On a CPU DeepSpeed would compile its shared-memory collectives for a minute at the first start (and fail
    # without a compiler); gloo does the same work.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    join_process_group(on_gpu)
    deepspeed.init_distributed(dist_backend="nccl" if on_gpu else "gloo", verbose=False)
