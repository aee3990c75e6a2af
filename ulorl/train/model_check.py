"""Whether the policy's log-probs are those of the model it was made of: a few tokens, once, before it is trained.

The policy computes log-probs from hidden states and the output layer, in packed rows and by attention of its own. A
model that does something to its logits or to its attention that is not known here would be trained on other log-probs
than it samples with, and nothing else would say so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch

from ulorl.errors import UserError

log = logging.getLogger(__name__)
TOKENS = 12
"""Of each of two sequences."""


@torch.no_grad()
def check_model(
    model: Any,
    logprobs: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    head: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> None:
    """Raise UserError where log-probs differ from those of the model's own logits by more than rounding; in half
    precision, attention that differs is a warning.

    ``logprobs``: of tokens (B, L) and a mask of predicted ones (B, L - 1), as in training; ``head``: of hidden states
    (N, H) and their targets (N). The model's own attention is the plain one ("eager"), which all models are defined by.
    """
    vocabulary = model.get_input_embeddings().num_embeddings
    tokens_BL = 1 + torch.arange(2 * TOKENS, device=model.device).mul(7919).remainder(vocabulary - 1).view(2, TOKENS)
    targets_N = tokens_BL[:, 1:].flatten()
    found_N = logprobs(tokens_BL, torch.ones_like(tokens_BL[:, 1:], dtype=torch.bool)).flatten()
    logits_NV, hidden_NH = _own(model, tokens_BL[:, :-1])
    own_N = torch.log_softmax(logits_NV, dim=-1)[torch.arange(len(targets_N)), targets_N]
    name, rounding = type(model).__name__, torch.finfo(model.dtype).eps * float(logits_NV.abs().max())
    difference = _mean(head(hidden_NH, targets_N), own_N)
    if not difference <= max(1e-3, rounding):  # nor where it is no number
        raise UserError(
            f"model: log-probs in training differ by {difference:.2g} nats from those of {name}, which does something "
            "to its logits that is not known here; this model cannot be trained"
        )
    difference = _mean(found_N, own_N)
    if difference <= max(1e-3, 4 * rounding):
        return
    message = (
        f"model: log-probs in training differ by {difference:.2g} nats from those of {name}, whose attention is "
        'computed otherwise here; try train.learner.packing = "never"'
    )
    if model.dtype == torch.float32:
        raise UserError(message)
    # Rounding alone may choose other experts, layer after layer; mismatch/mean tells what comes of it.
    log.warning("%s, or float32, in which this is no rounding", message)


def _own(model: Any, tokens_BT: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits (N, V) of the model as it is in evaluation, and the hidden states (N, H) they are made of."""
    states: list[torch.Tensor] = []
    hook = model.get_decoder().register_forward_hook(lambda _, __, output: states.append(output.last_hidden_state))
    attention = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        logits_BTV = model.eval()(input_ids=tokens_BT).logits
    finally:
        model.set_attn_implementation(attention)
        hook.remove()
    return logits_BTV.flatten(0, 1).float(), states[0].flatten(0, 1)


def _mean(one_N: torch.Tensor, other_N: torch.Tensor) -> float:
    return float((one_N - other_N).abs().mean())
