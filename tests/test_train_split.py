"""Which problems validate: every task its share, the same in any order, and none that is trained on."""

import random
from dataclasses import replace

import pytest

from ulorl.columns import to_problem
from ulorl.curate.load import normalise
from ulorl.errors import UserError
from ulorl.files import write_table
from ulorl.problem import Problem
from ulorl.recipe import FieldNames, Recipe
from ulorl.recipe_train import TrainRecipe
from ulorl.recipe_validation import ValidationRecipe
from ulorl.rows import problem_table
from ulorl.train.split import distinct, hold_out, same, split_problems


def of_tasks(**counts):
    kinds = [(task, number) for task, count in counts.items() for number in range(count)]
    return [Problem(f"{task}{number}", f"{task} {number}", "1", task=task) for task, number in kinds]


def tasks_of(problems):
    return {task: sum(one.task == task for one in problems) for task in sorted({one.task for one in problems})}


def test_every_task_has_its_share_of_the_problems_held_out():
    problems = of_tasks(math=70, logic=20, code=10)
    assert tasks_of(hold_out(problems, 10, 1)) == {"code": 1, "logic": 2, "math": 7}
    assert tasks_of(hold_out(problems, 3, 1)) == {"code": 1, "logic": 1, "math": 1}
    assert tasks_of(hold_out(of_tasks(math=1000, logic=2), 20, 1)) == {"logic": 1, "math": 19}
    assert tasks_of(hold_out(of_tasks(math=9, logic=1), 4, 1)) == {"math": 4}


def test_the_same_problems_are_held_out_in_any_order_and_others_with_another_seed():
    problems = of_tasks(math=40, logic=20)
    mixed = random.Random(0).sample(problems, len(problems))
    assert {one.id for one in hold_out(problems, 9, 3)} == {one.id for one in hold_out(mixed, 9, 3)}
    assert {one.id for one in hold_out(problems, 9, 3)} != {one.id for one in hold_out(problems, 9, 4)}


def test_too_few_problems_are_refused_with_the_number_there_is():
    with pytest.raises(UserError, match=r"size: 6 problems.*half of the 11.*: 5"):
        hold_out(of_tasks(math=11), 6, 1)
    with pytest.raises(UserError, match=r"size: 1 problems cannot be of all 2 tasks"):
        hold_out(of_tasks(math=11, logic=9), 1, 1)


def curated(texts):
    """Rows of these texts, each with the id that curation gives it."""
    return normalise([to_problem({"problem": text, "answer": "1"}, FieldNames(), "rows") for text in texts]).kept


def texts_of(problems):
    return {one.original_problem or one.problem for one in problems} | {one.problem for one in problems}


def test_a_text_that_the_data_has_twice_is_on_one_side(tmp_path):
    problems = curated([f"What is {number} + 1?" for number in range(6)] * 2)
    assert {one.id[-2:] for one in problems[6:]} == {"-2"}
    for seed in range(5):
        held = hold_out(problems, 3, seed)
        mixed = hold_out(random.Random(seed).sample(problems, len(problems)), 3, seed)
        assert sorted(one.id for one in held) == sorted(one.id for one in mixed)
        assert len(texts_of(held)) == 3
    found = split(tmp_path, problems, every=5, size=3)
    assert (len(found.trained), len(found.validation), found.overlap) == (6, 3, 6)
    assert not texts_of(found.trained) & texts_of(found.validation)
    with pytest.raises(UserError, match="half of the 6 different ones are: 3"):
        hold_out(problems, 4, 1)
    (tmp_path / "file.jsonl").write_text(
        "".join(f'{{"problem": "What is {number}  + 1?", "answer": "1"}}\n' for number in (0, 1, 1))
    )
    found = split(tmp_path, problems, every=5, problems=str(tmp_path / "file.jsonl"))
    assert (len(found.trained), len(found.validation), found.overlap) == (8, 2, 4)
    assert not texts_of(found.trained) & texts_of(curated(["What is 0 + 1?", "What is 1 + 1?"]))


def test_problems_are_compared_by_the_text_they_had_and_by_their_options():
    plain, marked, other = curated(["What is 2?", "What is <b>2</b>?", "What is 3?"])
    assert same([plain, marked, other]) == [0, 0, 2]
    rewritten = [replace(plain, problem="Find 2.", original_problem="What is 2?"), replace(other, problem="Find 2.")]
    assert same([plain, *rewritten]) == [0, 0, 0], "by way of another"
    stem = [Problem(str(number), "Which is right?", "A", task="stem") for number in range(4)]
    options = (["1 m", "2 m"], ["1 s", "2 s"], {"A": "2 m", "B": "1 m"}, "no options")
    rows = [replace(one, extra={"choices": of}) for one, of in zip(stem, options, strict=True)]
    assert same(rows) == [0, 1, 0, 3]
    assert [one.id for one in distinct(rows[::-1])] == ["3", "0", "1"]


def split(tmp_path, data, **settings):
    write_table(tmp_path / "problems.parquet", problem_table(data))
    return split_problems(
        tmp_path / "problems.parquet", Recipe(seed=5, train=TrainRecipe(validation=ValidationRecipe(**settings)))
    )


def test_no_problem_both_trains_and_validates(tmp_path):
    problems = of_tasks(math=300, logic=100)
    assert split(tmp_path, problems).trained == problems
    found = split(tmp_path, problems, every=5)
    assert (len(found.trained), tasks_of(found.validation), found.overlap) == (360, {"logic": 10, "math": 30}, 40)
    assert {one.id for one in found.trained} & {one.id for one in found.validation} == set()
    assert len(split(tmp_path, problems, every=5, size=7).validation) == 7
    assert len(split(tmp_path, of_tasks(math=4000), every=5).validation) == 128
    assert "40 problems (logic 10, math 30), which 40 of the data are; training on the other 360" in str(found)


def test_problems_of_a_file_are_taken_out_of_the_training_data(tmp_path):
    (tmp_path / "validation").mkdir()
    write_table(tmp_path / "validation" / "problems.parquet", problem_table([*of_tasks(math=3), *of_tasks(other=5)]))
    found = split(tmp_path, of_tasks(math=10), every=5, problems=str(tmp_path / "validation"))
    assert (len(found.trained), len(found.validation), found.overlap) == (7, 8, 3)
    write_table(tmp_path / "validation" / "problems.parquet", problem_table(of_tasks(math=10)))
    with pytest.raises(UserError, match="none to train on"):
        split(tmp_path, of_tasks(math=10), every=5, problems=str(tmp_path / "validation"))
