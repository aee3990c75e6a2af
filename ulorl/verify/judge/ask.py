"""Asks a model how probable it is that two answers are equivalent, and keeps what it said.

Invariants: one probability or None a question, in order; the same question under the same model, format and sampling
is asked once, ever (cache); the engine is opened at the first question that is not cached, never before. A failure of
the engine is remembered as the reason and gives None, never a probability.
"""

from __future__ import annotations

import hashlib
import math
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ulorl.engine.base import Engine, Generation, GenerationRequest, Sampling
from ulorl.errors import UserError
from ulorl.fingerprint import artifact_of
from ulorl.recipe import JudgeRecipe
from ulorl.seeds import derive_seed
from ulorl.verify.judge.cache import ScoreCache, cache_key
from ulorl.verify.judge.prompts import (
    JudgePrompter,
    PromptFormat,
    Question,
    last_label,
    quote,
    read_format,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_READ_WHOLE = 32 * 2**20
_SAMPLE = 2**20
_LIMIT = 30.0
"""Log-odds beyond this are not told apart."""
_SCAFFOLD_TOKENS = 256
_PLAIN = Sampling(temperature=1.0)

OpenEngine = Callable[[Path, int], Engine]
"""Opens an engine for a model directory and a longest sequence in tokens."""


def open_judge_engine(config: JudgeRecipe) -> OpenEngine:
    """Opens what ``config.engine`` says."""

    def start(directory: Path, max_model_len: int) -> Engine:
        from ulorl.engine import open_engine
        from ulorl.recipe import ModelRecipe, Recipe

        model = ModelRecipe(path=str(directory), dtype=config.dtype)
        recipe = Recipe().model_copy(update={"model": model, "engine": config.engine})
        return open_engine(recipe, directory, max_model_len=config.engine.max_model_len or max_model_len)

    return start


class Judge:
    """A model with its prompts, its engine and its cache. Safe from any thread; a fork opens an engine of its own."""

    def __init__(
        self,
        directory: Path,
        config: JudgeRecipe,
        cache: ScoreCache,
        start: OpenEngine,
        trained: PromptFormat | None = None,
    ) -> None:
        """Reads the tokenizer, not the weights. ``trained`` is the format to ask in, whatever the directory says.

        Raises UserError.
        """
        trained = trained or read_format(directory)
        if trained is not None and config.reasoning_tokens:
            raise UserError(
                f"verify.judge.reasoning_tokens: the judge in {directory} was trained to answer at once; set 0"
            )
        chosen = PromptFormat(True, config.question_chars, config.reasoning_tokens > 0)
        self._directory, self._config, self._cache, self._start = directory, config, cache, start
        self._prompter = JudgePrompter(directory, trained or chosen)
        sampling = [config.reasoning_tokens, config.votes, config.temperature] if config.reasoning_tokens else []
        served = config.engine.served_model if config.engine.kind == "server" else ""
        self._identity = [model_fingerprint(directory), served, config.dtype, asdict(self._prompter.format), sampling]
        self._engine: Engine | None = None
        self._lock = threading.Lock()
        self._owner = 0
        self.failure = ""
        """Why the last questions got no answer; empty when they did."""

    def probabilities(self, questions: Sequence[Question]) -> list[float | None]:
        """How probable equivalence is; both orders are asked where the recipe says so (mean of the log-odds)."""
        if not self._config.both_orders:
            return self._one_way(questions)
        both = self._one_way([*questions, *(question.swapped() for question in questions)])
        pairs = zip(both[: len(questions)], both[len(questions) :], strict=True)
        return [None if a is None or b is None else _mean_of_log_odds(a, b) for a, b in pairs]

    def close(self) -> None:
        """Frees the model. Idempotent."""
        with self._lock:
            if self._engine is not None and self._owner == os.getpid():
                self._engine.close()
            self._engine = None
        self._cache.close()

    def _one_way(self, questions: Sequence[Question]) -> list[float | None]:
        keys = [self._key(question) for question in questions]
        known = self._cache.get(keys)
        missing = {key: question for key, question in zip(keys, questions, strict=True) if key not in known}
        if missing:
            computed = self._compute(missing)
            self._cache.put(computed)
            known |= computed
        return [known.get(key) for key in keys]

    def _key(self, question: Question) -> str:
        limit = self._prompter.format.question_chars
        problem = quote(question.problem.strip()[-limit:]) if limit else ""
        # Quoted: lone surrogates, which no encoding takes, are escaped.
        return cache_key([self._identity, quote(question.reference), quote(question.answer), problem])

    def _compute(self, missing: Mapping[str, Question]) -> dict[str, float]:
        """What the engine says, by key; without those it could not answer."""
        with self._lock:
            try:
                requests = {key: self._requests(key, question) for key, question in missing.items()}
                if self._engine is None or self._owner != os.getpid():  # an engine does not survive a fork
                    longest = _SCAFFOLD_TOKENS + self._longest(requests)
                    self._engine, self._owner = self._start(self._directory, longest), os.getpid()
                fitting = {
                    key: some
                    for key, some in requests.items()
                    if len(some[0].prompt_ids) + some[0].max_tokens <= self._engine.max_model_len
                }
                flat = [request for some in fitting.values() for request in some]
                generations = iter(self._engine.generate(flat))
                read = {key: self._read([next(generations) for _ in some]) for key, some in fitting.items()}
            except Exception as error:  # whatever an engine or its server raises: no verdict, and the reason is kept
                self.failure = (str(error).strip() or type(error).__name__).splitlines()[0]
                return {}
            self.failure = ""
            return read

    def _longest(self, requests: Mapping[str, list[GenerationRequest]]) -> int:
        """Tokens that any question may need: texts are bounded in characters, and a token is at least a byte."""
        given = max(len(some[0].prompt_ids) + some[0].max_tokens for some in requests.values())
        bound = 2 * self._config.max_answer_chars + self._prompter.format.question_chars + self._config.reasoning_tokens
        return max(given, bound)

    def _requests(self, key: str, question: Question) -> list[GenerationRequest]:
        prompt_ids = self._prompter.encode(question)
        if not self._prompter.format.reasoning:
            return [GenerationRequest(key, prompt_ids, 1, 0, _PLAIN, allowed=self._prompter.labels)]
        sampling = replace(_PLAIN, temperature=self._config.temperature)
        return [
            GenerationRequest(
                f"{key}/{vote}", prompt_ids, self._config.reasoning_tokens, derive_seed(0, key, vote), sampling
            )
            for vote in range(self._config.votes)
        ]

    def _read(self, generations: Sequence[Generation]) -> float:
        """The label's probability, or with reasoning the share of votes that end in "equivalent"."""
        if self._prompter.format.reasoning:
            finished = [one for one in generations if one.finish_reason == "stop"]
            votes = [last_label(self._prompter.decode(one.token_ids)) for one in finished]
            # A reply that was cut off or names no label is no vote for anything.
            return _share_of_votes(votes.count(True), votes.count(False), len(generations))
        (generation,) = generations
        token, logprob = generation.token_ids[0], generation.logprobs[0]
        yes, no = self._prompter.labels
        assert token in {yes, no}, f"the engine drew token {token}, which was not allowed"
        return math.exp(logprob) if token == yes else -math.expm1(min(logprob, 0.0))


def model_fingerprint(directory: Path) -> str:
    """What identifies a model: its artifact's fingerprint, or the contents of its files.

    Of files above 32 MiB only name, size, first and last MiB count: weights of tens of GiB are not read to look up a
    verdict.
    """
    found = artifact_of(directory)
    if found is not None:
        root, manifest = found
        return f"{manifest['fingerprint']}/{directory.resolve().relative_to(root).as_posix()}"
    digest = hashlib.sha256()
    for file in sorted(path for path in directory.iterdir() if path.is_file()):
        size = file.stat().st_size
        digest.update(f"{file.name}\0{size}\0".encode("utf-8", "surrogateescape"))
        with file.open("rb") as stream:
            if size <= _READ_WHOLE:
                digest.update(stream.read())
            else:
                digest.update(stream.read(_SAMPLE))
                stream.seek(-_SAMPLE, 2)
                digest.update(stream.read())
    return digest.hexdigest()


def _share_of_votes(equal: int, different: int, asked: int) -> float:
    """Missing votes pull the share to one half, so that they can only make it undecided."""
    return (equal + 0.5 * (asked - equal - different)) / asked


def _mean_of_log_odds(a: float, b: float) -> float:
    return 1 / (1 + math.exp(-(_log_odds(a) + _log_odds(b)) / 2))


def _log_odds(p: float) -> float:
    if p <= 0 or p >= 1:
        return math.copysign(_LIMIT, p - 0.5)
    return max(-_LIMIT, min(_LIMIT, math.log(p / (1 - p))))
