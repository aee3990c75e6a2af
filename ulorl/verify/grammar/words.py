"""Answers in words: numbers and times that are spelt out, choice letters, yes and no, "no solution", other text.

Invariants: the whole text is read or None is returned, so that the parsers of mathematics take over; words with
one meaning have one spelling (`canonical`); words are mutually exclusive only within a closed class
(`class_of`), and two words of different classes decide nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import cache, lru_cache

from ulorl.verify.exact import algebra
from ulorl.verify.grammar import units
from ulorl.verify.grammar.number_words import chinese, english
from ulorl.verify.grammar.scalars import ORDINAL, compound_quantity
from ulorl.verify.grammar.times import parse_time, weekday
from ulorl.verify.grammar.tokens import tokenise, words
from ulorl.verify.grammar.values import Listing, NumberSet, Scalar, Value, Word

MAX_WORDS = 16
_GATE = re.compile(r"[A-Za-z\u4e00-\u9fff:]|\d-\d|\d/\d{1,2}/\d")
_TEXT = re.compile(
    r"\\(?:text|textbf|textit|textrm|textnormal|mathrm|mathbf|mathit|mbox|hbox|operatorname)\s?\{([^{}]*)\}"
)
_PLAIN = re.compile(r"[A-Za-z][A-Za-z'-]*(?: [A-Za-z][A-Za-z'-]*)*")
_ORDINAL_NUMERAL = re.compile(r"(?:the )?\d{1,30}(?:st|nd|rd|th)(?: [A-Za-z]+){0,3}")
_CHOICE = re.compile(
    r"(?:(?:option|choice|answer|选项?|答案[是为]?|故选) ?[:：]? ?)?\(?([A-J])[).]?\)?[.。]?", re.IGNORECASE
)
_NAME = re.compile(r"[A-Z](?:[a-z]{2}|[A-Z]{2})")
_CHINESE_WORDS = re.compile(r"[\u4e00-\u9fff]{1,20}")
_CHINESE_NUMBER = re.compile(
    r"(第?)(负?[零〇○一二两三四五六七八九十百千万亿点分之又\d.]+)([\u4e00-\u9fffA-Za-z%]{0,8})"
)
_AND_COMPOUND = re.compile(r"\d{1,9} [A-Za-z]{1,12},? and \d{1,9}(?:\.\d{1,9})? [A-Za-z]{1,12}")
_JOINER = re.compile(r",? (and|or) |, ?")
_NOT_NOUNS = words(
    """of more less than and or not no nor minus plus times over by to at least most if when is are squared cubed
    percent per half way one two"""
)
INFINITE = frozenset({"infinity", "infinite", "infinitely many", "infinitely many solutions", "infinite solutions"})

_SAME = {
    "yes": "true|correct|right answer|正确|是|是的|对|对的|√|真",
    "no": "false|incorrect|wrong|错误|错|不是|否|不对|假|不正确|×",
    "no solution": "no solutions|none|no such solution|there is no solution|there are no solutions|there is none|"
    "there are none|empty set|the empty set|no answer|nothing|null set|no real solution|no real solutions|"
    "no roots|no real roots|无解|没有解|空集|无实数解|无实根|不存在解|没有|has no solution|no values",
    "does not exist": "dne|undefined|not defined|is undefined|doesn't exist|is not defined|limit does not exist|"
    "no limit|不存在|无意义|未定义|没有意义",
    "impossible": "not possible|it is impossible|is impossible|cannot be done|it is not possible|不可能|"
    "not possible to determine",
    "cannot be determined": "not enough information|can not be determined|can't be determined|insufficient "
    "information|undetermined|无法确定|不能确定",
    "even number": "an even number|偶数",
    "odd number": "an odd number|奇数",
    "ellipse": "椭圆|ellipses",
    "circle": "圆|圆形|circles",
    "parabola": "抛物线",
    "hyperbola": "双曲线",
    "line": "straight line|直线|lines",
    "triangle": "三角形",
    "square": "正方形",
    "rectangle": "长方形|矩形",
    "rhombus": "菱形",
    "parallelogram": "平行四边形",
    "right triangle": "right angled triangle|直角三角形|right-angled triangle",
    "isosceles triangle": "等腰三角形",
    "equilateral triangle": "等边三角形|正三角形",
    "increasing": "增加|增大|increases|increase|单调递增|递增",
    "decreasing": "减少|减小|decreases|decrease|单调递减|递减",
    "unchanged": "stays the same|remains the same|same|no change|不变",
    "equal": "相等|they are equal|are equal",
    "greater": "larger|bigger|大于",
    "less": "smaller|小于|fewer",
    "parallel": "平行",
    "perpendicular": "垂直|orthogonal",
    "positive": "正|正数",
    "negative": "负|负数",
    "prime": "质数|素数|prime number|a prime number",
    "composite": "合数|composite number|not prime",
    "red": "红|红色",
    "blue": "蓝|蓝色",
    "green": "绿|绿色",
    "yellow": "黄|黄色",
    "black": "黑|黑色",
    "white": "白|白色",
    "east": "东|eastward|eastwards",
    "west": "西|westward|westwards",
    "north": "北|northward|northwards",
    "south": "南|southward|southwards",
}
_EXCLUSIVE = (
    "yes|no",
    "monday|tuesday|wednesday|thursday|friday|saturday|sunday",
    "january|february|march|april|may|june|july|august|september|october|november|december",
    "red|orange|yellow|green|blue|purple|violet|black|white|brown|pink|grey|gray",
    "north|south|east|west|northeast|northwest|southeast|southwest",
    "left|right|up|down",
    "even|odd",
    "even number|odd number",
    "even function|odd function",
    "positive|negative|zero",
    "increasing|decreasing|unchanged|constant",
    "greater|less|equal",
    "least|most",
    "maximum|minimum",
    "acute|obtuse|right",
    "parallel|perpendicular|skew",
    "prime|composite",
    "rational|irrational",
    "convergent|divergent",
    "converges|diverges",
    "heads|tails",
    "always|sometimes|never",
    "first|last",
    "and|or",
    "inside|outside",
    "clockwise|counterclockwise",
    "ellipse|circle|parabola|hyperbola|line|triangle",
    "necessary|sufficient|necessary and sufficient",
)
_REALS = frozenset({"all real numbers", "real numbers", "all reals", "the real numbers", "全体实数", "实数集"})


@cache
def _meanings() -> dict[str, str]:
    table = {spelling: meaning for meaning, spellings in _SAME.items() for spelling in spellings.split("|")}
    return table | {meaning: meaning for meaning in _SAME}


@cache
def _classes() -> dict[str, frozenset[int]]:
    table: dict[str, frozenset[int]] = {}
    for number, names in enumerate(_EXCLUSIVE):
        for name in names.split("|"):
            table[name] = table.get(name, frozenset()) | {number}
    return table


@lru_cache(maxsize=4096)
def canonical(text: str) -> str:
    """One spelling for one meaning: lower case, no article, no punctuation, known synonyms replaced."""
    text = " ".join(text.lower().replace("-", " ").strip(" .!,;:'\"").split())
    for article in ("the ", "a ", "an "):
        if text.startswith(article) and len(text) > len(article) + 1:
            text = text.removeprefix(article)
            break
    day = weekday(text)
    return day or _meanings().get(text, text)


def class_of(text: str) -> frozenset[int]:
    """The closed classes to which a canonical word belongs."""
    return _classes().get(text, frozenset())


def parse_plain(text: str) -> Value | None:
    """What a normalised answer in words or figures of time says; None where it is to be read as mathematics."""
    if not _GATE.search(text) or len(text) > 300:
        return None
    plain = text
    if "\\" in text:
        plain = _TEXT.sub(r" \1 ", text)
        if "\\" in plain or "^" in plain or "_" in plain:
            return None
    plain = " ".join(plain.split()).strip(" .。!")
    if not plain:
        return None
    choice = _CHOICE.fullmatch(plain)
    if choice and (choice[1].isupper() or len(plain) > 3):
        return Word(choice[1].upper(), is_choice=True)
    time = parse_time(plain.replace(" : ", ":") if plain.isascii() else plain.replace(" ", ""))
    if time is not None:
        return time
    if not plain.isascii():
        return _parse_chinese(plain)
    if _ORDINAL_NUMERAL.fullmatch(plain):
        return _spoken(plain.lower().removeprefix("the ").split())
    if " and " in plain and (quantity := _compound(plain)):
        return quantity
    if not _PLAIN.fullmatch(plain) and not ("," in plain and _PLAIN.fullmatch(plain.replace(",", ""))):
        return None
    return _parse_english(plain, is_text="\\" in text)


def _compound(plain: str) -> Scalar | None:
    """``1 hour and 30 minutes`` as one quantity: "and" joins units that fall, the smaller below one of the larger."""
    if not _AND_COMPOUND.fullmatch(plain):
        return None
    return compound_quantity(tokenise(plain.replace(" and ", " ")))


def _parse_english(plain: str, *, is_text: bool) -> Value | None:
    lower = plain.lower()
    if lower.removeprefix("positive ") in INFINITE:
        return Scalar(algebra.atom(algebra.INFINITY))
    if lower in ("negative infinity", "minus infinity"):
        return Scalar(algebra.negate(algebra.atom(algebra.INFINITY)))
    if lower in _REALS:
        return NumberSet("R")
    parts = lower.replace("-", " ").split()
    spoken = _spoken(parts)
    if spoken is not None:
        return spoken
    if len(parts) > MAX_WORDS:
        return None
    if "," in plain or " and " in lower or " or " in lower:
        if (meaning := canonical(plain)) in _meanings() or class_of(meaning):
            return Word(meaning)
        return _list(plain, is_text)
    name = canonical(plain)
    if is_text or len(plain) > 3 or _NAME.fullmatch(plain) or name in _meanings() or class_of(name):
        return None if plain in ("sqrt", "infty") else Word(name)
    return None


def _spoken(parts: Sequence[str]) -> Scalar | None:
    """A number in words with the unit or noun behind it."""
    found = english(parts)
    if found is None:
        return None
    rest = list(parts[found.words :])
    value = algebra.number(found.value)
    if found.ordinal:
        # "second" alone, and what a "first class stamp" is, are no numbers.
        numeral = parts[0][0].isdigit()
        return Scalar(value, ORDINAL) if (not rest or numeral) and parts[0] != "second" else None
    if rest in (["percent"], ["per", "cent"]):
        return Scalar(value, "%")
    if not rest:
        return Scalar(value)
    unit = " ".join(rest)
    if units.products(unit):
        return Scalar(value, unit)
    if len(rest) > 3 or any(part in _NOT_NOUNS or english([part]) for part in rest):
        return None
    if found.words == 1 and parts[0] in ("one", "half", "zero") and len(rest) > 1:
        return None
    return Scalar(value, unit.removesuffix("s") if len(unit) > 3 else unit)


def _list(plain: str, is_text: bool) -> Value | None:
    joiners = {joiner for joiner in _JOINER.findall(plain) if joiner}
    pieces = _JOINER.split(plain)[::2]
    if len(joiners) > 1 or len(pieces) < 2 or len(pieces) > 8 or not all(pieces):
        return None
    items = []
    for piece in pieces:
        item = parse_plain(piece) or (Word(canonical(piece)) if is_text else None)
        if item is None or len(piece.split()) > 3:
            return None
        items.append(item)
    return Listing(tuple(items), next(iter(joiners), ","))


def _parse_chinese(plain: str) -> Value | None:
    plain = plain.replace(" ", "")
    if plain in ("一半", "半"):
        return Scalar(algebra.number(Fraction(1, 2)))
    number = _CHINESE_NUMBER.fullmatch(plain)
    if number and not plain.isascii():
        value = chinese(number[2])
        if value is not None:
            return _chinese_quantity(value, number[2], number[3], ordinal=bool(number[1]))
    if plain in ("无穷多", "无数", "无穷", "无限", "无穷大", "正无穷", "无数个", "无穷多个"):
        return Scalar(algebra.atom(algebra.INFINITY))
    if plain in _REALS:
        return NumberSet("R")
    return Word(canonical(plain)) if _CHINESE_WORDS.fullmatch(plain) else None


def _chinese_quantity(value: Fraction, numeral: str, suffix: str, *, ordinal: bool) -> Scalar | None:
    if ordinal:
        return Scalar(algebra.number(value), ORDINAL)
    if numeral.removeprefix("负").startswith("百分之"):
        return Scalar(algebra.number(value * 100), "%") if not suffix else None
    return Scalar(algebra.number(value), suffix)
