"""A policy without chance in it: its log-probs must be those of the engine, which samples without dropout.

Dropout, jitter of a router and skipped layers act in training mode alone, and so nothing of the model is put in it but
what recomputes activations, which transformers does in no other mode. What such modules draw themselves is set to 0.
"""

from __future__ import annotations

from typing import Any

from torch import nn


def remove_dropout(model: nn.Module) -> None:
    """Set every dropout probability of the modules to 0, and of the configurations that some read as they run."""
    holders: dict[int, Any] = {}
    for module in model.modules():
        holders[id(module)] = module
        if (config := getattr(module, "config", None)) is not None:
            holders[id(config)] = config
    for holder in holders.values():
        for name, value in list(vars(holder).items()):
            if isinstance(value, float) and "drop" in name:
                setattr(holder, name, 0.0)


def set_mode(model: nn.Module, training: bool) -> None:
    """Evaluation mode, except for modules that recompute their activations while ``training``."""
    model.eval()
    for module in model.modules():
        if getattr(module, "gradient_checkpointing", False):
            module.training = training
