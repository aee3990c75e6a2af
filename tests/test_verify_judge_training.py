"""Training a judge: pairs that are labelled rightly and reproducibly, and a run on a tiny model from end to end."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from ulorl.errors import UserError
from ulorl.verify.judge.family import change_digit
from ulorl.verify.judge.finetune import IGNORED, collate, encode, freeze, last_checkpoint
from ulorl.verify.judge.labelled import excluded_by, read_labelled
from ulorl.verify.judge.numbers import in_words
from ulorl.verify.judge.pairs import SEEDS, Excluded, LabelledPair, make_pairs, problem_key, read_references
from ulorl.verify.judge.prompts import JudgePrompter, PromptFormat, read_format
from ulorl.verify.judge.report import render
from ulorl.verify.judge.rewrites import rewrite
from ulorl.verify.judge.training import JudgeTraining, read_evaluation, train_judge
from ulorl.verify.policy import DEFAULT
from ulorl.verify.tiers import RULES, decide, read_answer

REFERENCES = [
    r"\frac{3}{4}",
    "12",
    "x^2+3x-1",
    "(2, 5)",
    "all odd integers",
    r"(-\infty, 3]",
    "7, 9",
    r"5\sqrt{2}",
    "-8",
]


def relation(reference: str, answer: str) -> str:
    return decide(RULES, read_answer(reference), read_answer(answer), DEFAULT)[1].relation


@pytest.mark.parametrize("draw", SEEDS, ids=lambda draw: draw.__name__)
def test_rules_never_contradict_a_family(draw: Any) -> None:
    """The rules are an independent judge of the generator: where they decide, they decide as it labels."""
    rng = random.Random(5)
    for _ in range(15):
        family = draw(rng)
        assert len(family.forms) >= 2 and family.misses
        assert not set(family.forms) & set(family.misses)
        for form in family.forms[1:]:
            assert relation(family.forms[0], form) != "different", (family.forms[0], form)
        for miss in family.misses:
            assert relation(family.forms[0], miss) != "equal", (family.forms[0], miss)


def test_rewritten_references_are_labelled_rightly() -> None:
    rng = random.Random(3)
    for reference in REFERENCES * 4:
        family = rewrite(reference, ("41", r"\pi"), rng)
        assert family is not None
        for form in family.forms[1:]:
            assert relation(reference, form) != "different", (reference, form)
        for miss in family.misses:
            assert relation(reference, miss) != "equal", (reference, miss)


def test_references_without_a_short_answer_are_left_out() -> None:
    rng = random.Random(0)
    assert rewrite("", (), rng) is None
    assert rewrite("$ $", (), rng) is None
    assert rewrite("a sentence " * 10, (), rng) is None


def test_pairs_follow_from_the_seed() -> None:
    first = make_pairs(300, REFERENCES, Excluded(), 0)
    assert first == make_pairs(300, REFERENCES, Excluded(), 0)
    assert first != make_pairs(300, REFERENCES, Excluded(), 1)
    assert len({(pair.reference, pair.answer) for pair in first}) == 300
    share = sum(pair.equivalent for pair in first) / 300
    assert 0.3 < share < 0.55
    kinds = {pair.kind for pair in first}
    assert len(kinds) > 20 and "attack" in kinds and any(kind.startswith("reference: ") for kind in kinds)
    assert not any(pair.equivalent for pair in first if pair.kind == "attack")


def test_pairs_and_problems_of_evaluation_files_are_left_out(tmp_path: Path) -> None:
    drawn = make_pairs(100, REFERENCES, Excluded(), 0)
    file = tmp_path / "labelled.jsonl"
    rows = [
        {"ref": pair.answer, "pred": f" {pair.reference} ", "label": pair.equivalent, "question": "What is  1 + 1?"}
        for pair in drawn[:50]
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    excluded = excluded_by(read_labelled([str(file)]))
    said: list[str] = []
    again = make_pairs(100, REFERENCES, excluded, 0, said.append)
    assert not {pair.texts() for pair in again} & {pair.texts() for pair in drawn[:50]}
    assert int(said[0].split("left out: ")[1].split()[0]) > 0
    assert problem_key("what is 1+1?") in excluded.problems
    train = tmp_path / "train.jsonl"
    train.write_text('{"problem": "What is 1+1?", "answer": "2"}\n{"problem": "What is 2+2?", "answer": "4"}\n')
    assert read_references([str(train)], excluded) == ["4"]
    assert read_references([str(train)], Excluded()) == ["2", "4"]


def test_unlabelled_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text('{"ref": "1", "pred": "1"}\n')
    with pytest.raises(UserError, match="no row has a label"):
        read_labelled([str(file)])


def test_change_digit_changes_the_number() -> None:
    rng = random.Random(0)
    for text in ("7", "10", "0.5", "x_1+25", "no digits"):
        for _ in range(20):
            changed = change_digit(text, rng)
            assert (changed != text) == (text != "no digits") and len(changed) == len(text)
    assert {change_digit("10", rng)[0] != "0" for _ in range(50)} == {True}


def test_number_words() -> None:
    assert [in_words(n) for n in (0, 19, 40, 99, 100, 342)] == [
        "zero", "nineteen", "forty", "ninety-nine", "one hundred", "three hundred and forty-two",
    ]  # fmt: skip


@pytest.fixture
def prompter(tiny_model: Path) -> JudgePrompter:
    return JudgePrompter(tiny_model, PromptFormat(chat=False, question_chars=0))


def test_only_labels_carry_loss(prompter: JudgePrompter) -> None:
    rows = [
        encode(prompter, LabelledPair("1/2", "0.5", True, "")),
        encode(prompter, LabelledPair("12", "7", False, "")),
    ]
    batch = collate(rows, 0)
    assert batch["input_ids"].shape == batch["attention_mask"].shape == batch["position_ids"].shape
    spelled = []
    for labels in batch["labels"].tolist():
        spelled.append(prompter.tokenizer.decode([token for token in labels if token != IGNORED]))
    assert spelled == ["Yes<eos>", "No<eos>"]
    assert batch["labels"][1, 0] == IGNORED  # "No" is shorter than "Yes"
    # Padded on the left: labels are the last tokens, and the first real token has position 0.
    assert batch["attention_mask"][:, -1].tolist() == [1, 1]
    first = batch["attention_mask"][1].tolist().index(1)
    assert first > 0 and batch["position_ids"][1, first] == 0


def test_freezing_leaves_the_last_layers(tiny_model: Path) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_model)
    everything = freeze(model, 0)
    last = freeze(model, 1)
    assert last == sum(parameter.numel() for parameter in model.model.layers[1].parameters())
    assert 0 < last < everything
    assert not model.model.layers[0].mlp.up_proj.weight.requires_grad
    with pytest.raises(UserError, match="3 layers of 2"):
        freeze(model, 3)


def test_half_written_checkpoints_do_not_count(tmp_path: Path) -> None:
    for step, whole in ((50, True), (100, True), (150, False)):
        (tmp_path / f"checkpoint-{step}").mkdir()
        if whole:
            (tmp_path / f"checkpoint-{step}" / "trainer_state.json").write_text("{}")
    assert last_checkpoint(tmp_path) == tmp_path / "checkpoint-100"
    assert not (tmp_path / "checkpoint-150").exists()
    assert last_checkpoint(tmp_path / "none") is None


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    file = tmp_path / "labelled.jsonl"
    rows = [
        ("north", "to the north of it", True),
        ("north", "south", False),
        ("an ellipse", "oval", True),
        ("12", "13", False),
        ("12", "12", True),
        ("the first player", "the second one", False),
    ]
    file.write_text("".join(json.dumps({"ref": r, "pred": a, "label": label}) + "\n" for r, a, label in rows))
    return file


def test_a_judge_from_start_to_finish(tiny_model: Path, labelled: Path, tmp_path: Path) -> None:
    # Settings of sampling as some models have them, which transformers loads and refuses to save.
    tiny_model = Path(shutil.copytree(tiny_model, tmp_path / "start"))
    generation = tiny_model / "generation_config.json"
    generation.write_text(json.dumps(json.loads(generation.read_text()) | {"temperature": 0.6, "do_sample": False}))
    settings = JudgeTraining(
        model=str(tiny_model),
        evaluate=(str(labelled),),
        pairs=48,
        batch_size=16,
        lr=3e-3,
        threads=1,
        checkpoint_every=1,
    )
    said: list[str] = []
    directory = train_judge(settings, tmp_path / "judge", say=said.append)

    # A model that transformers loads as it is, and the format for the cascade.
    from transformers import AutoModelForCausalLM, AutoTokenizer

    AutoTokenizer.from_pretrained(directory)
    model = AutoModelForCausalLM.from_pretrained(directory)
    before = AutoModelForCausalLM.from_pretrained(tiny_model)
    assert not model.model.norm.weight.equal(before.model.norm.weight)
    assert read_format(directory) == PromptFormat(False, 0)
    names = {path.name for path in directory.iterdir()}
    assert {"manifest.json", "pairs.jsonl", "evaluation.json", "model.safetensors"} <= names
    assert not names & {"checkpoints", "before.json"}

    report = read_evaluation(directory)
    for one in (report["before"], report["after"]):
        assert one["n"] == 6
        assert one["undecided"]["n"] + one["rejected"]["n"] == 5  # all but the exact pair
        assert one["rules"]["accuracy"] == pytest.approx(4 / 6)
        assert set(one["keep"]) == {"undecided", "also_rejected"}
    lines = list(render(report))
    assert lines[-1].startswith(("not better than rules alone", "worth having"))
    assert any(line.startswith("worse than rules alone") for line in lines)
    assert sum(line.startswith("update ") for line in said) == 3

    said.clear()
    assert train_judge(settings, tmp_path / "judge", say=said.append) == directory
    assert said == [f"{directory}: already there"]
    with pytest.raises(UserError, match="pairs: 48 -> 49"):
        train_judge(settings.model_copy(update={"pairs": 49}), tmp_path / "judge")


def test_an_interrupted_run_ends_with_the_same_weights(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors.torch import load_file

    settings = JudgeTraining(
        model=str(tiny_model), pairs=64, batch_size=16, lr=1e-3, threads=1, checkpoint_every=2, epochs=2
    )
    whole = train_judge(settings, tmp_path / "whole", say=lambda text: None)

    class Killed(Exception):
        pass

    def die(text: str) -> None:
        if text.startswith("update 5"):
            raise Killed

    with pytest.raises(Killed):
        train_judge(settings, tmp_path / "cut", say=die)
    assert not (tmp_path / "cut").exists()
    said: list[str] = []
    resumed = train_judge(settings, tmp_path / "cut", say=said.append)
    assert "going on from checkpoint-4" in said
    a, b = load_file(whole / "model.safetensors"), load_file(resumed / "model.safetensors")
    assert a.keys() == b.keys()
    assert all(a[name].equal(b[name]) for name in a)
    assert (whole / "pairs.jsonl").read_bytes() == (resumed / "pairs.jsonl").read_bytes()


def test_the_cascade_and_the_report_agree(tiny_model: Path, labelled: Path, tmp_path: Path) -> None:
    """What the evaluation counts as accepted is what a verifier with this judge accepts."""
    from ulorl.recipe import JudgeRecipe, VerifyRecipe
    from ulorl.verify import Verifier
    from ulorl.verify.judge.ask import Judge, open_judge_engine
    from ulorl.verify.judge.cache import ScoreCache
    from ulorl.verify.judge.evaluation import evaluate, rules_verdicts

    config = JudgeRecipe(
        model=str(tiny_model),
        cache=str(tmp_path / "c.sqlite"),
        accept=0.501,
        engine={"kind": "hf", "threads": 1},  # type: ignore[arg-type]
    )
    items = read_labelled([str(labelled)])
    judge = Judge(tiny_model, config, ScoreCache(tmp_path / "c.sqlite"), open_judge_engine(config))
    report = evaluate(judge, config, items, rules_verdicts(items), seed=0)
    judge.close()
    with Verifier(VerifyRecipe(judge=config)) as verifier:
        accepted = [verdict.equivalent is True for verdict in verifier.verify([one.item for one in items])]
    right = [one.equivalent for one in items]
    assert report["rules_and_judge"]["accuracy"] == pytest.approx(
        sum(a == b for a, b in zip(accepted, right, strict=True)) / len(right)
    )
