"""Instruction following: each constraint on responses that keep it and that break it, rows that are broken, rewards."""

from __future__ import annotations

import time

import pytest

from ulorl.problem import Problem
from ulorl.recipe import VerifyRecipe
from ulorl.recipe_tasks import InstructionRecipe, TasksRecipe
from ulorl.verify.tasks.base import Attempt
from ulorl.verify.tasks.constraints.registry import CONSTRAINTS
from ulorl.verify.tasks.constraints.text import sentences
from ulorl.verify.tasks.ifollow import InstructionTask

LEAST, LESS = {"relation": "at least"}, {"relation": "less than"}
GERMAN = "Das ist ein schöner Tag, und wir gehen heute alle zusammen in den Wald."
# (instruction, settings, responses that keep it, responses that break it)
CASES = [
    ("keywords:existence", {"keywords": ["Rain", "c++"]}, ["rain and C++"], ["rain", "brain c+"]),
    ("keywords:frequency", {"keyword": "a.b", "frequency": 2, **LEAST}, ["a.b A.B"], ["a.b axb"]),
    ("keywords:frequency", {"keyword": "no", "frequency": 2, **LESS}, ["no"], ["no NO"]),
    ("keywords:forbidden_words", {"forbidden_words": ["cat"]}, ["concatenate"], ["a Cat!"]),
    ("keywords:letter_frequency", {"letter": "e", "let_frequency": 2, "let_relation": "at least"}, ["eE"], ["e"]),
    ("keywords:letter_frequency", {"letter": "#", "let_frequency": 1, "let_relation": "less than"}, ["e"], ["#"]),
    ("language:response_language", {"language": "de"}, [GERMAN], ["This is plainly an English sentence, is it not?"]),
    ("length_constraints:number_sentences", {"num_sentences": 3, **LEAST}, ["One. Two! Three?"], ["One. Two!"]),
    ("length_constraints:number_sentences", {"num_sentences": 3, **LESS}, ["Dr. Who left. Then"], ["One. Two! Three?"]),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, ["a\n***\nb", "***a***b***"], ["a", "a *** *** b"]),
    ("length_constraints:number_words", {"num_words": 3, **LEAST}, ["one two, three"], ["one two"]),
    ("length_constraints:number_words", {"num_words": 3, **LESS}, ["one two"], ["one two three"]),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Then"},
        ["First.\n\nthen, more", 'a\n\n\n\n"Then" b'],
        ["Then\n\nb", "a\n\nThen\n\nc", "a\n\nThence b"],
    ),
    (
        "detectable_content:number_placeholders",
        {"num_placeholders": 2},
        ["[name] at [address]"],
        ["[name]", "[a\nb] [c]"],
    ),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, ["Bye\np.p.s. x", "P. P.S y"], ["P.S. x"]),
    (
        "detectable_format:number_bullet_lists",
        {"num_bullets": 2},
        ["* a\n- b", "*a\n *b"],
        ["* a", "**a**\n* b", "* a\n* b\n* c"],
    ),
    (
        "detectable_format:constrained_response",
        {},
        ["Well: My answer is maybe."],
        ["My answer is perhaps.", "my answer is yes"],
    ),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, ["*a* b *c*"], ["*a*", "* *a b", "**"]),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "Section", "num_sections": 2},
        ["Section 1\na\nSection 2\nb"],
        ["Section 1\na", "Section A Section B"],
    ),
    ("detectable_format:json_format", {}, ['{"a": [1]}', '```json\n{"a": 1}\n```', "3"], ["{a: 1}", "[" * 100_000]),
    ("detectable_format:title", {}, ["<<A title>>\ntext"], ["< <a> >", "<<>>", "<< >>"]),
    ("combination:two_responses", {}, ["a\n******\nb", "******a******b"], ["a******a", "a", "a******b******c"]),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say hi."}, ["say HI. hi"], ["hi. Say hi."]),
    (
        "startend:end_checker",
        {"end_phrase": "That is all."},
        ["x THAT is all. ", '"x that is all."'],
        ["That is all. x"],
    ),
    (
        "startend:quotation",
        {},
        ['"a"', ' "a b" '],
        ['a "b"', '"', '"a'],
    ),
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 2, "capital_relation": "at least"},
        ["I am HERE"],
        ["I am"],
    ),
    ("change_case:english_capital", {}, ["ALL 3 OF IT."], ["All", "123"]),
    ("change_case:english_lowercase", {}, ["all 3 of it."], ["All", "123"]),
    ("punctuation:no_comma", {}, ["a; b"], ["a, b"]),
]


def row(*instructions, kwargs=None):
    extra = {"instruction_id_list": [name for name, _ in instructions], "kwargs": [given for _, given in instructions]}
    return Problem("p", "Write.", "", task="ifollow", extra=extra if kwargs is None else extra | {"kwargs": kwargs})


def task(**settings):
    return InstructionTask(VerifyRecipe(symbolic=False, tasks=TasksRecipe(ifollow=InstructionRecipe(**settings))))


@pytest.mark.parametrize(("name", "settings", "kept", "broken"), CASES)
def test_a_constraint_is_kept_or_broken(name, settings, kept, broken):
    judge, problem = task(), row((name, settings))
    assert judge.check(problem) is None
    assert [reward.value for reward in judge.score([Attempt(problem, one) for one in kept])] == [1.0] * len(kept)
    assert [reward.value for reward in judge.score([Attempt(problem, one) for one in broken])] == [0.0] * len(broken)


def test_every_constraint_has_a_case():
    assert {name for name, *_ in CASES} == set(CONSTRAINTS)
    assert len(CONSTRAINTS) == 25


def test_all_or_nothing_and_the_share():
    problem = row(("punctuation:no_comma", {}), ("change_case:english_lowercase", {}), ("startend:quotation", {}))
    texts = ['"all kept"', '"One broken"', "A, b"]
    assert [task()._reward(Attempt(problem, text)).value for text in texts] == [1.0, 0.0, 0.0]
    shares = [task(reward="share")._reward(Attempt(problem, text)) for text in texts]
    assert [reward.value for reward in shares] == pytest.approx([1.0, 2 / 3, 0.0])
    assert shares[1].reason == "broken: change_case:english_lowercase"


def test_thinking_is_not_judged_and_nothing_is_no_answer():
    problem = row(("punctuation:no_comma", {}))
    rewards = task().score([Attempt(problem, "<think>a, b</think>c"), Attempt(problem, "<think>a</think>  ")])
    assert (rewards[0].value, rewards[0].answer) == (1.0, "c")
    assert rewards[1].reason == "no_answer"


def test_the_loose_reading_forgives_a_first_line_a_last_line_and_asterisks():
    problem = row(("change_case:english_lowercase", {}), ("punctuation:no_comma", {}))
    text = "Sure, here it is:\n**all small**\nHope, this helps!"
    assert task()._reward(Attempt(problem, text)).value == 0.0
    assert task(strict=False)._reward(Attempt(problem, text)).value == 1.0


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (Problem("p", "t", "", task="ifollow"), "instruction_id_list is missing"),
        (row(("punctuation:no_coma", {})), "do you mean punctuation:no_comma"),
        (row(("punctuation:no_comma", {}), kwargs=[{}, {}]), "1 constraints and 2 kwargs"),
        (row(("punctuation:no_comma", {"x": 1})), "no setting 'x'; it takes none"),
        (row(("length_constraints:number_words", {"num_words": 3})), "the setting relation is missing"),
        (row(("length_constraints:number_words", {"num_words": 3, "relation": "about"})), "'at least' or 'less than'"),
        (row(("length_constraints:number_words", {"num_words": -1, **LEAST})), "a whole number"),
        (row(("length_constraints:number_words", {"num_words": float("inf"), **LEAST})), "give a whole number"),
        (row(("length_constraints:number_words", {"num_words": float("nan"), **LEAST})), "give a whole number"),
        (row(("length_constraints:number_words", {"num_words": 1.5, **LEAST})), "give a whole number"),
        (row((["a"], {})), "instruction_id_list holds ['a'], not the name of a constraint; there are keywords:"),
        (row(({"a": 1}, {})), "not the name of a constraint"),
        (row((None, {})), "not the name of a constraint"),
        (row(("keywords:existence", {"keywords": []})), "a list of texts"),
        (row(("language:response_language", {"language": "xx"})), "the code of a language"),
        (row(("punctuation:no_comma", {}), kwargs="[{"), "kwargs is no JSON list"),
    ],
)
def test_broken_rows_say_what_is_wrong(problem, why):
    assert why in task().check(problem)


def test_nulls_that_tables_fill_in_and_json_texts_are_read():
    filled = {"num_words": 2, "relation": "at least", "keyword": None, "language": None}
    problem = row(("length_constraints:number_words", filled))
    assert task().check(problem) is None
    texts = Problem("p", "t", "", task="ifollow", extra={"instruction_id": "punctuation:no_comma", "kwargs": "[{}]"})
    assert task().check(texts) is None


def test_sentences_end_at_punctuation_but_not_after_abbreviations():
    latin = "Mr. Smith, e.g. a man, paid $3.50. He left! Did he? 1. First point\nof it. \u201cYes.\u201d No."
    text = f"{latin} \u4f60\u597d\u3002\u518d\u89c1\u3002"
    assert len(sentences(text)) == 8


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("So do I. Then go.", 2),
        ("It is plan b. Then go.", 2),
        ("He ate etc. Then left.", 2),
        ("He ate apples, etc. and left.", 1),
        ("J. R. R. Tolkien wrote it.", 1),
        ("I. M. Pei built it.", 1),
        ("The U.S. Army left. It is big.", 2),
        ("The U.S. is big.", 1),
        ("The F.B.I. Agents left.", 1),
        ("MR. Smith met DR. Who, E.G. him.", 1),
        ("At 5 p.m. he left.", 1),
        ("He left at 5 p.m. Then she came.", 2),
        ("It is on p. 5, or pp. 6 and 7.", 1),
        ("Vitamin C. then more", 2),
    ],
)
def test_initials_and_abbreviations_that_end_sentences(text, count):
    assert len(sentences(text)) == count


@pytest.mark.parametrize("character", ["[", "*", "<", "a.", "\n", "* ", '"', "p.s", " ", "***", "([", "A "])
def test_long_hostile_responses_take_linear_time(character):
    judge, text = task(), character * (200_000 // len(character))
    begun = time.perf_counter()
    for name, settings, *_ in CASES:
        judge.score([Attempt(row((name, settings)), text)])
    assert time.perf_counter() - begun < 20
