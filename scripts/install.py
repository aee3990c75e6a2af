"""Build the CPU environment: ``python3 scripts/install.py .venv`` installs requirements/cpu.lock and this package.

The lock is complete, so nothing is resolved (``--no-deps``). The CPU build of torch is taken from wherever pip
is set up to find it; where pip finds none, uv fetches it from PyTorch's own CPU builds.
Run by ``make env``; uses the standard library alone.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "cpu.lock"
COMPILED = ("pycosat==",)
"""Packages without wheels, which need a C compiler: one data set of puzzles needs this one, so it may be missing."""


def run(*command: str, check: bool = True) -> int:
    environment = {**os.environ, "DS_BUILD_OPS": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return subprocess.run(command, check=check, env=environment).returncode


def cpu_torch(python: str, pin: str) -> None:
    """Install the CPU build of torch, never the CUDA one."""
    if run(python, "-m", "pip", "install", "-qq", "--no-deps", f"{pin}+cpu", check=False) == 0:
        return
    print("pip finds no CPU build of torch here; asking uv for PyTorch's own", flush=True)
    run(python, "-m", "pip", "install", "-qq", "uv")
    run(python, "-m", "uv", "pip", "install", "--python", python, "--no-deps", "--torch-backend", "cpu", pin)


def main() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036 - run by whatever python3 there is
        raise SystemExit(
            f"ulorl needs Python 3.11 or later, this is {sys.version.split()[0]}: make PYTHON=python3.12 ..."
        )
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the virtual environment to make")
    folder = parser.parse_args().folder.absolute()
    python = str(folder / "bin" / "python")
    print(f"installing the CPU environment into {folder} (minutes, about 3 GB)", flush=True)
    interrupted = not (folder / ".complete").exists()
    venv.create(folder, with_pip=True, symlinks=True, clear=interrupted)
    run(python, "-m", "pip", "install", "-qq", "--upgrade", "pip")
    pins = [line for line in LOCK.read_text().splitlines() if line and not line.startswith("#")]
    cpu_torch(python, next(pin for pin in pins if pin.startswith("torch==")))
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as rest:
        rest.write("\n".join(pin for pin in pins if not pin.startswith(("torch==", *COMPILED))))
        rest.flush()
        run(python, "-m", "pip", "install", "-qq", "--no-deps", "--requirement", rest.name)
    for pin in (pin for pin in pins if pin.startswith(COMPILED)):
        if run(python, "-m", "pip", "install", "-qq", "--no-deps", pin, check=False) != 0:
            print(f"{pin} does not build here (a C compiler is needed); going on without it", flush=True)
    run(python, "-m", "pip", "install", "-qq", "--no-deps", "--editable", str(ROOT))


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        raise SystemExit(
            f"installation failed: {' '.join(map(str, error.cmd))} ended with {error.returncode}"
        ) from None
