"""The trained model as one torch module: tokens in, log-prob and entropy of every response token out.

Callers see padded tensors. Within, sequences are packed in a row without padding where the model allows it, and the
row may be shared by several processes; neither shows in the results.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from ulorl.engine.attention import attention_for
from ulorl.errors import UserError
from ulorl.recipe_train import Packing
from ulorl.train.chance import remove_dropout, set_mode
from ulorl.train.logprobs import token_logprobs
from ulorl.train.model_check import check_model
from ulorl.train.packing import PACKED, flash_kernel, pack, register, unpackable
from ulorl.train.sequence_parallel import SequenceGroup, check_heads


class Policy(nn.Module):
    """A Hugging Face causal language model whose forward pass never holds all logits, and has no dropout.

    ``packed`` says whether its sequences are; UserError where they cannot be and ``packing`` or ``group`` demands it,
    and where its log-probs are not those of the model (``ulorl.train.model_check``).
    """

    def __init__(
        self,
        directory: Path,
        dtype: str,
        *,
        activation_checkpointing: bool = False,
        packing: Packing = "never",
        group: SequenceGroup | None = None,
        checked: bool = False,
    ) -> None:
        """``checked``: another policy of the same model and settings has been made, so that this one needs no check."""
        from transformers import AutoModelForCausalLM
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        super().__init__()
        self.model = AutoModelForCausalLM.from_pretrained(
            directory, dtype=getattr(torch, dtype), attn_implementation=attention_for(directory)
        )
        self.model.config.use_cache = False
        remove_dropout(self.model)
        self.head = TiledHead(self.model.get_output_embeddings(), self.model.config.get_text_config())
        self.group = group or SequenceGroup()
        self._apart = unpackable(self.model)
        self.packed = self._packs(packing)
        if self.packed:
            register()
            self.model.set_attn_implementation(PACKED)
        if activation_checkpointing:
            self.model.gradient_checkpointing_enable({"use_reentrant": False})
        if not checked:
            self._check()
        self.train()

    def _check(self) -> None:
        """Raise UserError where its log-probs are not the model's; by itself, before anything is divided."""
        group, self.group = self.group, SequenceGroup()
        check_model(
            self.model,
            logprobs=lambda tokens_BL, response_BT: self.train()(tokens_BL, response_BT, 1.0)[0],
            head=lambda hidden_NH, targets_N: self.head(hidden_NH, targets_N, 1.0)[0],
        )
        self.group = group

    def _packs(self, packing: Packing) -> bool:
        if self.group.size > 1:
            config = self.model.config.get_text_config()
            heads = config.num_attention_heads
            check_heads(heads, getattr(config, "num_key_value_heads", None) or heads, self.group.size)
        for setting, demanded in (
            ('packing = "always"', packing == "always"),
            (f"sequence_parallel_size = {self.group.size}", self.group.size > 1),
        ):
            if demanded and self._apart is not None:
                raise UserError(f"train.learner: {setting} needs a model whose sequences can be packed; {self._apart}")
        return packing != "never" and self._apart is None

    def train(self, mode: bool = True) -> Policy:
        """As of any module, but for what draws at random (``ulorl.train.chance``)."""
        super().train(mode)
        set_mode(self.model, mode)
        return self

    @property
    def rows(self) -> str:
        """How sequences are laid out, in words."""
        if not self.packed:
            return "rows of padded sequences" + (f" ({self._apart})" if self._apart else "")
        own = flash_kernel(self.model.device.type, self.model.dtype)
        return "rows of packed sequences, attention by " + ("flash-attention" if own else "torch, in blocks")

    def forward(
        self, tokens_BL: torch.Tensor, response_BT: torch.Tensor, temperature: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Log-probs and entropies (B, T) at ``temperature``, zero where ``response_BT`` is False (T = L - 1)."""
        if self.packed:
            logprobs_N, entropy_N = self._packed(tokens_BL, response_BT, temperature)
        else:
            hidden_BTH = self.model.get_decoder()(input_ids=tokens_BL[:, :-1]).last_hidden_state
            logprobs_N, entropy_N = self.head(hidden_BTH[response_BT], tokens_BL[:, 1:][response_BT], temperature)
        zeros_BT = torch.zeros(response_BT.shape, dtype=torch.float32, device=tokens_BL.device)
        return zeros_BT.masked_scatter(response_BT, logprobs_N), zeros_BT.masked_scatter(response_BT, entropy_N)

    def _packed(
        self, tokens_BL: torch.Tensor, response_BT: torch.Tensor, temperature: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Log-probs and entropies of the N response tokens, in order; of a shared row, those of all its pieces."""
        row = pack(tokens_BL, response_BT, self.group)
        piece = self.group.piece
        response_n = piece(row.response_P)
        hidden_1nH = self.model.get_decoder()(
            input_ids=piece(row.tokens_P).unsqueeze(0),
            position_ids=piece(row.positions_P).unsqueeze(0),
            layout=row.layout,
        ).last_hidden_state
        found = self.head(hidden_1nH[0, response_n], piece(row.targets_P)[response_n], temperature)
        logprobs_N, entropy_N = (
            self.group.whole(one.new_zeros(response_n.shape).masked_scatter(response_n, one))[row.response_P]
            for one in found
        )
        return logprobs_N, entropy_N


class TiledHead(nn.Module):
    """The output layer, used by its weight: its own forward pass would make all logits.

    Under ZeRO stage 3 the weight is gathered for this module's forward and backward pass.
    """

    def __init__(self, output_layer: nn.Module, config: Any) -> None:
        import deepspeed

        super().__init__()
        self.scale, self.softcap = logit_scale(config), logit_softcap(config)
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
        return token_logprobs(
            hidden_NH,
            targets_N,
            layer.weight,
            layer.bias,
            temperature=temperature,
            scale=self.scale,
            softcap=self.softcap,
        )


def logit_scale(config: Any) -> float:
    """What a model multiplies its logits by: Cohere's ``logit_scale``, or Granite's ``logits_scaling``, a divisor."""
    factor, divisor = (getattr(config, name, None) or 1.0 for name in ("logit_scale", "logits_scaling"))
    return float(factor) / float(divisor)


def logit_softcap(config: Any) -> float | None:
    """The c of c tanh(z / c) that Gemma applies to its logits z, if any."""
    return getattr(config, "final_logit_softcapping", None) or None
