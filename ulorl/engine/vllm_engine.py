"""vLLM in this process, on a GPU or a CPU: one engine a process, the launcher's ranks kept as they are.

Invariants:
- the default process group is initialised here when nobody has done so, and used as it is otherwise; a
  DeepSpeed engine in the same process may come before or after (both orders are tested);
- what vLLM changes for the whole process and a trainer would suffer from (thread count, ``LD_PRELOAD``,
  ``LOCAL_WORLD_SIZE``) is put back once it has started; no thread is pinned to a core;
- weights, prefix cache and ``policy_version`` change together or the engine refuses to go on;
- log-probs are vLLM's ``processed_logprobs``, see ``ulorl.engine.base``.

Does not: tokenise, keep requests between calls, or span several devices (tensor parallelism is 1).
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from ulorl.engine.base import EngineError, Generation, GenerationRequest, NamedTensors, OnDone
from ulorl.engine.checks import check_requests
from ulorl.engine.prompts import stop_token_ids
from ulorl.engine.threads import thread_count
from ulorl.engine.weights import WeightNames
from ulorl.process import join_process_group, quiet_libraries
from ulorl.recipe import EngineRecipe

GIB = 2**30
CPU_BATCHED_TOKENS = 8192
"""Prompt tokens computed together on a CPU."""


class VLLMEngine:
    """In-process vLLM. See ``ulorl.engine.base.Engine`` for the contract of every method."""

    name = "vllm"

    def __init__(
        self, directory: Path, settings: EngineRecipe, *, dtype: str, max_model_len: int, seed: int = 0
    ) -> None:
        """Load the model of ``directory``; takes seconds for a small model.

        Every rank of a ``torchrun`` must open its engine together with the others. Raises EngineError.
        """
        quiet_libraries()
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
        threads = thread_count(settings.threads)
        with _process_settings_kept(threads):
            self._engine = _start(directory, settings, dtype=dtype, max_model_len=max_model_len, seed=seed)
        self.max_model_len = max_model_len
        self.policy_version = 0
        self._stop_ids = list(stop_token_ids(directory))
        self._names = WeightNames.of(directory)
        self._vocab_size = int(self._engine.model_config.get_vocab_size())
        self._asleep = False
        self._fault = ""

    def generate(self, requests: Sequence[GenerationRequest], on_done: OnDone | None = None) -> list[Generation]:
        """Sample every request; see ``ulorl.engine.base.Engine.generate``."""
        engine = self._ready()
        check_requests(requests, self.max_model_len, self._vocab_size)
        from vllm.inputs import TokensPrompt

        done: dict[int, Generation] = {}
        running: dict[str, int] = {}
        try:
            for index, request in enumerate(requests):
                prompt = TokensPrompt(prompt_token_ids=list(request.prompt_ids))
                engine.add_request(str(index), prompt, self._sampling_params(request))
                running[str(index)] = index
            while engine.has_unfinished_requests():
                for output in engine.step():
                    if output.finished:
                        index = running.pop(output.request_id)
                        done[index] = self._generation(requests[index], output)
                        if on_done is not None:
                            on_done(done[index])
        finally:
            # Reached with requests running when on_done raises or the user interrupts: vLLM must not go on
            # with them in the next call.
            engine.abort_request(list(running))
        if running:
            lost = ", ".join(repr(requests[index].id) for index in running.values())
            raise EngineError(f"vLLM gave no answer to {len(running)} of {len(requests)} requests: {lost}")
        return [done[index] for index in range(len(requests))]

    def _sampling_params(self, request: GenerationRequest) -> Any:
        from vllm import SamplingParams

        sampling = request.sampling
        return SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            seed=request.seed,
            max_tokens=request.max_tokens,
            logprobs=0,
            allowed_token_ids=list(request.allowed) or None,
            stop_token_ids=list(self._stop_ids),
            ignore_eos=True,  # the end-of-sequence ids are all in stop_token_ids
            detokenize=False,
        )

    def _generation(self, request: GenerationRequest, output: Any) -> Generation:
        answer = output.outputs[0]
        token_ids = tuple(answer.token_ids)
        logprobs = tuple(position[token].logprob for token, position in zip(token_ids, answer.logprobs, strict=True))
        if answer.finish_reason not in ("stop", "length"):
            raise EngineError(f"request {request.id!r}: vLLM ended it with {answer.finish_reason!r}")
        return Generation(request.id, token_ids, logprobs, answer.finish_reason, self.policy_version)

    def load_weights(self, named_tensors: NamedTensors, version: int) -> None:
        """Replace all weights; see ``ulorl.engine.base.Engine.load_weights``."""
        engine = self._ready()
        self._fault = f"loading weights of version {version} failed half way; open the engine again"
        given = self._names.checked(named_tensors)
        try:
            engine.collective_rpc("reload_weights", kwargs={"weights_iterator": given})
        except RuntimeError as error:  # on a CPU, of experts whose width it has padded
            raise EngineError(
                f'vLLM does not take new weights of this model ({error}); use engine.kind = "hf"'
            ) from error
        if _on_cpu():
            engine.collective_rpc(_repack, kwargs={"tied": self._names.tied})
        if not engine.reset_prefix_cache():
            self._fault = f"vLLM refused to drop the prefix cache after loading weights of version {version}"
            raise EngineError(self._fault)
        self._fault = ""
        self.policy_version = version

    def sleep(self) -> None:
        """Move the weights to CPU memory and free the KV cache of a GPU; nothing on a CPU."""
        engine = self._ready()
        if engine.model_config.enable_sleep_mode:
            engine.reset_prefix_cache()
            engine.sleep(level=1)
            self._asleep = True

    def wake(self) -> None:
        """Undo ``sleep``."""
        if self._asleep:
            self._engine.wake_up()
            self._asleep = False

    def close(self) -> None:
        """Free the model and the KV cache. The process groups stay, a trainer may use them.

        That is why vLLM's own ``shutdown``, which destroys the default group, is neither called here nor left
        to run when the engine is collected.
        """
        if self._engine is not None:
            self._engine.engine_core._finalizer.detach()
            self._engine.model_executor.shutdown()
            self._engine = None
            gc.unfreeze()  # vLLM froze what was alive when it had started
            gc.collect()

    def _ready(self) -> Any:
        if self._engine is None:
            raise EngineError("the vLLM engine is closed")
        if self._fault:
            raise EngineError(f"the vLLM engine is unusable: {self._fault}")
        if self._asleep:
            raise EngineError("the vLLM engine is asleep; call wake() first")
        return self._engine


def _on_cpu() -> bool:
    from vllm.platforms import current_platform

    return bool(current_platform.is_cpu())


def _repack(worker: Any, tied: bool) -> None:
    """Pack anew what vLLM 0.32 on a CPU packs on the first load alone: experts, and a tied output layer."""
    from vllm.model_executor.layers.fused_moe.routed_experts import RoutedExperts
    from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding

    for module in worker.get_model().modules():
        if isinstance(module, VocabParallelEmbedding) and tied:
            module.quant_method.process_weights_after_loading(module)
        elif isinstance(module, RoutedExperts):
            kernel = module.quant_method.moe_kernel
            assert kernel is not None, "vLLM has no kernel for its experts"
            kernel.fused_experts.process_weights_after_loading(module)


def _start(directory: Path, settings: EngineRecipe, *, dtype: str, max_model_len: int, seed: int) -> Any:
    import torch
    from vllm import EngineArgs
    from vllm.v1.engine.llm_engine import LLMEngine

    on_gpu = torch.cuda.is_available()
    join_process_group(on_gpu)
    memory: dict[str, Any] = (
        {"gpu_memory_utilization": settings.gpu_memory_utilization, "enable_sleep_mode": True}
        if on_gpu
        else {
            "kv_cache_memory_bytes": int(settings.kv_cache_gib * GIB),
            # A prompt computed in parts makes vLLM 0.32 rewind the generator of its request, which a CPU's
            # generator cannot.
            "enable_chunked_prefill": False,
            # The default, 128, is longer than most prompts: members of a group would not share theirs.
            "block_size": 32,
            "max_num_batched_tokens": max(max_model_len, CPU_BATCHED_TOKENS),
        }
    )
    arguments = EngineArgs(
        model=str(directory),
        dtype=cast(Any, dtype),
        max_model_len=max_model_len,
        max_num_seqs=settings.max_num_seqs,
        seed=seed,
        distributed_executor_backend="external_launcher",
        enforce_eager=True,
        enable_prefix_caching=True,
        logprobs_mode="processed_logprobs",
        generation_config="vllm",
        skip_tokenizer_init=True,
        disable_log_stats=True,
        use_tqdm_on_load=False,
        **memory,
    )
    try:
        return LLMEngine.from_engine_args(arguments)
    except (RuntimeError, ValueError) as error:
        raise EngineError(f"vLLM could not start on {directory}: {error}") from error


@contextmanager
def _process_settings_kept(threads: int) -> Iterator[None]:
    """Undo what vLLM does to the process while it starts.

    On a CPU it replaces ``torch.set_num_threads`` with a function that does nothing, preloads libraries into
    every later subprocess, and sets LOCAL_WORLD_SIZE to the tensor parallel size.
    """
    import torch

    kept = {key: os.environ.get(key) for key in ("LD_PRELOAD", "LOCAL_WORLD_SIZE")}
    set_num_threads = torch.set_num_threads
    set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads = set_num_threads
        set_num_threads(threads)
        for key, value in kept.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
