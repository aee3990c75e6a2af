"""The options of a multiple-choice row, in the order in which they are shown.

A row has ``choices``: a list of texts, an object of letters and texts, or one with the lists ``text`` and ``label``.
The ``answer`` is a letter of these, or the text of an option; ``answer_index`` counts from 0 and goes before it.

Invariants: the order follows from the problem's id, and the right option with it; options that speak of others
("all of the above") keep the order of the row.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ulorl.problem import Problem
from ulorl.seeds import derive_seed

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SPEAKS_OF_OTHERS = re.compile(
    r"(?i:\b(?:all|none|both|any|neither|two|each|either|some) (?:of )?(?:the |these |those )*(?:above|below|options?|"
    r"choices|answers|others?|these|following|previous)\b)|\b(?i:both|only|either|neither)? ?\(?[A-E]\)? "
    r"(?:and|or|nor|&) \(?[A-E]\b"
)
_LETTER = re.compile(
    r"(?:(?:the )?(?:correct |right )?(?:option|choice|answer)(?: is)?:?\s?)?\(?\[?\$?(?P<letter>[A-Za-z])\$?\]?(?:"
    r"\)?$|(?:[).:]|\)[.:]?)\s{0,4}(?P<rest>\S.*)$)",
    re.IGNORECASE | re.DOTALL,
)
_WRAPPED = re.compile(r"\\(?:text|textbf|mathrm|mathbf|boldsymbol)\s?\{([^{}]*)\}")


class RowError(ValueError):
    """What is wrong with a row."""


@dataclass(frozen=True)
class Choices:
    """``options`` as they are shown; ``right`` is the number of the right one, from 0."""

    options: tuple[str, ...]
    right: int

    def letter(self, number: int) -> str:
        return LETTERS[number]

    def shown(self) -> str:
        """A line an option, each with its letter."""
        return "\n".join(f"{self.letter(number)}. {option}" for number, option in enumerate(self.options))


def choices_of(problem: Problem) -> Choices | None:
    """The options of a row; None where it has none. RowError says what is wrong with them."""
    given = problem.extra.get("choices")
    if given is None or given == "":
        return None
    index = problem.extra.get("answer_index")
    return _shuffled(problem.id, json.dumps(given), problem.answer.strip(), json.dumps(index))


@lru_cache(maxsize=4096)
def _shuffled(identity: str, given: str, answer: str, index: str) -> Choices:
    labels, texts = _read(json.loads(given))
    right = _right(labels, texts, answer, json.loads(index))
    order = list(range(len(texts)))
    if not any(_SPEAKS_OF_OTHERS.search(text) for text in texts):
        random.Random(derive_seed(0, "stem", identity)).shuffle(order)
    return Choices(tuple(texts[place] for place in order), order.index(right))


def _read(given: Any) -> tuple[list[str], list[str]]:
    """Labels and texts, in the row's order."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError as error:
            raise RowError(f"the column choices is no JSON list or object ({error})") from error
    if isinstance(given, dict) and isinstance(given.get("text"), list):
        labels, texts = given.get("label") or list(LETTERS[: len(given["text"])]), given["text"]
    elif isinstance(given, dict):
        filled = {key: value for key, value in given.items() if value is not None}  # Parquet fills what a row lacks
        labels, texts = list(filled), list(filled.values())
    elif isinstance(given, list):
        labels, texts = list(LETTERS[: len(given)]), given
    else:
        raise RowError(f"the column choices is a {type(given).__name__}; give a list of texts, or letters and texts")
    if not 2 <= len(texts) <= len(LETTERS) or len(labels) != len(texts):
        raise RowError(f"the column choices has {len(texts)} options and {len(labels)} letters; give 2 to 26 of each")
    cleaned = [str(text).strip() for text in texts]
    if not all(cleaned) or len({_plain(text) for text in cleaned}) < len(cleaned):
        raise RowError("an option is empty, or there twice")
    return [str(label).strip() for label in labels], cleaned


def _right(labels: Sequence[str], texts: Sequence[str], answer: str, index: Any) -> int:
    if index is not None:
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(texts):
            raise RowError(f"answer_index is {index!r}; give a number from 0 to {len(texts) - 1}")
        return index
    letter = answer.strip("().").upper()
    by_label = [place for place, label in enumerate(labels) if label.upper() == letter]
    by_text = matching(answer, texts)
    found = by_text if len(by_text) == 1 and by_text != by_label and not by_label else by_label or by_text
    if by_label and by_text and by_label != by_text:
        raise RowError(f"the answer {answer!r} is the letter of one option and the text of another; give answer_index")
    if len(found) != 1:
        raise RowError(f"the answer {answer[:60]!r} is neither the letter nor the text of an option")
    return found[0]


def letter_and_rest(answer: str, options: int) -> tuple[int | None, str]:
    """The option that an answer names by letter ("(B)", "B. 12 m", "option B"), and what it says besides."""
    text = _unwrapped(answer.strip())
    found = _LETTER.fullmatch(text.rstrip(". "))
    if found is None:
        return None, text
    number = LETTERS.index(found["letter"].upper())
    return (number, (found["rest"] or "").strip()) if number < options else (None, text)


def matching(text: str, options: Sequence[str]) -> list[int]:
    """Numbers of the options that are ``text``, but for case, white space and wrapping."""
    return [place for place, option in enumerate(options) if _plain(option) == _plain(text)]


def _plain(text: str) -> str:
    return " ".join(_unwrapped(text.strip()).strip("$ .").casefold().split())


def _unwrapped(text: str) -> str:
    wrapped = _WRAPPED.fullmatch(text.strip("$ "))
    return wrapped[1].strip() if wrapped else text
