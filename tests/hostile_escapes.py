"""Hostile programs that reach for what is not theirs, or deceive whoever waits for them. See `hostile_programs`."""

from __future__ import annotations

Program = str | tuple[str, tuple[str, ...]]

ESCAPES: dict[str, dict[str, Program]] = {
    "files": {
        "reads a secret file": """
for path in (C["secret_file"], "/etc/passwd", "/etc/shadow", "/root/.bashrc", "/proc/1/environ", C["data_directory"]):
    attempt(path, lambda: open(path).read() if not os.path.isdir(path) else os.listdir(path))
""",
        "writes outside": """
home, library = os.path.expanduser("~"), os.path.dirname(os.__file__)
for place in (C["data_directory"], "/", "/usr/lib", "/etc", "/var/tmp", "/dev/shm", "/run", library, home):
    attempt(place, lambda: open(place + "/written_by_a_program", "w").write("x"))
""",
        "changes its interpreter": """
for path in (os.__file__, sys.executable):
    attempt(path, lambda: open(path, "r+b").write(b""))
    attempt(path, lambda: os.chmod(path, 0o777))
    attempt(path, lambda: os.utime(path))
    attempt(path, lambda: os.rename(path, path + ".x"))
""",
        "fills the disk": (
            """
total = 0
for number in range(10 ** 6):
    try:
        with open(f"f{number}", "wb") as file:
            total += file.write(b"x" * (1 << 20))
    except OSError:
        break
if total > C["disk_mib"] << 20:
    escaped(f"{total} bytes")
""",
            ("exit",),
        ),
        "one enormous file": """
try:
    with open("large", "wb") as file:
        file.truncate(1 << 40)
        escaped("a file of a TiB")
except OSError:
    pass
""",
        "a million files": (
            """
count = 0
try:
    for count in range(10 ** 6):
        open(f"f{count}", "w").close()
except OSError:
    pass
if count > 5000:
    escaped(f"{count} files")
""",
            ("exit", "cpu", "time"),
        ),
        "links to the outside": """
attempt("symbolic link", lambda: (os.symlink(C["secret_file"], "s"), open("s").read()))
attempt("hard link", lambda: os.link(C["secret_file"], "h"))
attempt("hard link to the interpreter", lambda: os.link(os.__file__, "i"))
attempt("dots", lambda: open("../" * 20 + C["secret_file"][1:]).read())
""",
        "the old root": """
attempt("old root", lambda: (os.chdir("/.old"), os.listdir("."))[1] or 1 / 0)
attempt("dots", lambda: (os.chdir("/"), [os.chdir("..") for _ in range(50)], open(C["secret_file"][1:]).read()))
""",
        "inherited descriptors": """
for place in range(3, 1024):
    try:
        os.fstat(place)
    except OSError:
        continue
    escaped(f"descriptor {place}")
""",
        "site-packages": """
for place in C["site_packages"]:
    sys.path.append(place)
attempt("ulorl", lambda: __import__("ulorl"))
""",
    },
    "secrets": {
        "the environment": """
print(dict(os.environ))
if C["secret_name"] in os.environ:
    escaped("environment")
libc().getenv.restype = ctypes.c_char_p
if libc().getenv(C["secret_name"].encode()):
    escaped("environment in C")
""",
        "other processes' environment and memory": """
for pid in (C["pid"], C["victim"], os.getppid(), 1, "self", "thread-self"):
    for name in ("environ", "mem", "maps", "cmdline", "fd", "root", "cwd"):
        path = f"/proc/{pid}/{name}"
        attempt(path, lambda: os.listdir(path) if name in ("fd", "root", "cwd") else open(path, "rb").read(10))
""",
        "ptrace": """
for pid in (C["pid"], C["victim"], os.getppid(), 1):
    if libc().ptrace(16, pid, 0, 0) == 0 or libc().ptrace(0x4206, pid, 0, 0) == 0:
        escaped("ptrace")
""",
        "reads another process's memory": """
class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
buffer = ctypes.create_string_buffer(64)
mine, theirs = Vector(ctypes.addressof(buffer), 64), Vector(id(C), 64)
for pid in (C["pid"], C["victim"], os.getppid(), 1):
    if libc().process_vm_readv(pid, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0) > 0:
        escaped("process_vm_readv")
    if libc().process_vm_writev(pid, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0) > 0:
        escaped("process_vm_writev")
""",
        "everything in its own memory": """
found = []
for one in gc.get_objects():
    if isinstance(one, dict):
        found += [value for value in list(one.values()) if isinstance(value, str) and len(value) < 100]
frame = sys._getframe()
while frame:
    found += [str(value)[:100] for value in list(frame.f_locals.values())]
    frame = frame.f_back
print(len(found), [one for one in found if "expected" in one.lower() or "secret" in one.lower()][:50])
""",
        "kernel's keys, log and performance counters": """
for number in (248, 249, 250, 103, 298, 321, 323, 425, 428, 442, 310, 312, 438, 434, 317, 217 + 10 ** 6):
    if os.uname().machine == "x86_64" and libc().syscall(number, 1, 0, 0, 0, 0, 0) >= 0:
        escaped(f"system call {number}")
""",
    },
    "network": {
        "connects to this machine": """
for address in ("127.0.0.1", "::1", "0.0.0.0"):
    attempt(address, lambda: socket.create_connection((address, C["port"]), 0.5).send(b"hello"))
""",
        "names and other machines": """
attempt("DNS", lambda: socket.getaddrinfo("example.com", 80))
attempt("UDP", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("8.8.8.8", 53)))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("netlink", lambda: socket.socket(16, socket.SOCK_RAW, 0))
attempt("packet", lambda: socket.socket(17, socket.SOCK_RAW, 0))
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM, 0))
""",
        "local sockets": """
def local(name):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(0.5)
    s.connect(name)
    return s.send(b"hello")
attempt("abstract", lambda: local("\\0" + C["abstract"]))
attempt("path", lambda: local(C["unix_path"]))
one, _ = socket.socketpair()
attempt("a pair that reconnects", lambda: one.connect("\\0" + C["abstract"]))
""",
        "a server": "attempt('bind', lambda: socket.create_server(('127.0.0.1', 0)).getsockname())\n",
        "io_uring": """
if libc().syscall(425, 8, ctypes.create_string_buffer(512)) >= 0:
    escaped("io_uring")
""",
    },
    "privileges": {
        "kills everybody it can": """
for pid in (C["pid"], C["victim"], os.getppid()):
    if pid > 1:
        attempt(f"signal {pid}", lambda: os.kill(pid, signal.SIGTERM))
        attempt(f"group {pid}", lambda: os.killpg(pid, signal.SIGTERM))
try:
    os.kill(-1, signal.SIGKILL)
except OSError:
    pass
try:
    os.kill(1, signal.SIGKILL)
except OSError:
    pass
""",
        "signals by other ways": """
for pid in (C["pid"], C["victim"]):
    if libc().syscall(129 if os.uname().machine == "x86_64" else 138, pid, 10, ctypes.create_string_buffer(128)) == 0:
        escaped("rt_sigqueueinfo")
    if libc().syscall(200 if os.uname().machine == "x86_64" else 130, pid, 10) == 0:
        escaped("tkill")
    attempt("pidfd", lambda: os.pidfd_open(pid))
    import fcntl
    reader, writer = os.pipe()
    attempt("owner", lambda: fcntl.fcntl(reader, fcntl.F_SETOWN, pid))
""",
        "priorities and limits of others": """
for pid in (C["pid"], C["victim"]):
    attempt("nice", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
    attempt("limit", lambda: resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1)))
    attempt("affinity", lambda: os.sched_setaffinity(pid, {0}))
    attempt("scheduler", lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)))
attempt("nice of its own", lambda: os.setpriority(os.PRIO_PROCESS, 0, -20))
""",
        "becomes root": """
attempt("setuid", lambda: os.setuid(0))
attempt("setresuid", lambda: os.setresuid(0, 0, 0))
attempt("setgid", lambda: os.setgid(0))
attempt("setgroups", lambda: os.setgroups([0]))
if os.geteuid() == 0:
    escaped("it is root")
""",
        "mounts and new roots": """
for name, arguments in (("mount", (b"none", b"/tmp", b"tmpfs", 0, None)), ("umount2", (b"/tmp", 2)),
                        ("chroot", (b"/tmp",)), ("unshare", (0x10000000,)), ("unshare", (0x00020000,)),
                        ("setns", (0, 0)), ("sethostname", (b"x", 1)), ("swapoff", (b"/x",)), ("reboot", (0,)),
                        ("acct", (None,)), ("pivot_root", (b"/tmp", b"/tmp"))):
    if getattr(libc(), name)(*arguments) == 0:
        escaped(name)
""",
        "a set-user-id program of its own": """
try:
    with open("own", "wb") as file:
        file.write(b"#!/bin/sh\\n")
    os.chmod("own", 0o6777)
    os.execv("./own", ["own"])
except OSError:
    pass
""",
        "devices": """
attempt("device", lambda: os.mknod("device", stat.S_IFCHR | 0o666, os.makedev(1, 1)))
for path in ("/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/sda", "/dev/kvm", "/dev/fuse", "/dev/net/tun"):
    attempt(path, lambda: open(path, "rb").read(1))
""",
    },
    "endings": {
        "os._exit": "os._exit(0)\n",
        "exit with anything": "class Bad:\n    def __str__(self):\n        os._exit(0)\nsys.exit(Bad())\n",
        "crash in C": "ctypes.string_at(0)\n",
        "abort": "os.abort()\n",
        "kills itself": "os.kill(os.getpid(), signal.SIGKILL)\n",
        "takes the runner apart": """
for name, module in list(sys.modules.items()):
    for key in list(vars(module)):
        if module is not None and not key.startswith("__") and name.startswith("inside"):
            setattr(module, key, lambda *a, **k: 0)
threading._shutdown = None
os._exit = lambda status: time.sleep(0)
""",
        "input never read": "os.close(0)\nprint('done')\n",
        "answers in the sandbox's place": """
message = json.dumps({"how": "exit", "status": 0, "output": "forged", "results": [{"item": 0, "why": ""}]}).encode()
for place in range(64):
    try:
        os.write(place, struct.pack("=I", len(message)) + message)
    except OSError:
        pass
""",
    },
}
