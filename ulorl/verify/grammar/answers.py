"""Parses a whole answer: what kind of thing it is, then its parts.

Every token is accounted for, or `Unsupported` is raised with the reason.
"""

from __future__ import annotations

import re

from ulorl.verify.exact import algebra
from ulorl.verify.exact.algebra import Unsupported
from ulorl.verify.grammar.claims import split_claim
from ulorl.verify.grammar.expressions import parse_expression
from ulorl.verify.grammar.inequalities import spell_relations
from ulorl.verify.grammar.lists import parse_list
from ulorl.verify.grammar.number_sets import words_set
from ulorl.verify.grammar.scalars import MONEY_SIGNS
from ulorl.verify.grammar.split import check_nesting
from ulorl.verify.grammar.tokens import tokenise
from ulorl.verify.grammar.values import Based, Choice, Listing, Named, Scalar, Value, Word
from ulorl.verify.grammar.words import parse_plain

MAX_CHARACTERS = 4000
MAX_PLAIN_DIGITS = 400
"""Integers up to this length, the most frequent answers, are read without tokens."""
_CHOICES = re.compile(r"[A-H]{2,6}")
_CHOICE_WITH_CONTENT = re.compile(
    r"(?:\\(?:text|textbf|textrm|mathrm|mathbf) ?\{ ?\(?([A-J])[):]+ ?\}"
    r"|\(([A-J])\) |([A-J])[).] |([A-J]): (?=[\d\\$(-])) ?(?![(.])(.+)",
    re.DOTALL,
)
_TEXT_ONLY = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox)\s?\{([^{}]*)\}")
_BASED = re.compile(r"([0-9][0-9A-Fa-f]*(?:\.[0-9A-Fa-f]+)?|[A-Fa-f]{2,})_(?:\{ ?([0-9]{1,2}) ?\}|([0-9]))")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?![\d,])")
_SPACED_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?: \d{3})+(?:\.\d+)?")
_LISTED_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+")
_INTERVAL = re.compile(r"([\[\]])([^\[\]()]{1,80})([\[\]])")
_SCIENTIFIC = re.compile(r"(?<![A-Za-z\d])(\d+(?:\.\d+)?)[eE]([-+]?\d{1,4})(?![A-Za-z\d.])")


def parse_answer(text: str) -> Value:
    """The value that a normalised answer states; raises `Unsupported` with the reason."""
    if not text:
        raise Unsupported("empty answer")
    if len(text) > MAX_CHARACTERS:
        raise Unsupported("answer too long")
    if text.isdecimal() and text.isascii() and len(text) <= MAX_PLAIN_DIGITS:
        return Scalar(algebra.number(int(text)))
    claimed = _parse_claim(text)
    if claimed is not None:
        return claimed
    text = text.replace("\\_", "_")
    word = _parse_words(text)
    if word is not None:
        return word
    based = _BASED.fullmatch(text)
    if based:
        return _parse_based(based)
    choice = _CHOICE_WITH_CONTENT.fullmatch(text)
    if choice:
        letter = choice[1] or choice[2] or choice[3] or choice[4]
        return Choice(letter, _parse_words(choice[5].strip()) or _parse_mathematics(choice[5].strip()))
    return _parse_mathematics(text)


def _parse_mathematics(text: str) -> Value:
    tokens = spell_relations(tokenise(_join_digits(text)))
    check_nesting(tokens)
    return parse_list(tokens)


def _parse_claim(text: str) -> Value | None:
    """What a short sentence says, named after its subject; None where the text is no sentence of a known form."""
    claim = split_claim(" ".join(_TEXT_ONLY.sub(r" \1 ", text).split()) if text.startswith("\\text") else text)
    if claim is None:
        return None
    try:
        value = parse_answer(claim.rest)
    except Unsupported:
        return None
    return Named(claim.name, value) if claim.name and isinstance(value, Scalar | Word) else value


def other_reading(text: str) -> Value | None:
    """``100,200`` as a list of two numbers, where `parse_answer` reads one number; None for other texts."""
    if not _LISTED_THOUSANDS.fullmatch(text) or ",0" in text:
        return None
    return Listing(tuple(Scalar(parse_expression(tokenise(part))) for part in text.split(",")))


def _join_digits(text: str) -> str:
    """Removes thousands separators outside brackets and writes 3e-4 as a power of ten."""
    if _SPACED_THOUSANDS.fullmatch(text):
        text = text.replace(" ", "")
    if not any(bracket in text for bracket in ("(", "[", "\\{")) or text[:1] in MONEY_SIGNS:
        text = re.sub(r"(?<![\d,.])" + _THOUSANDS.pattern, lambda m: m[0].replace(",", ""), text)
    text = _with_usual_brackets(text)
    return _SCIENTIFIC.sub(r"(\1\\cdot 10^{\2})", text)


def _with_usual_brackets(text: str) -> str:
    """``]1, 2[`` as (1, 2), where that is what all square brackets of the text are."""
    if "[" not in text and "]" not in text:
        return text
    if _INTERVAL.sub("", text).strip("xyzt ").replace("\\cup", "").replace("\\in", "").strip():
        return text

    def usual(match: re.Match[str]) -> str:
        return {"]": "("}.get(match[1], match[1]) + match[2] + {"[": ")"}.get(match[3], match[3])

    return _INTERVAL.sub(usual, text)


def _parse_words(text: str) -> Value | None:
    plain = " ".join(_TEXT_ONLY.sub(r" \1 ", text).split()).strip(" .")
    if _CHOICES.fullmatch(plain) and list(plain) == sorted(set(plain)):
        return Listing(tuple(Word(letter, is_choice=True) for letter in plain), "and")
    return words_set(plain.lower()) or parse_plain(text)


def _parse_based(match: re.Match[str]) -> Value:
    whole, _, places = match[1].upper().partition(".")
    base, places = int(match[2] or match[3]), places.rstrip("0")
    digits = (whole.lstrip("0") or "0") + ("." + places if places else "")
    if not 2 <= base <= 36 or len(digits) > 400 or any(int(digit, 36) >= base for digit in whole + places):
        raise Unsupported("digits outside the base")
    return Based(digits, base)
