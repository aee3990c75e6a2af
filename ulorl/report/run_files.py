"""What lies in a run's directory: its stages, finished or not. Writes nothing and reads no stage's data.

Invariants: a stage that is not there is None, never an error; only a directory without any stage is refused; a
stage that is being made (``NAME.partial``) stands for itself where there is no finished one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ulorl.artifact import BEGUN
from ulorl.errors import UserError
from ulorl.fingerprint import manifest_at

PARTIAL = ".partial"
BOUNDARY = "boundary"


@dataclass(frozen=True)
class StageFiles:
    """One stage directory. ``identity`` is its manifest, or what it was begun with."""

    name: str
    kind: str
    path: Path
    identity: dict[str, Any]
    finished: bool

    @property
    def ended(self) -> str:
        """When it was finished or begun, ISO 8601; "" where that is not recorded."""
        return str(self.identity.get("finished") or self.identity.get("started") or "")


@dataclass(frozen=True)
class RunFiles:
    """The stages of a run, or a single one (``single``). ``evaluations`` are in the order they were made."""

    root: Path
    single: bool
    curate: StageFiles | None
    train: StageFiles | None
    evaluations: tuple[StageFiles, ...]
    left_out: tuple[StageFiles, ...]
    """Stages of which the report shows another one of the kind, or kinds it does not know."""
    boundaries: tuple[StageFiles, ...] = ()

    @property
    def name(self) -> str:
        return self.root.resolve().name.removesuffix(PARTIAL)

    @property
    def stages(self) -> list[StageFiles]:
        """Those that the report shows, in the order of a run."""
        shown = (self.curate, self.train, *self.evaluations, *self.boundaries)
        return [stage for stage in shown if stage is not None]

    @property
    def before(self) -> StageFiles | None:
        """The finished evaluation to compare with: ``before``, else the first of several."""
        return self._pair()[0]

    @property
    def after(self) -> StageFiles | None:
        """The finished evaluation of the result: ``after``, else the last one."""
        return self._pair()[1]

    def _pair(self) -> tuple[StageFiles | None, StageFiles | None]:
        done = [stage for stage in self.evaluations if stage.finished]
        by_name = {stage.name: stage for stage in done}
        before, after = by_name.get("before"), by_name.get("after")
        others = [stage for stage in done if stage not in (before, after)]
        if before is None and after is None and len(done) > 1:
            return done[0], done[-1]
        if before is not None and after is None and others:
            after = others[-1]
        if before is None and after is None and done:
            after = done[-1]
        return before, after


def find_run(directory: Path) -> RunFiles:
    """The stages in ``directory``, or the one that it is. UserError where there is none."""
    if not directory.is_dir() and not _partial(directory).is_dir():
        raise UserError(f"report: {directory}: no such directory; give a run's directory such as runs/NAME")
    own = _stage(directory) or _stage(_partial(directory))
    if own is not None and own.kind == BOUNDARY:
        return RunFiles(directory, True, None, None, _evaluations_of(own), (), (own,))
    if own is not None:
        return _sorted(directory, [own], single=True)
    found: dict[str, StageFiles] = {}
    for child in sorted(directory.iterdir()):
        stage = _stage(child) if child.is_dir() else None
        if stage is not None and (stage.finished or stage.name not in found):
            found[stage.name] = stage
    if not found:
        raise UserError(
            f"report: {directory}: holds no stage of ulorl (curate, train or an evaluation, finished or not); give "
            "a run's directory such as runs/NAME, or one stage's"
        )
    return _sorted(directory, list(found.values()), single=False)


def _partial(path: Path) -> Path:
    return path.with_name(f"{path.name}{PARTIAL}") if path.name else path


def _stage(path: Path) -> StageFiles | None:
    name = path.resolve().name.removesuffix(PARTIAL)
    manifest = manifest_at(path)
    if manifest is not None:
        return StageFiles(name, str(manifest["stage"]), path, manifest, finished=True)
    begun = read_json(path / BEGUN)
    if isinstance(begun, dict) and isinstance(begun.get("stage"), str):
        return StageFiles(name, begun["stage"], path, begun, finished=False)
    return None


def _evaluations_of(boundary: StageFiles) -> tuple[StageFiles, ...]:
    """The base's evaluation and the trained model's, where they are still what the boundary was measured on."""
    found = []
    for one in boundary.identity.get("inputs", []):
        stage = _stage(Path(str(one.get("path"))))
        if stage is not None and stage.finished and stage.identity["fingerprint"] == one.get("fingerprint"):
            found.append(stage)
    return tuple(found)


def _sorted(root: Path, stages: list[StageFiles], single: bool) -> RunFiles:
    def one(kind: str) -> StageFiles | None:
        of_kind = sorted((stage for stage in stages if stage.kind == kind), key=lambda stage: stage.ended)
        named = [stage for stage in of_kind if stage.name == kind]
        return (named or of_kind)[-1] if of_kind else None

    evaluations = sorted((stage for stage in stages if stage.kind == "evaluate"), key=lambda stage: stage.ended)
    curate, train = one("curate"), one("train")
    boundaries = sorted((stage for stage in stages if stage.kind == BOUNDARY), key=lambda stage: stage.ended)
    shown = [curate, train, *evaluations, *boundaries]
    left_out = tuple(stage for stage in stages if stage not in shown)
    return RunFiles(root, single, curate, train, tuple(evaluations), left_out, tuple(boundaries))


def read_json(path: Path) -> Any:
    """A JSON file's value; None where there is none or it is damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError, RecursionError):
        return None
