"""The kind of a problem in a language model's reading, for the rows of which the rules are not certain.

Invariant: only the last line ``KIND: label`` with a label of the closed list counts; anything else decides nothing,
and the row keeps the kind that the rules gave it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ulorl.curate.kinds import KINDS, Kind
from ulorl.curate.reader import Reader
from ulorl.problem import Problem

_QUESTION = """Decide what kind of mathematics problem this is.

Kinds:
short_answer: asks one thing that has one definite short answer; a tuple or a set is one answer, "with proof" or
"justify" beside such a question changes nothing, numbered conditions are no parts
multi_part: asks several things, in numbered parts or in prose
multiple_choice: to be answered by choosing among given options or numbered statements
proof: asks to prove or show something, and for no value
true_false: asks a yes/no question, or whether something is true, possible or exists, and for no value
open_ended: has many right answers: give an example, construct, draw, explain, describe
missing_figure: cannot be solved without a picture that is not in the text
other: nothing is asked, or the text is broken

Problem:
{problem}

Reference answer: {answer}

End with one line that has nothing but KIND: and the kind, such as KIND: short_answer"""
_LABEL = re.compile(r"^\W*KIND\W{1,6}([a-z]+_?[a-z]*)\W*$", re.IGNORECASE | re.MULTILINE)
_MAX_ANSWER_CHARS = 300


def read_kinds(problems: Sequence[Problem], reader: Reader) -> dict[str, Kind]:
    """id -> kind, for those problems of which the model named one."""
    prompts = [kind_prompt(one) for one in problems]
    replies = reader.replies(prompts, "kinds")
    found = {one.id: kind_of_reply(reply or "") for one, reply in zip(problems, replies, strict=True)}
    return {name: kind for name, kind in found.items() if kind is not None}


def kind_prompt(problem: Problem) -> str:
    """The question about one problem."""
    answer = (problem.original_answer or problem.answer)[:_MAX_ANSWER_CHARS]
    # Plain replacement: a problem may hold braces, and the words {answer}.
    head, middle, tail = re.split(r"\{problem\}|\{answer\}", _QUESTION)
    return f"{head}{problem.problem}{middle}{answer or '(none)'}{tail}"


def kind_of_reply(reply: str) -> Kind | None:
    """The kind that the last ``KIND:`` line names; None if there is no such line or it names none."""
    labels = _LABEL.findall(reply)
    named = labels[-1].lower() if labels else ""
    return next((kind for kind in KINDS if kind == named), None)
