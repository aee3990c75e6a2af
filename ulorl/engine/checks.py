"""What every engine demands of a request before it samples anything. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ulorl.engine.base import EngineError, GenerationRequest


def check_requests(requests: Sequence[GenerationRequest], max_model_len: int, vocab_size: int | None = None) -> None:
    """Raise EngineError naming the first request that cannot be served as it is."""
    for request in requests:
        where = f"request {request.id!r}"
        if not request.prompt_ids:
            raise EngineError(f"{where}: the prompt is empty")
        if request.max_tokens < 1:
            raise EngineError(f"{where}: max_tokens is {request.max_tokens}, it must be at least 1")
        if request.seed < 0:
            raise EngineError(f"{where}: seed is {request.seed}, it must not be negative")
        longest = len(request.prompt_ids) + request.max_tokens
        if longest > max_model_len:
            raise EngineError(
                f"{where}: prompt of {len(request.prompt_ids)} + max_tokens {request.max_tokens} ="
                f" {longest} tokens is longer than engine.max_model_len = {max_model_len}; raise that setting"
                " or shorten the request"
            )
        if vocab_size is not None and not 0 <= min(request.prompt_ids) <= max(request.prompt_ids) < vocab_size:
            raise EngineError(f"{where}: a prompt token id is outside the vocabulary of {vocab_size}")
        if vocab_size is not None and not all(0 <= token < vocab_size for token in request.allowed):
            raise EngineError(f"{where}: an allowed token id is outside the vocabulary of {vocab_size}")
