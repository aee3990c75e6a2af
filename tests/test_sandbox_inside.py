"""The parts of the sandbox that need no sandbox: the system call filter, plain values, messages."""

from __future__ import annotations

import collections
import datetime
import fractions
import json
import math
import os
import struct
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ulorl.verify.sandbox.inside import landlock, link, seccomp
from ulorl.verify.sandbox.inside.plain import NotPlain, decode, encode, refuse

ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
X86_64, AARCH64 = 0xC000003E, 0xC00000B7


def decide(code: list[seccomp.Instruction], number: int, arguments: tuple[int, ...] = (), machine: int = X86_64) -> int:
    """What a filter says of a system call: an interpreter of those BPF instructions, by the kernel's documentation."""
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("=IIQ6Q", number, machine, 0, *(one & (2**64 - 1) for one in padded))
    place = accumulator = 0
    while True:
        what, yes, no, constant = code[place]
        place += 1
        if what == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, constant)
        elif what == 0x06:
            return constant
        else:
            true = {0x15: accumulator == constant, 0x25: accumulator > constant, 0x45: bool(accumulator & constant)}[
                what
            ]
            place += yes if true else no


@pytest.mark.parametrize(("column", "machine"), [(0, X86_64), (1, AARCH64)])
@pytest.mark.parametrize("alone", [False, True])
def test_the_filter_allows_its_list_and_nothing_else(alone: bool, column: int, machine: int) -> None:
    code = seccomp.instructions(alone, 77, column)
    assert len(code) < 4096 and all(max(yes, no) < 256 for _, yes, no, _ in code)
    listed = {one[column] for one in seccomp.ALLOWED.values()}
    if not alone:
        listed |= {one[column] for one in seccomp.WITH_NAMESPACES.values()}
    for number in range(600):
        said = decide(code, number, (2**32 - 1,) * 6, machine)
        if number in listed:
            assert said == ALLOW, number
        else:
            assert said == (ENOSYS if number > 423 else EPERM), number
    assert decide(code, 0, machine=X86_64 if machine == AARCH64 else AARCH64) == KILL
    assert decide(code, 0, machine=0x40000003) == KILL, "32-bit calls"
    assert decide(code, 0x40000000, machine=machine) == ENOSYS, "the x32 calls"


def test_calls_whose_arguments_are_looked_at() -> None:
    together, alone = seccomp.instructions(False, 0, 0), seccomp.instructions(True, 77, 0)
    clone, kill, tgkill, socketpair, prctl, prlimit, fcntl, ioctl = 56, 62, 234, 53, 157, 302, 72, 16
    thread = 0x3D0F00
    for code in (together, alone):
        assert decide(code, clone, (thread,)) == ALLOW
        for namespace in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
            assert decide(code, clone, (thread | namespace,)) == EPERM
        assert decide(code, socketpair, (1, 1)) == ALLOW
        assert decide(code, socketpair, (2, 1)) == EPERM
        assert decide(code, prlimit, (0, 0)) == ALLOW
        assert decide(code, prlimit, (1, 0)) == EPERM
        assert decide(code, prctl, (15,)) == ALLOW
        assert decide(code, prctl, (22,)) == decide(code, prctl, (4,)) == EPERM
        assert decide(code, fcntl, (0, 8)) == decide(code, fcntl, (0, 1031)) == EPERM
        assert decide(code, ioctl, (0, 0x5412)) == EPERM, "typing into a terminal"
        for number in (41, 42, 49, 101, 165, 272, 308, 310, 319, 321, 425, 435):
            assert decide(code, number) != ALLOW
    assert decide(together, clone, (17,)) == ALLOW
    assert decide(alone, clone, (17,)) == EPERM
    assert decide(alone, 57) == decide(alone, 58) == EPERM
    for number in (kill, tgkill):
        assert decide(alone, number, (77, 9)) == ALLOW
        assert decide(alone, number, (78, 9)) == decide(alone, number, (2**64 - 1, 9)) == EPERM
        assert decide(together, number, (78, 9)) == ALLOW


VALUES: list[Any] = [
    None, True, 0, -1, 2**53, -(2**64), 10**4000, 0.1, -0.0, math.inf, 1e-320, "",
    "ä\udc80\x00", b"\x00\xff", bytearray(b"x"),
    [], [1, [2, (3,)]], (), (1, "a"), {}, {1: 2, "a": [None], (1, 2): {3}}, {1, 2}, frozenset({"a"}),
    1 + 2j, range(1, 10, 3),
    collections.deque([1, 2]), Decimal("1.10"), fractions.Fraction(1, 3), datetime.date(2024, 2, 29),
    datetime.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC), datetime.timedelta(days=1, microseconds=5),
]  # fmt: skip


def across(value: Any) -> Any:
    return decode(json.loads(json.dumps(encode(value, refuse))), refuse)


@pytest.mark.parametrize("value", VALUES, ids=[repr(value)[:20] for value in VALUES])
def test_plain_values_cross_as_they_are(value: Any) -> None:
    back = across(value)
    assert back == value and type(back) is type(value) and repr(back)[:100] == repr(value)[:100]


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(PLAIN)
def test_any_plain_value_crosses(value: Any) -> None:
    assert repr(across(value)) == repr(value)


def test_what_behaves_differently_crosses_as_what_it_is_under_it() -> None:
    class Liar(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = int.__hash__

    class Mapping(dict):  # type: ignore[type-arg]
        def items(self) -> Any:
            return [("forged", 1)]

    pair = collections.namedtuple("pair", "a b")
    assert type(across(Liar(3))) is int and across(Liar(3)) != 4
    assert across(Mapping(a=1)) == {"a": 1}
    assert across(pair(1, 2)) == (1, 2) and type(across(pair(1, 2))) is tuple
    assert across(collections.Counter("aab")) == {"a": 2, "b": 1}
    assert math.isnan(across(math.nan))


def test_what_is_not_plain_is_referred_or_refused() -> None:
    for value in (object(), print, iter([]), type, (one for one in ())):
        with pytest.raises(NotPlain):
            encode(value, refuse)
    assert encode([print], lambda value: {"object": 5}) == [{"object": 5}]


@pytest.mark.parametrize(
    "message",
    [{}, {"a": 1, "b": 2}, {"int": "zz"}, {"int": 3}, {"set": [[]]}, {"dict": [1]}, {"dict": [[[], 1]]},
     {"range": ["0x1"]},
     {"decimal": "x"}, {"fraction": ["0x1", "0x0"]}, {"date": "x"}, {"timedelta": ["x"]}, {"bytes": "x"},
     {"complex": [1]},
     {"unknown": 1}, {"tuple": 3}, {"datetime": 5}],
)  # fmt: skip
def test_messages_that_we_never_make_are_refused(message: Any) -> None:
    with pytest.raises(NotPlain):
        decode(message, refuse)


def test_a_landlock_that_lets_files_be_cut_off_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "syscall", lambda *arguments: 2)
    with pytest.raises(OSError, match="version 2 of Landlock"):
        landlock.version()


def test_messages_through_a_pipe() -> None:
    reader, writer = os.pipe()
    link.send(writer, {"a": ["ä\udc80", 1]})
    assert link.receive(reader) == {"a": ["ä\udc80", 1]}
    for bad in (struct.pack("=I", 2**31), struct.pack("=I", 3) + b"no!", struct.pack("=I", 100_000) + b"[" * 100_000):
        os.write(writer, bad[:60_000])
        os.close(writer)
        with pytest.raises(link.Closed):
            link.receive(reader)
        os.close(reader)
        reader, writer = os.pipe()
    os.close(reader)
    with pytest.raises(link.Closed):
        link.send(writer, {})
    os.close(writer)
