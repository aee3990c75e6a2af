"""The options of a multiple-choice row, in the order in which they are shown.

A row has ``choices``: a list of texts, an object of letters and texts, or one with the lists ``text`` and ``label``.
The ``answer`` is a letter of these, or the text of an option; ``answer_index`` counts from 0 and goes before it.

Invariants: the order follows from the problem's id, and the right option with it; options that speak of others
("all of the above") keep the order of the row; the case of letters counts only between options that nothing else tells
apart ("Aa", "aa").
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
    r"\b(?:all|none|both|any|neither|two|each|either|some) (?:of )?(?:the |these |those )*(?:above|below|options?|"
    r"choices|answers|others?|these|following|previous)\b",
    re.IGNORECASE,
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
    if not _any_speaks_of_others(labels, texts):
        random.Random(derive_seed(0, "stem", identity)).shuffle(order)
    return Choices(tuple(texts[place] for place in order), order.index(right))


def _any_speaks_of_others(labels: Sequence[str], texts: Sequence[str]) -> bool:
    """Whether an option names others, by words or by two labels or letters ("both a and b"), in any case.

    Options that only look like it ("vitamins A and C") keep the order of the row too, which does no harm.
    """
    own = [label for label in (label.strip("(). ") for label in labels) if re.fullmatch(r"\w{1,8}", label)]
    name = rf"(?<!\w)\(?(?:{'|'.join(dict.fromkeys([*own, *LETTERS[: len(labels)]]))})\)?(?!\w)"
    several = re.compile(
        rf"{name},? ?(?:and|or|nor|and/or|&|\+) ?{name}|^(?:{name}, ?)+{name}$"
        rf"|\b(?:option|choice|answer)s? {name}",
        re.IGNORECASE,
    )
    return any(_SPEAKS_OF_OTHERS.search(text) or several.search(text) for text in texts)


def _read(given: Any) -> tuple[list[str], list[str]]:
    """Labels and texts, in the row's order."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError) as error:
            raise RowError(f"the column choices is no JSON list or object ({error})") from error
    if isinstance(given, dict) and isinstance(given.get("text"), list):
        texts, labels = given["text"], given.get("label")
        labels = list(LETTERS[: len(texts)]) if labels is None or labels == [] else labels
    elif isinstance(given, dict):
        filled = {key: value for key, value in given.items() if value is not None}  # Parquet fills what a row lacks
        labels, texts = list(filled), list(filled.values())
    elif isinstance(given, list):
        labels, texts = list(LETTERS[: len(given)]), given
    else:
        raise RowError(f"the column choices is a {type(given).__name__}; give a list of texts, or letters and texts")
    labels, texts = _texts(labels, "label"), _texts(texts, "option")
    if not 2 <= len(texts) <= len(LETTERS) or len(labels) != len(texts):
        raise RowError(f"the column choices has {len(texts)} options and {len(labels)} letters; give 2 to 26 of each")
    if not all(texts) or len({_plain(text) for text in texts}) < len(texts):
        raise RowError("an option is empty, or there twice")
    return labels, texts


def _texts(given: Any, what: str) -> list[str]:
    """A list of texts or numbers, as texts."""
    if not isinstance(given, list):
        raise RowError(f"the column choices has the {what}s {given!r:.60}; give a list of texts")
    wrong = [one for one in given if not isinstance(one, str | int | float)]
    if wrong:
        raise RowError(f"the column choices has {wrong[0]!r:.60} as {what}; give texts")
    return [str(one).strip() for one in given]


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


def is_choice(response: str, options: Sequence[str]) -> bool:
    """Whether a whole response is a letter, an option's text, or a letter with its option's text, and no more."""
    number, rest = letter_and_rest(response, len(options))
    if number is None:
        return len(matching(response, options)) == 1
    return not rest or matching(rest, options) == [number]


def matching(text: str, options: Sequence[str]) -> list[int]:
    """Numbers of the options that are ``text``, but for white space, wrapping, and case where that tells none apart."""
    plain = _plain(text)
    found = [place for place, option in enumerate(options) if _plain(option).casefold() == plain.casefold()]
    return found if len(found) < 2 else [place for place in found if _plain(options[place]) == plain]


def _plain(text: str) -> str:
    return " ".join(_unwrapped(text.strip()).strip("$ .").split())


def _unwrapped(text: str) -> str:
    wrapped = _WRAPPED.fullmatch(text.strip("$ "))
    return wrapped[1].strip() if wrapped else text
