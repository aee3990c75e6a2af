"""Messages through pipes: four bytes of length, then JSON."""

from __future__ import annotations

import json
import os
import struct
from typing import Any

MAX_MESSAGE = 64 << 20
"""Bytes; the other end is not trusted."""


class Closed(Exception):
    """The other end is gone, or talks nonsense."""


def send(place: int, message: Any) -> None:
    """Writes one message. Closed where nobody reads."""
    text = json.dumps(message, ensure_ascii=True).encode()
    data = memoryview(struct.pack("=I", len(text)) + text)
    try:
        while data:
            data = data[os.write(place, data) :]
    except OSError as error:
        raise Closed from error


def receive(place: int, most: int = MAX_MESSAGE) -> Any:
    """The next message. Closed where there is none, or one longer than ``most`` bytes."""
    (length,) = struct.unpack("=I", _exactly(place, 4))
    if length > most:
        raise Closed(f"a message of {length} bytes")
    try:
        return json.loads(_exactly(place, length))
    except (ValueError, RecursionError) as error:
        raise Closed("no JSON") from error


def _exactly(place: int, length: int) -> bytes:
    parts = []
    while length:
        try:
            part = os.read(place, min(length, 1 << 20))
        except OSError as error:
            raise Closed from error
        if not part:
            raise Closed
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
