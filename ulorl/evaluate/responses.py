"""Anybody's responses, scored as an evaluation of a model is: the same estimates, and the same artifact where asked.

Does not: know how the responses were sampled; its settings are the verifier's alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ulorl import artifact
from ulorl.evaluate.estimates import estimate
from ulorl.evaluate.finished import SAMPLES, full_disk_told, write_results
from ulorl.evaluate.response_file import Response, name_of, read_responses
from ulorl.evaluate.scores import score_problems
from ulorl.evaluate.stage import unusable_references, voting_classes
from ulorl.evaluate.statistics import LEVEL
from ulorl.files import write_atomic
from ulorl.fingerprint import fingerprint_of
from ulorl.problem import SAMPLE_SCHEMA, Problem
from ulorl.recipe import Recipe
from ulorl.recipe_file import TRAINED_RECIPE, dump_recipe
from ulorl.sample_store import STORE_SCHEMA, SampleStore
from ulorl.sampling import judged_by, judged_columns
from ulorl.verify.tasks.scorer import Scorer


def score_responses(
    path: Path, recipe: Recipe, pass_k: int, output: Path | None, force: bool = False, benchmark: str = ""
) -> dict[str, Any]:
    """What ``estimates.json`` holds, for the responses in ``path``, kept as an evaluation in ``output`` if given.

    ``pass_k`` is the largest k; 0 takes the fewest samples a problem has. ``benchmark`` names the set of problems;
    without it, the file does. A benchmark's ``labels`` say how often the
    verdict is the row's label, where rows have one. Raises UserError as ``read_responses``, and where a problem has
    fewer than ``pass_k`` responses.
    """
    responses, unscored = read_responses(path)
    name, fingerprint = benchmark or name_of(path), fingerprint_of(path)
    verify = recipe.verify.model_dump(mode="json")
    problems = list({response.problem.id: response.problem for response in responses}.values())
    key = {"responses": fingerprint, "verify": verify}
    with Scorer(recipe.verify) as verifier, voting_classes(recipe.verify) as classes:
        judged = judged_columns([one.problem for one in responses], [one.text for one in responses], verifier)
        rows = _table(responses, problems, judged)
        scores = score_problems(
            name, problems, rows.select(SAMPLE_SCHEMA.names), classes, _lengths(responses, problems)
        )
        fewest = min(scores["samples"].to_pylist())
        estimates = estimate(scores, [one.tokens for one in responses], powers_up_to(pass_k or fewest))
        estimates["unusable_references"] = unusable_references(problems, verifier)
    estimates |= {"labels": _labels(responses, judged), "without_reference": unscored}
    result = {
        "model": str(path),
        "model_fingerprint": fingerprint,
        "settings": {"verify": verify},
        "level": LEVEL,
        "benchmarks": {name: estimates},
    }
    if output is not None:
        _keep(output, path, recipe, name, key, rows, scores, result, force)
    return result


def powers_up_to(k: int) -> list[int]:
    """Powers of two below ``k``, and ``k``."""
    return [*(2**power for power in range(k.bit_length()) if 2**power < k), k]


def _table(responses: Sequence[Response], problems: Sequence[Problem], judged: Sequence[Mapping[str, Any]]) -> pa.Table:
    """STORE_SCHEMA, each problem's rows together, in the order of ``problems``."""
    order = {problem.id: index for index, problem in enumerate(problems)}
    counts = dict.fromkeys(order, 0)
    rows = []
    for response, verdict in zip(responses, judged, strict=True):
        counts[response.problem.id] += 1
        rows.append(
            {
                "problem_id": response.problem.id,
                "sample_index": counts[response.problem.id] - 1,
                "seed": 0,
                "text": response.text.encode("utf-8", "backslashreplace").decode(),
                "token_ids": [],
                "finish_reason": response.finish_reason,
                "prompt_hash": "",
                "reference": judged_by(response.problem),
                **verdict,
            }
        )
    rows.sort(key=lambda row: (order[row["problem_id"]], row["sample_index"]))
    return pa.Table.from_pylist(rows, schema=STORE_SCHEMA)


def _lengths(responses: Sequence[Response], problems: Sequence[Problem]) -> list[int | None]:
    """Tokens of each sample, in the order of ``_table``."""
    order = {problem.id: index for index, problem in enumerate(problems)}
    return [one.tokens for one in sorted(responses, key=lambda one: order[one.problem.id])]


def _labels(responses: Sequence[Response], judged: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Agreement of the verdicts with the rows' labels; None where no row has one."""
    labelled = [(one, verdict) for one, verdict in zip(responses, judged, strict=True) if one.label is not None]
    if not labelled:
        return None
    differing = [
        {"row": one.row, "reference": one.problem.answer, "label": one.label}
        | {name: verdict[name] for name in ("answer", "equivalent", "rule")}
        for one, verdict in labelled
        if (verdict["equivalent"] is True) != one.label
    ]
    agreement = 1 - len(differing) / len(labelled)
    return {"labelled": len(labelled), "agreement": agreement, "disagreements": differing}


def _keep(
    output: Path,
    path: Path,
    recipe: Recipe,
    name: str,
    key: Mapping[str, Any],
    rows: pa.Table,
    scores: pa.Table,
    result: Mapping[str, Any],
    force: bool,
) -> None:
    ks = sorted(map(int, result["benchmarks"][name]["pass_at_k"]))
    with full_disk_told(output):
        work = artifact.begin(
            output,
            stage="evaluate",
            config={"key": dict(key), "pass_k": ks} | ({} if name == name_of(path) else {"benchmark": name}),
            inputs=[path],
            seed=0,
            force=force,
        )
        if work.done:
            return
        try:
            store = SampleStore(work.path / SAMPLES / name, {"key": dict(key)})
            if not store.read().num_rows:
                store.append(rows)
            write_atomic(work.path / TRAINED_RECIPE, dump_recipe(recipe))
            write_results(
                work.path,
                model=result["model"],
                fingerprint=result["model_fingerprint"],
                settings=result["settings"],
                scores=scores,
                estimates=result["benchmarks"],
            )
            work.finish({name: rows.num_rows})
        finally:
            work.release()
