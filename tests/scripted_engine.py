"""An engine and a prompter that answer by a function, for tests of what is made of the replies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ulorl.engine.base import Generation


class Letters:
    """Prompter whose tokens are code points."""

    def encode(self, problem: str) -> tuple[int, ...]:
        return tuple(map(ord, problem))

    def decode(self, ids: tuple[int, ...]) -> str:
        return "".join(map(chr, ids))


class Scripted:
    """An engine that answers each prompt by a function; a reply longer than asked for is cut."""

    name = "fake"
    policy_version = 0
    max_model_len = 20_000

    def __init__(self, reply: Callable[[str], str]) -> None:
        self.reply, self.asked = reply, list[str]()

    def generate(self, requests: Any, on_done: Any = None) -> list[Generation]:
        made = []
        for request in requests:
            prompt = "".join(map(chr, request.prompt_ids))
            self.asked.append(prompt)
            ids = tuple(map(ord, self.reply(prompt)))
            finish = "stop" if len(ids) <= request.max_tokens else "length"
            made.append(Generation(request.id, ids[: request.max_tokens], (0.0,) * len(ids), finish, 0))  # type: ignore[arg-type]
            if on_done:
                on_done(made[-1])
        return made

    def close(self) -> None:
        pass
