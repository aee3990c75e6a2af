"""The language of a text, by py3langid. Deterministic; its model is loaded once a process."""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from typing import Any

from ulorl.errors import UserError

MAX_CHARS = 20_000


def language(text: str) -> str:
    """ISO 639-1 code of the language that ``text`` most likely is in. UserError where py3langid is missing."""
    code: str = _package().classify(text[:MAX_CHARS])[0]
    return code


@lru_cache(maxsize=1)
def languages() -> frozenset[str]:
    """The codes that ``language`` knows."""
    return frozenset(code for code, _ in _package().rank("a"))


def _package() -> Any:
    if importlib.util.find_spec("py3langid") is None:
        raise UserError('task ifollow: the package py3langid is not installed; pip install "ulorl[ifollow]"')
    import py3langid

    return py3langid
