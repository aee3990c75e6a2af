"""A language model that is asked about single problems: what kind they are, how to reword them, what their answer is.

Invariants: a reply depends on the prompt and the settings alone (greedy for questions about a problem, seeds from the
prompt's text for its answers), never on the other rows of a batch; replies are kept on disk as they come
(``ulorl.sampling``) and found again after an interruption; what the model does not answer properly is None, never a
guess and never an error.

Does not know what is asked (``ask``, ``reword``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ulorl.errors import UserError
from ulorl.problem import Problem
from ulorl.recipe import ModelRecipe, ReaderRecipe, Recipe
from ulorl.verify.verdict import Item, Verdict

if TYPE_CHECKING:
    import pyarrow as pa

    from ulorl.engine.base import Engine, Sampling
    from ulorl.engine.prompts import Prompter

READER_BATCH_ROWS = 20_000
"""Rows of a batch where a model is asked: enough for it to work on many questions at a time."""
SOLVE = "{problem}\n\nReason step by step, and put the final answer within \\boxed{{}}."
_THOUGHT_END = "</think>"


class Judge(Protocol):
    """What is needed of ``ulorl.verify.Verifier``."""

    def verify(self, items: list[Item]) -> list[Verdict]: ...


class _Unjudged:
    """In the verifier's place where a reply is no answer to a problem."""

    def verify(self, items: list[Item]) -> list[Verdict]:
        return [Verdict(None, None, "none", "not judged") for _ in items]


class Reader:
    """A model behind an engine, opened when it is first asked."""

    def __init__(
        self,
        open_model: Callable[[], tuple[Engine, Prompter]],
        verifier: Judge,
        settings: ReaderRecipe,
        *,
        seed: int,
        directory: Path,
        key: Mapping[str, Any],
    ) -> None:
        """``key`` holds what besides ``settings`` determines a reply (JSON values: the model's fingerprint)."""
        self.settings = settings
        self._open_model, self._verifier, self._seed = open_model, verifier, seed
        self._directory, self._key = directory, dict(key)
        self._model: tuple[Engine, Prompter] | None = None

    def replies(self, prompts: Sequence[str], purpose: str) -> list[str | None]:
        """The reply to each prompt, without its reasoning; None where the prompt is too long or the reply was cut.

        ``purpose`` names the directory in which replies are kept.
        """
        from ulorl.engine.base import Sampling

        table = self._sample(
            [Problem(_name(one), one, "") for one in prompts], _Unjudged(), purpose, 1, Sampling(temperature=0.0)
        )
        found: dict[str, str | None] = {}
        for row in [] if table is None else table.select(["problem_id", "text", "finish_reason"]).to_pylist():
            found[row["problem_id"]] = _spoken(row["text"]) if row["finish_reason"] == "stop" else None
        return [found.get(_name(one)) for one in prompts]

    def agreeing(self, problems: Sequence[Problem]) -> list[int]:
        """How many of ``settings.samples`` own answers to each problem are equivalent to its reference."""
        from ulorl.engine.base import Sampling

        posed = [
            Problem(_name(f"{one.problem}\n{one.answer}"), SOLVE.format(problem=one.problem), one.answer)
            for one in problems
        ]
        sampling = Sampling(temperature=self.settings.temperature)
        table = self._sample(posed, self._verifier, "solutions", self.settings.samples, sampling)
        right: dict[str, int] = {}
        for row in [] if table is None else table.select(["problem_id", "equivalent"]).to_pylist():
            right[row["problem_id"]] = right.get(row["problem_id"], 0) + (row["equivalent"] is True)
        return [right.get(one.id, 0) for one in posed]

    def equivalent(self, pairs: Sequence[tuple[str, str]]) -> list[bool]:
        """Whether the verifier finds the two bare answers of each pair equivalent."""
        items = [Item(reference, answer, is_answer=True) for reference, answer in pairs]
        return [verdict.equivalent is True for verdict in self._verifier.verify(items)] if items else []

    def _sample(
        self, posed: list[Problem], judge: Judge, purpose: str, samples: int, sampling: Sampling
    ) -> pa.Table | None:
        from ulorl.sampling import sample_problems

        if not posed:
            return None
        if self._model is None:
            self._model = self._open_model()
        engine, prompter = self._model
        room = min(self.settings.max_prompt_tokens, engine.max_model_len - self.settings.max_tokens)
        if room < 1:
            raise UserError(
                f"curate.reader.max_tokens: {self.settings.max_tokens} leaves no room for a question in the engine's "
                f"{engine.max_model_len} tokens; lower it or raise engine.max_model_len"
            )
        fitting = {one.id: one for one in posed if len(prompter.encode(one.problem)) <= room}
        if not fitting:
            return None
        return sample_problems(
            list(fitting.values()),
            engine=engine,
            prompter=prompter,
            verifier=judge,
            samples=samples,
            sampling=sampling,
            max_tokens=self.settings.max_tokens,
            seed=self._seed,
            directory=self._directory / purpose,
            key=self._key,
        )


@contextmanager
def open_reader(
    recipe: Recipe, start_model: Callable[[], tuple[Engine, Prompter]] | None, directory: Path
) -> Iterator[Reader | None]:
    """The reader that a recipe asks for, None for none. The model is opened when first asked and closed at the end.

    ``start_model`` gives the engine of the model to be trained, which is shared where the reader is that model.
    """
    settings = recipe.curate.reader
    if not settings.path or not {"kinds", "rewrite"} & set(recipe.curate.steps):
        yield None
        return
    from ulorl.engine import open_engine
    from ulorl.engine.prompts import Prompter, resolve_model
    from ulorl.verify import Verifier

    with ExitStack() as stack:
        verifier = stack.enter_context(Verifier(recipe.verify))

        def open_model() -> tuple[Engine, Prompter]:
            model_dir = resolve_model(settings.path, setting="curate.reader.path")
            prompter = Prompter(ModelRecipe(path=settings.path, chat=settings.chat), model_dir)
            if start_model is not None and settings.path == recipe.model.path:
                return start_model()[0], prompter
            engine = open_engine(recipe, model_dir, max_model_len=settings.max_prompt_tokens + settings.max_tokens)
            stack.callback(engine.close)
            return engine, prompter

        key = reader_identity(recipe)
        yield Reader(open_model, verifier, settings, seed=recipe.seed, directory=directory, key=key)


def reader_identity(recipe: Recipe) -> dict[str, Any]:
    """What besides the prompts determines the replies, as JSON."""
    from ulorl.engine.prompts import resolve_model
    from ulorl.fingerprint import fingerprint_of

    return {
        "model": fingerprint_of(resolve_model(recipe.curate.reader.path, setting="curate.reader.path")),
        "chat": recipe.curate.reader.chat,
        "verify": recipe.verify.model_dump(mode="json"),
    }


def _name(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _spoken(text: str) -> str:
    """A reply without the reasoning before it."""
    return text.rsplit(_THOUGHT_END, maxsplit=1)[-1].strip()
