"""The trained model as one torch module: tokens in, log-prob and entropy of every response token out."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ulorl.errors import UserError
from ulorl.train.logprobs import token_logprobs


class Policy(nn.Module):
    """A Hugging Face causal language model whose forward pass never holds all logits."""

    def __init__(self, directory: Path, dtype: str, *, activation_checkpointing: bool = False) -> None:
        from transformers import AutoModelForCausalLM
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        super().__init__()
        self.model = AutoModelForCausalLM.from_pretrained(
            directory, dtype=getattr(torch, dtype), attn_implementation="sdpa"
        )
        self.model.config.use_cache = False
        self.head = TiledHead(self.model.get_output_embeddings())
        if activation_checkpointing:
            self.model.gradient_checkpointing_enable({"use_reentrant": False})

    def forward(
        self, tokens_BL: torch.Tensor, response_BT: torch.Tensor, temperature: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Log-probs and entropies (B, T) at ``temperature``, zero where ``response_BT`` is False (T = L - 1)."""
        hidden_BTH = self.model.get_decoder()(input_ids=tokens_BL[:, :-1]).last_hidden_state
        logprobs_N, entropy_N = self.head(hidden_BTH[response_BT], tokens_BL[:, 1:][response_BT], temperature)
        zeros_BT = torch.zeros(response_BT.shape, dtype=torch.float32, device=tokens_BL.device)
        return zeros_BT.masked_scatter(response_BT, logprobs_N), zeros_BT.masked_scatter(response_BT, entropy_N)


class TiledHead(nn.Module):
    """The output layer, used by its weight: its own forward pass would make all logits.

    Under ZeRO stage 3 the weight is gathered for this module's forward and backward pass.
    """

    def __init__(self, output_layer: nn.Module) -> None:
        import deepspeed

        super().__init__()
        if not isinstance(output_layer, nn.Linear):
            raise UserError(f"model: its output layer is {type(output_layer).__name__}; only a linear one is supported")
        self.output = (output_layer,)  # in a tuple, because the model owns it
        for parameter in output_layer.parameters(recurse=False):
            deepspeed.zero.register_external_parameter(self, parameter)

    def forward(
        self, hidden_NH: torch.Tensor, targets_N: torch.Tensor, temperature: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Log-probs and entropies (N,) at ``temperature``."""
        (layer,) = self.output
        return token_logprobs(hidden_NH, targets_N, layer.weight, layer.bias, temperature=temperature)
