"""The tests of a program, in a process that the program cannot reach; what they call is done in the program's process.

Invariants: only plain values come back from the program (`plain`), so that comparing them with what is expected runs
here and runs no code of the program; an object of the program's can be used, but is equal to nothing; names of Python's
own functions and modules mean Python's own, whatever the program calls so, but for the entry point. Results go to the
keeper as they are made.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import json
import math
import os
import sys
from typing import Any

from . import link, program
from .plain import NotPlain, decode, encode

REPLIES, REQUESTS, RESULTS = 3, 4, 5
"""File descriptors, in the tests' process."""
ITEM = "<test>"
_ITERATING = ("send", "throw", "__next__")
"""Methods that end with StopIteration as iterators do."""
CHECK = "check"
"""A function of one argument with this name, which nothing calls, is given the entry point (as in HumanEval)."""


class ProgramEnded(BaseException):
    """The program's process is gone; no test can be made any more."""


class RemoteError(Exception):
    """An exception of a class of the program's own."""


def run(code: str, entry_point: str, done: int) -> None:
    """Makes the tests of ``code`` after the first ``done``, which only count."""
    program.open_streams()
    program.end(program.call(_run, code, entry_point, done))


def _run(code: str, entry_point: str, done: int) -> None:
    try:
        tree = _unwrapped(ast.parse(code, ITEM), entry_point)
        statements = [(one, _is_item(one, tree)) for one in tree.body]
        names = _names(tree, entry_point)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        _report({"broken": f"tests that are no Python: {error}"})
        return
    total = sum(is_item for _, is_item in statements)
    if not total:
        _report({"broken": "tests without any assertion"})
        return
    if not entry_point and not any(isinstance(names.get(name), Remote) for name in _used(tree) - _bound(tree)):
        _report({"broken": "tests that call nothing of the program; name in entry_point what they test"})
        return
    _report({"items": total})
    try:
        if link.receive(REPLIES) != {"loaded": True}:
            raise link.Closed
    except link.Closed:
        return
    _report({"loaded": True})
    number = 0
    for statement, is_item in statements:
        number += is_item
        if is_item and number <= done:
            continue
        try:
            why = _why_not(statement, names)
        except ProgramEnded:
            _report({"item": number - 1, "why": "the program ended"} if is_item else {"stopped": "the program ended"})
            return
        if is_item:
            _report({"item": number - 1, "why": why})
        elif why:
            _report({"stopped": f"what the tests do before: {why}"})
            return
    _report({"finished": True})


def _why_not(statement: ast.stmt, names: dict[str, Any]) -> str:
    """Why a statement fails; "" where it does not."""
    try:
        exec(compile(ast.Module([statement], []), ITEM, "exec"), names)  # tests of a data set, in a box
    except ProgramEnded:
        raise
    except AssertionError as error:
        text = _text(error)
        return f"not so: {ast.unparse(statement)[:160]}" + (f" ({text})" if text else "")
    except BaseException as error:
        return f"{type(error).__name__}: {_text(error)}"
    return ""


def _text(error: BaseException) -> str:
    with contextlib.suppress(Exception):
        return str(error)[:160]
    return ""


def _unwrapped(tree: ast.Module, entry_point: str) -> ast.Module:
    """``check(candidate)`` taken apart, so that its assertions count one by one."""
    checks = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == CHECK]
    if not entry_point or len(checks) != 1 or len(checks[0].args.args) != 1:
        return tree
    if any(isinstance(node, ast.Name) and node.id == CHECK for node in ast.walk(tree)):
        return tree
    check = checks[0]
    place = tree.body.index(check)
    if any(isinstance(node, ast.Return | ast.Nonlocal | ast.Global) for node in ast.walk(check)):
        inner = ast.parse(f"{CHECK}({entry_point})", ITEM).body
        tree.body[place + 1 : place + 1] = inner
        return tree
    given = ast.parse(f"{check.args.args[0].arg} = {entry_point}", ITEM).body
    tree.body[place : place + 1] = [*given, *check.body]
    return tree


def _is_item(statement: ast.stmt, tree: ast.Module) -> bool:
    """Whether a statement is a test: an assertion, whatever contains one, or a call of what the tests define."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    if any(isinstance(node, ast.Assert) for node in ast.walk(statement)):
        return True
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return False
    return any(isinstance(one, ast.FunctionDef) and one.name == call.func.id for one in tree.body)


def _used(tree: ast.Module) -> set[str]:
    """Names that the tests use or bind."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _bound(tree: ast.Module) -> set[str]:
    """Names that the tests bind somewhere."""
    nodes = list(ast.walk(tree))
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    bound |= {alias.asname or alias.name.partition(".")[0] for node in nodes
              if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names}  # fmt: skip
    return bound | {
        node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }


def _names(tree: ast.Module, entry_point: str) -> dict[str, Any]:
    """What the tests see: Python's own, modules of the standard library by name, and the program's; under the name
    ``entry_point`` the program's, also where it is that of a function of Python's own."""
    names: dict[str, Any] = {
        "__name__": "__tests__",
        "__builtins__": builtins,
        "__matches__": matches,
        "__json__": json.loads,
    }
    if entry_point:
        names[entry_point] = Remote({"name": entry_point})
    nodes, bound = list(ast.walk(tree)), _bound(tree)
    modules = {node.value.id for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)}
    for node in nodes:
        if not isinstance(node, ast.Name) or node.id in names or hasattr(builtins, node.id):
            continue
        if node.id in modules and node.id in sys.stdlib_module_names:
            if node.id not in bound:
                names[node.id] = __import__(node.id)
        else:
            # Also where the tests bind it somewhere: what they bind takes its place then.
            names[node.id] = Remote({"name": node.id})
    return names


def matches(value: Any, expected: Any) -> bool:
    """Whether a result is the expected one, or its only element, as APPS writes it."""
    return same(value, expected) or same([value], expected)


def same(value: Any, expected: Any) -> bool:
    """Whether a result is the expected one, which was JSON: a tuple is a list, numbers of which one is a float may
    differ by one part in a billion, keys of a mapping may have been numbers."""
    if isinstance(value, bool) or isinstance(expected, bool):
        return value is expected
    if isinstance(value, int | float) and isinstance(expected, int | float):
        if isinstance(value, int) and isinstance(expected, int):
            return value == expected
        return math.isclose(value, expected, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(value, list | tuple) and isinstance(expected, list | tuple):
        return len(value) == len(expected) and all(map(same, value, expected))
    if isinstance(value, dict) and isinstance(expected, dict):
        spelled = {key if isinstance(key, str) else json.dumps(key, default=str): one for key, one in value.items()}
        return spelled.keys() == expected.keys() and all(same(spelled[key], expected[key]) for key in expected)
    return bool(value == expected)


def ask(operation: str, *arguments: Any, **named: Any) -> Any:
    """Has the program's process do something; lists, dicts and sets that it changes are changed here too."""
    message = {
        "do": operation,
        "arguments": [encode(one, _refer) for one in arguments],
        "named": {name: encode(one, _refer) for name, one in named.items()},
    }
    try:
        link.send(REQUESTS, message)
        reply = link.receive(REPLIES)
    except link.Closed as error:
        raise ProgramEnded from error
    try:
        if "raised" in reply:
            iterates = operation == "next" or (operation == "call" and arguments[0]._attribute in _ITERATING)
            raise _exception(reply["raised"], reply["message"], iterates)
        for mine, after in zip(arguments, reply["after"], strict=True):
            if after is not None:
                _change(mine, decode(after, Remote))
        return decode(reply["value"], Remote)
    except (KeyError, TypeError, AttributeError, RecursionError, NotPlain) as error:
        if isinstance(reply, dict) and isinstance(reply.get("raised"), str):
            raise
        raise ProgramEnded("no reply") from error


def _exception(name: Any, message: Any, iterates: bool) -> Exception:
    if name in ("StopIteration", "StopAsyncIteration") and not iterates:
        return RuntimeError(f"the program raised {name}")  # which would end a loop of the tests as if it were done
    kind = getattr(builtins, name, None) if isinstance(name, str) else None
    if isinstance(kind, type) and issubclass(kind, Exception):
        with contextlib.suppress(Exception):
            return kind(str(message))
    return RemoteError(f"{name}: {message}")


def _change(mine: Any, after: Any) -> None:
    """Makes an argument what the program made of it."""
    if type(mine) is not type(after) or mine == after:
        return
    if isinstance(mine, list | bytearray):
        mine[:] = after
    elif isinstance(mine, dict | set):
        mine.clear()
        mine.update(after)


def _refer(value: Any) -> Any:
    if isinstance(value, Remote):
        return object.__getattribute__(value, "_place")
    raise NotPlain(f"the tests hand a {type(value).__name__} to the program, which cannot cross")


class Remote:
    """Something of the program's: a function, a class, an instance, an iterator. Equal to nothing but itself."""

    def __init__(self, place: Any) -> None:
        if not isinstance(place, dict) or not {"name", "object"} & place.keys():
            raise NotPlain("no object")
        object.__setattr__(self, "_place", place)
        object.__setattr__(self, "_attribute", "")

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return ask("call", self, *arguments, **named)

    def __getattr__(self, name: str) -> Any:
        found = ask("getattr", self, name)
        if isinstance(found, Remote):
            object.__setattr__(found, "_attribute", name)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        ask("setattr", self, name, value)

    def __getitem__(self, key: Any) -> Any:
        return ask("getitem", self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        ask("setitem", self, key, value)

    def __delitem__(self, key: Any) -> None:
        ask("delitem", self, key)

    def __len__(self) -> int:
        return int(ask("len", self))

    def __iter__(self) -> Any:
        return ask("iter", self)

    def __next__(self) -> Any:
        return ask("next", self)

    def __bool__(self) -> bool:
        return ask("bool", self) is True

    def __str__(self) -> str:
        return str(ask("str", self))

    def __contains__(self, item: Any) -> bool:
        raise TypeError("membership is decided here, and this is an object of the program's")


def _report(result: dict[str, Any]) -> None:
    os.write(RESULTS, json.dumps(result).encode() + b"\n")
