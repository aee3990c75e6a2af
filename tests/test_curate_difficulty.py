"""Difficulty: the window, undecided verdicts, guesses, samples found again after kill -9 and in later runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ulorl.curate.difficulty import Solved, difficulty
from ulorl.curate.earlier import EarlierSamples
from ulorl.curate.guesses import BareAnswers
from ulorl.curate.stage import curate
from ulorl.engine.base import Generation
from ulorl.errors import UserError
from ulorl.problem import Problem
from ulorl.recipe import CurateRecipe, DataRecipe, DifficultyRecipe, EngineRecipe, ModelRecipe, Recipe, VerifyRecipe
from ulorl.recipe_curate import ConsensusRecipe, GuessRecipe, VoterRecipe
from ulorl.verify import Verifier
from ulorl.verify.verdict import Item

SHARED = Path(os.environ.get("ULORL_SHARED", Path(__file__).parents[2] / "shared")) / "data"
ROWS = [{"id": f"d{n}", "problem": f"Task {n}: how much is {n} and 10?", "answer": str(n + 10)} for n in range(9)]


class Letters:
    """Prompter whose tokens are code points."""

    def __init__(self, prompt: str = "{problem}") -> None:
        self.prompt = prompt

    def encode(self, problem: str) -> tuple[int, ...]:
        return tuple(map(ord, self.prompt.replace("{problem}", problem)))

    def decode(self, ids: tuple[int, ...]) -> str:
        return "".join(map(chr, ids))


class Counting:
    """An engine that answers by (prompt, number of the sample)."""

    name = "fake"
    policy_version = 0
    max_model_len = 5000

    def __init__(self, reply: Callable[[str, int], str]) -> None:
        self.reply, self.asked = reply, list[str]()

    def generate(self, requests: Any, on_done: Any = None) -> list[Generation]:
        made = []
        for request in requests:
            self.asked.append(request.id)
            prompt = "".join(map(chr, request.prompt_ids))
            ids = tuple(map(ord, self.reply(prompt, int(request.id.rsplit("#")[1]))))
            finish = "stop" if len(ids) <= request.max_tokens else "length"
            ids = ids[: request.max_tokens]
            made.append(Generation(request.id, ids, (0.0,) * len(ids), finish, 0))  # type: ignore[arg-type]
            if on_done:
                on_done(made[-1])
        return made


def number_of(prompt: str) -> int:
    return int(prompt.split()[1].rstrip(":"))


def often(prompt: str, index: int) -> str:
    """Task n is solved n times of 8."""
    number = number_of(prompt)
    return f"So it is \\boxed{{{number + 10 if index < number else 'nothing'}}}"


def recipe_for(tmp_path: Path, rows: list[dict[str, Any]] = ROWS, **settings: Any) -> Recipe:
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    model = tmp_path / "model"
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text("{}")
    difficulty_settings = DifficultyRecipe(max_tokens=200, **settings)
    return Recipe(
        data=DataRecipe(inputs=(str(source),)),
        curate=CurateRecipe(steps=("difficulty",), difficulty=difficulty_settings),
        model=ModelRecipe(path=str(model)),
    )


def run(recipe: Recipe, out: Path, engine: Counting) -> Path:
    return curate(recipe, out, engine_factory=lambda: (engine, Letters()))  # type: ignore[arg-type,return-value]


def rates(out: Path) -> dict[str, float | None]:
    return {one["source_id"]: one["pass_rate"] for one in pq.read_table(out / "problems.parquet").to_pylist()}


def reasons(out: Path) -> dict[str, str]:
    return {one["source_id"]: one["reason"] for one in pq.read_table(out / "dropped.parquet").to_pylist()}


def notes(out: Path) -> dict[str, int]:
    made: dict[str, int] = json.loads((out / "funnel.json").read_text())["steps"][-1]["notes"]
    return made


def test_the_window(tmp_path: Path) -> None:
    by_default = run(recipe_for(tmp_path), tmp_path / "default", Counting(often))
    assert rates(by_default) == {f"d{n}": n / 8 for n in range(8)}
    assert reasons(by_default) == {"d8": "too_easy"}
    assert pq.read_table(by_default / "dropped.parquet")["detail"][0].as_py() == "8 of 8 right, at most 0.999 is kept"
    window = run(recipe_for(tmp_path, min_pass_rate=0.125, max_pass_rate=0.875), tmp_path / "win", Counting(often))
    assert rates(window) == {f"d{n}": n / 8 for n in range(1, 8)}
    assert reasons(window) == {"d0": "too_hard", "d8": "too_easy"}
    unsolved = run(recipe_for(tmp_path, drop_unsolved=True), tmp_path / "unsolved", Counting(often))
    assert reasons(unsolved) == {"d0": "unsolved", "d8": "too_easy"}


def test_undecided_verdicts_never_drop_a_row_by_themselves() -> None:
    assert Solved(7, 0, 1).bounds == (0.875, 1.0)
    assert (Solved(7, 0, 1).rate, Solved(0, 0, 8).rate) == (1.0, None)
    assert str(Solved(7, 0, 1)) == "7 of 8 right, 1 undecided"

    class Known:
        def __init__(self, solved: dict[str, tuple[int, int, int]]) -> None:
            self.solved = solved

        def sample(self, problems: list[Problem], *_: Any) -> Any:
            import pyarrow as pa

            names, verdicts = [], []
            for name, (right, wrong, undecided) in self.solved.items():
                names += [name] * (right + wrong + undecided)
                verdicts += [True] * right + [False] * wrong + [None] * undecided
            size = len(names)
            return pa.table(
                {
                    "problem_id": names,
                    "equivalent": pa.array(verdicts, pa.bool_()),
                    "reason": ["unparsable"] * size,
                    "finish_reason": ["length"] * size,
                }
            )

    solved = {"all": (8, 0, 0), "open": (7, 0, 1), "none": (0, 8, 0), "may": (0, 7, 1), "blank": (0, 0, 8)}
    problems = [Problem(name, "What?", "1") for name in solved]
    result = difficulty(problems, DifficultyRecipe(min_pass_rate=0.125), Known(solved))  # type: ignore[arg-type]
    assert {row.problem.id: row.reason for row in result.dropped} == {"all": "too_easy", "none": "too_hard"}
    assert {row.id: row.pass_rate for row in result.kept} == {"open": 1.0, "may": 0.0, "blank": None}
    assert result.notes["undecided verdicts"] == 10
    assert result.notes["rows kept because of undecided verdicts"] == 3
    assert result.notes["samples cut at max_tokens"] == 40


def test_what_is_guessed_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reply(prompt: str, index: int) -> str:
        if "without any reasoning" not in prompt:
            return often(prompt, index)
        right = number_of(prompt) + 10
        return f"{right}" if index < number_of(prompt) % 4 else f"{right + 1}"

    guess = GuessRecipe(samples=3, right=2, max_tokens=20)
    engine = Counting(reply)
    monkeypatch.setattr("ulorl.engine.prompts.Prompter", lambda model, _: Letters(model.prompt))
    out = run(recipe_for(tmp_path, guess=guess), tmp_path / "out", engine)
    assert reasons(out) == {
        "d8": "too_easy",
        "d2": "guessable",
        "d3": "guessable",
        "d6": "guessable",
        "d7": "guessable",
    }
    details = {one["source_id"]: one["detail"] for one in pq.read_table(out / "dropped.parquet").to_pylist()}
    assert details["d2"] == "without reasoning 2 of 3 right"
    assert len(engine.asked) == 9 * 8 + 8 * 3
    assert notes(out)["problems guessed at"] == 8
    order = pq.read_table(out / "dropped.parquet")["source_id"].to_pylist()
    assert order == sorted(order)
    votes = list(EarlierSamples((str(out),), lambda response: response, {}))
    assert len(votes) == 9 * 8, "guesses are no votes"


def test_a_bare_line_is_a_guess_s_answer() -> None:
    with Verifier(VerifyRecipe(symbolic=False)) as verifier:
        judge = BareAnswers(verifier)
        responses = ["\n12\n", "\\boxed{12}", "13", "", "I guess \\boxed{7}\n12"]
        verdicts = judge.verify([Item("12", response) for response in responses])
    assert [verdict.equivalent is True for verdict in verdicts] == [True, True, False, False, False]


def test_guesses_that_can_never_be_enough_are_refused() -> None:
    with pytest.raises(ValueError, match="above samples"):
        GuessRecipe(samples=1, right=2)
    with pytest.raises(ValueError, match="nothing would be kept"):
        DifficultyRecipe(min_pass_rate=0.9, max_pass_rate=0.1)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv"])
def test_rates_of_the_input_need_no_model(name: str, tmp_path: Path) -> None:
    rates_given: list[Any] = [0.0, 0.5, 1, "0.25"]
    lines = [row | {"solve_rate": rate} for row, rate in zip(ROWS, rates_given, strict=False)]
    source = tmp_path / name
    if name.endswith("csv"):
        text = "".join(f'{one["id"]},"{one["problem"]}",{one["answer"]},{one["solve_rate"]}\n' for one in lines)
        source.write_text("id,problem,answer,solve_rate\n" + text)
    else:
        source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    recipe = Recipe(curate=CurateRecipe(steps=("difficulty",), difficulty=DifficultyRecipe(drop_unsolved=True)))
    data = DataRecipe(inputs=(str(source),)).model_copy
    named = data(update={"fields": recipe.data.fields.model_copy(update={"pass_rate": "solve_rate"})})
    out = curate(recipe.model_copy(update={"data": named}), tmp_path / "out", engine_factory=None)
    assert rates(out) == {"d1": 0.5, "d3": 0.25}
    assert reasons(out) == {"d0": "unsolved", "d2": "too_easy"}
    assert notes(out) == {"problems sampled": 0, "pass rates taken from the input": 4}
    wrong = data(update={"fields": recipe.data.fields.model_copy(update={"pass_rate": "rate"})})
    with pytest.raises(UserError, match=r"no row has a number from 0 to 1 in 'rate'.*solve_rate"):
        curate(recipe.model_copy(update={"data": wrong}), tmp_path / "wrong", engine_factory=None)
    assert not list(tmp_path.glob("wrong*"))


def test_real_rates_of_a_public_set(tmp_path: Path) -> None:
    source = SHARED / "train/dsr_sub_1209.jsonl"
    if not source.exists():
        pytest.skip(f"no shared data at {SHARED}")
    fields = DataRecipe().fields.model_copy(update={"pass_rate": "pass_rate_first"})
    recipe = Recipe(
        data=DataRecipe(inputs=(str(source),), fields=fields),
        curate=CurateRecipe(
            steps=("difficulty",), difficulty=DifficultyRecipe(min_pass_rate=0.125, max_pass_rate=0.875)
        ),
    )
    out = curate(recipe, tmp_path / "out", engine_factory=None)
    rows = [json.loads(line) for line in source.read_text().splitlines()]
    inside = [row["id"] for row in rows if 0.125 <= row["pass_rate_first"] <= 0.875 and row["answer"].strip()]
    assert list(rates(out)) == inside
    assert len(inside) > 500


def test_samples_serve_a_later_run_and_a_voter_s_serve_difficulty(tmp_path: Path) -> None:
    first = run(recipe_for(tmp_path), tmp_path / "first", Counting(often))
    engine = Counting(often)
    later = run(recipe_for(tmp_path, min_pass_rate=0.5, earlier=str(first)), tmp_path / "later", engine)
    assert not engine.asked
    assert rates(later) == {f"d{n}": n / 8 for n in range(4, 8)}
    with pytest.raises(UserError, match="no such directory"):
        run(recipe_for(tmp_path, earlier=str(tmp_path / "gone")), tmp_path / "gone-out", Counting(often))

    recipe = recipe_for(tmp_path)
    voter = VoterRecipe(model=recipe.model, engine=recipe.engine, samples=8, temperature=0.85, max_tokens=200)
    curate_settings = recipe.curate.model_copy(
        update={"steps": ("references", "difficulty"), "consensus": ConsensusRecipe(voters=(voter,))}
    )
    engine = Counting(often)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ulorl.engine.prompts.Prompter", lambda *_: Letters())
        both = run(recipe.model_copy(update={"curate": curate_settings}), tmp_path / "both", engine)
    assert len(engine.asked) == 9 * 8
    assert rates(both) == rates(first)


KILLED = """
import sys, time
from pathlib import Path
sys.path.insert(0, {tests!r})
from ulorl import sampling
sampling.FLUSH_SAMPLES = 5
from test_curate_difficulty import Counting, often, recipe_for, run

def slowly(prompt, index):
    time.sleep({pause})
    return often(prompt, index)

engine = Counting(slowly)
run(recipe_for(Path({tmp!r})), Path({tmp!r}) / "out", engine)
print(len(engine.asked))
"""


def test_kill_in_the_middle_and_go_on(tmp_path: Path) -> None:
    """kill -9 while samples are made: the same command makes only the others, and gives the same bytes."""
    tests = str(Path(__file__).parent)
    script = KILLED.format(tests=tests, pause=0.1, tmp=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.DEVNULL)
    samples = tmp_path / "out.partial" / "samples"
    deadline = time.monotonic() + 60
    while len(list(samples.glob("shard-*.parquet"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "out").exists()
    script = KILLED.format(tests=tests, pause=0, tmp=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert 0 < int(done.stdout) <= 72 - 10
    whole = run(recipe_for(tmp_path), tmp_path / "whole", Counting(often))
    for name in ("problems.parquet", "dropped.parquet", "funnel.json", "funnel.md"):
        assert (tmp_path / "out" / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.parametrize("kind", ["hf", pytest.param("vllm", marks=pytest.mark.engine)])
def test_a_real_engine(kind: Any, tiny_model: Path, tmp_path: Path) -> None:
    """Random weights solve nothing and guess nothing; the samples are there."""
    if kind == "vllm":
        pytest.importorskip("vllm", reason="vLLM is not installed")
    from ulorl import pipeline
    from ulorl.report.display import open_display

    guess = GuessRecipe(samples=2, max_tokens=4)
    recipe = recipe_for(tmp_path, ROWS[:3], samples=2, guess=guess).model_copy(
        update={"model": ModelRecipe(path=str(tiny_model)), "engine": EngineRecipe(kind=kind, max_model_len=512)}
    )
    settings = recipe.curate.model_copy(
        update={"difficulty": recipe.curate.difficulty.model_copy(update={"max_tokens": 8})}
    )
    recipe = recipe.model_copy(update={"curate": settings})
    with open_display(["curate"]) as display, pipeline.model_host(recipe) as host:
        out = pipeline.run_curate(recipe, tmp_path / "out", host, display)
    assert list(rates(out)) == ["d0", "d1", "d2"]
    assert notes(out)["samples"] == 6
    assert list((out / "guesses").glob("shard-*.parquet"))
