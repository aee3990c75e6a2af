"""Fixtures shared by all tests: a tiny random model, and the one vLLM engine that a test process opens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from tiny_model import make_tiny_model

from ulorl.engine.base import Engine

# The same examples in every run; `--hypothesis-profile default` looks for new ones.
settings.register_profile("reproducible", derandomize=True, deadline=None)
settings.load_profile("reproducible")


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of a tiny random Qwen3 model with tied embeddings and a character-level tokenizer."""
    return make_tiny_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="session")
def vllm_engine(tiny_model: Path) -> Iterator[Engine]:
    """vLLM on ``tiny_model``, at most 512 tokens; a test that loads other weights puts these back."""
    pytest.importorskip("vllm", reason="vLLM is not installed")
    from ulorl.engine import open_engine
    from ulorl.recipe import Recipe

    engine = open_engine(Recipe(), tiny_model, max_model_len=512)
    yield engine
    engine.close()
