"""What an input is and what identifies its contents.

Invariants: a fingerprint depends on contents, never on names, places or times; an artifact, and whatever lies
in it, is identified by the artifact's own fingerprint (its data follows from that), so that large artifacts
are not read again. Generated problems and hub names are their own fingerprint: their contents are not looked
at.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from ulorl.errors import UserError
from ulorl.files import canonical_json

FORMAT = 1
"""Version of the fingerprint and of the manifest; raise it when the meaning of either changes."""
MANIFEST = "manifest.json"
GENERATED = ("quickstart:", "quickstart-test:", "logic:", "logic-test:")
HUB = "hub:"

InputKind = Literal["file", "directory", "artifact", "generated", "hub"]


@dataclass(frozen=True)
class InputRecord:
    """One input of a stage, as the manifest keeps it. ``path`` is absolute, null for what is not a path."""

    input: str
    kind: InputKind
    fingerprint: str
    path: str | None = None


def manifest_at(directory: Path) -> dict[str, Any] | None:
    """The manifest of a finished artifact, or None when the directory holds none of ours."""
    try:
        manifest = json.loads((directory / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) and {"stage", "fingerprint"} <= manifest.keys() else None


def artifact_of(path: Path) -> tuple[Path, dict[str, Any]] | None:
    """The finished artifact that a path is or lies in, with its manifest."""
    absolute = path.resolve()
    for directory in (absolute, *absolute.parents):
        manifest = manifest_at(directory)
        if manifest is not None:
            return directory, manifest
    return None


def describe_input(source: str | Path) -> InputRecord:
    """Identifies an input: a path, ``quickstart:N``, ``logic:NAME:N`` (either also -test) or ``hub:NAME``.

    UserError when it is a path at which there is nothing.
    """
    text = str(source)
    if text.startswith(GENERATED):
        return InputRecord(text, "generated", text + (f" {_puzzle_version()}" if text.startswith("logic") else ""))
    if text.startswith(HUB):
        return InputRecord(text, "hub", text)
    path = Path(source)
    if not path.exists():
        raise UserError(f"{text}: no such file or directory; check the input's path")
    absolute = path.resolve()
    found = artifact_of(path)
    if found is not None:
        root, manifest = found
        inside = absolute.relative_to(root).as_posix()
        fingerprint = manifest["fingerprint"] + ("" if inside == "." else f"/{inside}")
        return InputRecord(text, "artifact", fingerprint, str(absolute))
    kind: InputKind = "directory" if path.is_dir() else "file"
    return InputRecord(text, kind, hash_path(path), str(absolute))


def _puzzle_version() -> str:
    """The package that makes puzzles: another version may make others."""
    try:
        return f"reasoning-gym {version('reasoning-gym')}"
    except PackageNotFoundError:
        return "reasoning-gym"


def fingerprint_of(source: str | Path) -> str:
    """The fingerprint of one input, as ``describe_input`` gives it."""
    return describe_input(source).fingerprint


def hash_path(path: Path) -> str:
    """SHA-256 of a file's contents, or of the names and contents of all files in a directory (hidden too)."""
    if path.is_file():
        return _hash_file(path)
    digest = hashlib.sha256()
    for name, file in sorted(_files_in(path)):
        digest.update(f"{name}\0{_hash_file(file)}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def work_fingerprint(stage: str, config: dict[str, Any], seed: int, inputs: Sequence[InputRecord]) -> str:
    """SHA-256 of everything that determines a stage's result."""
    identity = {
        "format": FORMAT,
        "stage": stage,
        "config": config,
        "seed": seed,
        "inputs": [record.fingerprint for record in inputs],
    }
    return hashlib.sha256(canonical_json(identity).encode()).hexdigest()


def record_dict(record: InputRecord) -> dict[str, Any]:
    """The record as JSON."""
    return asdict(record)


def _files_in(directory: Path) -> Iterator[tuple[str, Path]]:
    for path in directory.rglob("*"):
        if path.is_file():
            yield path.relative_to(directory).as_posix(), path


def _hash_file(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
