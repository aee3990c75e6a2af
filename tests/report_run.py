"""A small run on disk, made of the real file formats, for the tests of the report."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa

from ulorl import artifact
from ulorl.curate.funnel import step_entry
from ulorl.curate.reasons import drop
from ulorl.evaluate.estimates import estimate
from ulorl.evaluate.finished import write_results
from ulorl.evaluate.scores import score_problems
from ulorl.files import write_json, write_table
from ulorl.problem import SAMPLE_SCHEMA, Problem
from ulorl.recipe import Recipe
from ulorl.recipe_file import dump_recipe
from ulorl.rows import problem_table

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\x00\x1b[31m\u202e \ud800 $\\text{<b onclick=x>}$ & 'q' \""
)
FORMULA = r"Find $\frac{x^2}{\sqrt{3}}$ and \[\begin{pmatrix}1&2\\3&4\end{pmatrix}\]"


def problem(number: int, text: str = FORMULA) -> Problem:
    return Problem(f"p{number:03d}", f"{text} ({number})", str(number), source="synthetic", kind="short_answer")


def sample(one: Problem, index: int, right: bool, text: str = "", finish: str = "stop") -> dict[str, Any]:
    answer = one.answer if right else f"{one.answer}1"
    return {
        "problem_id": one.id,
        "sample_index": index,
        "seed": index,
        "text": text or f"So \\boxed{{{answer}}}.",
        "token_ids": [1, 2, 3],
        "logprobs": None,
        "segment_lengths": [2, 1],
        "segment_versions": [4, 5],
        "finish_reason": finish,
        "answer": answer,
        "equivalent": right,
        "reward": float(right),
        "rule": "exact",
        "reason": "",
    }


def make_evaluation(
    path: Path, right: list[int], n: int = 4, text: str = "", bench: str = "toy", finished: bool = True
) -> Path:
    """An evaluation in which ``right[i]`` of ``n`` samples of problem i are right."""
    problems = [problem(number) for number in range(len(right))]
    rows = [
        sample(one, index, index < correct, text)
        for one, correct in zip(problems, right, strict=True)
        for index in range(n)
    ]
    table = pa.Table.from_pylist(_cleaned(rows), SAMPLE_SCHEMA)
    work = artifact.begin(path, stage="evaluate", config={"n": n, "right": right}, inputs=[], seed=0)
    folder = work.path / "samples" / bench
    folder.mkdir(parents=True)
    write_table(folder / "shard-000000.parquet", table)
    if not finished:
        work.release()
        return work.path
    scores = score_problems(bench, problems, table, lambda answers: list(range(len(answers))))
    estimates = estimate(scores, [3] * len(rows), [1, 2, n])
    settings = {"temperature": 0.85, "top_p": 0.95, "top_k": 20, "samples": n, "max_tokens": 99, "seed": 0}
    write_results(
        work.path, model="toy/model", fingerprint="f", settings=settings, scores=scores, estimates={bench: estimates}
    )
    return work.finish({bench: len(rows)})


def make_curation(path: Path, text: str = FORMULA) -> Path:
    kept, gone = [problem(number) for number in range(8)], [problem(100 + number, text) for number in range(5)]
    work = artifact.begin(path, stage="curate", config={}, inputs=["quickstart:13"], seed=0)
    dropped = [drop(one, "kinds", "multi_part", f"parts {text}") for one in gone]
    steps = [step_entry("load", 13, 13, [], {}), step_entry("kinds", 13, 8, dropped, {"kinds seen": 2})]
    write_json(work.path / "funnel.json", {"rows_in": 13, "rows_out": 8, "steps": steps, "messages": []})
    write_table(work.path / "problems.parquet", problem_table(kept))
    return work.finish({"rows_in": 13, "rows_out": 8})


def make_training(path: Path, steps: int, of: int, finished: bool, text: str = "") -> Path:
    recipe = Recipe()
    config = {"train": recipe.train.model_copy(update={"steps": of}).model_dump(mode="json")}
    work = artifact.begin(path, stage="train", config=config, inputs=[], seed=0)
    (work.path / "recipe.toml").write_text(dump_recipe(recipe))
    (work.path / "rollouts").mkdir()
    rows = _cleaned([sample(problem(1), 0, True, text), sample(problem(2), 1, False, text)])
    write_table(work.path / "rollouts" / "step_000001.parquet", pa.Table.from_pylist(rows, SAMPLE_SCHEMA))
    with (work.path / "metrics.jsonl").open("w") as file:
        for step in range(1, steps + 1):
            file.write(json.dumps(metrics(step)) + "\n")
    if finished:
        return work.finish({"steps": steps})
    work.release()
    return work.path


def metrics(step: int) -> dict[str, Any]:
    return {
        "step": step,
        "reward/mean": 0.5 + 0.4 * math.sin(step / 300) * (step % 7) / 7,
        "entropy/mean": 0.3,
        "entropy/target": 0.2,
        "length/mean": 100 + step % 50,
        "length/max": 9000 if step == 4321 else 400,
        "mismatch/mean": 1e-4,
        "mismatch/max": "nan" if step == 3 else 0.02,
        "pool/unfinished_samples": step % 90,
        "segment/age_0_share": 0.75,
        "segment/age_1_share": 0.25,
        "time/step_s": 2.5,
        "segment/tokens": 1000,
    }


def make_run(root: Path, steps: int = 30, text: str = "") -> Path:
    """A whole run: curation, training, before and after."""
    root.mkdir()
    make_curation(root / "curate", text or FORMULA)
    make_evaluation(root / "before", [0, 0, 1, 2, 4, 4, 0, 3], text=text)
    make_training(root / "train", steps, steps, finished=True, text=text)
    make_evaluation(root / "after", [4, 3, 3, 2, 4, 1, 0, 3], text=text)
    return root


def _cleaned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Arrow holds no lone surrogates."""
    return [row | {"text": row["text"].encode("utf-8", "replace").decode()} for row in rows]
