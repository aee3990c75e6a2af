"""What a puzzle's scorer needs, as JSON and back: the types that JSON lacks and reasoning-gym uses.

Invariant: ``decode(json.loads(json.dumps(encode(value))))`` equals ``value`` for what reasoning-gym puts into a puzzle
(tuples, dictionaries with numbers as keys, numpy's scalars as Python's); plain JSON decodes to itself.
"""

from __future__ import annotations

from typing import Any

_TUPLE, _PAIRS = "__tuple__", "__pairs__"


def encode(value: Any) -> Any:
    """``value`` in JSON types. TypeError for a type that no scorer could read back."""
    if hasattr(value, "item") and type(value).__module__ == "numpy":
        value = value.item()
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, tuple):
        return {_TUPLE: [encode(one) for one in value]}
    if isinstance(value, list):
        return [encode(one) for one in value]
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return {str(key): encode(one) for key, one in value.items()}
        return {_PAIRS: [[encode(key), encode(one)] for key, one in value.items()]}
    raise TypeError(f"a {type(value).__name__} in the puzzle")


def decode(value: Any) -> Any:
    """The inverse of `encode`."""
    if isinstance(value, list):
        return [decode(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {_TUPLE}:
        return tuple(decode(one) for one in value[_TUPLE])
    if value.keys() == {_PAIRS}:
        return {decode(key): decode(one) for key, one in value[_PAIRS]}
    return {key: decode(one) for key, one in value.items()}
