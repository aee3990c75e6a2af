"""The protocol behind which all text generation lives: token ids in, token ids out.

Invariants every engine keeps:
- one Generation for each GenerationRequest, in the order of the requests, whatever order they finished in;
- ``len(token_ids) == len(logprobs) <= max_tokens``; the stop token, when sampled, is the last token id;
- log-probs are of the *sampled* token, in nats, under the distribution it was drawn from: at the sampling
  temperature and, where top-p or top-k is on, renormalised over what they keep (vLLM offers no other kind at
  a temperature). Greedy tokens have the log-prob at temperature 1;
- the same request with the same weights gives the same tokens on the same machine: randomness comes from
  ``GenerationRequest.seed`` alone.

Does not: tokenise or apply chat templates (see ``ulorl.engine.prompts``), nor keep any state between calls
but the weights and their version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from ulorl.errors import UserError

if TYPE_CHECKING:
    import torch

FinishReason = Literal["stop", "length"]


class EngineError(UserError):
    """The engine could not do what was asked: says what, where, and what to do. Shown without a traceback."""


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn. ``temperature`` 0 is greedy; ``top_k`` 0 is off."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0


@dataclass(frozen=True)
class GenerationRequest:
    """One continuation to sample. ``prompt_ids`` holds the prompt and whatever was generated so far.

    Where ``allowed`` is not empty, only these token ids are drawn, and log-probs are renormalised over them: with
    two labels and one token, the log-prob of either gives that of the other.
    """

    id: str
    prompt_ids: tuple[int, ...]
    max_tokens: int
    seed: int
    sampling: Sampling
    allowed: tuple[int, ...] = ()


@dataclass(frozen=True)
class Generation:
    """What came back for the request of the same ``id``.

    ``finish_reason`` is "stop" when a stop token was sampled and "length" when ``max_tokens`` was reached.
    ``policy_version`` is the version of the weights *when the tokens were sampled*.
    """

    id: str
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish_reason: FinishReason
    policy_version: int


NamedTensors = Iterable[tuple[str, "torch.Tensor"]]
OnDone = Callable[[Generation], None]


class Engine(Protocol):
    """Text generation. Obtain one from ``ulorl.engine.open_engine``; close it when done."""

    name: str
    policy_version: int
    max_model_len: int

    def generate(self, requests: Sequence[GenerationRequest], on_done: OnDone | None = None) -> list[Generation]:
        """Sample every request. ``on_done`` is called once for each as it finishes (from one thread).

        Raises EngineError when a request got no answer: never returns fewer generations than requests.
        """
        ...

    def load_weights(self, named_tensors: NamedTensors, version: int) -> None:
        """Replace all weights (names and tensors as in the model's files), drop the prefix cache, set the version."""
        ...

    def sleep(self) -> None:
        """Free device memory while a trainer works in the same process; nothing where there is none."""
        ...

    def wake(self) -> None:
        """Undo ``sleep``."""
        ...

    def close(self) -> None:
        """Release everything. Idempotent."""
        ...
