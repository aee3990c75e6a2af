"""reasoning-gym as it is installed: its data sets by name, with settings that are checked.

Nothing is imported before it is asked for: the package takes seconds.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from collections.abc import Mapping
from functools import lru_cache
from types import ModuleType
from typing import Any, NoReturn

from ulorl.errors import UserError

REFUSED = {"composite": "it only mixes others; name those"}
"""Data sets that are not offered, with the reason."""
_SET_BY_US = ("seed", "size")
_FILE = "data_file"
"""The setting that names a file of words in reasoning-gym's own directory."""
_REFUSALS = (AssertionError, TypeError, ValueError, OSError, LookupError, AttributeError, ArithmeticError)
"""What data sets raise at settings that they cannot use."""


class SettingError(ValueError):
    """A data set, or a setting of one, that there is not."""


def library() -> ModuleType:
    """The package ``reasoning_gym``. UserError where it is not installed."""
    if importlib.util.find_spec("reasoning_gym") is None:
        raise UserError('task logic: the package reasoning-gym is not installed; pip install "ulorl[logic]"')
    if importlib.util.find_spec("pycosat") is None and "pycosat" not in sys.modules:
        # It has no wheels, and a single data set needs it.
        sys.modules["pycosat"] = stub = ModuleType("pycosat")
        stub.solve = stub.itersolve = _no_solver  # type: ignore[attr-defined]
    import reasoning_gym

    module: ModuleType = reasoning_gym
    return module


def _no_solver(*_: object, **__: object) -> NoReturn:
    raise UserError(
        "task logic: zebra_puzzles needs the package pycosat, which a C compiler makes: pip install pycosat"
    )


def names() -> list[str]:
    """The data sets there are."""
    library()
    from reasoning_gym.factory import DATASETS

    return sorted(set(DATASETS) - REFUSED.keys())


def settings_of(name: str) -> dict[str, Any]:
    """The settings of a data set with their defaults. SettingError where there is no such data set."""
    if name in REFUSED:
        raise SettingError(f"the data set {name} is not offered: {REFUSED[name]}")
    if name not in names():
        raise SettingError(f"reasoning-gym has no data set {name!r}{_nearest(name, names())}")
    from reasoning_gym.factory import DATASETS

    fields = {field.name: field for field in dataclasses.fields(DATASETS[name][1]) if field.name not in _SET_BY_US}
    return {key: _default(field) for key, field in fields.items()}


def dataset(name: str, settings: Mapping[str, Any], seed: int = 0, size: int = 1) -> Any:
    """``reasoning_gym.create_dataset``. SettingError says what is wrong with the name or the settings."""
    known = settings_of(name)
    unknown = next((key for key in settings if key not in known), None)
    if unknown is not None:
        raise SettingError(f"{name} has no setting {unknown!r}{_nearest(unknown, known)}; there are {', '.join(known)}")
    path = next((key for key in settings if key == _FILE and not _plain_name(settings[key])), None)
    if path is not None:
        raise SettingError(
            f"{name}.{path} is {settings[path]!r:.60}; give the name of a file of reasoning-gym, no path"
        )
    given = {key: _as_default(value, known[key]) for key, value in settings.items()}
    try:
        return library().create_dataset(name, seed=seed, size=size, **given)
    except _REFUSALS as error:
        why = (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__
        raise SettingError(f"{name} does not take {dict(settings)!s:.200}: {why}") from error


@lru_cache(maxsize=64)
def scorer(name: str, settings: tuple[tuple[str, Any], ...]) -> Any:
    """The data set whose ``score_answer`` judges puzzles made with ``settings``, kept for the next answer."""
    return dataset(name, dict(settings))


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else None


def _as_default(value: Any, default: Any) -> Any:
    """A list of the file or the command line where the data set has a tuple."""
    return tuple(value) if isinstance(value, list) and isinstance(default, tuple) else value


def _plain_name(value: Any) -> bool:
    """Whether a setting names a file in a directory that is given, and no other."""
    return isinstance(value, str) and value not in ("", ".", "..") and not set(value) & set("/\\\0")


def _nearest(name: str, known: Any) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), 3, 0.6)
    return f"; do you mean {' or '.join(near)}?" if near else ""
