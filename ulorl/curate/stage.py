"""The curate stage: run the steps of a recipe in order and write what came out.

Writes problems.parquet, dropped.parquet, funnel.json, funnel.md, card.md and what models said: samples/ and guesses/
of difficulty, votes/ and votes.parquet of references, replies/ where a model decided what rules could not.
Invariants: every row of the input is in exactly one of the two Parquet files; the same input, recipe and seed
give the same bytes; nothing appears under the output's name before everything is there (``ulorl.artifact``).

Does not know how a step decides.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ulorl import artifact
from ulorl.curate.card import data_card
from ulorl.curate.funnel import check_conservation, funnel_page
from ulorl.curate.reader import READER_BATCH_ROWS, open_reader, reader_identity
from ulorl.curate.spill import write_parquet
from ulorl.curate.stream import BATCH_ROWS, Progress, Stream
from ulorl.curate.votes import OpenModel, sampling_key
from ulorl.errors import UserError
from ulorl.files import write_atomic, write_json
from ulorl.problem import DROPPED_SCHEMA, PROBLEM_SCHEMA, Problem
from ulorl.recipe import FieldNames, Recipe
from ulorl.rows import PROBLEMS_FILE, read_problems, stream_problems

ANSWERED = ("samples", "guesses", "votes", "replies")
"""Directories of what models said, from which an interrupted run goes on."""


def curate(
    recipe: Recipe,
    output: Path,
    *,
    engine_factory: OpenModel | None,
    force: bool = False,
    progress: Progress | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Path:
    """Curate ``recipe.data.inputs`` into the artifact ``output``; a no-op when it is there.

    ``engine_factory`` opens the start model, and is called only when difficulty must sample; it may be None
    where no step needs one. ``progress`` receives (step, rows done, rows in all). Returns the path.
    UserError: unreadable input, no model for difficulty, or no row left (saying which step took them).
    """
    if not recipe.data.inputs:
        raise UserError("data.inputs: names nothing; give at least one file, directory, hub:NAME or quickstart:N")
    work = artifact.begin(
        output,
        stage="curate",
        config=_identity(recipe, engine_factory is not None),
        inputs=[*recipe.data.inputs, *recipe.curate.benchmarks, *recipe.curate.consensus.files],
        seed=recipe.seed,
        force=force,
    )
    if work.done:
        return work.path
    spill = work.path / "spill"
    shutil.rmtree(spill, ignore_errors=True)
    try:
        data, steps = recipe.data, set(recipe.curate.steps)
        sources = recipe.curate.benchmarks if "contamination" in steps else ()
        benchmarks = read_benchmarks(sources, recipe.seed)  # first: what is wrong with them shows before hours of work
        with open_reader(recipe, engine_factory, work.path / "replies") as reader:
            rows_together = READER_BATCH_ROWS if reader is not None else batch_rows
            stream = Stream(recipe.curate, spill, progress or _silent, rows_together)
            rows = stream_problems(data.inputs, data.fields, data.limit, recipe.seed, stream.messages.append)
            stream.read(rows, reader)
        if {"duplicates", "contamination"} & steps:
            stream.carry_out(benchmarks)
        if {"references", "difficulty"} & steps:
            from ulorl.curate.last_steps import LastSteps
            from ulorl.verify.tasks.scorer import Scorer

            with Scorer(recipe.verify) as scorer:
                LastSteps(recipe, stream, scorer, engine_factory, work.path, progress or _silent).run()
        funnel = stream.funnel()
        kept = write_parquet(work.path / PROBLEMS_FILE, PROBLEM_SCHEMA, stream.problems())
        lost = write_parquet(work.path / "dropped.parquet", DROPPED_SCHEMA, stream.dropped())
        check_conservation(funnel, kept, lost)
        write_json(work.path / "funnel.json", funnel)
        write_atomic(work.path / "funnel.md", funnel_page(funnel))
        write_atomic(work.path / "card.md", data_card(recipe, stream.census, funnel))
        shutil.rmtree(spill)  # before the directory takes its name
        return work.finish(counts={"rows_in": funnel["rows_in"], "rows_out": funnel["rows_out"], "dropped": lost})
    except BaseException:
        # Nothing to go on from: left there, it would be in the way of the same command with a mistake mended.
        if not any((work.path / name).exists() for name in ANSWERED):
            shutil.rmtree(work.path, ignore_errors=True)
        raise
    finally:
        shutil.rmtree(spill, ignore_errors=True)
        work.release()


def read_benchmarks(sources: Sequence[str], seed: int) -> dict[str, list[Problem]]:
    """Benchmark name -> its items. The name is the file's (or data set's); the whole source where two share it.

    UserError for a source without items, or with rows that are none: an item that is not read cannot be found.
    """
    names = Counter(Path(source).name for source in sources)
    benchmarks: dict[str, list[Problem]] = {}
    for source in sources:
        items, bad = read_problems([source], FieldNames(), 0, seed)
        if bad:
            raise UserError(
                f"curate.benchmarks: {source}: {len(bad)} of {len(items) + len(bad)} rows are no benchmark items; "
                f"the first, line {bad[0].line}: {bad[0].reason}"
            )
        name = Path(source).name
        benchmarks[name if names[name] == 1 else source] = items
    return benchmarks


def _identity(recipe: Recipe, has_model: bool) -> dict[str, Any]:
    """What besides inputs and seed determines the result, as JSON."""
    curate, steps = recipe.curate, set(recipe.curate.steps)
    # Where samples come from, and whether they are made anew, does not change them.
    apart: Any = {"benchmarks": True, "workers": True, "consensus": {"voters", "files"}, "difficulty": {"earlier"}}
    config: dict[str, Any] = {
        "data": recipe.data.model_dump(mode="json", exclude={"inputs"}),
        "curate": curate.model_dump(mode="json", exclude=apart),
        "benchmarks": len(curate.benchmarks),
        "files": len(curate.consensus.files),
        "verify": recipe.verify.model_dump(mode="json"),
    }
    if has_model and "difficulty" in steps:
        config["sampling"] = sampling_key(recipe, recipe.model)
    if curate.consensus.voters and "references" in steps:
        config["voters"] = {
            voter.label: voter.model_dump(mode="json", exclude={"name", "model", "engine"})
            | sampling_key(recipe, voter.model)
            for voter in curate.consensus.voters
        }
    if curate.reader.path and {"kinds", "rewrite"} & steps:
        config["reader"] = reader_identity(recipe)
    return config


def _silent(step: str, done: int, total: int) -> None:
    pass
