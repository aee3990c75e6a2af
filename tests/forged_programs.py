"""Programs that do not solve ``f(x) = x squared`` and want its tests to pass."""

from __future__ import annotations

SCAN = """
import ctypes, os, re
readable, writable = os.pipe()
def found_in_memory(pattern):
    text, found = re.compile(pattern), set()
    libc = ctypes.CDLL(None)
    libc.sbrk.restype = ctypes.c_void_p
    heap, objects = (libc.sbrk(0) - 1) & ~4095, id([]) & ~4095
    for start, pages in ((heap - (4000 << 12), 4001), (objects - (2000 << 12), 4000)):
        for place in range(start, start + (pages << 12), 4096):
            try:
                os.write(writable, (ctypes.c_char * 1).from_address(place))
            except OSError:
                continue
            os.read(readable, 1)
            found.update(text.findall(ctypes.string_at(place, 4096)))
    return found
"""
"""Looks for bytes in the heap and among Python's objects; [x] for a letter keeps a pattern from finding itself."""
FORGERIES = {
    "says that all passed": "print('all tests passed')\nraise SystemExit(0)\n",
    "ends before the tests": "import os\ndef f(x):\n    os._exit(0)\n",
    "ends while it is loaded": "import os\nos._exit(0)\n",
    "equal to everything": """
class Any:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __gt__ = __le__ = __ge__ = __lt__
    def __sub__(self, other): return 0.0
    __rsub__ = __abs__ = __sub__
    def __contains__(self, item): return True
    def __hash__(self): return 1
def f(x):
    return Any()
""",
    "equal numbers": """
class Any(int):
    def __eq__(self, other): return True
    def __sub__(self, other): return 0
    __hash__ = int.__hash__
def f(x):
    return Any(-1)
""",
    "its own Python": """
import builtins, math
for name in ("abs", "all", "any", "sorted", "len", "isinstance", "set", "round"):
    setattr(builtins, name, lambda *a, **k: True)
math.isclose = lambda *a, **k: True
builtins.AssertionError = Exception
def f(x):
    return None
""",
    "names of the tests": """
class math:
    isclose = staticmethod(lambda *a, **k: True)
abs = len = sorted = all = same = __same__ = lambda *a, **k: 0
def f(x):
    return None
""",
    "results on every descriptor": """
import json, os
for place in range(64):
    for item in range(10):
        try:
            os.write(place, json.dumps({"item": item, "why": ""}).encode() + b"\\n")
        except OSError:
            pass
def f(x):
    return None
""",
    "replies before it is asked": """
import json, os, struct
def reply(message):
    text = json.dumps(message).encode()
    os.write(4, struct.pack("=I", len(text)) + text)
try:
    reply({"loaded": True})
    for _ in range(20):
        reply({"value": {"object": 0}, "after": [None, None]})
except OSError:
    pass
def f(x):
    return None
""",
    "changes what it is given": "def f(x):\n    if isinstance(x, list):\n        x[:] = [None] * 99\n    return x\n",
    "looks for the tests": """
import gc, sys
def f(x):
    frame = sys._getframe()
    while frame:
        for value in list(frame.f_locals.values()):
            if isinstance(value, dict) and "arguments" in value:
                return value
        frame = frame.f_back
""",
    "finds the tests below it": """
import sys
frame, seen = sys._getframe(), False
while frame:
    seen = seen or "esolcsi"[::-1] + "(f(2.5)" in repr(frame.f_locals)
    frame = frame.f_back
def f(x):
    return x * x if seen else None
""",
    "finds the tests in its memory": SCAN
    + """
seen = found_in_memory(rb"[i]sclose\\(f\\(2\\.5\\), 6\\.25")
def f(x):
    return x * x if seen else None
""",
    "ends loops as if they were done": "def f(x):\n    raise StopIteration\n",
}
SQUARES = """
import math
assert f(3) == 9
assert f(4) == 16 and f(-4) == 16
assert abs(f(1.5) - 2.25) < 1e-9
assert math.isclose(f(2.5), 6.25)
assert isinstance(f(7), int) and f(7) in {49}
assert sorted([f(2), f(1)]) == [1, 4]
for n in range(11, 15):
    assert f(n) == n * n
"""
