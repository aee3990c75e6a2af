"""A vLLM OpenAI-compatible server somewhere else, through its completions endpoint.

Invariants: token ids go out and come back (``return_token_ids``), text is never re-tokenised; at most
``engine.concurrency`` requests are in flight; every request has a time-out and a bounded number of retries;
the first request that fails for good ends the call, the others are cancelled.

A server gives log-probs at temperature 1 unless it was started with ``--logprobs-mode processed_logprobs``:
one request at the start finds out, and such a server is refused. Does not: start or stop servers, or update
their weights.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ulorl.engine.base import EngineError, Generation, GenerationRequest, NamedTensors, OnDone, Sampling
from ulorl.engine.checks import check_requests
from ulorl.engine.prompts import stop_token_ids
from ulorl.recipe import EngineRecipe

Finished = tuple[int, Generation] | BaseException | None


class ServerEngine:
    """Client of a vLLM server. See ``ulorl.engine.base.Engine`` for the contract of every method."""

    name = "server"

    def __init__(self, directory: Path, settings: EngineRecipe, *, max_model_len: int) -> None:
        """Ask the server which model it serves and whether it keeps the contract about log-probs.

        ``directory`` holds the served model's tokenizer: its stop ids are sent along. Raises EngineError.
        """
        self._settings = settings
        self._stop_ids = list(stop_token_ids(directory))
        self.policy_version = 0
        self._model, served_len = self._ask_model()
        self.max_model_len = min(max_model_len, served_len or max_model_len)
        self._check_logprobs_mode()

    def generate(self, requests: Sequence[GenerationRequest], on_done: OnDone | None = None) -> list[Generation]:
        """Sample every request; see ``ulorl.engine.base.Engine.generate``. An event loop may be running."""
        check_requests(requests, self.max_model_len)
        finished: queue.Queue[Finished] = queue.Queue()
        stop = threading.Event()
        thread = threading.Thread(target=self._run, args=(requests, finished.put, stop), name="ulorl-server-engine")
        thread.start()
        done: dict[int, Generation] = {}
        try:
            while (item := finished.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                done[item[0]] = item[1]
                if on_done is not None:
                    on_done(item[1])
        finally:
            stop.set()
            thread.join()
        return [done[index] for index in range(len(requests))]

    def _run(
        self, requests: Sequence[GenerationRequest], put: Callable[[Finished], None], stop: threading.Event
    ) -> None:
        """Body of the thread: everything asynchronous happens in its own event loop."""
        try:
            asyncio.run(self._sample_all(requests, put, stop))
        except BaseException as error:
            put(error)
        else:
            put(None)

    async def _sample_all(
        self, requests: Sequence[GenerationRequest], put: Callable[[Finished], None], stop: threading.Event
    ) -> None:
        from openai import AsyncOpenAI

        indices = iter(range(len(requests)))
        async with AsyncOpenAI(**self._client_settings()) as client:

            async def work() -> None:
                for index in indices:
                    put((index, await self._sample(client, requests[index])))

            workers = min(self._settings.concurrency, len(requests))
            tasks = [asyncio.create_task(work()) for _ in range(workers)]
            watcher = asyncio.create_task(_wait_for(stop))
            try:
                pending: set[asyncio.Task[None]] = set(tasks)
                while pending and not watcher.done():
                    ended, rest = await asyncio.wait({*pending, watcher}, return_when=asyncio.FIRST_COMPLETED)
                    pending = rest - {watcher}
                    for task in ended - {watcher}:
                        task.result()
            finally:
                for task in (*tasks, watcher):
                    task.cancel()
                await asyncio.gather(*tasks, watcher, return_exceptions=True)

    async def _sample(self, client: Any, request: GenerationRequest) -> Generation:
        from openai import OpenAIError

        try:
            completion = await client.completions.create(**self._body(request))
        except OpenAIError as error:
            raise EngineError(f"request {request.id!r} to {self._settings.url} failed: {self._cause(error)}") from error
        return self._generation(request, completion)

    def _body(self, request: GenerationRequest) -> dict[str, Any]:
        """Arguments of the completions call. All settings are sent: servers have defaults of their own."""
        return {
            "model": self._model,
            "prompt": list(request.prompt_ids),
            "max_tokens": request.max_tokens,
            "temperature": request.sampling.temperature,
            "top_p": request.sampling.top_p,
            "seed": request.seed,
            "logprobs": 0,
            "extra_body": {
                "top_k": request.sampling.top_k,
                "min_p": 0.0,
                "repetition_penalty": 1.0,
                "stop_token_ids": list(self._stop_ids),
                "ignore_eos": True,
                "return_token_ids": True,
                **({"allowed_token_ids": list(request.allowed)} if request.allowed else {}),
            },
        }

    def _generation(self, request: GenerationRequest, completion: Any) -> Generation:
        where = f"request {request.id!r} to {self._settings.url}"
        if len(completion.choices) != 1:
            raise EngineError(f"{where}: the server sent {len(completion.choices)} answers instead of one")
        choice = completion.choices[0]
        token_ids = (choice.model_extra or {}).get("token_ids")
        if token_ids is None or choice.logprobs is None:
            raise EngineError(f"{where}: the answer has no token_ids or log-probs; the server must be a recent vLLM")
        logprobs = choice.logprobs.token_logprobs
        if len(logprobs) != len(token_ids):
            raise EngineError(f"{where}: {len(token_ids)} token ids came with {len(logprobs)} log-probs")
        if choice.finish_reason not in ("stop", "length"):
            raise EngineError(f"{where}: the server ended it with {choice.finish_reason!r}")
        return Generation(request.id, tuple(token_ids), tuple(logprobs), choice.finish_reason, self.policy_version)

    def _ask_model(self) -> tuple[str, int | None]:
        """Name of the served model and its longest sequence, as far as the server says."""
        from openai import OpenAI, OpenAIError

        try:
            with OpenAI(**self._client_settings()) as client:
                served = {card.id: card for card in client.models.list().data}
        except OpenAIError as error:
            raise EngineError(f"engine.url: no answer from {self._settings.url}: {self._cause(error)}") from error
        name = self._settings.served_model
        if not name and len(served) == 1:
            name = next(iter(served))
        if name not in served:
            raise EngineError(
                f"engine.served_model: {name!r} is not served at {self._settings.url}, which has {sorted(served)}"
            )
        return name, (served[name].model_extra or {}).get("max_model_len")

    def _check_logprobs_mode(self) -> None:
        """With one candidate left (top_k 1) a processed log-prob is exactly 0, a raw one is below."""
        probe = GenerationRequest("log-prob probe", (self._stop_ids[0],), 1, 0, Sampling(temperature=1.0, top_k=1))
        (generation,) = self.generate([probe])
        if generation.logprobs[0] != 0.0:
            raise EngineError(
                f"engine.url: {self._settings.url} gives log-probs at temperature 1 whatever the sampling"
                " temperature; start that server with --logprobs-mode processed_logprobs"
            )

    def _client_settings(self) -> dict[str, Any]:
        return {
            "base_url": self._settings.url,
            "api_key": os.environ.get("OPENAI_API_KEY", "none"),
            "max_retries": self._settings.retries,
            "timeout": self._settings.timeout_s,
        }

    def _cause(self, error: Exception) -> str:
        """One line: what happened, how often it was tried, and what may help."""
        from openai import APITimeoutError

        tries = f"tried {self._settings.retries + 1} times"
        if isinstance(error, APITimeoutError):
            return f"no answer within engine.timeout_s = {self._settings.timeout_s:g} s ({tries})"
        message = (str(error).strip() or type(error).__name__).splitlines()[0]
        reason = f" ({error.__cause__})" if error.__cause__ else ""
        return f"{message}{reason} ({tries})"

    def load_weights(self, named_tensors: NamedTensors, version: int) -> None:
        """Always raises EngineError: a server keeps the weights it was started with."""
        raise EngineError(f'engine.kind = "server" cannot take new weights ({self._settings.url}); train with "vllm"')

    def sleep(self) -> None:
        """Nothing to free here."""

    def wake(self) -> None:
        """Nothing to undo."""

    def close(self) -> None:
        """Nothing is held between calls."""


async def _wait_for(stop: threading.Event) -> None:
    """Return soon after ``stop`` is set by another thread."""
    while not stop.is_set():
        await asyncio.sleep(0.1)
