"""The chain from an artifact back to the raw files, and whether each link still holds. Writes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ulorl.errors import UserError
from ulorl.fingerprint import artifact_of, fingerprint_of

Status = Literal["same", "changed", "missing", "unchecked"]


@dataclass(frozen=True)
class LineageNode:
    """An artifact or a raw input. ``status`` compares it with what the stage that used it saw.

    ``unchecked`` stands for inputs without contents here (hub names, generated problems).
    """

    name: str
    kind: str
    fingerprint: str
    status: Status
    stage: str | None = None
    counts: dict[str, Any] | None = None
    finished: str | None = None
    inputs: tuple[LineageNode, ...] = ()


def lineage(path: Path) -> LineageNode:
    """The tree of the artifact that ``path`` is or lies in; raw files are read again to compare them."""
    found = artifact_of(Path(path))
    if found is None:
        raise UserError(f"{path}: not a finished stage directory (no manifest.json), so nothing is known of it")
    root, manifest = found
    return _artifact_node(str(path), manifest["fingerprint"], "same", manifest, seen=(str(root),))


def render_lineage(path: Path) -> str:
    """The tree as text, one line a node."""
    lines: list[str] = []

    def visit(node: LineageNode, first: str, rest: str) -> None:
        lines.append(first + _line(node))
        for number, child in enumerate(node.inputs):
            last = number == len(node.inputs) - 1
            visit(child, rest + ("└── " if last else "├── "), rest + ("    " if last else "│   "))

    visit(lineage(path), "", "")
    return "\n".join(lines)


def _line(node: LineageNode) -> str:
    if node.status == "unchecked":
        return f"{node.name}  {node.kind}"
    parts = [node.name, node.stage or node.kind, node.fingerprint[:12]]
    parts += [f"{key}={value}" for key, value in (node.counts or {}).items() if isinstance(value, int | float)]
    if node.finished:
        parts.append(node.finished)
    if node.status != "same":
        parts.append("CHANGED SINCE" if node.status == "changed" else "MISSING")
    return "  ".join(parts)


def _input_node(record: dict[str, Any], seen: tuple[str, ...]) -> LineageNode:
    name, kind, expected = record["input"], record["kind"], record["fingerprint"]
    if record["path"] is None:
        return LineageNode(name, kind, expected, "unchecked")
    path = Path(record["path"])
    if not path.exists():
        return LineageNode(name, kind, expected, "missing")
    status: Status = "same" if fingerprint_of(path) == expected else "changed"
    found = artifact_of(path)
    if kind != "artifact" or found is None or str(found[0]) in seen:
        return LineageNode(name, kind, expected, status)
    return _artifact_node(name, expected, status, found[1], (*seen, str(found[0])))


def _artifact_node(
    name: str, fingerprint: str, status: Status, manifest: dict[str, Any], seen: tuple[str, ...]
) -> LineageNode:
    inputs = tuple(_input_node(record, seen) for record in manifest["inputs"])
    counts, finished = manifest["counts"], manifest["finished"]
    return LineageNode(name, "artifact", fingerprint, status, manifest["stage"], counts, finished, inputs)
