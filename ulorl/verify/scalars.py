"""Parses one value with its currency sign, percent sign, degree sign or trailing unit.

A unit is recognised only after a number or closing bracket, and only as text, as a known short name or as a
word of four letters or more; words that change the number ("million", "squared", "or") are never units.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ulorl.verify.algebra import Unsupported
from ulorl.verify.expressions import parse_expression
from ulorl.verify.normalise import MONEY
from ulorl.verify.tokens import Token, words
from ulorl.verify.values import Group, Scalar, Value, Word

MAX_UNIT_WORDS = 6
MONEY_SIGNS = frozenset({MONEY, "€", "£", "¥"})
_UNIT_TEXT = re.compile(r"[mgsLlWJNVKCAhFTM]|\(?[A-Za-z]{2,}\.?(?:[ /-][A-Za-z]+)*\)?")
_UNIT_WORDS = words(
    """mm cm dm km kg mg lb lbs oz ft in yd mi mL ml hr hrs min sec mph kph rad deg kJ kW Hz Pa atm mol
    men USD EUR day days cup cups pie pies egg eggs pen pens box cow cows dog dogs cat cats bag bags car
    cars toy toys year years hour hours mile miles inch inches foot feet meter meters minute minutes
    dollar dollars cent cents"""
)
_NOT_UNITS = words(
    """and or am pm to if not no in mod plus minus times over between from than at least most about
    hundred thousand million billion trillion dozen half halves third thirds quarter quarters percent where
    when is are was infinity pi squared cubed factorial choose root roots score power"""
)
_PERCENT = words("percent percentage pct")
_IRREGULAR = {"feet": "foot", "inches": "inch", "men": "man"}


def parse_scalar(tokens: Sequence[Token]) -> Value:
    """One number or expression with what is written around it, or plain words; raises `Unsupported`."""
    if not tokens:
        raise Unsupported("an empty item")
    if len(tokens) == 1 and tokens[0].text == "emptyset":
        return Group("{", "}", ())
    money = [token for token in tokens if token.text in MONEY_SIGNS]
    if money:
        rest = [token for token in tokens if token.text not in MONEY_SIGNS]
        if len(money) > 1 or tokens.index(money[0]) > 1:
            raise Unsupported("several currency signs")
        value = parse_scalar(rest)
        if not isinstance(value, Scalar):
            raise Unsupported("a currency sign before something other than a number")
        if value.unit in ("", "dollars", "dollar", "usd"):
            return Scalar(value.expression, money[0].text)
        if value.unit == "%":
            raise Unsupported("a currency sign and percent")
        return Scalar(value.expression, f"{money[0].text} {value.unit}")
    if tokens[-1].text == "%" or tokens[-1].text.lower() in _PERCENT:
        return Scalar(parse_expression(tokens[:-1]), "%")
    if tokens[-1].text == "degree" and not (angle := parse_expression(tokens[:-1])).atoms():
        return Scalar(angle, "degree")
    end = _unit_start(tokens)
    if end < len(tokens):
        return Scalar(parse_expression(tokens[:end]), _unit_text(tokens[end:]))
    if all(token.kind in ("text", "letters") for token in tokens) and any(len(t.text) > 3 for t in tokens):
        return Word(" ".join(token.text for token in tokens).lower())
    return Scalar(parse_expression(tokens))


def _unit_start(tokens: Sequence[Token]) -> int:
    """Index where a trailing unit such as ``\\text{ cm}^2`` or ``apples`` starts, else the length."""
    for index in range(1, len(tokens)):
        before, token = tokens[index - 1], tokens[index]
        if before.kind not in ("number", "symbol") or before.text in ("_", "^", "/", "(", "*", "+", "-"):
            continue
        start = index + 1 if token.text in ("/", "degree") and index + 1 < len(tokens) else index
        word = tokens[start]
        bare = word.kind == "letters" and (
            word.text in _UNIT_WORDS or (len(word.text) > 3 and (word.spaced or start > index))
        )
        temperature = token.text == "degree" and word.text in ("C", "F") and start + 1 == len(tokens)
        if not bare and not temperature and word.kind != "text":
            continue
        if _is_unit(tokens[start:]):
            return index
    return len(tokens)


def _is_unit(tokens: Sequence[Token]) -> bool:
    parts = [part for token in tokens for part in token.text.split()]
    if any(part.lower() in _NOT_UNITS for part in parts) or not 0 < len(parts) <= MAX_UNIT_WORDS:
        return False
    previous = ""
    for token in tokens:
        exponent = token.text in ("1", "2", "3") and previous in ("^", "{", "-")
        if token.kind == "text" and not _UNIT_TEXT.fullmatch(token.text):
            return False
        if token.kind not in ("text", "letters") and token.text not in ("/", "^", "{", "}", "-") and not exponent:
            return False
        previous = token.text
    return True


def _unit_text(tokens: Sequence[Token]) -> str:
    """One spelling a unit: words in the singular and lower case, but short symbols such as mW as they are."""
    text = "".join(t.text if t.kind in ("number", "symbol", "command") else f" {t.text} " for t in tokens)
    text = " ".join(text.split()).replace("{", "").replace("}", "").replace(" ^", "^")
    if text.lower() in _IRREGULAR:
        return _IRREGULAR[text.lower()]
    if len(text) <= 3:
        return text
    return text.lower().removesuffix("s")
