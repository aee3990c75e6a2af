"""Stage directories: whole or absent, identified by what determines them, resumable after ``kill -9``.

    work = artifact.begin(path, stage="curate", config={...}, inputs=[...], seed=0, force=False)
    if work.done:            # an artifact with this fingerprint exists: nothing to do
        return work.path
    ... write into work.path (which is <path>.partial/), skipping what is there when work.resumed ...
    work.finish(counts={"rows": 10})     # fsync everything, write manifest.json, rename to <path>

Invariants:
- ``<path>`` either does not exist or is complete, with its manifest;
- ``<path>.partial`` belongs to one fingerprint, recorded in it before anything else, and to one process at a
  time;
- nothing that is not an artifact of ours is ever removed.

``force`` discards a finished artifact (when the new one takes its place, not before) and unfinished work,
save unfinished work of the same fingerprint that was itself begun with ``force``: the same command resumes
it. Work that ``extends`` earlier work is neither refused nor starts anew: unfinished work goes on under the new
identity, and a finished artifact stays until the larger one takes its place.

Does not: know what a stage writes, or how it finds out which part of its work is done.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from ulorl.errors import UserError
from ulorl.files import canonical_json, fsync_dir, fsync_tree, remove_temporary, write_json
from ulorl.fingerprint import (
    FORMAT,
    MANIFEST,
    artifact_of,
    describe_input,
    manifest_at,
    record_dict,
    work_fingerprint,
)
from ulorl.provenance import provenance

Extends = Callable[[dict[str, Any], dict[str, Any]], bool]
BEGUN = ".begun.json"
LOCK = ".lock"
RECIPE = "recipe.toml"
"""What stages write before they look at anything."""


@dataclass
class Work:
    """A stage directory being made (``done`` false), or found finished (``done`` true)."""

    done: bool
    path: Path
    """Where to write: ``<path>.partial``; the finished directory when ``done``."""
    resumed: bool = False
    """The directory holds earlier work of the same fingerprint."""
    final: Path = field(default_factory=Path)
    identity: dict[str, Any] = field(default_factory=dict)
    lock: IO[str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """As other processes of the run see it: the lock stays with the one that holds it."""
        return self.__dict__ | {"lock": None}

    def finish(self, counts: dict[str, Any]) -> Path:
        """Makes the work durable and gives it its final name, with ``counts`` in the manifest."""
        assert not self.done, "finish() of an artifact that was already there"
        assert self.lock is not None, "finish() after finish() or release()"
        remove_temporary(self.path)
        fsync_tree(self.path)
        identity = {key: value for key, value in self.identity.items() if key != "force"}
        finished = {"counts": counts, "finished": _now(), **provenance()}
        write_json(self.path / MANIFEST, identity | finished)
        self._take_place()
        # The lock leaves its directory only now: until the rename it keeps others out of the partial
        # directory.
        for name in (BEGUN, LOCK):
            (self.final / name).unlink(missing_ok=True)
        self.release()
        return self.final

    def release(self) -> None:
        """Gives the lock back without finishing; the partial directory stays for a later run."""
        if self.lock is not None:
            self.lock.close()
            self.lock = None

    def _take_place(self) -> None:
        replaced = _replaced(self.final)
        if self.final.is_dir() and any(self.final.iterdir()):
            if not self.identity["force"] or manifest_at(self.final) is None:
                raise UserError(f"{self.final}: appeared meanwhile; the finished work is kept in {self.path}")
            shutil.rmtree(replaced, ignore_errors=True)
            os.rename(self.final, replaced)
        os.rename(self.path, self.final)
        fsync_dir(self.final.parent)
        shutil.rmtree(replaced, ignore_errors=True)


def begin(
    path: Path,
    *,
    stage: str,
    config: dict[str, Any],
    inputs: Sequence[str | Path],
    seed: int,
    force: bool = False,
    extends: Extends | None = None,
) -> Work:
    """Starts, resumes or recognises the stage directory ``path``.

    ``config`` is everything besides inputs and seed that determines the result, as JSON types. ``extends`` says
    whether this work contains all of an earlier one, from the two identities (manifests). UserError when
    an input is missing, when the directory or its partial one belongs to another configuration (unless
    ``force``), is no artifact, or is being worked on by another process.
    """
    path = Path(os.path.abspath(path))
    _require_apart(path, inputs, force)
    records = [describe_input(source) for source in inputs]
    plain_config = json.loads(canonical_json(config))
    identity = {
        "format": FORMAT,
        "stage": stage,
        "config": plain_config,
        "seed": seed,
        "inputs": [record_dict(record) for record in records],
        "fingerprint": work_fingerprint(stage, plain_config, seed, records),
        "started": _now(),
        "force": force,
    }
    partial = partial_of(path)
    finished = manifest_at(path)
    if finished is not None and _is_extended(finished, identity, extends):
        identity["force"] = True
    if path.exists():  # a kill after the new artifact took its place
        shutil.rmtree(_replaced(path), ignore_errors=True)
    if _is_done(path, partial, identity):
        return Work(done=True, path=path, final=path)
    partial.mkdir(parents=True, exist_ok=True)
    lock = _lock(partial)
    if _is_done(path, partial, identity):  # another process may have finished before the lock was ours
        lock.close()
        return Work(done=True, path=path, final=path)
    begun = _read_begun(partial)
    if begun is not None and _is_extended(begun, identity, extends) and not force:
        write_json(partial / BEGUN, identity)
        begun = identity
    resumed = begun is not None and _may_resume(partial, begun, identity)
    if begun is not None and resumed:
        identity = begun
        remove_temporary(partial)
    else:
        _clear(partial, owned=begun is not None or force)
        write_json(partial / BEGUN, identity)
    return Work(done=False, path=partial, resumed=resumed, final=path, identity=identity, lock=lock)


def _require_apart(path: Path, inputs: Sequence[str | Path], force: bool) -> None:
    """What a result is made of must not be replaced by it."""
    made = {path.resolve(), partial_of(path).resolve()}
    for source in inputs:
        place = Path(source).resolve()
        if force and made & {place, *place.parents} and place.exists():
            raise UserError(f"{path}: this work is made of {source}, which it would replace; choose another directory")


def partial_of(path: Path) -> Path:
    """Where unfinished work on ``path`` lies."""
    return path.with_name(f"{path.name}.partial")


def unfinished(path: Path) -> dict[str, Any] | None:
    """The identity of the unfinished work on ``path``; None where there is none."""
    return _read_begun(partial_of(path))


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of the finished artifact that ``path`` is, or lies in; UserError when there is none."""
    found = artifact_of(Path(path))
    if found is None:
        hint = "it is unfinished; run its stage again" if partial_of(Path(path)).exists() else "wrong directory?"
        raise UserError(f"{path}: not a finished stage directory (no {MANIFEST}); {hint}")
    return found[1]


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What differs between two identities (stage, seed, config keys, inputs), each as ``key: old -> new``."""
    before, after = _flat(old), _flat(new)
    keys = [key for key in sorted(before.keys() | after.keys()) if before.get(key) != after.get(key)]
    return [f"{key}: {_short(before.get(key, _ABSENT))} -> {_short(after.get(key, _ABSENT))}" for key in keys]


_ABSENT = "(none)"


def _flat(identity: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {key: identity.get(key) for key in ("format", "stage", "seed")}

    def visit(prefix: str, value: Any) -> None:
        if isinstance(value, dict) and value:
            for key, inner in value.items():
                visit(f"{prefix}.{key}" if prefix else str(key), inner)
        else:
            flat[prefix] = value

    visit("", identity.get("config", {}))
    for number, record in enumerate(identity.get("inputs", []), 1):
        flat[f"input {number}"] = f"{record['input']} ({record['fingerprint'][-12:]})"
    return flat


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else canonical_json(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _refuse(what: str, old: dict[str, Any], new: dict[str, Any]) -> UserError:
    changes = differences(old, new)
    shown = "; ".join(changes[:6]) + (f"; and {len(changes) - 6} more" if len(changes) > 6 else "")
    return UserError(f"{what} of another configuration ({shown}); choose another directory, or discard it with --force")


def _is_done(path: Path, partial: Path, identity: dict[str, Any]) -> bool:
    """Whether ``path`` is the artifact asked for; UserError when it is something else that must not be
    replaced."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return False
    manifest = manifest_at(path)
    if manifest is None:
        raise UserError(f"{path}: exists and is no stage directory, so it is left alone; choose another directory")
    if identity["force"]:
        return False
    if manifest["fingerprint"] == identity["fingerprint"]:
        return True
    begun = _read_begun(partial)
    if begun is not None and begun["force"] and begun["fingerprint"] == identity["fingerprint"]:
        return False
    raise _refuse(f"{path}: holds a finished artifact", manifest, identity)


def _is_extended(earlier: dict[str, Any], identity: dict[str, Any], extends: Extends | None) -> bool:
    return extends is not None and earlier["fingerprint"] != identity["fingerprint"] and extends(earlier, identity)


def _may_resume(partial: Path, begun: dict[str, Any], identity: dict[str, Any]) -> bool:
    if begun["fingerprint"] == identity["fingerprint"]:
        return bool(begun["force"]) or not identity["force"]
    if identity["force"] or not has_work(partial):
        return False
    raise _refuse(f"{partial}: holds unfinished work", begun, identity)


def has_work(partial: Path) -> bool:
    """Whether anything is lost with an unfinished directory: not where what it was asked for was refused."""
    return any(entry.name not in (BEGUN, LOCK, RECIPE) for entry in partial.iterdir())


def _read_begun(partial: Path) -> dict[str, Any] | None:
    try:
        begun: dict[str, Any] = json.loads((partial / BEGUN).read_bytes())
    except FileNotFoundError:
        return None
    return begun


def _lock(partial: Path) -> IO[str]:
    """Holds ``partial`` for this process until the file is closed or the process ends, however it ends."""
    lock = (partial / LOCK).open("a+", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        owner = lock.read().strip() or "unknown"
        lock.close()
        message = f"{partial}: process {owner} is working in it; wait for it, or end that process"
        raise UserError(message) from None
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return lock


def _clear(partial: Path, owned: bool) -> None:
    """Empties a partial directory that is to be begun anew, save the lock."""
    remove_temporary(partial)
    entries = [entry for entry in partial.iterdir() if entry.name != LOCK]
    if entries and not owned:
        raise UserError(f"{partial}: holds files but no {BEGUN}; remove it, or discard it with --force")
    for entry in entries:
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _replaced(path: Path) -> Path:
    """Where a finished artifact waits to be removed until the one that takes its place has its name."""
    return path.with_name(f".{path.name}.replaced~")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
