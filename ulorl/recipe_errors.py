"""One clear line for whatever pydantic says is wrong with a recipe."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a table",
    "float_type": "a number",
    "int_type": "an integer",
    "model_type": "a section (a table of settings)",
    "string_type": "text in quotes",
    "tuple_type": "an array in brackets",
    "finite_number": "a finite number",
}
"""What pydantic's error types say in the words of TOML."""
_SHOWN_CHARS = 80


@dataclass(frozen=True)
class Origin:
    """Where settings came from: the file, and the ``--set`` arguments by dotted key."""

    file: str
    overridden: Mapping[str, str]

    def of(self, key: str) -> str:
        """The place of a setting; a check over a whole section points at the override that touched it
        last."""
        for own, override in reversed(list(self.overridden.items())):
            if own == key or own.startswith(f"{key}.") or key.startswith((f"{own}.", f"{own}[")):
                return f"--set {override}"
        return self.file


def explain(error: ValidationError, origin: Origin, keys: Sequence[str]) -> str:
    """The first mistake as ``place: key: what is wrong``, and how many more there are."""
    # A misspelt key that is needed is unknown and missing at once: the misspelling is the mistake.
    first, *others = sorted(error.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
    more = f" (and {len(others)} more)" if others else ""
    return _line(first, origin, keys) + more


def nearest_key(key: str, keys: Sequence[str]) -> str | None:
    """The valid key most like an unknown one: the same last name somewhere else, or a similar spelling."""
    section, _, name = key.rpartition(".")
    same_name = [valid for valid in keys if valid.rpartition(".")[2] == name]
    if same_name:
        return max(same_name, key=lambda valid: difflib.SequenceMatcher(None, key, valid).ratio())
    siblings = {valid.rpartition(".")[2]: valid for valid in keys if valid.rpartition(".")[0] == section}
    everywhere = {valid.rpartition(".")[2]: valid for valid in keys}
    for names in (siblings, everywhere):
        close = difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)
        if close:
            return names[close[0]]
    return None


def _line(error: ErrorDetails, origin: Origin, keys: Sequence[str]) -> str:
    key = _dotted(error["loc"])
    kind, given, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "extra_forbidden":
        plain_key = ".".join(part for part in error["loc"] if isinstance(part, str))
        near = nearest_key(plain_key, keys)
        hint = f"did you mean {near}?" if near else "`ulorl show` lists all keys"
        return f"{origin.of(key)}: {key}: unknown key; {hint}"
    if kind == "value_error":
        # Checks over several keys begin with the key, relative to the section.
        return _of_section(str(context["error"]), key, origin)
    if kind == "missing":
        return f"{origin.of(key)}: {key}: missing"
    if kind == "literal_error":
        expected = f"expected {context['expected']}"
    elif kind == "string_pattern_mismatch":
        expected = "expected only letters, digits and . _ -"
    elif kind == "too_long":
        expected = f"expected at most {context['max_length']} items"
    elif kind in EXPECTED:
        expected = f"expected {EXPECTED[kind]}"
    else:
        expected = error["msg"].replace("Input should", "must").replace("String", "text")
    hint = ""
    if kind == "string_type" and isinstance(given, int | float):
        hint = f""", as in {key}='"{given}"'""" if origin.of(key).startswith("--set ") else f', as in "{given}"'
    return f"{origin.of(key)}: {key}: {expected}{hint}, not {_shown(given)}"


def _of_section(message: str, section: str, origin: Origin) -> str:
    key, _, what = message.partition(": ")
    full = f"{section}.{key}" if section else key
    place = origin.of(full)
    if place == origin.file and section:  # the other key of the combination may have been overridden
        place = origin.of(section)
    elif place == origin.file and len(origin.overridden) == 1:
        place = f"--set {next(iter(origin.overridden.values()))}"
    return f"{place}: {full}: {what}"


def _dotted(location: tuple[int | str, ...]) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else part)
    return text


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a table"
    text = repr(list(value) if isinstance(value, tuple) else value)
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 3] + "..."
