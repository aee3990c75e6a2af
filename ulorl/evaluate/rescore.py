"""A new verifier over the samples of a finished evaluation; nothing is generated.

Invariants: samples keep everything but their verdict; every sample is judged again, whatever the settings, since
the verifier's code may be new; the evaluation that was there stays until the new one is whole.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ulorl import artifact
from ulorl.errors import UserError
from ulorl.evaluate.estimates import estimate
from ulorl.evaluate.finished import SAMPLES, full_disk_told, read_estimates, write_results
from ulorl.evaluate.scores import read_scores, score_problems, token_counts
from ulorl.evaluate.stage import NO_INFLUENCE, unusable_references, voting_classes
from ulorl.files import write_atomic
from ulorl.fingerprint import manifest_at
from ulorl.problem import SAMPLE_SCHEMA, Problem
from ulorl.recipe import Recipe
from ulorl.recipe_file import TRAINED_RECIPE, dump_recipe
from ulorl.sample_store import SETTINGS_FILE, SampleStore
from ulorl.sampling import judged_columns
from ulorl.verify.tasks.scorer import Scorer

log = logging.getLogger(__name__)


def rescore(directory: Path, recipe: Recipe, output: Path) -> Path:
    """Judge the samples in ``directory`` with ``recipe.verify`` and estimate for ``recipe.evaluate.pass_k``.

    ``output`` may be ``directory`` itself, which is then replaced at the end. Raises UserError when the directory is
    no finished evaluation or lacks samples.
    """
    earlier, tables = read_estimates(directory), read_scores(directory)
    manifest = artifact.read_manifest(directory)
    config = dict(manifest["config"])
    verify = recipe.verify.model_dump(mode="json")
    config["key"] = config["key"] | {"verify": verify}
    if "evaluate" in config:
        config["evaluate"] = recipe.evaluate.model_dump(mode="json", exclude=set(NO_INFLUENCE))
    same_place = output.resolve() == directory.resolve()
    there = manifest_at(output)
    again = there is not None and there.get("config", {}).get("rescored") == manifest["fingerprint"]
    begun = artifact.unfinished(output)
    partial = artifact.partial_of(output)
    if begun is not None and "rescored" not in begun.get("config", {}) and artifact.has_work(partial):
        raise UserError(
            f"{partial} holds samples of an unfinished evaluation; finish it with `ulorl eval`, or score again "
            "into another directory with -o"
        )
    inputs = [one["input"] for one in manifest["inputs"]] if same_place else [directory]
    with full_disk_told(output), Scorer(recipe.verify) as verifier, voting_classes(recipe.verify) as classes:
        work = artifact.begin(
            output,
            stage="evaluate",
            config=config | {"rescored": manifest["fingerprint"]},
            inputs=[one for one in inputs if _is_there(str(one))],
            seed=manifest["seed"],
            force=same_place or again,
        )
        if work.done:
            return work.path
        try:
            shutil.rmtree(work.path / SAMPLES, ignore_errors=True)
            scores, estimates = [], {}
            for name, table in tables.items():
                problems = _problems(table)
                place = Path(SAMPLES) / name
                samples = _judge_again(directory / place, work.path / place, table, verifier, verify)
                scores.append(_with_lengths(score_problems(name, problems, samples, classes), table))
                estimates[name] = estimate(scores[-1], token_counts(samples), _ks(recipe, scores[-1]))
                estimates[name] |= _told(earlier["benchmarks"].get(name, {}), estimates[name])
                estimates[name]["unusable_references"] = unusable_references(problems, verifier)
            write_atomic(work.path / TRAINED_RECIPE, dump_recipe(recipe))
            write_results(
                work.path,
                model=earlier["model"],
                fingerprint=earlier["model_fingerprint"],
                settings=earlier["settings"] | {"verify": verify},
                scores=pa.concat_tables(scores),
                estimates=estimates,
            )
            return work.finish({table["benchmark"][0].as_py(): sum(table["samples"].to_pylist()) for table in scores})
        finally:
            work.release()


def _with_lengths(scores: pa.Table, earlier: pa.Table) -> pa.Table:
    """Mean lengths that only the rows of responses told are those of ``earlier``, in the same order."""
    at = scores.schema.get_field_index("mean_length")
    kept = pc.coalesce(scores["mean_length"], earlier["mean_length"])
    return scores.set_column(at, scores.schema.field(at), kept)


def _told(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """What no samples but the rows of responses told, and verdicts do not change; labels were in the rows alone."""
    if earlier.get("labels") is not None:
        log.warning("the labels of the responses are not kept with them; score the file anew to compare with them")
    kept = {"without_reference": earlier["without_reference"]} if "without_reference" in earlier else {}
    return kept | ({"length": earlier.get("length")} if now["length"] is None else {})


def _judge_again(kept: Path, new: Path, scores: pa.Table, verifier: Scorer, verify: Mapping[str, Any]) -> pa.Table:
    """The scored samples in ``kept`` with new verdicts, kept in ``new``; SAMPLE_SCHEMA, in order."""
    try:
        settings = json.loads((kept / SETTINGS_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{kept}: no samples to score again ({error})") from error
    rows = SampleStore(kept, settings).read()
    columns = (rows[name].to_pylist() for name in ("problem_id", "sample_index"))
    place = {sample: row for row, sample in reversed(list(enumerate(zip(*columns, strict=True))))}
    problems = _problems(scores)
    counts = scores["samples"].to_pylist()
    wanted = [(one, index) for one, count in zip(problems, counts, strict=True) for index in range(count)]
    missing = [one.id for one, index in wanted if (one.id, index) not in place]
    if missing:
        raise UserError(f"{kept}: samples of problem {missing[0]} are gone; sample them again with `ulorl eval`")
    rows = rows.take(pa.array([place[one.id, index] for one, index in wanted], pa.int64()))
    judged = judged_columns([one for one, _ in wanted], rows["text"].to_pylist(), verifier)
    for name in judged[0]:
        field = rows.schema.field(name)
        values = pa.array([one[name] for one in judged], field.type)
        rows = rows.set_column(rows.schema.get_field_index(name), field, values)
    SampleStore(new, settings | {"key": settings["key"] | {"verify": verify}}).append(rows)
    return rows.select(SAMPLE_SCHEMA.names)


def _problems(scores: pa.Table) -> list[Problem]:
    columns = (scores[name].to_pylist() for name in ("problem_id", "problem", "reference", "task", "extra"))
    return [
        Problem(identity, text, reference, task=task or "math", extra=json.loads(extra or "{}"))
        for identity, text, reference, task, extra in zip(*columns, strict=True)
    ]


def _ks(recipe: Recipe, scores: pa.Table) -> list[int]:
    fewest = min(scores["samples"].to_pylist())
    return [k for k in recipe.evaluate.pass_k if k <= fewest]


def _is_there(source: str) -> bool:
    return ":" in source.partition("/")[0] or Path(source).exists()
