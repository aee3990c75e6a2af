"""Sampling: kept as it finishes, resumed exactly, extended, never mixed."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from ulorl import sampling as module
from ulorl.engine.base import Generation, GenerationRequest, Sampling
from ulorl.errors import UserError
from ulorl.problem import SAMPLE_SCHEMA, Problem
from ulorl.sampling import sample_problems
from ulorl.seeds import derive_seed
from ulorl.verify.verdict import Item, Verdict

PROBLEMS = [Problem(id=f"p{i}", problem=f"What is {i}?", answer=str(i % 3)) for i in (3, 1, 2, 0)]


class Digits:
    """Prompter whose tokens are code points."""

    def encode(self, problem: str) -> tuple[int, ...]:
        return tuple(map(ord, problem))

    def decode(self, ids: tuple[int, ...]) -> str:
        return "".join(map(chr, ids))


class SeededEngine:
    """Answers with a digit drawn from the request's seed, out of order; dies after ``dies_after``."""

    name = "fake"
    policy_version = 7
    max_model_len = 100

    def __init__(self, dies_after: int | None = None) -> None:
        self.dies_after = dies_after
        self.asked: list[str] = []

    def generate(self, requests, on_done=None):
        self.asked += [request.id for request in requests]
        done = [self._answer(request) for request in requests]
        for count, generation in enumerate(reversed(done)):
            if count == self.dies_after:
                raise UserError("the server died")
            on_done(generation)
        return done

    def _answer(self, request: GenerationRequest) -> Generation:
        draw = random.Random(request.seed)
        token = ord(str(draw.randrange(4)))
        finish = "length" if draw.random() < 0.2 else "stop"
        return Generation(request.id, (token,), (-0.5,), finish, self.policy_version)


class Strings:
    """Verifier of equal strings, undecided about "3"."""

    def __init__(self) -> None:
        self.judged = 0

    def verify(self, items: list[Item]) -> list[Verdict]:
        self.judged += len(items)
        return [
            Verdict(None, item.response, "none", "cannot tell")
            if item.response == "3"
            else Verdict(item.response == item.reference, item.response, "string")
            for item in items
        ]


def run(directory: Path, *, engine=None, samples=5, problems=PROBLEMS, verifier=None, **changes):
    settings = {
        "sampling": Sampling(0.85, 0.95, 20),
        "max_tokens": 10,
        "seed": 1,
        "key": {"model": "abc"},
        **changes,
    }
    return sample_problems(
        problems,
        engine=engine or SeededEngine(),
        prompter=Digits(),
        verifier=verifier or Strings(),
        samples=samples,
        directory=directory,
        **settings,
    )


def test_table_is_complete_ordered_and_judged(tmp_path):
    reports = []
    table = run(tmp_path, on_progress=lambda done, total: reports.append((done, total)))
    assert table.schema == SAMPLE_SCHEMA
    rows = table.to_pylist()
    assert [(r["problem_id"], r["sample_index"]) for r in rows] == [(p.id, i) for p in PROBLEMS for i in range(5)]
    answers = {p.id: p.answer for p in PROBLEMS}
    for row in rows:
        assert row["seed"] == derive_seed(1, "sample", row["problem_id"], row["sample_index"])
        assert row["text"] == row["answer"] == "".join(map(chr, row["token_ids"]))
        if row["text"] == "3":
            assert (row["equivalent"], row["reward"], row["reason"]) == (None, 0.0, "cannot tell")
        else:
            assert row["equivalent"] == (row["text"] == answers[row["problem_id"]])
            assert row["reward"] == float(row["equivalent"])
        assert (row["segment_lengths"], row["segment_versions"]) == ([1], [7])
    assert {row["finish_reason"] for row in rows} == {"stop", "length"}
    assert {row["equivalent"] for row in rows} == {None, True, False}
    assert reports == [(done, 20) for done in range(21)]


@pytest.mark.parametrize("dies_after", [0, 1, 7, 19])
def test_resumes_where_the_engine_died(tmp_path, monkeypatch, dies_after):
    monkeypatch.setattr(module, "FLUSH_SAMPLES", 3)
    with pytest.raises(UserError, match="the server died"):
        run(tmp_path / "died", engine=SeededEngine(dies_after))
    engine, verifier, reports = SeededEngine(), Strings(), []
    resumed = run(
        tmp_path / "died",
        engine=engine,
        verifier=verifier,
        on_progress=lambda *report: reports.append(report),
    )
    assert len(engine.asked) == verifier.judged == 20 - dies_after
    assert reports[0] == (dies_after, 20)
    assert resumed.equals(run(tmp_path / "whole"))


def test_finished_samples_are_not_generated_again(tmp_path):
    first = run(tmp_path)
    engine, verifier = SeededEngine(), Strings()
    assert run(tmp_path, engine=engine, verifier=verifier).equals(first)
    assert not engine.asked
    assert verifier.judged == 0


def test_more_samples_extend_the_set_and_fewer_take_the_first(tmp_path):
    three = run(tmp_path, samples=3)
    engine = SeededEngine()
    eight = run(tmp_path, samples=8, engine=engine)
    assert len(engine.asked) == 4 * 5
    assert eight.equals(run(tmp_path / "fresh", samples=8))
    assert run(tmp_path, samples=3).equals(three)


def test_an_empty_directory_starts_from_earlier_samples_made_alike(tmp_path):
    run(tmp_path / "three", samples=3)
    engine = SeededEngine()
    table = run(tmp_path / "eight", samples=8, earlier=tmp_path / "three", engine=engine)
    assert len(engine.asked) == 4 * 5
    assert table.equals(run(tmp_path / "fresh", samples=8, earlier=tmp_path / "absent"))
    engine = SeededEngine()
    run(tmp_path / "other", samples=3, earlier=tmp_path / "three", seed=2, engine=engine)
    assert len(engine.asked) == 4 * 3


def test_other_settings_are_never_mixed(tmp_path):
    run(tmp_path)
    for change, told in [
        ({"sampling": Sampling(0.6, 0.95, 20)}, r"sampling\.temperature was 0\.85, now 0\.6"),
        ({"max_tokens": 11}, "max_tokens was 10, now 11"),
        ({"seed": 2}, "seed was 1, now 2"),
        ({"key": {"model": "other"}}, 'key.model was "abc", now "other"'),
    ]:
        with pytest.raises(UserError, match=told):
            run(tmp_path, **change)
    (tmp_path / "settings.json").unlink()
    with pytest.raises(UserError, match=r"no settings\.json"):
        run(tmp_path)


def test_a_changed_reference_is_judged_again_and_a_changed_prompt_sampled_again(tmp_path):
    run(tmp_path)
    other_answer = [Problem(id="p3", problem="What is 3?", answer="1"), *PROBLEMS[1:]]
    engine, verifier = SeededEngine(), Strings()
    table = run(tmp_path, problems=other_answer, engine=engine, verifier=verifier)
    assert not engine.asked
    assert verifier.judged == 5
    assert table.equals(run(tmp_path / "fresh", problems=other_answer))

    other_text = [Problem(id="p3", problem="Tell 3!", answer="0"), *PROBLEMS[1:]]
    run(tmp_path, problems=other_text, engine=engine)
    assert engine.asked == [f"p3#{index}" for index in range(5)]


def test_a_finished_sample_reaches_the_disk_while_the_engine_still_works(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "FLUSH_SECONDS", 0.01)
    written = threading.Event()

    class Waiting(SeededEngine):
        def generate(self, requests, on_done=None):
            on_done(self._answer(requests[0]))
            while not list(tmp_path.glob("*.parquet")) and not written.wait(0.01):
                pass
            raise KeyboardInterrupt

    giving_up = threading.Timer(10, written.set)
    giving_up.start()
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, engine=Waiting())
    giving_up.cancel()
    assert not written.is_set()


def test_an_error_of_the_verifier_stops_sampling(tmp_path, monkeypatch):
    class Broken:
        def verify(self, items):
            raise RuntimeError("broken verifier")

    with pytest.raises(RuntimeError, match="broken verifier"):
        run(tmp_path, verifier=Broken())


def test_refusals_name_the_problem(tmp_path):
    with pytest.raises(UserError, match="p1 appears twice"):
        run(tmp_path, problems=[*PROBLEMS, PROBLEMS[1]])
    with pytest.raises(UserError, match=r"p3: prompt of 10 tokens and max_tokens = 91 exceed the engine's 100"):
        run(tmp_path / "long", max_tokens=91)


def test_an_unreadable_shard_is_named(tmp_path):
    run(tmp_path)
    (shard,) = tmp_path.glob("*.parquet")
    shard.write_bytes(b"PAR1 cut short")
    with pytest.raises(UserError, match=r"shard-000000\.parquet: not a readable samples file"):
        run(tmp_path)
