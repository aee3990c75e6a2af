"""Training a run for longer: more steps are the same run, which goes on from its latest checkpoint.

Invariants: what a step does never depends on how many are planned, so that the steps of both runs are the same; the
finished run stays as it is until the longer one takes its place.

A schedule may go on too, by phases that begin after the last step there was.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ulorl.artifact import Work
from ulorl.files import link_file
from ulorl.fingerprint import MANIFEST, manifest_at

CHECKPOINTS = "checkpoints"
_OWN = {MANIFEST, CHECKPOINTS, "model"}


def extends(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> bool:
    """Whether a training run contains another: the same but for more steps."""
    if any(earlier.get(name) != later.get(name) for name in ("format", "stage", "seed")):
        return False
    if _fingerprints(earlier) != _fingerprints(later):
        return False
    old, new = _but_train(earlier), _but_train(later)
    before, after = earlier["config"].get("train", {}), later["config"].get("train", {})
    if old != new or not before.get("steps", 0) < after.get("steps", 0):
        return False
    if before.get("learner", {}).get("lr_schedule", "constant") != "constant":  # its rates depend on the steps planned
        return False
    same = all(before.get(name) == after.get(name) for name in before.keys() | after.keys() if name not in _GROWING)
    phases, more = before.get("schedule", []), after.get("schedule", [])
    return (
        same
        and more[: len(phases)] == phases
        and all(phase["from_step"] > before["steps"] for phase in more[len(phases) :])
    )


_GROWING = {"steps", "schedule"}


def adopt(work: Work) -> str:
    """Give unfinished ``work`` what the finished run that it extends left; what to tell people of it, if anything.

    The checkpoints come last: where they are, all is there.
    """
    earlier = manifest_at(work.final)
    if earlier is None or not extends(earlier, work.identity) or (work.path / CHECKPOINTS).exists():
        return ""
    if not any((work.final / CHECKPOINTS).glob("step_[0-9]*")):
        return (
            f"begins anew at step 1: the finished run of fewer steps in {work.final} holds no checkpoint to go on from"
        )
    for entry in sorted(work.final.iterdir()):
        if entry.name not in _OWN:
            _link(entry, work.path)
    _link(work.final / CHECKPOINTS, work.path)
    return f"goes on from the finished run of fewer steps in {work.final}"


def _link(entry: Path, into: Path) -> None:
    """The same file or tree in another directory, whole or not at all. No file of a run is ever changed in place but
    metrics.jsonl, which is copied."""
    if (into / entry.name).exists():
        return
    temporary = into / f".{entry.name}.adopted~"
    if entry.is_dir():
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.copytree(entry, temporary, copy_function=link_file)
    else:
        temporary.unlink(missing_ok=True)
        shutil.copy2(entry, temporary)
    temporary.rename(into / entry.name)


def _fingerprints(identity: Mapping[str, Any]) -> list[str]:
    return [record["fingerprint"] for record in identity.get("inputs", [])]


def _but_train(identity: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in identity.get("config", {}).items() if name != "train"}
