"""Where the run came from: the chain of artifacts back to raw files, versions, and the exact recipe.

Reads manifests alone: raw inputs are not hashed again (``ulorl lineage`` does that), so that a report on a large
model takes no longer than one on a small one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ulorl.errors import UserError
from ulorl.fingerprint import artifact_of
from ulorl.recipe_file import load_recipe, render_recipe
from ulorl.report.markup import Markup, element, join
from ulorl.report.page.parts import missing, moment, section, table
from ulorl.report.run_data import RunData
from ulorl.report.run_files import StageFiles

DEEPEST = 12
LONGEST_RECIPE = 60_000


def lineage_section(data: RunData) -> Markup:
    """The tree of the last stage, the tree of those that are not in it, and what each was made with."""
    parts: list[Markup] = []
    seen: set[str] = set()
    trees = []
    for stage in reversed(data.files.stages):
        if str(stage.identity.get("fingerprint")) not in seen:
            trees.append(_stage_node(stage, seen))
    parts.append(element("ul", *trees, class_="tree"))
    text = "From the manifests. Raw files were not read again; ulorl lineage compares them with what was used."
    parts.append(element("p", text, class_="quiet"))
    parts.append(_versions(data))
    if data.files.left_out:
        names = ", ".join(f"{stage.path.name} ({stage.kind})" for stage in data.files.left_out)
        parts.append(element("p", f"Also in this directory, and not shown: {names}.", class_="quiet"))
    return section("lineage", "Lineage", *parts)


def recipe_section(data: RunData) -> Markup:
    """What differs from the defaults, and the whole recipe."""
    if data.recipe_path is not None and data.recipe_text:
        parts = []
        changed = _changed(data.recipe_path)
        if changed is not None:
            parts += [element("p", "What differs from the defaults:", class_="quiet"), element("pre", changed)]
        text = data.recipe_text[:LONGEST_RECIPE]
        if len(data.recipe_text) > LONGEST_RECIPE:
            text += f"\n# {len(data.recipe_text) - LONGEST_RECIPE:,} characters left out"
        parts.append(element("details", element("summary", "The whole recipe"), element("pre", text)))
        return section("recipe", "Recipe", *parts)
    parts = [missing("No stage is here that keeps the recipe; these are the stages' settings.")]
    for stage in data.files.stages:
        shown = json.dumps(stage.identity.get("config"), indent=2, sort_keys=True, ensure_ascii=False)[:LONGEST_RECIPE]
        parts.append(element("details", element("summary", stage.name), element("pre", shown)))
    return section("recipe", "Recipe", *parts)


def _changed(path: Path) -> str | None:
    """The settings that are not defaults, as TOML; None where this version cannot read the recipe."""
    try:
        return render_recipe(load_recipe(path), changed_only=True).strip() or "# nothing"
    except (UserError, OSError):
        return None


def _stage_node(stage: StageFiles, seen: set[str]) -> Markup:
    return _artifact_node(stage.name, stage.identity, seen, 0, finished=stage.finished)


def _artifact_node(name: str, identity: Mapping[str, Any], seen: set[str], depth: int, finished: bool = True) -> Markup:
    fingerprint = str(identity.get("fingerprint", ""))
    short = element("code", fingerprint[:12], title=fingerprint)
    line: list[str] = [element("strong", name), f" {identity.get('stage', '')} ", short]
    counts = identity.get("counts") or {}
    facts = [f"{key} {value:,}" for key, value in counts.items() if isinstance(value, int)][:8]
    facts.append(moment(str(identity.get("finished", ""))) if finished else "unfinished")
    line.append(element("span", "  " + ", ".join(fact for fact in facts if fact), class_="quiet"))
    if fingerprint in seen:
        return element("li", *line, element("span", " (above)", class_="quiet"))
    seen.add(fingerprint)
    inputs = [] if depth >= DEEPEST else [_input_node(one, seen, depth + 1) for one in identity.get("inputs") or []]
    return element("li", *line, element("ul", *inputs) if inputs else "")


def _input_node(record: Mapping[str, Any], seen: set[str], depth: int) -> Markup:
    name, kind = str(record.get("input", "")), str(record.get("kind", ""))
    expected = str(record.get("fingerprint", ""))
    path = record.get("path")
    if kind == "artifact" and path:
        found = artifact_of(Path(path))
        if found is not None and expected.split("/", 1)[0] == found[1]["fingerprint"]:
            return _artifact_node(name, found[1], seen, depth)
        note = "another one is there now" if found is not None else "no longer there"
        return element("li", element("strong", name), f" {kind} ", element("span", f"({note})", class_="wrong"))
    shown = element("code", expected[:12], title=expected) if path else ""
    return element("li", name, " ", element("span", kind, class_="quiet"), " ", shown)


def _versions(data: RunData) -> Markup:
    rows, made_with = [], dict[str, list[str]]()
    for stage in data.files.stages:
        one = stage.identity
        packages = {"Python": one.get("python")} | (one.get("packages") or {}) if stage.finished else {}
        versions = ", ".join(f"{name} {version}" for name, version in packages.items())
        made_with.setdefault(versions, []).append(stage.name)
        ended = moment(str(one["finished"])) if stage.finished else "unfinished"
        commit = str(one.get("git_commit") or "")[:12]
        rows.append([stage.name, moment(str(one.get("started") or "")), ended, str(one.get("seed", "")), commit])
    lines = [element("p", f"{', '.join(names)}: {text}.", class_="quiet") for text, names in made_with.items() if text]
    return join(table(["stage", "begun", "finished", "seed", "commit"], rows), *lines)
