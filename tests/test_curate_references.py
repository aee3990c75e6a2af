"""References against models' answers: who votes, what is wrong, what stays undecided, and nothing by majority."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from scripted_engine import Letters, Scripted

from ulorl.curate.ballots import Ballot, Ballots, text_key
from ulorl.curate.consensus import Consensus, Finding
from ulorl.curate.earlier import EarlierSamples
from ulorl.curate.references import references
from ulorl.curate.stage import curate
from ulorl.curate.votes import ask_voter
from ulorl.errors import UserError
from ulorl.problem import Problem
from ulorl.recipe import ConsensusRecipe, CurateRecipe, DataRecipe, EngineRecipe, ModelRecipe, Recipe, VerifyRecipe
from ulorl.recipe_curate import VoterRecipe
from ulorl.verify import Verifier, equivalence_classes
from ulorl.verify.verdict import Item, Verdict

CONFIG = VerifyRecipe(symbolic=False)
CLASSES = partial(equivalence_classes, config=CONFIG)
TEXT = "What is the number of owls, if there are 3 more than 9?"


@pytest.fixture(scope="module")
def verifier() -> Verifier:
    return Verifier(CONFIG)


def ballots_of(answers: dict[str, list[str | None]], text: str = TEXT) -> Ballots:
    ballots = Ballots()
    ballots.add(Ballot(model, answer, text_key(text)) for model, given in answers.items() for answer in given)
    return ballots


def finding_of(answers: dict[str, list[str | None]], reference: str, verifier: Any, **settings: Any) -> Finding:
    consensus = Consensus(ballots_of(answers), verifier, CLASSES, ConsensusRecipe(**settings))
    return consensus.findings([Problem("p", TEXT, reference)])["p"]


@pytest.mark.parametrize(
    ("answers", "reference", "outcome"),
    [
        ({"a": ["12"] * 4, "b": ["12"] * 4}, "12", "confirmed"),
        ({"a": ["12"] * 4, "b": ["12"] * 4}, "13", "wrong"),
        ({"a": ["0.5", "1/2", "\\frac12", "50\\%"], "b": ["0.50"] * 3}, "\\frac{1}{2}", "confirmed"),
        ({"a": ["1/2"] * 3, "b": ["0.5"] * 3}, "2", "wrong"),
        ({"a": ["12"] * 4, "b": ["13"] * 4}, "13", "split"),
        ({"a": ["12"] * 4}, "13", "few"),
        ({"a": ["12", "12", "7", "8"], "b": ["12"] * 4}, "13", "split"),
        ({"a": ["12", "12", None, None], "b": ["12"] * 4}, "13", "split"),
        ({"a": [None] * 4, "b": ["12"] * 4}, "13", "split"),
        ({"a": ["12"] * 4, "b": ["12"] * 4, "c": ["7"] * 4}, "13", "split"),
        ({"a": ["12"], "b": ["12"], "c": ["12"], "d": ["7"]}, "13", "wrong"),
        ({"a": ["12"], "b": ["12"], "c": ["12"], "d": ["13"]}, "13", "split"),
        ({"a": ["12"], "b": ["12"], "c": ["12"], "d": ["13"]}, "12", "confirmed"),
        ({"a": ["1", "2"], "b": ["1", "2"]}, "3", "split"),
    ],
)
def test_outcomes(answers: dict[str, list[str | None]], reference: str, outcome: str, verifier: Verifier) -> None:
    assert finding_of(answers, reference, verifier).outcome == outcome


def test_settings_move_the_threshold(verifier: Verifier) -> None:
    answers: dict[str, list[str | None]] = {"a": ["12", "12", "7", "8"], "b": ["12"] * 4, "c": ["7"] * 4}
    assert finding_of(answers, "13", verifier).outcome == "split"
    assert finding_of(answers, "13", verifier, sample_share=0.5, model_share=0.6).outcome == "wrong"
    assert finding_of(answers, "13", verifier, sample_share=0.5, model_share=0.6, min_models=3).outcome == "split"
    assert finding_of({"a": ["12"] * 8}, "13", verifier, min_models=1).outcome == "wrong"
    backed: dict[str, list[str | None]] = {"a": ["12"], "b": ["12"], "c": ["12"], "d": ["13"]}
    assert finding_of(backed, "13", verifier, max_for_reference=0.25).outcome == "wrong"


def test_what_the_verifier_cannot_decide_is_never_wrong() -> None:
    class Undecided:
        def verify(self, items: list[Item]) -> list[Verdict]:
            return [Verdict(None, item.response, "none", "cannot tell") for item in items]

    same = finding_of({"a": ["x"] * 3, "b": ["x"] * 3}, "y", Undecided())
    assert (same.outcome, same.share_for_reference) == ("undecided", None)
    spelt = finding_of({"a": ["owls"] * 3, "b": ["eagle owls"] * 3}, "12", Undecided())
    assert spelt.outcome == "undecided"


def test_the_order_of_models_and_samples_does_not_matter(verifier: Verifier) -> None:
    answers: dict[str, list[str | None]] = {"a": ["1/2", "0.5", "3"], "b": ["0.5", "7", "1/2"], "c": ["3", "3", "0.5"]}
    found = set()
    for models in permutations(answers):
        for turn in (1, -1):
            mixed = {model: answers[model][::turn] for model in models}
            found.add(finding_of(mixed, "3", verifier, model_share=0.5))
    assert len(found) == 1


def test_votes_are_told(verifier: Verifier) -> None:
    finding = finding_of({"qwen": ["12", "12", "12", "5"], "llama": ["12"] * 2}, "13", verifier)
    assert finding.told() == "2 of 2 models answer '12': llama '12' (2 of 2), qwen '12' (3 of 4)"
    split = finding_of({"qwen": ["12", "5"], "llama": ["12"] * 2}, "13", verifier)
    assert split.told() == "llama '12' (2 of 2), qwen no vote (1 of 2)"


def settled(
    problems: list[Problem], answers: dict[str, list[str | None]], verifier: Verifier
) -> tuple[list[str], dict[str, tuple[str, str | None]]]:
    """(ids kept, id -> (reason, other_id)) of one group of duplicates in conflict."""
    findings = Consensus(ballots_of(answers), verifier, CLASSES, ConsensusRecipe()).findings(problems)
    result = references(problems, verifier, {one.id: problems[0].id for one in problems}, findings)
    assert len(result.kept) + len(result.dropped) == len(problems)
    return [one.id for one in result.kept], {one.problem.id: (one.reason, one.other_id) for one in result.dropped}


def group(*references: str) -> list[Problem]:
    return [Problem(f"r{number}", TEXT, reference) for number, reference in enumerate(references)]


def test_conflicts_are_settled_by_consensus_and_by_no_majority(verifier: Verifier) -> None:
    agreed: dict[str, list[str | None]] = {"a": ["12"] * 4, "b": ["12"] * 4}
    conflict = "conflicting_references"
    assert settled(group("13", "13", "12"), {}, verifier) == (
        [],
        {"r0": (conflict, "r1"), "r1": (conflict, "r0"), "r2": (conflict, "r0")},
    )
    assert settled(group("13", "13", "12"), agreed, verifier) == (
        ["r2"],
        {"r0": ("wrong_reference", "r2"), "r1": ("wrong_reference", "r2")},
    )
    assert settled(group("12", "13", "12.0"), agreed, verifier) == (
        ["r0"],
        {"r1": ("wrong_reference", "r0"), "r2": ("duplicate", "r0")},
    )
    assert settled(group("14", "13"), agreed, verifier) == (
        [],
        {"r0": ("wrong_reference", None), "r1": ("wrong_reference", None)},
    )
    assert settled(group("12", "13"), {"a": ["12"] * 4}, verifier)[0] == []


def test_near_duplicates_with_an_answer_each_are_two_problems(verifier: Verifier) -> None:
    first, second = Problem("r0", TEXT, "12"), Problem("r1", TEXT.replace("more", "fewer"), "6")
    ballots = ballots_of({"a": ["12"], "b": ["12"]})
    ballots.add(Ballot(model, "6", text_key(second.problem)) for model in "ab")
    findings = Consensus(ballots, verifier, CLASSES, ConsensusRecipe()).findings([first, second])
    result = references([first, second], verifier, {"r0": "r0", "r1": "r0"}, findings)
    assert [(one.id, one.consensus) for one in result.kept] == [("r0", 1.0), ("r1", 1.0)]


def boxed(response: str) -> str | None:
    return response.partition("\\boxed{")[2].partition("}")[0] or None


def test_files_of_samples(tmp_path: Path) -> None:
    rows: list[Any] = [
        {"problem": TEXT + "  ", "model": "m1", "response": "So \\boxed{12}", "answer": "13"},
        {"question": TEXT, "model": "m1", "responses": ["\\boxed{12}", "I do not know"]},
        {"id": "7", "model": "m2", "pred": 12},
        {"id": "8", "answer": "5"},
        {"model": "m3", "response": "\\boxed{1}"},
        {"problem": TEXT, "model": "m3", "response": None},
        ["no row"],
    ]
    path = tmp_path / "votes-x.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    earlier = EarlierSamples((str(path),), boxed, {})
    ballots = Ballots()
    ballots.add(earlier)
    assert earlier.unusable == 3
    assert ballots.of(Problem("p", TEXT, "1")) == {"m1": {"12": 2, None: 1}}
    assert ballots.of(Problem("p", "Another", "1", source_id="7")) == {"m2": {"12": 1}}
    assert ballots.of(Problem("8", "Another", "1")) == {"votes-x": {"5": 1}}
    posed_anew = Problem("p", "Another", "1", source_id="7", kind="multiple_choice", original_problem="A choice")
    assert ballots.of(posed_anew) == {}
    assert ballots.refuse_shared([["7", "9"], ["7", None]]) == 1
    assert ballots.of(Problem("p", "Another", "1", source_id="7")) == {}
    for name, data, told in (("empty.jsonl", "", "no usable sample"), ("gone.jsonl", None, "no such file")):
        if data is not None:
            (tmp_path / name).write_text(data)
        with pytest.raises(UserError, match=told):
            list(EarlierSamples((str(tmp_path / name),), boxed, {}))


def test_a_voter_is_asked_once_about_a_text_and_keeps_its_samples(tmp_path: Path, verifier: Verifier) -> None:
    problems = [Problem("a", TEXT, "12"), Problem("b", TEXT, "13"), Problem("c", "x" * 2000, "1")]
    for asked in (3, 0):
        engine = Scripted(lambda prompt: "\\boxed{12}")
        made = ask_voter(
            VoterRecipe(name="v", samples=3, max_tokens=100),
            (engine, Letters()),  # type: ignore[arg-type]
            problems,
            verifier=verifier,
            extract=boxed,
            seed=1,
            directory=tmp_path,
            key={"model": "m"},
        )
        assert [list(batch) for batch in made] == [[Ballot("v", "12", text_key(TEXT))] * 3]
        assert len(engine.asked) == asked


OWLS = [{"id": f"q{number}", "problem": f"How many owls are {number} owls and 5 owls?"} for number in range(20, 24)]


def test_the_stage_with_two_engines_and_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows right, wrong, in conflict and contested, with two engines and one file of samples."""
    given = ["25", "99", "27", "28"]
    rows = [one | {"answer": answer} for one, answer in zip(OWLS, given, strict=True)]
    rows.append(OWLS[2] | {"id": "q22b", "answer": "77"})
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    samples = tmp_path / "third.jsonl"
    lines = [{"problem": one["problem"], "model": "third", "response": "\\boxed{26}"} for one in OWLS[1:2]]
    samples.write_text("".join(json.dumps(line) + "\n" for line in lines))
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")

    def solve(shift: int) -> Callable[[str], str]:
        def reply(prompt: str) -> str:
            number = int(prompt.split()[4])
            return f"\\boxed{{{number + 5 + shift * (number == 23)}}}"

        return reply

    engines = {"one": Scripted(solve(0)), "two": Scripted(solve(1))}
    monkeypatch.setattr("ulorl.engine.open_engine", lambda recipe, directory, **_: engines[recipe.engine.served_model])
    monkeypatch.setattr("ulorl.engine.prompts.Prompter", lambda recipe, directory: Letters())
    voters = tuple(
        VoterRecipe(
            name=name,
            model=ModelRecipe(path=str(model)),
            engine=EngineRecipe(kind="server", url="http://nowhere", served_model=name),
            samples=2,
            max_tokens=50,
        )
        for name in engines
    )
    consensus = ConsensusRecipe(voters=voters, files=(str(samples),))
    recipe = Recipe(
        data=DataRecipe(inputs=(str(source),)),
        curate=CurateRecipe(steps=("normalise", "duplicates", "references"), consensus=consensus),
    )
    out = curate(recipe, tmp_path / "out", engine_factory=None)
    kept = pq.read_table(out / "problems.parquet").to_pylist()
    assert [(one["source_id"], one["consensus"]) for one in kept] == [("q20", 1.0), ("q22", 1.0), ("q23", 0.5)]
    dropped = {one["source_id"]: one for one in pq.read_table(out / "dropped.parquet").to_pylist()}
    assert {name: one["reason"] for name, one in dropped.items()} == {
        "q21": "wrong_reference",
        "q22b": "wrong_reference",
    }
    assert dropped["q21"]["detail"] == (
        "3 of 3 models answer '26': one '26' (2 of 2), third '26' (1 of 1), two '26' (2 of 2); the reference is '99'"
    )
    assert dropped["q22b"]["other_id"] == next(one["id"] for one in kept if one["source_id"] == "q22")
    votes = pq.read_table(out / "votes.parquet").to_pylist()
    assert {(one["model"], one["outcome"]) for one in votes if one["problem_id"] == kept[2]["id"]} == {
        ("one", "split"),
        ("two", "split"),
    }
    assert len(engines["one"].asked) == len(engines["two"].asked) == 4 * 2
    again = curate(recipe, tmp_path / "again", engine_factory=None)
    for name in ("problems.parquet", "dropped.parquet", "votes.parquet", "funnel.json"):
        assert (again / name).read_bytes() == (out / name).read_bytes()

    used = ConsensusRecipe(files=(str(out),), min_models=1)
    settings = recipe.curate.model_copy(update={"consensus": used})
    third = curate(recipe.model_copy(update={"curate": settings}), tmp_path / "third", engine_factory=None)
    assert {one["source_id"] for one in pq.read_table(third / "dropped.parquet").to_pylist()} >= {"q21", "q22b"}


def test_one_name_for_two_voters_is_refused() -> None:
    with pytest.raises(ValueError, match="same name"):
        ConsensusRecipe(voters=(VoterRecipe(), VoterRecipe()))


@pytest.mark.parametrize("kind", ["hf", pytest.param("vllm", marks=pytest.mark.engine)])
def test_a_real_engine_s_noise_decides_nothing(kind: Any, tiny_model: Path, tmp_path: Path) -> None:
    """Two voters with random weights: nobody agrees, rows stay, samples and votes are kept."""
    if kind == "vllm":
        pytest.importorskip("vllm", reason="vLLM is not installed")
    source = tmp_path / "rows.jsonl"
    rows = [one | {"answer": str(number)} for number, one in enumerate(OWLS[:2], 25)]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    voters = tuple(
        VoterRecipe(
            name=name,
            model=ModelRecipe(path=str(tiny_model)),
            engine=EngineRecipe(kind=kind),
            samples=2,
            max_tokens=8,
            temperature=temperature,
        )
        for name, temperature in (("warm", 1.0), ("cold", 0.5))
    )
    recipe = Recipe(
        data=DataRecipe(inputs=(str(source),)),
        curate=CurateRecipe(steps=("references",), consensus=ConsensusRecipe(voters=voters)),
    )
    out = curate(recipe, tmp_path / "out", engine_factory=None)
    assert pq.read_table(out / "problems.parquet")["source_id"].to_pylist() == ["q20", "q21"]
    assert sorted(path.name for path in (out / "votes").iterdir()) == ["cold", "warm"]
    votes = pq.read_table(out / "votes.parquet").to_pylist()
    assert {one["outcome"] for one in votes} <= {"split", "undecided"}
    assert {one["samples"] for one in votes} == {2}
