"""``ulorl verify train``: fine-tunes a model into a judge, as a stage directory.

    from ulorl.verify.judge.training import JudgeTraining, train_judge
    settings = JudgeTraining(model="models/smollm2", inputs=("math_train.jsonl.gz",), evaluate=("pairs.jsonl",))
    directory = train_judge(settings, Path("runs/judge"), force=False, say=print)

The directory is the model (config.json, weights, tokenizer), for transformers and vLLM as it is, with ``judge.json``
(the prompt format, for the cascade), ``pairs.jsonl`` (what it was trained on), ``evaluation.json`` (before and after,
on labelled files that it was not trained on) and the manifest. The same command after a kill goes on from the last
checkpoint; when it is done, it is a no-op.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from ulorl import artifact
from ulorl.engine.prompts import resolve_model
from ulorl.files import write_atomic, write_json
from ulorl.recipe import JudgeRecipe
from ulorl.recipe_engine import JudgeEngineRecipe
from ulorl.verify.judge.ask import Judge, open_judge_engine
from ulorl.verify.judge.cache import ScoreCache
from ulorl.verify.judge.evaluation import evaluate, rules_verdicts
from ulorl.verify.judge.finetune import finetune
from ulorl.verify.judge.labelled import Labelled, excluded_by, read_labelled
from ulorl.verify.judge.pairs import LabelledPair, make_pairs, read_references
from ulorl.verify.judge.prompts import FORMAT_FILE, JudgePrompter, PromptFormat, format_record
from ulorl.verify.judge.settings import JudgeTraining
from ulorl.verify.verdict import Verdict

__all__ = ["JudgeTraining", "read_evaluation", "train_judge"]

PAIRS = "pairs.jsonl"
BEFORE = "before.json"
EVALUATION = "evaluation.json"
CHECKPOINTS = "checkpoints"
FORMAT = PromptFormat(chat=False, question_chars=0)
"""What judges are trained on: short prompts without the problem."""


def train_judge(
    settings: JudgeTraining, output: Path, *, force: bool = False, say: Callable[[str], None] = print
) -> Path:
    """Makes the judge in ``output`` and returns that. Raises UserError for settings and inputs that do not fit."""
    base = resolve_model(settings.model, setting="MODEL")
    config = settings.model_dump(mode="json", exclude={"threads", "checkpoint_every", "model", "inputs", "evaluate"})
    inputs: list[str | Path] = [base, *settings.inputs, *settings.evaluate]
    work = artifact.begin(output, stage="judge", config=config, inputs=inputs, seed=settings.seed, force=force)
    if work.done:
        say(f"{work.path}: already there")
        return work.path
    try:
        return _make(settings, base, work, say)
    finally:
        work.release()


def read_evaluation(directory: Path) -> dict[str, Any]:
    """``evaluation.json`` of a judge: "before" and "after", empty where no labelled files were given.

    `ulorl.verify.judge.report.render` makes lines of it.
    """
    report: dict[str, Any] = json.loads((directory / EVALUATION).read_text(encoding="utf-8"))
    return report


def _make(settings: JudgeTraining, base: Path, work: artifact.Work, say: Callable[[str], None]) -> Path:
    items = read_labelled(settings.evaluate)
    verdicts = rules_verdicts(items)
    pairs = _pairs(settings, items, work.path / PAIRS, say)
    report: dict[str, Any] = {}
    if items:
        before = work.path / BEFORE
        if not before.is_file():
            say("measuring the model as it is")
            write_json(before, _measure(base, settings, items, verdicts))
        report["before"] = json.loads(before.read_text(encoding="utf-8"))
    prompter = JudgePrompter(base, FORMAT)
    finetune(
        base,
        prompter,
        pairs,
        settings,
        checkpoints=work.path / CHECKPOINTS,
        result=work.path,
        say=say,
    )
    write_json(work.path / FORMAT_FILE, {"format": format_record(prompter.format)})
    if items:
        say("measuring the judge")
        report["after"] = _measure(work.path, settings, items, verdicts)
    write_json(work.path / EVALUATION, report)
    shutil.rmtree(work.path / CHECKPOINTS, ignore_errors=True)
    (work.path / BEFORE).unlink(missing_ok=True)
    keep = report.get("after", {}).get("keep", {})
    return work.finish({"pairs": len(pairs), "equivalent": sum(pair.equivalent for pair in pairs), "keep": keep})


def _pairs(
    settings: JudgeTraining, items: Sequence[Labelled], file: Path, say: Callable[[str], None]
) -> list[LabelledPair]:
    """The pairs of an earlier attempt, or new ones."""
    if file.is_file():
        with file.open(encoding="utf-8") as lines:
            return [LabelledPair(**json.loads(line)) for line in lines]
    excluded = excluded_by(items)
    pairs = make_pairs(settings.pairs, read_references(settings.inputs, excluded), excluded, settings.seed, say)
    write_atomic(file, "".join(json.dumps(asdict(pair)) + "\n" for pair in pairs))
    return pairs


def _measure(
    directory: Path, settings: JudgeTraining, items: Sequence[Labelled], verdicts: Sequence[Verdict]
) -> dict[str, Any]:
    """The report of one model, asked in the format of trained judges: before and after differ in the weights alone."""
    engine = JudgeEngineRecipe(threads=settings.threads, max_num_seqs=32)
    dtype: Literal["float32", "bfloat16"] = "bfloat16" if settings.bfloat16 else "float32"
    config = JudgeRecipe(model=str(directory), dtype=dtype, engine=engine)
    with tempfile.TemporaryDirectory(prefix="ulorl-judge-") as scratch:
        judge = Judge(directory, config, ScoreCache(Path(scratch) / "scores.sqlite"), open_judge_engine(config), FORMAT)
        try:
            return evaluate(judge, config, items, verdicts, settings.seed)
        finally:
            judge.close()
