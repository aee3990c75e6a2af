"""Numbers written in English or Chinese words, as exact rationals.

Invariants: every word is used, in an order in which people say numbers ("one two" is none); a cardinal and an
ordinal are told apart; "and" is part of a number only after "hundred" or "thousand" or before a fraction.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


def _numbered(names: str, start: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split(), start)}


_SMALL = _numbered(
    """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen""",
    start=0,
)
_TENS = {
    word: 10 * value for word, value in _numbered("twenty thirty forty fifty sixty seventy eighty ninety", 2).items()
} | {"fourty": 40}
SCALES = {
    "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "quadrillion": 10**15,
}  # fmt: skip
MULTIPLES = {"hundred": 100, **SCALES, "dozen": 12}
_ORDINALS = _numbered(
    """first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
    sixteenth seventeenth eighteenth nineteenth twentieth""",
    start=1,
) | {
    "thirtieth": 30, "fortieth": 40, "fiftieth": 50, "sixtieth": 60, "seventieth": 70, "eightieth": 80,
    "ninetieth": 90, "hundredth": 100, "thousandth": 1000, "millionth": 10**6,
}  # fmt: skip
_PARTS = {
    **{word: value for word, value in _ORDINALS.items() if value > 2},
    "half": 2, "quarter": 4,
}  # fmt: skip
_PARTS |= {word + "s": value for word, value in _PARTS.items()} | {"halves": 2}
_NUMERAL = re.compile(r"(\d+)(st|nd|rd|th)")


@dataclass(frozen=True)
class Spoken:
    """A number and how many words it takes."""

    value: Fraction
    words: int
    ordinal: bool = False


def english(words: Sequence[str]) -> Spoken | None:
    """The longest number that ``words`` (lower case, hyphens split) begin with; None where they begin with none."""
    start, sign = 0, 1
    if words and words[0] in ("minus", "negative"):
        start, sign = 1, -1
    found = _unsigned(words[start:])
    if found is None or (sign < 0 and found.ordinal):
        return None
    return Spoken(sign * found.value, found.words + start, found.ordinal)


def _unsigned(words: Sequence[str]) -> Spoken | None:
    if not words:
        return None
    numeral = _NUMERAL.fullmatch(words[0])
    if numeral:
        n = int(numeral[1][-30:])
        ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
        return Spoken(Fraction(n), 1, ordinal=True) if ending == numeral[2] and len(numeral[1]) <= 30 else None
    if words[0] == "half" or words[:2] == ["a", "half"] or words[:2] == ["one", "half"]:
        used = 1 if words[0] == "half" else 2
        rest = list(words[used : used + 2])
        if rest[:2] == ["a", "dozen"] or rest[:1] == ["dozen"]:
            return Spoken(Fraction(6), used + 1 + (rest[0] == "a"))
        return Spoken(Fraction(1, 2), used)
    if words[0] == "a" and len(words) > 1:
        if words[1] in ("third", "quarter", "fifth"):
            return Spoken(Fraction(1, _PARTS[words[1]]), 2)
        if words[1] not in MULTIPLES:
            return None
        words = ["one", *words[1:]]
    whole = _cardinal(words)
    if whole is None:
        ordinal = _ORDINALS.get(words[0])
        return None if ordinal is None else Spoken(Fraction(ordinal), 1, ordinal=True)
    value, used = whole
    rest = list(words[used : used + 4])
    if rest[:1] == ["dozen"]:
        return Spoken(Fraction(12 * value), used + 1)
    if rest[:1] == ["point"]:
        return _decimals(words, value, used)
    if rest and rest[0] in _ORDINALS and words[used - 1] in (*_TENS, "hundred", "and", *SCALES):
        # "twenty fifth", "one hundred third"; "twenty fifths" is a fraction.
        return Spoken(Fraction(value + _ORDINALS[rest[0]]), used + 1, ordinal=True)
    if rest and rest[0] in _PARTS:
        if (value == 1) != (rest[0] in _ORDINALS or rest[0] in ("half", "quarter")):
            return None
        return Spoken(Fraction(value, _PARTS[rest[0]]), used + 1)
    if rest[:2] in (["and", "a"], ["and", "one"]) and len(rest) > 2 and rest[2] in ("half", "third", "quarter"):
        return Spoken(value + Fraction(1, _PARTS[rest[2]]), used + 3)
    if rest[:1] == ["and"] and len(rest) > 2 and rest[1] in _SMALL and rest[2] in _PARTS:
        if (rest[1] == "one") == rest[2].endswith("s"):
            return None
        return Spoken(value + Fraction(_SMALL[rest[1]], _PARTS[rest[2]]), used + 3)
    return Spoken(Fraction(value), used)


def _cardinal(words: Sequence[str]) -> tuple[int, int] | None:
    """Value and number of words of the longest integer at the start."""
    total, used = 0, 0
    limit: float = float("inf")
    while True:
        group = _below_thousand(words[used:])
        if group is None:
            break
        value, length = group
        scale = SCALES.get(words[used + length]) if used + length < len(words) else None
        if scale is None:
            if total and value >= 1000:
                break
            total, used = total + value, used + length
            return total, used
        if scale >= limit:
            return None
        total, used, limit = total + value * scale, used + length + 1, scale
        if used < len(words) and words[used] == "and" and _below_thousand(words[used + 1 :]) is not None:
            if used + 2 < len(words) and words[used + 2] in _PARTS:
                break  # "two million and three quarters"
            used += 1
    return (total, used) if used else None


def _below_thousand(words: Sequence[str]) -> tuple[int, int] | None:
    value, used = 0, 0
    first = _below_hundred(words)
    if first is None:
        return None
    value, used = first
    if used < len(words) and words[used] == "hundred" and value > 0:
        value, used = value * 100, used + 1
        skip = 1 if used < len(words) and words[used] == "and" else 0
        rest = _below_hundred(words[used + skip :])
        if rest is not None and rest[0] > 0:
            after = used + skip + rest[1]
            if not (skip and after < len(words) and words[after] in _PARTS):
                return value + rest[0], after
    return value, used


def _below_hundred(words: Sequence[str]) -> tuple[int, int] | None:
    if not words:
        return None
    if words[0] in _TENS:
        if len(words) > 1 and 1 <= _SMALL.get(words[1], 0) <= 9:
            return _TENS[words[0]] + _SMALL[words[1]], 2
        return _TENS[words[0]], 1
    return (_SMALL[words[0]], 1) if words[0] in _SMALL else None


def _decimals(words: Sequence[str], value: int, used: int) -> Spoken | None:
    digits = ""
    position = used + 1
    while position < len(words) and _SMALL.get(words[position], 10) < 10:
        digits += str(_SMALL[words[position]])
        position += 1
    if not digits:
        return None
    return Spoken(value + Fraction(int(digits), 10 ** len(digits)), position)


_CHINESE_DIGITS = _numbered("零 一 二 三 四 五 六 七 八 九", 0) | {"〇": 0, "○": 0, "两": 2}
_CHINESE_UNITS = {"十": 10, "百": 100, "千": 1000}
_CHINESE_SCALES = {"万": 10**4, "亿": 10**8}
_CHINESE = re.compile("[零〇○一二两三四五六七八九十百千万亿点]+")


def chinese(text: str) -> Fraction | None:
    """A number in Chinese numerals: 三十五, 二分之一, 百分之五十 (a fraction), 负三, 一点五; None for anything else."""
    sign = -1 if text.startswith("负") else 1
    text = text.removeprefix("负")
    if "分之" in text:
        below, _, above = text.partition("分之")
        denominator, numerator = _chinese_number(below), _chinese_number(above)
        whole = Fraction(0)
        if denominator is None and "又" in below:  # 一又二分之一
            head, _, below = below.partition("又")
            ones, denominator = _chinese_number(head), _chinese_number(below)
            if ones is None:
                return None
            whole = ones
        if not denominator or numerator is None:
            return None
        return sign * (whole + numerator / denominator)
    value = _chinese_number(text)
    return None if value is None else sign * value


def _chinese_number(text: str) -> Fraction | None:
    if re.fullmatch(r"\d{1,30}(?:\.\d{1,30})?", text):
        return Fraction(text)
    if not _CHINESE.fullmatch(text) or len(text) > 40:
        return None
    whole, point, decimals = text.partition("点")
    value = _chinese_integer(whole)
    if value is None or not point:
        return None if value is None else Fraction(value)
    if not decimals or any(character not in _CHINESE_DIGITS for character in decimals):
        return None
    digits = "".join(str(_CHINESE_DIGITS[character]) for character in decimals)
    return value + Fraction(int(digits), 10 ** len(digits))


def _chinese_integer(text: str) -> int | None:
    if all(character in _CHINESE_DIGITS for character in text):
        if len(text) == 1 or (len(text) > 1 and "两" not in text):  # 二〇二一, read digit by digit
            return int("".join(str(_CHINESE_DIGITS[character]) for character in text))
        return None
    total, section, digit = 0, 0, None
    limit, below = float("inf"), float("inf")
    for character in text:
        if character in _CHINESE_DIGITS:
            if digit not in (None, 0):
                return None
            digit = _CHINESE_DIGITS[character]
        elif character in _CHINESE_UNITS:
            unit = _CHINESE_UNITS[character]
            if unit >= below or digit == 0:
                return None
            section, digit, below = section + (1 if digit is None else digit) * unit, None, unit
        elif character in _CHINESE_SCALES:
            scale = _CHINESE_SCALES[character]
            section += digit or 0
            if scale >= limit or section == 0:
                return None
            total, section, digit = total + section * scale, 0, None
            limit, below = scale, float("inf")
        else:
            return None
    return total + section + (digit or 0)
