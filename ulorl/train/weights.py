"""A model's weights as they lie in its modules, and as they lie in Hugging Face files.

The two differ: the experts of a layer are one tensor in transformers and many in files. Engines and saved models take
the form of files, the reference that of modules. One layer is converted at a time; there is never a second whole copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import torch

_LAYER = re.compile(r".*?\.\d+\.")


def module_weights(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters and persistent buffers by their names in the modules, tied ones once."""
    parameters = dict(model.named_parameters())
    persistent = model.state_dict(keep_vars=True).keys()
    yield from parameters.items()
    yield from ((name, tensor) for name, tensor in model.named_buffers() if name in persistent)


def layers(model: torch.nn.Module) -> Iterator[dict[str, torch.Tensor]]:
    """The same, those of a layer together; what belongs to no layer is one of its own."""

    def layer(item: tuple[str, torch.Tensor]) -> str:
        found = _LAYER.match(item[0])
        return found.group() if found else item[0]

    return (dict(items) for _, items in groupby(module_weights(model), key=layer))


def file_form(model: Any, weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Weights of one layer under the names, and in the tensors, that ``model`` was loaded from."""
    from transformers.core_model_loading import revert_weight_conversion

    return revert_weight_conversion(model, weights)
