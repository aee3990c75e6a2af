"""The program whose functions are tested: runs it, then does what its tests ask, one request at a time.

Runs in the program's own process; whatever it answers is the program's word. The tests know that.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from . import link, program
from .plain import decode, encode

REQUESTS, REPLIES = 3, 4
"""File descriptors, in the program's process."""
OPERATIONS: dict[str, Callable[..., Any]] = {
    "call": lambda function, *arguments, **named: function(*arguments, **named),
    "getattr": getattr,
    "setattr": setattr,
    "getitem": operator.getitem,
    "setitem": operator.setitem,
    "delitem": operator.delitem,
    "len": len,
    "iter": iter,
    "next": next,
    "bool": bool,
    "str": str,
}


def run(source: str) -> None:
    """Runs ``source``, then serves until the tests are done."""
    program.open_streams()
    program.end(program.call(_serve, source))


def _serve(source: str) -> None:
    names = program.execute(source).__dict__
    objects: list[Any] = []

    def refer(value: Any) -> Any:
        objects.append(value)
        return {"object": len(objects) - 1}

    def resolve(message: Any) -> Any:
        if "name" in message:
            if message["name"] not in names:
                raise NameError(f"name {message['name']!r} is not defined")
            return names[message["name"]]
        return objects[message["object"]]

    link.send(REPLIES, {"loaded": True})
    while True:
        try:
            request = link.receive(REQUESTS)
        except link.Closed:
            return
        try:
            arguments = [decode(one, resolve) for one in request["arguments"]]
            named = {name: decode(one, resolve) for name, one in request["named"].items()}
            result = OPERATIONS[request["do"]](*arguments, **named)
            after = [
                encode(one, refer) if isinstance(one, list | dict | set | bytearray) else None for one in arguments
            ]
            reply = {"value": encode(result, refer), "after": after}
        except Exception as error:
            reply = {"raised": type(error).__name__, "message": str(error)[:500]}
        link.send(REPLIES, reply)
