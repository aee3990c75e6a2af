"""Reads \\mathbb{R}, \\mathbb{Z}^+, \\mathbb{Q}_{>0} and their names in words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ulorl.verify.grammar.tokens import Token
from ulorl.verify.grammar.values import NumberSet

_SUFFIXES = {
    "": "", "^ +": "+", "_ +": "+", "_ > 0": "+", "^ + +": "+", "^ -": "-", "_ -": "-", "_ < 0": "-",
    "_ ge 0": "0+", "_ le 0": "0-", "^ *": "*", "_ ne 0": "*", "^ ast": "*", "^ times": "*", "^ + _ 0": "0+",
    "_ 0 ^ +": "0+", "_ 0": "0", "^ + cup { 0 }": "0+", "_ ge 1": "+", "^ 0": "0", "_ > = 0": "0+", "_ geq 0": "0+",
}  # fmt: skip
_KINDS = {"real": "R", "integer": "Z", "whole": "Z0+", "rational": "Q", "complex": "C", "natural": "N"}
_WORDS = re.compile(
    r"(?:(?:the )?set of (?:all )?|all |any |every )?(?:the )?(?:(positive|negative|non-?negative|nonzero) )?"
    r"(real|rational|complex|natural)? ?(numbers?|reals|rationals|integers)"
)
_SUFFIX_WORDS = {"positive": "+", "negative": "-", "nonnegative": "0+", "nonzero": "*"}


def number_set(tokens: Sequence[Token]) -> NumberSet | None:
    """The number set that all of ``tokens`` spell, or None."""
    if not tokens:
        return None
    start = 1
    if tokens[0].kind == "command" and tokens[0].text in ("mathbb", "mathbf", "Bbb", "mathcal") and len(tokens) > 1:
        braced = tokens[1].text == "{" and len(tokens) > 3 and tokens[3].text == "}"
        letter, start = (tokens[2].text, 4) if braced else (tokens[1].text, 2)
    elif tokens[0].kind in ("letters", "text") and len(tokens[0].text) == 1:
        letter = tokens[0].text
    else:
        return None
    if letter not in ("R", "Z", "N", "Q", "C"):
        return None
    suffix = " ".join(token.text for token in tokens[start:] if token.text not in ("{", "}"))
    if suffix not in _SUFFIXES:
        return None
    return NumberSet(letter + _SUFFIXES[suffix])


def words_set(text: str) -> NumberSet | None:
    """The number set that words such as "all positive integers" name, or None."""
    match = _WORDS.fullmatch(text)
    if match is None or (match[2] is None) == (match[3] in ("number", "numbers")):
        return None
    if match[3] == "number" and not text.startswith(("any", "every")):
        return None
    kind = _KINDS[match[2] or match[3].removesuffix("s")]
    return NumberSet(kind + (_SUFFIX_WORDS[match[1].replace("-", "")] if match[1] else ""))
