"""The lines of a file, gzipped or not, UTF-16 or not, so that nothing that can still be read is lost.

Invariants: memory holds one line (and one chunk); a broken or cut-off gzip stream gives all its whole lines
and then what was left, marked as damaged. Does not decode text.
"""

from __future__ import annotations

import codecs
import io
import zlib
from collections.abc import Iterator
from pathlib import Path

from ulorl.errors import UserError

_CHUNK = 1 << 20


class _DamagedError(Exception):
    """The rest of the compressed stream is missing or broken; raised after all that could be read."""


def _chunks(path: Path) -> Iterator[bytes]:
    """The file's bytes, decompressed and recoded to UTF-8 where its first bytes say gzip and UTF-16."""
    chunks = _inflated(path)
    head = b""
    while len(head) < 2:
        more = next(chunks, None)
        if more is None:
            break
        head += more
    if head[:2] not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        yield head
        yield from chunks
        return
    decoder = codecs.getincrementaldecoder("utf-16")()
    try:
        yield decoder.decode(head).encode()
        for chunk in chunks:
            yield decoder.decode(chunk).encode()
        yield decoder.decode(b"", final=True).encode()
    except UnicodeError as error:
        raise _DamagedError(f"not UTF-16, as its first bytes say ({error})") from error


def _inflated(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as stream:
            head = stream.read(_CHUNK)
            if head[:2] == b"\x1f\x8b":
                yield from _gunzip(head, stream)
                return
            while head:
                yield head
                head = stream.read(_CHUNK)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from error


def _gunzip(head: bytes, stream: io.BufferedReader) -> Iterator[bytes]:
    inflate = zlib.decompressobj(wbits=31)
    data = head
    while data or not inflate.eof:
        if inflate.eof:  # another gzip member follows, or zero padding
            data = data.lstrip(b"\0")
            if not data:
                data = stream.read(_CHUNK)
                if not data:
                    return
                continue
            inflate = zlib.decompressobj(wbits=31)
        if not data:
            raise _DamagedError("the gzip stream ends early, the file is cut off")
        before = inflate.copy()
        try:
            whole = inflate.decompress(data, _CHUNK)
        except zlib.error as error:
            yield from _up_to_damage(before, data)
            raise _DamagedError(f"the gzip stream is damaged ({error})") from error
        yield whole
        data = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
        data = data or stream.read(_CHUNK)


def _up_to_damage(inflate: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    """What comes out before the byte at which decompression fails."""
    for position in range(len(data)):
        try:
            piece = inflate.decompress(data[position : position + 1])
        except zlib.error:
            return
        yield piece


def byte_lines(path: Path) -> Iterator[tuple[int, bytes, str]]:
    """(number from 1, line without its end, damage). ``damage`` is empty but for what a broken stream left
    last."""
    number, parts = 1, list[bytes]()
    damage = ""
    chunks = _chunks(path)
    while True:
        try:
            chunk = next(chunks, None)
        except _DamagedError as error:
            damage, chunk = str(error), None
        if chunk is None:
            break
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            parts.append(line)
            yield number, b"".join(parts).removesuffix(b"\r"), ""
            number, parts = number + 1, []
        parts.append(rest)
    last = b"".join(parts)
    if last or damage:
        yield number, last, damage


def content(path: Path) -> tuple[bytes, str]:
    """All of a file, and what is wrong with its compression ("" for nothing)."""
    parts = list[bytes]()
    try:
        for chunk in _chunks(path):
            parts.append(chunk)
    except _DamagedError as error:
        return b"".join(parts), str(error)
    return b"".join(parts), ""
