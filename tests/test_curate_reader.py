"""A language model for what rules leave undecided: asked once, believed only where it can be checked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from scripted_engine import Letters, Scripted

from ulorl.curate.ask import kind_of_reply, kind_prompt, read_kinds
from ulorl.curate.kinds import classify, kinds
from ulorl.curate.reader import Reader
from ulorl.curate.reword import proposal, reference_value, reword, rewording_prompt
from ulorl.curate.rewrite import rewrite
from ulorl.curate.stage import curate
from ulorl.errors import UserError
from ulorl.problem import Problem
from ulorl.recipe import CurateRecipe, DataRecipe, DifficultyRecipe, EngineRecipe, ReaderRecipe, Recipe
from ulorl.verify.verdict import Item, Verdict


class Boxes:
    """Verifier of equal strings; the answer of a response is what its box holds."""

    def verify(self, items: list[Item]) -> list[Verdict]:
        return [self._one(item) for item in items]

    def _one(self, item: Item) -> Verdict:
        boxed = re.findall(r"\\boxed\{([^{}]*)\}", item.response)
        answer = item.response if item.is_answer else boxed[-1] if boxed else None
        return Verdict(answer == item.reference, answer, "string")


def reader_of(engine: Scripted, tmp_path: Path, **settings: Any) -> Reader:
    settings = {"path": "x", "max_tokens": 400, "max_prompt_tokens": 5000} | settings
    return Reader(
        lambda: (engine, Letters()),  # type: ignore[arg-type,return-value]
        Boxes(),
        ReaderRecipe(**settings),
        seed=1,
        directory=tmp_path / "replies",
        key={"model": "m"},
    )


UNSURE = Problem("u", "How many apples are there? And what do they cost?", "3")
SURE = Problem("s", "What is 2+2?", "4")


def test_only_uncertain_rows_are_asked_about_and_only_once(tmp_path: Path) -> None:
    assert not classify(UNSURE.problem, UNSURE.answer).certain
    assert classify(SURE.problem, SURE.answer).certain
    engine = Scripted(lambda prompt: "<think>KIND: proof</think>It asks one thing.\nKIND: short_answer")
    reader = reader_of(engine, tmp_path)
    for _ in range(2):
        result = kinds([SURE, UNSURE], lambda rows: read_kinds(rows, reader))
        assert [one.kind for one in result.kept] == ["short_answer", "short_answer"]
    assert len(engine.asked) == 1
    assert UNSURE.problem in engine.asked[0]
    assert (result.notes["kinds a model decided"], result.notes["kinds a model changed"]) == (1, 1)


@pytest.mark.parametrize("reply", ["I cannot say.", "KIND: nonsense", "x" * 500, ""])
def test_a_reply_that_names_no_kind_leaves_the_rule_s(reply: str, tmp_path: Path) -> None:
    reader = reader_of(Scripted(lambda prompt: reply), tmp_path)
    result = kinds([UNSURE], lambda rows: read_kinds(rows, reader))
    assert [one.reason for one in result.dropped] == ["multi_part"]
    assert result.notes["kinds a model did not name"] == 1


def test_a_question_too_long_for_the_model_is_not_asked(tmp_path: Path) -> None:
    engine = Scripted(lambda prompt: "KIND: proof")
    assert read_kinds([UNSURE], reader_of(engine, tmp_path, max_prompt_tokens=100)) == {}
    assert not engine.asked


def test_settings_without_room_for_a_question_are_a_clear_error(tmp_path: Path) -> None:
    reader = reader_of(Scripted(lambda prompt: ""), tmp_path, max_tokens=20_000)
    with pytest.raises(UserError, match=r"curate\.reader\.max_tokens"):
        read_kinds([UNSURE], reader)


def test_the_last_kind_line_counts() -> None:
    assert kind_of_reply("KIND: proof\nno:\n**KIND: multi_part**") == "multi_part"
    assert kind_of_reply("The KIND: proof is not it") is None
    assert "{answer} {0}" in kind_prompt(Problem("x", "Simplify {answer} {0}", "1"))


CHOICE = Problem("c", "Which of the following is 2+2?\nA) 3\nB) 4\nC) 5", "B", kind="multiple_choice")
PROOF = Problem("p", "Prove that the sum of the angles of a triangle is $180^\\circ$.", "", kind="proof")
YES = Problem("y", "Is there a prime between 24 and 28?", "No", kind="true_false")


def reworded(problem: str, answer: str, solved: str) -> Callable[[str], str]:
    def reply(prompt: str) -> str:
        if prompt.startswith("Reword"):
            return f"<problem>{problem}</problem>\n<answer>{answer}</answer>"
        return f"So it is \\boxed{{{solved}}}."

    return reply


def test_what_no_rule_rewrites_a_model_does(tmp_path: Path) -> None:
    reader = reader_of(Scripted(reworded("What is the value of 2+2?", "4", "4")), tmp_path)
    recipe = CurateRecipe()
    assert [one.reason for one in rewrite([CHOICE]).dropped] == ["option_dependent"]
    (made,) = rewrite([CHOICE], lambda rows: reword(rows, reader, recipe)).kept
    assert (made.problem, made.answer, made.id, made.kind) == ("What is the value of 2+2?", "4", "c", "multiple_choice")
    assert (made.original_problem, made.original_answer) == (CHOICE.problem, "B")


def test_a_proof_becomes_its_value_where_the_value_is_in_the_original(tmp_path: Path) -> None:
    task = "What is the sum of the angles of a triangle?"
    good = reader_of(Scripted(reworded(task, "180^\\circ", "180^\\circ")), tmp_path / "good")
    (made,) = rewrite([PROOF], lambda rows: reword(rows, good, CurateRecipe())).kept
    assert (made.problem, made.answer) == (task, "180^\\circ")
    (kept_out,) = rewrite([PROOF]).dropped
    assert (kept_out.reason, kept_out.problem) == ("proof", PROOF)


@pytest.mark.parametrize(
    ("problem", "text", "answer", "solved", "reason"),
    [
        (CHOICE, "Which of the following is 2+2? A) 3 B) 4 C) 5", "4", "4", "not_rewritten"),
        (CHOICE, "What is the value of 2+3, in full?", "5", "5", "not_rewritten"),
        (CHOICE, "What is the value of 2+2, in full?", "4", "5", "unconfirmed_rewrite"),
        (CHOICE, "Is the value of 2+2 equal to four?", "4", "4", "not_rewritten"),
        (PROOF, "Prove that the sum of the angles is 180 degrees.", "180", "180", "not_rewritten"),
        (PROOF, "What is the sum of the angles of a triangle?", "360", "360", "not_rewritten"),
        (PROOF, "The sum of angles is $180^\\circ$. What is it?", "180^\\circ", "180^\\circ", "not_rewritten"),
        (YES, "How many primes are between 24 and 28?", "0", "0", "not_rewritten"),
        (YES, "Is there a prime between 24 and 28?", "No", "No", "not_rewritten"),
    ],
)
def test_a_rewording_that_cannot_be_trusted_is_dropped(
    problem: Problem, text: str, answer: str, solved: str, reason: str, tmp_path: Path
) -> None:
    reader = reader_of(Scripted(reworded(text, answer, solved)), tmp_path)
    result = rewrite([problem], lambda rows: reword(rows, reader, CurateRecipe()))
    assert [(one.reason, one.problem) for one in result.dropped] == [(reason, problem)]


def test_agreement_is_counted(tmp_path: Path) -> None:
    calls = iter(range(100))

    def reply(prompt: str) -> str:
        if prompt.startswith("Reword"):
            return "<problem>What is the value of 2+2?</problem><answer>4</answer>"
        return "\\boxed{4}" if next(calls) < 2 else "\\boxed{5}"

    for agree, kept in ((2, 1), (3, 0)):
        calls = iter(range(100))
        reader = reader_of(Scripted(reply), tmp_path / str(agree), samples=4, agree=agree)
        assert len(rewrite([CHOICE], lambda rows: reword(rows, reader, CurateRecipe())).kept) == kept  # noqa: B023


def test_the_reference_s_value() -> None:
    assert reference_value(CHOICE) == "4"
    assert reference_value(Problem("x", "Which?", "B", kind="multiple_choice")) is None
    assert reference_value(YES) is None
    assert "{answer}" in rewording_prompt(Problem("x", "Show {answer}", "1", kind="proof"))
    assert proposal(CHOICE, "IMPOSSIBLE") is None


def test_agree_above_samples_is_refused() -> None:
    with pytest.raises(ValueError, match="agree"):
        ReaderRecipe(samples=2, agree=3)


@pytest.mark.parametrize("kind", ["hf", pytest.param("vllm", marks=pytest.mark.engine)])
def test_a_real_engine_s_noise_decides_nothing(kind: Any, tiny_model: Path, tmp_path: Path) -> None:
    """The whole stage with a model of random weights: rows keep the kind of the rules, replies are kept, it resumes."""
    if kind == "vllm":
        pytest.importorskip("vllm", reason="vLLM is not installed")
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"problem": one.problem, "answer": one.answer or "-"}) + "\n" for one in ROWS))
    recipe = Recipe(
        data=DataRecipe(inputs=(str(rows),)),
        curate=CurateRecipe(
            steps=("kinds", "rewrite"),
            reader=ReaderRecipe(path=str(tiny_model), max_tokens=8, max_prompt_tokens=1900, samples=2, agree=1),
            difficulty=DifficultyRecipe(max_tokens=8),
        ),
        engine=EngineRecipe(kind=kind),
    )
    out = curate(recipe, tmp_path / "out", engine_factory=None)
    kept = pq.read_table(out / "problems.parquet").to_pylist()
    assert [one["problem"] for one in kept] == [SURE.problem]
    reasons = pq.read_table(out / "dropped.parquet")["reason"].to_pylist()
    assert sorted(reasons) == ["multi_part", "not_rewritten", "not_rewritten", "not_rewritten"]
    assert list((out / "replies" / "kinds").glob("shard-*.parquet"))


ROWS = [SURE, UNSURE, CHOICE, PROOF, YES]
