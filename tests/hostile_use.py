"""Hostile programs that use up what there is: processes, time, memory, what the caller reads (`hostile_programs`)."""

from __future__ import annotations

Program = str | tuple[str, tuple[str, ...]]

USE: dict[str, dict[str, Program]] = {
    "processes": {
        "fork bomb": (
            "while True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n",
            ("time", "cpu", "memory", "exit"),
        ),
        "fork bomb whose parents end": """
while True:
    try:
        if os.fork():
            os._exit(0)
    except OSError:
        time.sleep(0.001)
""",
        "double-fork daemon": """
try:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for place in range(3):
                os.close(place)
            while True:
                time.sleep(1)
        os._exit(0)
except OSError:
    pass
print("left a daemon")
""",
        "sleeper in a session of its own": """
try:
    if os.fork() == 0:
        os.setsid()
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
        time.sleep(1000)
except OSError:
    pass
""",
        "child that holds the output open": """
try:
    if os.fork() == 0:
        time.sleep(1000)
except OSError:
    pass
print("the parent is done")
""",
        "ten children that sleep": """
for _ in range(10):
    try:
        if os.fork() == 0:
            time.sleep(1000)
    except OSError:
        pass
os._exit(0)
""",
        "zombies": """
while True:
    try:
        if os.fork() == 0:
            os._exit(0)
    except OSError:
        time.sleep(0.01)
""",
        "vfork through C": "l = libc()\nfor _ in range(40):\n    if l.fork() == 0:\n        time.sleep(1000)\n",
        "subprocesses of the interpreter": """
for _ in range(20):
    try:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    except OSError:
        pass
""",
        "multiprocessing": """
import multiprocessing
try:
    for _ in range(8):
        multiprocessing.get_context("fork").Process(target=time.sleep, args=(1000,), daemon=False).start()
except (OSError, AttributeError):
    pass
""",
        "clone into new namespaces": """
for flags in (0x10000000, 0x20000000, 0x40000000, 0x00020000, 0x7E020000):
    if libc().syscall(56 if os.uname().machine == "x86_64" else 220, flags | 17, 0, 0, 0, 0) == 0:
        escaped("clone")
        os._exit(0)
""",
        "restart itself for ever": """
try:
    with open("again.py", "w") as file:
        file.write("import os, sys\\nos.execv(sys.executable, [sys.executable, '-S', 'again.py'])")
    os.execv(sys.executable, [sys.executable, "-S", "again.py"])
except OSError:
    pass
""",
    },
    "time": {
        "endless loop": ("while True:\n    pass\n", ("cpu", "time")),
        "endless loop in C": ("sum(iter(int, 1))\n", ("cpu", "time")),
        "one enormous power": ("9 ** 9 ** 9\n", ("cpu", "time", "exit")),
        "catastrophic regular expression": ("import re\nre.match('(a+)+$', 'a' * 64 + 'b')\n", ("cpu", "time")),
        "sleep": ("time.sleep(10 ** 6)\n", ("time",)),
        "all signals ignored": """
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True:
    time.sleep(0.1)
""",
        "limits raised again": """
for kind in range(16):
    try:
        resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        if kind not in (resource.RLIMIT_RSS, 10) and resource.getrlimit(kind)[1] == -1:
            escaped(f"limit {kind}") if kind in (0, 1, 9) else None
    except (OSError, ValueError):
        pass
while True:
    pass
""",
        "stopped by itself": ("os.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(1000)\n", ("time",)),
        "threads that go on": """
for _ in range(4):
    try:
        threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=False).start()
    except RuntimeError:
        pass
""",
        "endless work at exit": "import atexit\natexit.register(lambda: [None for _ in iter(int, 1)])\n",
        "endless destructor": """
class Bad:
    def __del__(self):
        while True:
            time.sleep(1)
bad = Bad()
del bad
""",
        "reads a terminal": "open('/dev/tty').read()\n",
        "waits for itself": "reader, writer = os.pipe()\nos.read(reader, 1)\n",
    },
    "memory": {
        "one large array": "bytearray(1 << 34)\n",
        "growing list": "x = []\nwhile True:\n    x.append(bytearray(1 << 20))\n",
        "anonymous memory": """
kept = []
while True:
    try:
        one = mmap.mmap(-1, 1 << 24)
        one.write(b"x" * (1 << 24))
        kept.append(one)
    except (OSError, ValueError, MemoryError):
        time.sleep(0.05)
""",
        "memory in many processes": """
for _ in range(12):
    try:
        if os.fork() == 0:
            break
    except OSError:
        pass
x = []
while True:
    try:
        x.append(bytearray(b"x") * (1 << 20))
    except MemoryError:
        time.sleep(0.05)
""",
        "memory without an owner": """
for number in (319, 279, 447):
    place = libc().syscall(number, b"x", 0)
    if place >= 0:
        escaped("memory file")
""",
        "shared memory that stays": """
for number in ((29, 64, 68) if os.uname().machine == "x86_64" else (194, 190, 186)):
    if libc().syscall(number, 0x1234, 1 << 24, 0o1666) >= 0:
        escaped("System V object")
""",
        "deep recursion": "sys.setrecursionlimit(10 ** 9)\ndef f(n):\n    return f(n + 1) + 1\nf(0)\n",
        "deep recursion in C": """
sys.setrecursionlimit(10 ** 9)
x = []
for _ in range(10 ** 6):
    x = [x]
repr(x)
""",
        "deep source": "eval('(' * 10 ** 5 + ')' * 10 ** 5)\n",
        "deep pickle": "import pickle\npickle.loads(b'(' * 10 ** 6 + b'(l' * 10 ** 6 + b'.')\n",
        "many pipes": """
kept = []
while True:
    try:
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        os.write(writer, b"x" * 65536)
        kept.append((reader, writer))
    except OSError:
        break
print(len(kept))
""",
    },
    "output": {
        "flood": ("while True:\n    sys.stdout.write('x' * 65536)\n", ("output",)),
        "flood of errors": ("while True:\n    os.write(2, b'x' * 65536)\n", ("output",)),
        "flood from a child": """
try:
    os.fork()
except OSError:
    pass
while True:
    os.write(1, b"x" * 65536)
""",
        "output that is no text": "sys.stdout.buffer.write(bytes(range(256)) * 10)\n",
        "closed descriptors": "os.closerange(0, 1000)\n",
        "output in tiny pieces": ("while True:\n    os.write(1, b'x')\n", ("output", "cpu", "time")),
        "an exception that cannot be printed": """
class Bad(Exception):
    def __str__(self):
        raise KeyboardInterrupt
    __repr__ = __str__
raise Bad
""",
    },
}
