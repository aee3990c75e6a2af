"""The server engine against a real vLLM server, and against a server that misbehaves."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from one_model_server import OneModelServer
from ports import free_port

from ulorl.engine import EngineError, GenerationRequest, Sampling
from ulorl.engine.base import Engine
from ulorl.engine.server import ServerEngine
from ulorl.recipe import EngineRecipe

PROMPTS = ((5, 6, 7), (20, 21, 22, 23, 24), (9,), (40, 3, 50, 60))


def request(index: int, sampling: Sampling = Sampling(), max_tokens: int = 12) -> GenerationRequest:
    return GenerationRequest(f"r{index}", PROMPTS[index % len(PROMPTS)], max_tokens, index, sampling)


class Misbehaving(OneModelServer):
    """Serves one model; what it does to completions is set on the class of each test's server."""

    failures: ClassVar[dict[str, int]] = {}
    max_model_len = 64
    hang_s: ClassVar[float] = 0.0
    choices: ClassVar[int] = 1
    raw_logprobs: ClassVar[bool] = False
    in_flight: ClassVar[list[int]] = []
    lock: ClassVar[threading.Lock] = threading.Lock()
    running: ClassVar[int] = 0

    def do_POST(self) -> None:
        cls = type(self)
        body = self.asked()
        key = str(body["seed"])
        with cls.lock:
            cls.running += 1
            cls.in_flight.append(cls.running)
            fail = cls.failures.get(key, 0) > 0
            if fail:
                cls.failures[key] -= 1
        time.sleep(cls.hang_s if body["seed"] else 0.05)
        with cls.lock:
            cls.running -= 1
        if fail:
            self.send(500, {"error": {"message": "out of luck"}})
            return
        logprob = -0.5 if body["top_k"] != 1 or cls.raw_logprobs else 0.0
        choice = {
            "index": 0,
            "text": "",
            "finish_reason": "length",
            "token_ids": [body["seed"]],
            "logprobs": {"token_logprobs": [logprob], "tokens": ["x"], "top_logprobs": [], "text_offset": []},
        }
        self.send(200, {"id": "c", "object": "text_completion", "created": 0, "model": "tiny",
                         "choices": [choice] * cls.choices})  # fmt: skip


@contextmanager
def misbehaving(**behaviour: Any) -> Iterator[str]:
    handler = type("Handler", (Misbehaving,), {"in_flight": [], "running": 0, "failures": {}, **behaviour})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def connect(url: str, directory: Path, **settings: Any) -> ServerEngine:
    values = {"kind": "server", "url": url, "retries": 2, "timeout_s": 30.0, **settings}
    return ServerEngine(directory, EngineRecipe(**values), max_model_len=512)


def test_two_failures_then_an_answer(tiny_model: Path) -> None:
    with misbehaving(failures={"3": 2}) as url:
        generations = connect(url, tiny_model).generate([request(1), request(3), request(2)])
    assert [generation.token_ids for generation in generations] == [(1,), (3,), (2,)]


def test_a_request_that_always_fails_names_url_request_and_cause(tiny_model: Path) -> None:
    with misbehaving(failures={"3": 99}) as url:
        engine = connect(url, tiny_model, retries=1)
        with pytest.raises(EngineError, match=r"r3.*out of luck.*tried 2 times") as caught:
            engine.generate([request(1), request(3)])
    assert url in str(caught.value)


def test_a_server_that_hangs_is_given_up(tiny_model: Path) -> None:
    with misbehaving(hang_s=5.0) as url:
        engine = connect(url, tiny_model, retries=0, timeout_s=0.5)
        with pytest.raises(EngineError, match=r"r2.*timeout_s = 0.5 s"):
            engine.generate([request(2)])


def test_no_server_at_all(tiny_model: Path) -> None:
    with pytest.raises(EngineError, match=r"no answer from http://127\.0\.0\.1:9/v1"):
        connect("http://127.0.0.1:9/v1", tiny_model, retries=0)


def test_raw_logprobs_are_refused(tiny_model: Path) -> None:
    with misbehaving(raw_logprobs=True) as url, pytest.raises(EngineError, match="--logprobs-mode"):
        connect(url, tiny_model)


def test_two_answers_to_one_request_are_refused(tiny_model: Path) -> None:
    with misbehaving(choices=2) as url, pytest.raises(EngineError, match="2 answers"):
        connect(url, tiny_model)


def test_wrong_served_model_and_the_servers_own_length(tiny_model: Path) -> None:
    with misbehaving() as url:
        with pytest.raises(EngineError, match=r"'other' is not served.*\['tiny'\]"):
            connect(url, tiny_model, served_model="other")
        engine = connect(url, tiny_model)
        assert engine.max_model_len == 64
        with pytest.raises(EngineError, match=r"r0.*max_model_len = 64"):
            engine.generate([request(0, max_tokens=100)])
        with pytest.raises(EngineError, match="cannot take new weights"):
            engine.load_weights([], 1)


def test_concurrency_is_bounded_and_callback_errors_end_the_call(tiny_model: Path) -> None:
    class Stop(Exception):
        pass

    def refuse(generation: object) -> None:
        raise Stop

    behaviour: dict[str, Any] = {"in_flight": [], "hang_s": 0.05}
    with misbehaving(**behaviour) as url:
        engine = connect(url, tiny_model, concurrency=3)
        engine.generate([request(index) for index in range(12)])
        assert max(behaviour["in_flight"]) == 3
        with pytest.raises(Stop):
            engine.generate([request(1)], refuse)


def test_inside_a_running_event_loop(tiny_model: Path) -> None:
    with misbehaving() as url:
        engine = connect(url, tiny_model)

        async def call() -> int:
            return len(engine.generate([request(1), request(2)]))

        assert asyncio.run(call()) == 2


@pytest.fixture(scope="module")
def real_server(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A vLLM API server on loopback; killed at the end."""
    pytest.importorskip("vllm", reason="vLLM is not installed")
    port = free_port()
    log = tmp_path_factory.mktemp("server") / "log.txt"
    command = [
        sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(tiny_model),
        "--port", str(port), "--host", "127.0.0.1", "--dtype", "float32", "--max-model-len", "512",
        "--enforce-eager", "--served-model-name", "tiny", "--logprobs-mode", "processed_logprobs",
    ]  # fmt: skip
    keep = {key: value for key, value in os.environ.items() if key not in _LAUNCHER_KEYS}
    environment = {**keep, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
        try:
            _wait_until_healthy(process, port, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


_LAUNCHER_KEYS = {
    "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
    "VLLM_ENABLE_V1_MULTIPROCESSING",
}  # fmt: skip


def _wait_until_healthy(process: subprocess.Popen[bytes], port: int, log: Path, timeout_s: float = 450) -> None:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    pytest.fail(f"the vLLM server did not come up:\n{log.read_text(errors='replace')[-3000:]}")


@pytest.mark.engine
def test_real_server_equals_the_engine_in_this_process(real_server: str, vllm_engine: Engine, tiny_model: Path) -> None:
    engine = connect(real_server, tiny_model, timeout_s=120.0)
    assert engine.max_model_len == 512
    requests = [request(index, Sampling(temperature=0.0)) for index in range(4)]
    requests += [request(index, Sampling(temperature=0.7)) for index in range(4)]
    requests += [replace(request(index, max_tokens=1), allowed=(30, 31)) for index in range(4)]
    seen: list[str] = []
    served = engine.generate(requests, lambda generation: seen.append(generation.id))
    local = vllm_engine.generate(requests)
    assert sorted(seen) == sorted(one.id for one in requests)
    for theirs, ours in zip(served, local, strict=True):
        assert theirs.token_ids == ours.token_ids
        assert theirs.finish_reason == ours.finish_reason
        assert theirs.logprobs == pytest.approx(ours.logprobs, abs=1e-4)
    assert {one.token_ids[0] for one in served[-4:]} <= {30, 31}
    assert all(-20 < one.logprobs[0] < 0 for one in served[-4:])
