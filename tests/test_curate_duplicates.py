"""Duplicates, leaks and conflicting references."""

from __future__ import annotations

import json
import os
import random
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

from ulorl.curate.candidates import WINDOW, candidate_pairs, nearest
from ulorl.curate.contamination import contamination
from ulorl.curate.duplicates import duplicates
from ulorl.curate.equivalence import same_answer
from ulorl.curate.features import Features, exact_key, features, jaccard
from ulorl.curate.number_keys import number_keys
from ulorl.curate.questions import same_question
from ulorl.curate.references import references
from ulorl.curate.restated import restated
from ulorl.curate.signatures import BANDS, Ragged, signatures
from ulorl.problem import Problem
from ulorl.recipe import CurateRecipe, VerifyRecipe
from ulorl.verify import Verifier

LETTERS = ["".join(letters) for letters in product("bcdfghjk", "aeiou", "lmnpr")]
SHARED = Path(os.environ.get("ULORL_SHARED", Path(__file__).parents[2] / "shared"))
LONG = "A train leaves Paris at 9 with 120 passengers and reaches Lyon after 3 hours. How many seats of 150 are free?"


def row(identity: str, problem: str, answer: str = "1", **more: object) -> Problem:
    return Problem(id=identity, problem=problem, answer=answer, **more)  # type: ignore[arg-type]


def labelled(name: str) -> list[dict[str, str]]:
    file = SHARED / "data/curate" / name
    if not file.is_file():
        pytest.skip(f"needs {file} (set ULORL_SHARED)")
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_normal_form_folds_mark_up_and_keeps_operators() -> None:
    assert exact_key(r"Find $\dfrac{1}{2} \leqslant x$.") == exact_key(r"Find \(\frac12\le x \)")
    different = ["Find sin 60", "Find sin -60", "k>0", "k<0", "k>=0", "1,2", "12", "1+2", "1-2", "a/b", "ab"]
    assert len({exact_key(text) for text in different}) == len(different)


def test_numbers_in_words_and_signs() -> None:
    assert features("A tenth of twelve, and half of 1,000").numbers == {"10", "12", "2", "1000"}
    assert features("sin -60 and 5-3, base-10, (-4)").numbers == {"-60", "5", "3", "10", "-4"}
    assert features("[asy] draw((7,8)); [/asy] x is 2.50").numbers == {"2.5"}


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Find the maximum of x.", "Find the minimum of x."),
        ("f(x)=x^k where k > 0", "f(x)=x^k where k < 0"),
        ("the tenth of 10, 12", "the twelfth of 10, 12"),
        ("letters of MADAM", "letters of LEVEL"),
        ("88/(4/2)", "88/4/2"),
        ("sum (2n-1)/n", "sum (2n+1)/n"),
    ],
)
def test_replaced_things_make_another_question(left: str, right: str) -> None:
    assert not same_question(left, right)
    assert not same_question(right, left)
    assert same_question(left, left)


def test_exact_and_near_duplicates_name_the_row_kept() -> None:
    near = LONG.replace("reaches", "gets to").replace("seats of 150", "of 150 seats")
    other = LONG.replace("120", "130")
    result = duplicates(
        [
            row("a", LONG + " " * 9),
            row("b", LONG.replace("3 hours", "$3$ hours")),
            row("c", near),
            row("d", other),
        ],
        CurateRecipe(),
    )
    assert [(one.id, one.multiplicity) for one in result.kept] == [("a", 3), ("d", 1)]
    assert [(one.problem.id, one.reason, one.other_id) for one in result.dropped] == [
        ("b", "exact_duplicate", "a"),
        ("c", "near_duplicate", "a"),
    ]


def test_the_row_kept_is_the_best() -> None:
    rewritten = row("a", LONG, kind="multiple_choice")
    rated = row("c", LONG, pass_rate=0.5)
    assert [one.id for one in duplicates([rewritten, row("b", LONG), rated], CurateRecipe()).kept] == ["c"]


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("1/2", "0.5", True),
        ("x = 3", "3", True),
        ("f(x) = x + 1", "$x+1$", True),
        (r"\frac{1}{2}", r"\dfrac {1}{2}", True),
        ("7x - y - 5z - 6 = 0", "2x + z - 2 = 0", False),
        ("30", "31", False),
        ("(1, 2)", "(2, 1)", False),
    ],
)
def test_references_are_compared_by_spelling_then_by_rules(left: str, right: str, same: bool) -> None:
    assert same_answer(left, right) is same
    assert same_answer(right, left) is same


def test_conflicting_references_are_marked_then_settled_by_the_verifier() -> None:
    rows = [
        row("a", LONG, "30"),
        row("b", LONG, "31"),
        row("c", "Halve it.", "1/2"),
        row("d", "Halve it.", "0.5"),
    ]
    found = duplicates(rows, CurateRecipe())
    assert [(one.id, one.conflict) for one in found.kept] == [("a", "a"), ("b", "a"), ("c", None)]
    assert [(one.problem.id, one.other_id) for one in found.dropped] == [("d", "c")], "equal by the verifier's rules"
    assert found.conflicts == {"a": "a", "b": "a"}
    settled = references(found.kept, Verifier(VerifyRecipe()), found.conflicts)
    assert [one.id for one in settled.kept] == ["c"]
    assert [(one.problem.id, one.reason, one.other_id) for one in settled.dropped] == [
        ("a", "conflicting_references", "b"),
        ("b", "conflicting_references", "a"),
    ]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (r"Let $n$ be odd. Find $\frac{1}{2}n + n^{3}$.", r"Suppose \( m \) is odd. Calculate \(\dfrac12 m+m^3\)."),
        ("In triangle $ABC$, find the smallest angle.", r"Determine the least angle in triangle \(A B C\)."),
        (
            "How many of 50 coins land up? Express your answer as a common fraction.",
            "How many of the fifty coins land up?",
        ),
        (
            "A lamp is **lit** for 3 hours; the least cost is what?",
            "A lamp is lit for three hours. What's the minimum cost?",
        ),
        (
            "The sides are 3 and 4. [asy] draw((0,0)--(3,4)); [/asy] What is the area?",
            "Sides are 3 and 4. What is the area?",
        ),
        (r"Compute the sum: \[1 + 2(3 + 4)\]", "Evaluate $1+2(3+4)$."),
    ],
)
def test_what_is_one_problem_in_other_words(left: str, right: str) -> None:
    assert restated(left, right)
    assert restated(right, left)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (r"In cube $ABCDEFGH$, find $\sin \angle GAC$.", r"In cube $ABCDEFGH$, find $\sin \angle HAC$."),
        ("In the figure, find angle $ABF$.", "In the figure, find angle $ABH$."),
        ("Let $2n$ be a square and $3n$ a cube.", "Let $3n$ be a square and $2n$ a cube."),
        ("Draw one of 2, 3, 4, 5 cards.", "Draw one of 2, 3, 4, 5 or 8 cards."),
        ("Sum the first three composite numbers.", "Sum the first three prime numbers."),
        ("What is the chance of a face card?", "What is the chance of a card?"),
        ("Is 12 divisible by 3 or 4?", "Is 12 divisible by 3 and 4?"),
        ("If $x+y=3$, what is $x$?", "If $x+y=3$, what is $y$?"),
        (r"Find $\frac{a+b}{c}$ at $a=1$.", r"Find $a+\frac{b}{c}$ at $a=1$."),
        ("Find 2(1+2(1+2)) now.", "Find 2(1+2(1+2(1+2))) now."),
        ("Of 26 girls and boys, 7 left. How many girls left?", "Of 26 girls and boys, 7 left. How many boys left?"),
        (r"Solve $x \le 3$.", r"Solve $x < 3$."),
        ('Fill in. [asy] label("$12$",(0,1)); [/asy]', 'Fill in. [asy] label("$21$",(0,1)); [/asy]'),
    ],
)
def test_what_is_another_problem(left: str, right: str) -> None:
    assert not restated(left, right)
    assert not restated(right, left)
    assert restated(left, left)


def test_hostile_texts_are_read_in_linear_time() -> None:
    for text in (
        "(" * 20_000,
        "{x+" * 9_000,
        r"\frac{1" * 5_000,
        "$a$" * 9_000,
        "[asy]" * 9_000,
        "** " * 9_000,
        " " * 20_000,
    ):
        assert restated(text, text)
        assert not restated(text, "7 bricks " + text)


def test_different_references_of_different_problems_do_not_conflict() -> None:
    """Near-identical texts, one point's name apart: one problem if the references agree, two if they do not."""
    text = (
        "The regular octagon $PQRSTUVW$ has side 7. Its diagonals meet the circle of radius 12. Find the length $PS$."
    )
    other = text.replace("$PS$", "$PT$")
    found = duplicates([row("a", text, "31"), row("b", other, "37")], CurateRecipe())
    assert [(one.id, one.conflict) for one in found.kept] == [("a", None), ("b", None)]
    reworded = text.replace("Find the", "Determine the").replace("$PS$", r"\(PS\)")
    assert set(duplicates([row("a", text, "31"), row("b", reworded, "37")], CurateRecipe()).conflicts) == {"a", "b"}


def test_a_reference_that_does_not_equal_itself_is_dropped() -> None:
    result = references([row("a", "What?", r"\frac{1}{"), row("b", "What?", "7")], Verifier(VerifyRecipe()))
    assert [(one.problem.id, one.reason) for one in result.dropped] == [("a", "unverifiable_reference")]


def test_candidates_against_all_pairs() -> None:
    """MinHash bands must find nearly every pair that comparing all pairs finds, and no others."""
    draw = random.Random(0)
    vocabulary = ["".join(draw.choices("abcdefgh", k=8)) for _ in range(400)]
    rows: list[Features] = []
    for _ in range(150):
        words = draw.sample(vocabulary, 30)
        numbers = {str(draw.randrange(40)) for _ in range(draw.randrange(6))}
        rows.append(Features(frozenset(words), frozenset(numbers)))
        altered = draw.sample(words, 30 - draw.randrange(10)) + draw.sample(vocabulary, 3)
        rows.append(Features(frozenset(altered), frozenset(numbers)))
    truth = {
        (left, right)
        for left, right in combinations(range(len(rows)), 2)
        if jaccard(rows[left].words, rows[right].words) >= 0.5
        and jaccard(rows[left].numbers, rows[right].numbers) >= 0.8
    }
    problems = [row(str(at), f"{' '.join(sorted(one.words))} {' '.join(one.numbers)}") for at, one in enumerate(rows)]
    pairs = candidate_pairs(signatures(problems), np.arange(len(rows)), 0.5, 0.8)
    found = set(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
    assert len(truth) > 100
    assert found <= truth
    assert len(found) >= 0.97 * len(truth)
    for left, right, words, numbers in zip(pairs.left, pairs.right, pairs.words, pairs.numbers, strict=True):
        assert words == pytest.approx(jaccard(rows[left].words, rows[right].words))
        assert numbers == pytest.approx(jaccard(rows[left].numbers, rows[right].numbers))


@pytest.mark.parametrize("least", [0.0, 0.3, 0.5, 0.8, 1.0])
def test_similar_number_sets_share_a_key(least: float) -> None:
    draw = random.Random(1)
    sets: list[frozenset[str]] = []
    for _ in range(120):
        base = [str(int(2 / (1 - draw.random()))) for _ in range(draw.choice([0, 1, 2, 3, 4, 5, 9, 40, 70]))]
        sets += [frozenset(base), frozenset(base[draw.randrange(len(base) // 4 + 1) :]), frozenset([*base, "7"])]
    rows, keys = number_keys(Ragged.of_sets(sets), np.arange(len(sets)), least)
    of_row: dict[int, set[int]] = {at: set() for at in range(len(sets))}
    for at, key in zip(rows.tolist(), keys.tolist(), strict=True):
        of_row[at].add(key)
    for left, right in combinations(range(len(sets)), 2):
        if jaccard(sets[left], sets[right]) >= least:
            assert of_row[left] & of_row[right], (sets[left], sets[right])


def test_crowded_groups_are_cut_and_counted() -> None:
    problems = [
        row(str(at), f"Solve the puzzle of kind {at} with the {letter} box") for at, letter in enumerate(LETTERS)
    ]
    every = signatures([replace(one, problem=one.problem.replace(one.id, "")) for one in problems])
    pairs = candidate_pairs(every, np.arange(len(problems)), 0.5, 0.8)
    assert pairs.skipped > 0
    assert len(pairs.left) <= BANDS * WINDOW * len(problems)
    rank = np.arange(len(problems))[::-1]
    few = nearest(pairs, rank, 3)
    worse = np.where(rank[few.left] < rank[few.right], few.right, few.left)
    assert np.bincount(worse).max() == 3
    assert few.skipped == pairs.skipped + len(pairs.left) - len(few.left)
    for at in set(worse.tolist()):
        is_worse = np.where(rank[pairs.left] < rank[pairs.right], pairs.right, pairs.left) == at
        assert sorted(few.words[worse == at]) == sorted(pairs.words[is_worse])[-3:]


def test_near_duplicates_on_labelled_pairs() -> None:
    recipe = CurateRecipe()
    pairs = [
        (one["label"], len(duplicates([row("a", one["a"]), row("b", one["b"])], recipe).kept) == 1)
        for one in labelled("near_duplicates.jsonl")
    ]
    same = [found for label, found in pairs if label == "same"]
    variants = [found for label, found in pairs if label == "variant"]
    assert sum(same) / len(same) >= 0.95
    assert sum(variants) / len(variants) <= 0.05


def test_leaks_name_the_benchmark_item() -> None:
    item = row("item", LONG, source_id="bench-7")
    others = [row(f"o{index}", f"Words about thing {index} and {index + 1000} more.") for index in range(200)]
    leaked = LONG.replace("leaves", "departs from").replace("reaches", "arrives in")
    rows = [
        row("a", leaked),
        row("b", LONG.replace("120", "110")),
        row("c", "Find x if x = 120."),
        row("d", LONG + "  "),
    ]
    result = contamination(rows, CurateRecipe(), {"bench": [*others, item]})
    assert [(one.problem.id, one.other_id) for one in result.dropped] == [("a", "bench-7"), ("d", "bench-7")]
    assert all(one.detail.startswith("bench: ") for one in result.dropped)


def test_leaks_on_labelled_pairs() -> None:
    rows = labelled("benchmark_leaks.jsonl")
    items = [row(one["eval_id"], one["eval_problem"]) for one in rows]
    items += [row(f"n{index}", one["a"]) for index, one in enumerate(labelled("near_duplicates.jsonl"))]
    result = contamination(
        [row(one["train_id"], one["train_problem"]) for one in rows], CurateRecipe(), {"benchmark": items}
    )
    assert len(result.dropped) >= 0.85 * len(rows)


def test_no_benchmarks_no_leaks() -> None:
    assert len(contamination([row("a", LONG)], CurateRecipe(), {}).kept) == 1


def test_no_rows() -> None:
    assert duplicates([], CurateRecipe()).kept == []


def test_hostile_rows_do_not_cost_a_square() -> None:
    """Ten thousand rows in one bucket, and one of five megabytes; the test's time-out is the limit."""
    crowd = [row(str(index), f"Compute the value of f at the point p{index * 7919}") for index in range(5_000)]
    huge = row("huge", "word 12 " * 600_000)
    result = duplicates([*crowd, huge], CurateRecipe())
    assert len(result.kept) + len(result.dropped) == 5_001
