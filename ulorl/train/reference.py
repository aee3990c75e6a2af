"""The reference policy of the KL penalty: a frozen copy of the policy as it was.

Invariants: its log-probs are at the sampling temperature, as the policy's; it changes only in ``copy_from``, and is
saved with every checkpoint, so that a resumed run is pulled towards the same policy.

Does not: divide its weights over processes; it is held whole by each of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch

from ulorl.recipe_train import Packing
from ulorl.train.batch import Batch
from ulorl.train.policy import Policy
from ulorl.train.sequence_parallel import SequenceGroup
from ulorl.train.weights import module_weights


class Reference:
    """Log-probs under a frozen policy."""

    def __init__(
        self,
        directory: Path,
        dtype: str,
        device: str,
        temperature: float,
        packing: Packing = "never",
        group: SequenceGroup | None = None,
    ) -> None:
        policy = Policy(directory, dtype, packing=packing, group=group, checked=True)  # as the learner's has been
        self.policy = policy.to(device).eval().requires_grad_(False)
        self.temperature = temperature

    @torch.no_grad()
    def logprobs(self, batch: Batch) -> torch.Tensor:
        """Log-probs of the batch's response tokens, (B, T), zero elsewhere."""
        logprobs_BT, _ = self.policy(batch.tokens_BL, batch.response_BT, self.temperature)
        return logprobs_BT

    def save(self, file: Path) -> None:
        """Write the weights; whoever calls makes it appear whole."""
        from safetensors.torch import save_file

        save_file({name: tensor.contiguous() for name, tensor in module_weights(self.policy.model)}, file)

    def load(self, file: Path) -> None:
        """Undo ``save``."""
        from safetensors.torch import load_file

        self.copy_from(load_file(file).items())

    @torch.no_grad()
    def copy_from(self, named_tensors: Iterable[tuple[str, torch.Tensor]]) -> None:
        """Become the policy whose weights these are, as in the modules."""
        own = dict(module_weights(self.policy.model))
        copied = set()
        for name, tensor in named_tensors:
            own[name].copy_(tensor)
            copied.add(name)
        assert copied == own.keys(), "the policy and its reference have other parameters"
