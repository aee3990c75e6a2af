"""Hostile programs: none gets out, none hangs, nothing is left, and a good program right after still passes."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator

import pytest
from hostile_programs import PROGRAMS, Hostile
from sandbox_canary import Canary

from ulorl.errors import UserError
from ulorl.recipe_sandbox import SandboxRecipe
from ulorl.verify.sandbox import backends
from ulorl.verify.sandbox.pool import Outcome, Sandbox

LIMITS = SandboxRecipe(
    workers=1, cpu_s=0.5, wall_s=1.0, total_s=8.0, memory_mib=256, disk_mib=8, processes=16, output_kib=64
)
SLOW_KINDS = {"time"}
SLOW = {"fork bomb", "zombies", "multiprocessing", "deep recursion", "deep recursion in C", "anonymous memory"}
SLOWEST_S = 4 * LIMITS.wall_s + 5.0
SYSTEM_PYTHON = "/usr/bin/python3"


@pytest.fixture(scope="module")
def canary() -> Iterator[Canary]:
    with Canary() as canary:
        yield canary


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(LIMITS) as sandbox:
        if sandbox.backend.mode == "weak":
            pytest.skip("nothing locks programs in on this machine")
        yield sandbox


def attack(program: Hostile, sandbox: Sandbox, canary: Canary) -> Outcome:
    """Runs one, and checks everything that must hold afterwards."""
    began = time.monotonic()
    outcome = sandbox.script(program.source, canary.facts(LIMITS.disk_mib), sandbox.limits())
    assert time.monotonic() - began < SLOWEST_S, program.name
    assert canary.violations(outcome, sandbox) == [], (program.name, outcome)
    assert outcome.how != "lost", (program.name, outcome)
    assert not program.how or outcome.how in program.how, (program.name, outcome)
    good = sandbox.script("print(int(input()) * 2)", "21", sandbox.limits())
    assert (good.how, good.output) == ("exit", "42\n"), (program.name, good)
    return outcome


def test_there_are_sixty_and_more() -> None:
    assert len(PROGRAMS) >= 60
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS)


def test_quick_attacks(sandbox: Sandbox, canary: Canary) -> None:
    for program in PROGRAMS:
        if program.kind not in SLOW_KINDS and program.name not in SLOW:
            attack(program, sandbox, canary)


def test_one_that_never_ends(sandbox: Sandbox, canary: Canary) -> None:
    outcomes = {program.name: attack(program, sandbox, canary) for program in PROGRAMS if program.name in {"sleep"}}
    assert outcomes["sleep"].how == "time"


def without(name: str) -> SandboxRecipe:
    """The recipe for another way of locking in; as root with an interpreter that other users can read."""
    if os.geteuid() == 0 and name != "namespaces" and not os.path.exists(SYSTEM_PYTHON):
        pytest.skip("root, and no interpreter that other users can read")
    other = os.geteuid() == 0 and name != "namespaces"
    return LIMITS.model_copy(update={"interpreter": SYSTEM_PYTHON if other else ""})


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["namespaces", "landlock", "bubblewrap", "nsjail"])
def test_every_attack_in_every_way(mode: backends.Mode, canary: Canary, monkeypatch: pytest.MonkeyPatch) -> None:
    if mode in backends.COMMANDS and shutil.which(backends.COMMANDS[mode]) is None:
        pytest.skip(f"{mode} is not installed")
    monkeypatch.setitem(backends.ORDER, "auto", (mode,))
    with Sandbox(without(mode)) as sandbox:
        try:
            assert sandbox.backend.mode == mode
        except UserError as error:
            pytest.skip(str(error))
        for program in PROGRAMS:
            attack(program, sandbox, canary)
    assert not sandbox._alive


def test_landlock_keeps_programs_in_without_namespaces(canary: Canary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(backends.ORDER, "auto", ("landlock",))
    with Sandbox(without("landlock")) as sandbox:
        try:
            assert sandbox.backend.mode == "landlock"
        except UserError as error:
            pytest.skip(str(error))
        for program in PROGRAMS:
            if program.kind in ("secrets", "network", "privileges", "files"):
                attack(program, sandbox, canary)
        assert "Operation not permitted" in sandbox.script("import os\nos.fork()", "", sandbox.limits()).errors
