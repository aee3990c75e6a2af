"""The tests of a problem's row, in any of the public formats, as one of two kinds.

Programs that read and print have ``cases``; programs that define functions have ``code`` with assertions, or ``calls``.
Nothing here is executed, and no text of a row is read as Python in this process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

MAX_TIMEOUT_S = 600.0
FORMATS = (
    "tests (a list of input and output), assertions, inputs and outputs (APPS, TACO: input_output), test_list (MBPP), "
    "test with entry_point (HumanEval), or public_tests, private_tests and generated_tests (CodeContests)"
)


class BadTests(ValueError):
    """What is wrong with the tests of a row."""


@dataclass(frozen=True)
class Case:
    """What a program is given on its standard input, and what it has to print."""

    given: str
    expected: str


@dataclass(frozen=True)
class Call:
    """What a function is called with, and what it has to return, both JSON."""

    arguments: str
    expected: str


@dataclass(frozen=True)
class Tests:
    """``cases``, or ``code`` (assertions), or ``calls`` of ``entry_point``; ``timeout_s`` of processor time for one."""

    cases: tuple[Case, ...] = ()
    code: str = ""
    calls: tuple[Call, ...] = ()
    entry_point: str = ""
    timeout_s: float | None = None


def read_tests(extra: Mapping[str, Any]) -> Tests:
    """The tests in a row's columns. BadTests where there are none, or where they cannot be understood."""
    entry_point = _text(extra, "entry_point") or _text(extra, "fn_name")
    if entry_point and not entry_point.isidentifier():
        raise BadTests(f"entry_point {entry_point[:40]!r} is no name")
    tests = _tests(extra, entry_point)
    timeout_s = extra.get("timeout_s")
    if timeout_s is None:
        return tests
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or not 0 < timeout_s <= MAX_TIMEOUT_S:
        raise BadTests(f"timeout_s is {timeout_s!r:.40}, not seconds up to {MAX_TIMEOUT_S:g}")
    return replace(tests, timeout_s=float(timeout_s))


def _tests(extra: Mapping[str, Any], entry_point: str) -> Tests:
    if extra.get("assertions") is not None or extra.get("test_list") is not None:
        name = "assertions" if extra.get("assertions") is not None else "test_list"
        setup = [_text(extra, "test_setup_code"), _lines(extra, "test_imports"), _lines(extra, "setup")]
        code = "\n".join([*filter(None, setup), *_texts(_parsed(extra, name), name)])
        return Tests(code=code, entry_point=entry_point)
    if isinstance(extra.get("test"), str) and entry_point:
        return Tests(code=extra["test"], entry_point=entry_point)
    for name in ("tests", "input_output"):
        if extra.get(name) is not None:
            return _pairs(_parsed(extra, name), name, entry_point)
    if extra.get("inputs") is not None or extra.get("outputs") is not None:
        both = {name: _parsed(extra, name) for name in ("inputs", "outputs")}
        return _pairs(both, "inputs", entry_point)
    groups = [_parsed(extra, name) for name in ("public_tests", "private_tests", "generated_tests")]
    cases = [case for group in groups if group for case in _pairs(group, "public_tests", "").cases]
    if not cases:
        raise BadTests(f"no tests; a row of the task code has {FORMATS}")
    return Tests(cases=tuple(cases))


def _pairs(value: Any, name: str, entry_point: str) -> Tests:
    """A list of {input, output}, or two lists side by side."""
    if isinstance(value, Mapping):
        entry_point = entry_point or _text(value, "fn_name")
        inputs = value.get("inputs", value.get("input"))
        outputs = value.get("outputs", value.get("output"))
        if not _is_list(inputs) or not _is_list(outputs) or len(inputs) != len(outputs):
            raise BadTests(f"{name}: inputs and outputs must be lists of the same length")
        pairs = list(zip(inputs, outputs, strict=True))
    elif _is_list(value) and all(isinstance(one, Mapping) and {"input", "output"} <= one.keys() for one in value):
        pairs = [(one["input"], one["output"]) for one in value]
    else:
        raise BadTests(
            f"{name}: neither a list of objects with input and output, nor an object with inputs and outputs"
        )
    if not pairs:
        raise BadTests(f"{name}: no tests")
    if not entry_point:
        return Tests(cases=tuple(Case(_stream(given, name), _stream(output, name)) for given, output in pairs))
    calls = []
    for number, (given, output) in enumerate(pairs, 1):
        arguments = _arguments(given)
        if arguments is None:
            raise BadTests(f"{name}: test {number}: input is no list of arguments")
        calls.append(Call(json.dumps(arguments), json.dumps(output)))
    return Tests(calls=tuple(calls), entry_point=entry_point)


def _stream(value: Any, name: str) -> str:
    """The text of an input or output; a list is its lines."""
    if isinstance(value, str):
        return value
    if _is_list(value):
        return "\n".join(_stream(one, name) for one in value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise BadTests(f"{name}: an input or output is {type(value).__name__}, not text")


def _arguments(value: Any) -> list[Any] | None:
    """The arguments of a call: a list, or the JSON of one a line."""
    if isinstance(value, str):
        try:
            return [json.loads(line) for line in value.splitlines()]
        except (ValueError, RecursionError):
            return None
    return list(value) if _is_list(value) else None


def _parsed(extra: Mapping[str, Any], name: str) -> Any:
    """A column that holds a value, or the JSON of one."""
    value = extra.get(name)
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise BadTests(f"{name}: no JSON ({error})") from error


def _texts(value: Any, name: str) -> list[str]:
    if not _is_list(value) or not value or not all(isinstance(one, str) and one.strip() for one in value):
        raise BadTests(f"{name}: not a list of assertions")
    return list(value)


def _lines(extra: Mapping[str, Any], name: str) -> str:
    value = extra.get(name)
    if value is None or isinstance(value, str):
        return value or ""
    return "\n".join(_texts(value, name)) if len(value) else ""


def _text(extra: Mapping[str, Any], name: str) -> str:
    value = extra.get(name)
    if value is not None and not isinstance(value, str):
        raise BadTests(f"{name} is {type(value).__name__}, not text")
    return value or ""


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
