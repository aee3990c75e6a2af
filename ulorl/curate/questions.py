"""Do two texts of nearly the same words and numbers ask the same? What bags of words cannot see.

A difference is evidence against only where something was *replaced*: one text has "maximum" where the other
has "minimum", ``<`` for ``>``, ``+`` for ``-``, 12 for 10, MADAM for LEVEL. Something merely added or left
out is how copies of one problem differ. Invariant: symmetric; linear in the texts.
"""

from __future__ import annotations

import re
from collections import Counter

from ulorl.curate.features import normal_form, number_list, without_drawings

_FAMILIES = (
    (
        ("maximum", "largest", "greatest", "biggest", "most", "max", "highest"),
        ("minimum", "smallest", "least", "fewest", "min", "lowest"),
    ),
    (("sum", "total"), ("product",), ("difference",), ("quotient",), ("remainder",)),
    (("perimeter",), ("area",), ("volume",), ("circumference",), ("length",), ("radius",), ("diameter",)),
    (("mean", "average"), ("median",), ("mode",), ("range",)),
    (("even",), ("odd",)),
    (("positive",), ("negative",)),
    (("increasing",), ("decreasing",)),
    (("inscribed",), ("circumscribed",)),
    (("hours", "hour"), ("minutes", "minute"), ("seconds", "second"), ("days", "day")),
    (("sin", "sine"), ("cos", "cosine"), ("tan", "tangent")),
    (("arcsin",), ("arccos",), ("arctan",)),
    (("inside",), ("outside",)),
    (("same",), ("different", "distinct")),
    (("first",), ("last",)),
    (("more",), ("fewer", "less")),
    (("before",), ("after",)),
    (("above",), ("below",)),
    (("with",), ("without",)),
    (("increase", "increased"), ("decrease", "decreased")),
)
CONCEPTS = {
    word: (family, concept)
    for family, concepts in enumerate(_FAMILIES)
    for concept, words in enumerate(concepts)
    for word in words
}
_DATUM = re.compile(r"(?<![A-Za-z\\$])(?:[A-Z]{4,}|[\"\u201c'][A-Za-z]{3,}[\"\u201d'])(?![A-Za-z])")
_OPPOSITES = (("<", ">"), ("+", "-"), ("*", "/"), ("*", "+"), ("/", "+"))
_IDLE_PARENTHESES = re.compile(r"\(([^()+*/<>=-]*)\)")
_MAX_CHARS = 20_000


def same_question(left: str, right: str) -> bool:
    """Whether nothing in ``left`` was replaced by something else in ``right``."""
    left, right = without_drawings(left)[:_MAX_CHARS], without_drawings(right)[:_MAX_CHARS]
    return not (
        _swapped_concept(left, right)
        or _swapped(Counter(number_list(left)), Counter(number_list(right)))
        or _both_differ(_data(left), _data(right))
        or _swapped_operator(normal_form(left), normal_form(right))
    )


def _swapped_concept(left: str, right: str) -> bool:
    only_left, only_right = _concepts(left), _concepts(right)
    families = {family for family, _ in only_left - only_right}
    return any(family in families for family, _ in only_right - only_left)


def _concepts(text: str) -> set[tuple[int, int]]:
    return {CONCEPTS[word] for word in re.findall(r"[a-z]+", text.lower()) if word in CONCEPTS}


def _swapped(left: Counter[str], right: Counter[str]) -> bool:
    """As many numbers on one side only as on the other."""
    return 0 < (left - right).total() == (right - left).total()


def _both_differ(left: set[str], right: set[str]) -> bool:
    return bool(left - right) and bool(right - left)


def _data(text: str) -> set[str]:
    """Words that are themselves the datum; labels of points, whose letters are in order, are none."""
    found = {match.strip("\"'\u201c\u201d").lower() for match in _DATUM.findall(text)}
    return {word for word in found if list(word) != sorted(set(word))}


def _swapped_operator(left: str, right: str) -> bool:
    here, there = Counter(left), Counter(right)
    for one, other in _OPPOSITES:
        change = here[one] - there[one]
        if change and change == there[other] - here[other]:
            return True
    left, right = _IDLE_PARENTHESES.sub(r"\1", left), _IDLE_PARENTHESES.sub(r"\1", right)
    return left != right and re.sub(r"[()]", "", left) == re.sub(r"[()]", "", right)
