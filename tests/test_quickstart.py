"""The embedded default: generated problems, planted dirt, tokenizer, warm-up texts, shipped model."""

from __future__ import annotations

import random
import re
from collections import Counter
from itertools import accumulate

import pytest

from ulorl.problem import problem_id
from ulorl.quickstart import MODEL_DIR
from ulorl.quickstart.dirt import DIRT_SHARES, LEAD_INS
from ulorl.quickstart.families import FAMILIES
from ulorl.quickstart.problems import draw_task, generate_problems, split_of
from ulorl.quickstart.solutions import STYLES, worked_solution
from ulorl.quickstart.tokenizer import BOX, build_tokenizer
from ulorl.quickstart.warmup import POOL, Stage, WarmupSettings, draw_texts


def bare(problem: str) -> str:
    """The problem without lead-in and extra white space."""
    text = " ".join(problem.split())
    for lead_in in LEAD_INS:
        text = text.removeprefix(lead_in)
    return text


def independent_answer(problem: str) -> int:  # one branch a family, written from the wording alone
    """Solve from the text, by formulas other than the generator's."""
    text = bare(problem)
    digits = [int(digit) for digit in re.findall(r"\b[a-zA-Z]\d(\d)\b", text)]
    if text.startswith("Add small"):
        capitals = [int(digit) for digit in re.findall(r"\b[A-Z]\d(\d)\b", text)]
        return (sum(digits) - 2 * sum(capitals)) % 10
    if text.startswith("Triple"):
        return sum(digit * 3 ** (len(digits) - 1 - place) for place, digit in enumerate(digits)) % 10
    if text.startswith("Total"):
        return sum(digits)
    if match := re.match(r"Count last digits above (\d):", text):
        return sum(digit > int(match[1]) for digit in digits)
    if text.startswith("Add pairs"):
        start = re.search(r"\ba(\d\d)\b", text)
        assert start
        terms = {"a": start[1]} | dict(re.findall(r"([b-z]):(\w+)", text))

        def value(term: str) -> int:
            if term.isdigit():
                return int(term)
            return value(terms[term]) if len(term) == 1 else value(term[0]) + value(term[1:])

        return value(max(terms)) % 10
    match = re.match(r"From (\d+) add (\d+), (\d+) times, mod 10", text)
    assert match, text
    return (int(match[1]) + int(match[2]) * int(match[3])) % 10


def test_same_seed_same_rows_and_prefixes() -> None:
    rows = generate_problems("train", 300, 5)
    assert rows == generate_problems("train", 300, 5)
    assert rows[:40] == generate_problems("train", 40, 5)
    assert rows[:40] != generate_problems("train", 40, 6)


def test_splits_share_no_problem_whatever_the_wording() -> None:
    train = {bare(str(row["problem"])) for row in generate_problems("train", 3000, 1)}
    test = [bare(str(row["problem"])) for row in generate_problems("test", 1000, 1)]
    assert len(set(test)) == len(test)
    assert not train & set(test)
    rng = random.Random(0)
    assert {split_of(draw_task("test", rng)) for _ in range(50)} == {"test"}


@pytest.mark.parametrize("split", ["train", "test"])
def test_references_agree_with_an_independent_solver(split: str) -> None:
    rows = [row for row in generate_problems(split, 2000, 2) if row.get("dirt") not in ("multi_part",)]
    seen = Counter(str(row["family"]) for row in rows)
    assert set(seen) == set(FAMILIES)
    for row in rows:
        problem, answer = str(row["problem"]), str(row["answer"])
        if row.get("dirt") == "multiple_choice":
            problem, options = problem.split("\n")
            answer = dict(re.findall(r"\((\w)\) (\d+)", options))[answer.strip("()")]
        right = str(independent_answer(problem)) == answer
        assert right == (row.get("dirt") != "wrong_reference"), row


def test_dirt_has_its_shares_and_the_test_split_none() -> None:
    rows = generate_problems("train", 4000, 3)
    found = Counter(row.get("dirt") for row in rows)
    for kind, share in DIRT_SHARES.items():
        assert abs(found[kind] / len(rows) - share) < 0.015, kind
    assert 0.3 < sum(DIRT_SHARES.values()) < 0.4
    assert not any("dirt" in row for row in generate_problems("test", 500, 3))


def test_dirt_is_what_it_says() -> None:
    rows = generate_problems("train", 1500, 4)
    clean: dict[str, str] = {}
    for row in rows:
        problem, kind = str(row["problem"]), row.get("dirt")
        if kind is None:
            assert int(str(row["steps"])) >= 2
            clean[problem] = str(row["answer"])
        elif kind == "exact_duplicate":
            assert clean[problem] == row["answer"]
        elif kind == "wrong_reference":
            assert clean[problem] != row["answer"]
        elif kind == "near_duplicate":
            assert problem not in clean
            assert re.findall(r"\d+", problem) in [re.findall(r"\d+", other) for other in clean]
        elif kind == "too_easy":
            assert row["steps"] == 1


def test_clean_rows_are_distinct_problems() -> None:
    clean = [row for row in generate_problems("train", 1500, 4) if "dirt" not in row]
    assert len({problem_id(bare(str(row["problem"]))) for row in clean}) == len(clean)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="dev"):
        generate_problems("dev", 1, 0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="negative"):
        generate_problems("test", -1, 0)


def test_prompts_are_short_and_worked_lengths_vary_tenfold() -> None:
    tokenizer = build_tokenizer()
    rng = random.Random(7)
    tasks = [draw_task("train", rng) for _ in range(1500)]
    lengths = [len(tokenizer(worked_solution(task, "careful", rng)).input_ids) + 1 for task in tasks]
    assert max(lengths) >= 10 * min(lengths)
    assert max(lengths) > 200
    assert sum(lengths) / len(lengths) < 80
    assert max(len(task.text) for task in tasks) <= 120


def test_styles() -> None:
    rng = random.Random(8)
    right = {style: [] for style in STYLES}
    for task in [draw_task("train", rng) for _ in range(800)]:
        for style in STYLES:
            text = worked_solution(task, style, rng)
            assert re.search(r"\\boxed\{\d+\}\Z", text)
            assert (style == "guess") == text.startswith(BOX)
            right[style].append((task.steps, text.endswith(f"{BOX}{task.answer}}}")))
    share = {style: sum(ok for _, ok in results) / len(results) for style, results in right.items()}
    assert share["careful"] == 1
    assert share["guess"] < share["slip"] < 0.6
    short = [ok for steps, ok in right["slip"] if steps <= 3]
    long = [ok for steps, ok in right["slip"] if steps >= 8]
    assert sum(short) / len(short) > sum(long) / len(long) + 0.2


def test_a_slip_has_faithful_consequences() -> None:
    rng = random.Random(9)
    while (task := draw_task("train", rng)).family != "total" or task.steps < 5:
        pass
    lines, value = task.work(lambda index, right: right + 1 if index == 2 else right)
    digits = [int(item[-1]) for item in task.items]
    assert value == sum(digits) + 1
    expected = list(accumulate(digits[:2])) + [total + 1 for total in accumulate(digits)][2:]
    assert [int(line.brief[1:]) for line in lines] == expected


def test_warmup_texts_follow_the_stage_and_the_seed() -> None:
    stage = Stage(updates=8, batch=4, careful=0.0, guess=1.0, slip=0.0)
    texts = draw_texts(50, stage, random.Random(1))
    assert texts == draw_texts(50, stage, random.Random(1))
    assert all(solution.startswith(BOX) and prompt.endswith("\n") for prompt, solution in texts)
    settings = WarmupSettings()
    assert all(stage.updates % POOL == 0 for stage in settings.stages)
    assert settings.stage_at(settings.updates - 1) == settings.stages[-1]


def test_drills_are_right_steps() -> None:
    for context, follows in draw_texts(200, Stage(updates=8, batch=4, drill=True), random.Random(2)):
        text = context + follows
        for left, right, result in re.findall(r"(-?\d)\+(\d+)=(\d+)[a-z]? ", text):
            value = int(left) + int(right)
            assert int(result) in (value, value % 10), text


HOSTILE = ["", " ", "héllo 漢字 \x00\t\n", "\\boxed{\\boxed{3}}", "a  b", "\\boxed {", "🙂\u200b", "x" * 2000]


@pytest.mark.parametrize("text", HOSTILE)
def test_tokenizer_round_trip(text: str) -> None:
    tokenizer = build_tokenizer()
    ids = tokenizer(text).input_ids
    assert tokenizer.decode(ids) == text
    assert tokenizer.unk_token_id not in ids


def test_tokenizer_box_is_one_token() -> None:
    tokenizer = build_tokenizer()
    assert len(tokenizer(BOX).input_ids) == 1
    assert len(tokenizer("\\boxed{12}").input_ids) == 4
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id) == (0, 1)


def test_shipped_model_loads_and_is_small() -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    assert sum(path.stat().st_size for path in MODEL_DIR.rglob("*")) < 12 * 2**20
    tokenizer = AutoTokenizer.from_pretrained(MODEL_DIR)
    model = AutoModelForCausalLM.from_pretrained(MODEL_DIR)
    assert model.config.model_type == "qwen3"
    assert model.config.head_dim % 32 == 0
    assert model.num_parameters() < 3_000_000
    assert len(tokenizer) == model.config.vocab_size
    rng = random.Random(10)
    losses = []
    for task in [draw_task("test", rng) for _ in range(12)]:
        prompt = tokenizer(task.text + "\n").input_ids
        solution = tokenizer(worked_solution(task, "careful", rng)).input_ids
        with torch.no_grad():
            logits = model(torch.tensor([prompt + solution])).logits[0, len(prompt) - 1 : -1]
        losses.append(torch.nn.functional.cross_entropy(logits, torch.tensor(solution)).item())
    assert sum(losses) / len(losses) < 0.2
