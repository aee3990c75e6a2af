"""Plain values as JSON and back: how a value crosses from a program to its tests.

Invariants: what is decoded is of Python's own exact types, whatever was sent, so that comparing it runs no code of the
program; nothing is executed, imported or unpickled. What is no plain value goes through ``refer``.
"""

from __future__ import annotations

import base64
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

EXACT = 1 << 53
"""Larger integers are spelled in hexadecimal: reading and writing decimals takes quadratic time, and Python refuses."""


class NotPlain(Exception):
    """No value that can cross, or no message of ours."""


def encode(value: Any, refer: Callable[[Any], Any]) -> Any:
    """``value`` as what JSON holds; ``refer`` encodes (or refuses) what is not plain."""
    if value is None or value is True or value is False:
        return value
    kind = type(value)
    if kind is str:
        return value
    if kind is int:
        return value if -EXACT < value < EXACT else {"int": hex(value)}
    if kind is float:
        return value if value - value == 0 else {"float": repr(value)}
    if kind is list:
        return [encode(one, refer) for one in value]
    if kind is tuple or (issubclass(kind, tuple)):
        return {"tuple": [encode(one, refer) for one in tuple.__iter__(value)]}
    if issubclass(kind, dict):
        return {"dict": [[encode(key, refer), encode(one, refer)] for key, one in dict.items(value)]}
    if kind is set or kind is frozenset:
        return {kind.__name__: [encode(one, refer) for one in value]}
    if kind is bytes or kind is bytearray:
        return {kind.__name__: base64.b64encode(value).decode()}
    if kind is deque:
        return {"deque": [encode(one, refer) for one in value]}
    if kind is complex:
        return {"complex": [repr(value.real), repr(value.imag)]}
    if kind is range:
        return {"range": [hex(number) for number in (value.start, value.stop, value.step)]}
    for base, name in ((int, "int"), (float, "float"), (str, "str")):
        if issubclass(kind, base):
            return encode(getattr(base, f"__{name}__")(value), refer)
    return _encode_library(value, kind, refer)


def decode(message: Any, resolve: Callable[[Any], Any]) -> Any:
    """The value of a message; ``resolve`` is given what ``refer`` made. NotPlain for what `encode` never makes."""
    if message is None or isinstance(message, bool | int | float | str):
        return message
    if isinstance(message, list):
        return [decode(one, resolve) for one in message]
    if not isinstance(message, dict) or len(message) != 1:
        raise NotPlain("no message")
    ((kind, content),) = message.items()
    try:
        if kind in _SIMPLE:
            return _SIMPLE[kind](content)
        if kind in _MANY:
            return _MANY[kind]([decode(one, resolve) for one in content])
        if kind == "dict":
            return {decode(key, resolve): decode(one, resolve) for key, one in content}
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise NotPlain(f"no {kind}") from error
    return resolve(message)


def refuse(value: Any) -> Any:
    """For `encode` and `decode` where everything has to be plain."""
    raise NotPlain(f"a {type(value).__name__} is no plain value")


def _encode_library(value: Any, kind: type, refer: Callable[[Any], Any]) -> Any:
    """Numbers and dates of the standard library, where the program has imported it."""
    decimal, fractions, datetime = (sys.modules.get(name) for name in ("decimal", "fractions", "datetime"))
    if decimal is not None and kind is decimal.Decimal:
        return {"decimal": str(value)}
    if fractions is not None and kind is fractions.Fraction:
        return {"fraction": [hex(value.numerator), hex(value.denominator)]}
    if datetime is not None:
        if kind in (datetime.date, datetime.datetime, datetime.time):
            return {kind.__name__: value.isoformat()}
        if kind is datetime.timedelta:
            return {"timedelta": [value.days, value.seconds, value.microseconds]}
    return refer(value)


def _range(numbers: list[str]) -> range:
    start, stop, step = (int(number, 16) for number in numbers)
    return range(start, stop, step)


def _decimal(text: str) -> Any:
    from decimal import Decimal

    return Decimal(text)


def _fraction(pair: list[str]) -> Any:
    from fractions import Fraction

    return Fraction(int(pair[0], 16), int(pair[1], 16))


def _date(name: str) -> Callable[[Any], Any]:
    def made(content: Any) -> Any:
        import datetime

        kind = getattr(datetime, name)
        return kind(*content) if name == "timedelta" else kind.fromisoformat(content)

    return made


_MANY: dict[str, Callable[[list[Any]], Any]] = {"tuple": tuple, "set": set, "frozenset": frozenset, "deque": deque}
_SIMPLE: dict[str, Callable[[Any], Any]] = {
    "int": lambda text: int(text, 16),
    "float": float,
    "bytes": base64.b64decode,
    "bytearray": lambda text: bytearray(base64.b64decode(text)),
    "complex": lambda pair: complex(float(pair[0]), float(pair[1])),
    "range": _range,
    "decimal": _decimal,
    "fraction": _fraction,
    **{name: _date(name) for name in ("date", "datetime", "time", "timedelta")},
}
