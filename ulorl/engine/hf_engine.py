"""Plain transformers, for machines on which vLLM cannot be installed. Simple and slow.

Invariants: prompts are padded on the left, so all rows of a batch sample at the same column; each request
draws from its own generator on the CPU, so the rows beside it do not change what it draws.

Does not: keep a prefix cache, or batch requests that arrive while others run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ulorl.engine.attention import attention_for
from ulorl.engine.base import EngineError, Generation, GenerationRequest, NamedTensors, OnDone, Sampling
from ulorl.engine.checks import check_requests
from ulorl.engine.prompts import stop_token_ids
from ulorl.engine.threads import thread_count
from ulorl.engine.weights import WeightNames
from ulorl.recipe import EngineRecipe

if TYPE_CHECKING:
    import torch


class HFEngine:
    """Plain transformers. See ``ulorl.engine.base.Engine`` for the contract of every method."""

    name = "hf"

    def __init__(self, directory: Path, settings: EngineRecipe, *, dtype: str, max_model_len: int) -> None:
        """Load the model of ``directory`` to the GPU when there is one. Raises EngineError."""
        import torch
        from transformers import AutoModelForCausalLM
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        torch.set_num_threads(thread_count(settings.threads))
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            model: Any = AutoModelForCausalLM.from_pretrained(
                directory,
                dtype=getattr(torch, dtype),
                attn_implementation=attention_for(directory),
                local_files_only=True,
            )
        except (OSError, ValueError) as error:
            raise EngineError(f"model.path: transformers cannot load {directory}: {error}") from error
        self._model = model.to(self._device).eval()
        self._names = WeightNames.of(directory)
        self._stop_ids = frozenset(stop_token_ids(directory))
        self._batch = settings.max_num_seqs
        self.max_model_len = max_model_len
        self.policy_version = 0

    def generate(self, requests: Sequence[GenerationRequest], on_done: OnDone | None = None) -> list[Generation]:
        """Sample every request; see ``ulorl.engine.base.Engine.generate``."""
        if self._model is None:
            raise EngineError("the hf engine is closed")
        check_requests(requests, self.max_model_len, int(self._model.config.vocab_size))
        done: dict[int, Generation] = {}
        # Neighbours in length share a batch: the least padding and the fewest finished rows carried along.
        order = sorted(range(len(requests)), key=lambda index: (len(requests[index].prompt_ids), index))
        for start in range(0, len(order), self._batch):
            chosen = order[start : start + self._batch]
            batch = [requests[index] for index in chosen]
            for row, generation in self._sample_batch(batch):
                done[chosen[row]] = generation
                if on_done is not None:
                    on_done(generation)
        return [done[index] for index in range(len(requests))]

    def _sample_batch(self, batch: Sequence[GenerationRequest]) -> Any:
        """Yield (row, generation) as rows finish."""
        import torch

        width = max(len(request.prompt_ids) for request in batch)
        pads = [width - len(request.prompt_ids) for request in batch]
        filler = min(self._stop_ids)  # masked everywhere, any id of the vocabulary does
        ids_BT = torch.tensor([[filler] * pad + list(r.prompt_ids) for pad, r in zip(pads, batch, strict=True)])
        mask_BT = torch.tensor([[0] * pad + [1] * (width - pad) for pad in pads])
        positions_BT = (mask_BT.cumsum(-1) - 1).clamp(min=0)
        generators = [torch.Generator().manual_seed(request.seed) for request in batch]
        token_ids: list[list[int]] = [[] for _ in batch]
        logprobs: list[list[float]] = [[] for _ in batch]
        running = set(range(len(batch)))
        cache = None
        while running:
            with torch.inference_mode():
                output = self._model(
                    input_ids=ids_BT.to(self._device),
                    attention_mask=mask_BT.to(self._device),
                    position_ids=positions_BT.to(self._device),
                    past_key_values=cache,
                    use_cache=True,
                    logits_to_keep=1,
                )
            cache = output.past_key_values
            logits_BV = output.logits[:, -1].float().cpu()
            next_ids = [filler] * len(batch)
            for row in sorted(running):
                request = batch[row]
                token, logprob = draw(only(logits_BV[row], request.allowed), request.sampling, generators[row])
                next_ids[row] = token
                token_ids[row].append(token)
                logprobs[row].append(logprob)
                stopped = token in self._stop_ids
                if stopped or len(token_ids[row]) == request.max_tokens:
                    running.remove(row)
                    yield (
                        row,
                        Generation(
                            request.id,
                            tuple(token_ids[row]),
                            tuple(logprobs[row]),
                            "stop" if stopped else "length",
                            self.policy_version,
                        ),
                    )
            ids_BT = torch.tensor(next_ids)[:, None]
            mask_BT = torch.cat([mask_BT, torch.ones(len(batch), 1, dtype=mask_BT.dtype)], dim=1)
            positions_BT = positions_BT[:, -1:] + 1

    def load_weights(self, named_tensors: NamedTensors, version: int) -> None:
        """Replace all weights; see ``ulorl.engine.base.Engine.load_weights``."""
        if self._model is None:
            raise EngineError("the hf engine is closed")
        # Read whole before anything changes: a bad stream leaves the old weights as they were.
        state = dict(self._names.checked(named_tensors))
        try:
            # Loaded as files are, for their tensors are not always those of the modules (experts).
            loaded, report = type(self._model).from_pretrained(
                None, config=self._model.config, state_dict=state, dtype=self._model.dtype, output_loading_info=True
            )
        except (RuntimeError, ValueError) as error:
            raise EngineError(f"loading weights of version {version}: {error}") from error
        for kind in ("missing_keys", "unexpected_keys"):
            if report[kind]:
                what, first = kind.replace("_keys", ""), min(report[kind])
                raise EngineError(
                    f"loading weights of version {version}: {len(report[kind])} tensors of the model in memory are "
                    f"{what}, {first!r} first; its files and transformers disagree"
                )
        self._model.load_state_dict(loaded.state_dict())
        self.policy_version = version

    def sleep(self) -> None:
        """Nothing to free."""

    def wake(self) -> None:
        """Nothing to undo."""

    def close(self) -> None:
        """Drop the model."""
        self._model = None


def draw(logits_V: torch.Tensor, sampling: Sampling, generator: torch.Generator) -> tuple[int, float]:
    """Draw one token from fp32 logits of shape (vocabulary); returns it and its log-prob in nats.

    The log-prob is under the distribution drawn from; for temperature 0 it is the one at temperature 1.
    """
    import torch

    if sampling.temperature == 0:
        token = int(logits_V.argmax())
        return token, float(torch.log_softmax(logits_V, dim=-1)[token])
    logprobs_V = torch.log_softmax(truncate(logits_V / sampling.temperature, sampling), dim=-1)
    token = int(torch.multinomial(logprobs_V.exp(), 1, generator=generator))
    return token, float(logprobs_V[token])


def only(logits_V: torch.Tensor, allowed: tuple[int, ...]) -> torch.Tensor:
    """Logits with minus infinity for all but the allowed token ids; unchanged where none are named."""
    import torch

    if not allowed:
        return logits_V
    kept = torch.tensor(allowed)
    return torch.full_like(logits_V, -torch.inf).index_copy(0, kept, logits_V[kept])


def truncate(logits_V: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """Set logits outside top-k, then outside the nucleus (top-p), to minus infinity, as vLLM does."""
    import torch

    if 0 < sampling.top_k < logits_V.numel():
        least = logits_V.topk(sampling.top_k).values[-1]
        logits_V = logits_V.masked_fill(logits_V < least, -torch.inf)
    if sampling.top_p < 1:
        sorted_V, order_V = logits_V.sort(descending=True)
        before_V = sorted_V.softmax(-1).cumsum(-1) - sorted_V.softmax(-1)
        outside_V = (before_V >= sampling.top_p).scatter(0, order_V, before_V >= sampling.top_p)
        logits_V = logits_V.masked_fill(outside_V, -torch.inf)
    return logits_V
