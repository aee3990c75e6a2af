"""Reading a recipe from TOML and ``--set``, and writing it back.

Invariants: one mistake gives one line that names where it is (file or ``--set``), the dotted key and what is
expected; nothing is corrected silently; what ``dump_recipe`` and ``render_recipe`` write loads to an equal
recipe. Relative paths in a recipe (``data.inputs``, the benchmarks' ``source``, ``model.path``, ``output``)
are relative to the current directory, wherever the recipe lies, as paths on the command line are.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import tomli_w
from pydantic import ValidationError

from ulorl.artifact import RECIPE
from ulorl.errors import UserError
from ulorl.recipe import Recipe, Section
from ulorl.recipe_errors import Origin, explain

QUICKSTART_RECIPE = Path(__file__).parent / "quickstart" / "recipe.toml"
"""The embedded default; a run without a recipe uses it."""
TRAINED_RECIPE = RECIPE
"""Name under which a training run keeps its resolved recipe, for later evaluations of its model."""


def load_recipe(path: Path | None, overrides: Sequence[str] = (), *, embedded: bool = True) -> Recipe:
    """The recipe in a file, with ``section.key=value`` overrides.

    Without a file: the embedded quickstart, or the plain defaults where ``embedded`` is false (for commands on
    the user's own data).

    Override values are TOML (``3``, ``true``, ``["a", "b"]``); what is no TOML is taken as text. UserError
    for whatever is wrong with file, keys or values.
    """
    if path is None and embedded:
        path = QUICKSTART_RECIPE
    settings = {} if path is None else _read_toml(path)
    overridden = dict[str, str]()
    for override in overrides:
        key, value = _parsed_override(override)
        _put(settings, key, value, override)
        overridden[key] = override
    try:
        return Recipe.model_validate(_with_tuples(settings))
    except ValidationError as error:
        origin = Origin("the defaults" if path is None else str(path), overridden)
        raise UserError(explain(error, origin, recipe_keys())) from error


def dump_recipe(recipe: Recipe) -> str:
    """The resolved recipe as TOML: every key, no comments."""
    return tomli_w.dumps(recipe.model_dump(exclude_none=True))


def render_recipe(recipe: Recipe, changed_only: bool = False) -> str:
    """The resolved recipe as TOML with each setting's documentation, and its default where it has another
    value.

    ``changed_only`` leaves out what has its default.
    """
    blocks = (_block(prefix, section, default, changed_only) for prefix, section, default in _sections(recipe))
    return "\n\n".join(block for block in blocks if block) + "\n"


def recipe_keys() -> list[str]:
    """Every dotted key of a recipe, sections too; keys of a table in an array are joined to the array's
    key."""
    return [key for key, _ in _keys(Recipe, "")]


def _keys(section: type[Section], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, info in section.model_fields.items():
        key = prefix + name
        yield key, info.default
        for kind in (info.annotation, *get_args(info.annotation)):
            if isinstance(kind, type) and issubclass(kind, Section):
                yield from _keys(kind, f"{key}.")


def _sections(recipe: Section) -> Iterator[tuple[str, Section, Section]]:
    """(dotted name, section, its defaults), the recipe itself first under the name ""."""

    def visit(prefix: str, section: Section, default: Section) -> Iterator[tuple[str, Section, Section]]:
        yield prefix, section, default
        for name in type(section).model_fields:
            value = getattr(section, name)
            if isinstance(value, Section):
                yield from visit(f"{prefix}.{name}" if prefix else name, value, getattr(default, name))

    yield from visit("", recipe, type(recipe)())


def _block(prefix: str, section: Section, defaults: Section, changed_only: bool) -> str:
    lines = list[str]()
    for name, info in type(section).model_fields.items():
        value, default = getattr(section, name), getattr(defaults, name)
        if isinstance(value, Section) or (changed_only and value == default):
            continue
        lines += [f"# {line}" for line in (info.description or "").splitlines()]
        remark = "default" if value == default else f"default: {_toml(default)}"
        lines.append(f"{name} = {_toml(value)}  # {remark}")
    if not lines:
        return ""
    documentation = (type(section).__doc__ or "").strip().splitlines()
    header = [f"# {line.strip()}" for line in documentation] + ([f"[{prefix}]"] if prefix else [])
    return "\n".join(header + lines)


def _toml(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, Section):
        value = value.model_dump(exclude_none=True)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_toml(inner) for inner in value) + "]"
    return tomli_w.dumps({"v": value}).strip().removeprefix("v = ")


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such recipe file; `ulorl show` prints one to start from") from error
    except OSError as error:
        raise UserError(f"{path}: the recipe cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not a TOML file: byte {error.start + 1} is not UTF-8") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UserError(f"{path}: not valid TOML: {error}") from error


def _parsed_override(override: str) -> tuple[str, Any]:
    key, equals, text = override.partition("=")
    key = key.strip()
    if not equals or not all(part.strip() for part in key.split(".")):
        raise UserError(f"--set {override}: must be section.key=value, as in train.steps=50")
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return key, text
    # A text with line ends could hold further keys: it is no TOML value.
    return key, parsed["value"] if parsed.keys() == {"value"} else text


def _put(settings: dict[str, Any], key: str, value: Any, override: str) -> None:
    *sections, name = key.split(".")
    table = settings
    for depth, section in enumerate(sections, 1):
        inner = table.setdefault(section, {})
        if not isinstance(inner, dict):
            raise UserError(f"--set {override}: {'.'.join(sections[:depth])} is a value, not a section")
        table = inner
    table[name] = value


def _with_tuples(value: Any) -> Any:
    """Arrays as tuples: the recipe is immutable, and strict about it."""
    if isinstance(value, dict):
        return {key: _with_tuples(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return tuple(_with_tuples(inner) for inner in value)
    return value
