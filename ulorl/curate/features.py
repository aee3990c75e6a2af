r"""Words and numbers of a problem, and the normal form under which two texts are the same.

Invariants: operators, signs and relations are kept by the normal form (``k>0`` is not ``k<0``); spelled
numbers are numbers ("a tenth" holds 10); a minus sign belongs to its number only where it cannot be a
subtraction. Linear in the text.

Does not compare texts (``duplicates``, ``contamination``).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass

SYNONYMS = {
    **dict.fromkeys(("leqslant", "leq", "le"), "<="),
    **dict.fromkeys(("geqslant", "geq", "ge"), ">="),
    **dict.fromkeys(("neq", "ne"), "!="),
    **dict.fromkeys(("cdot", "times"), "*"),
    **dict.fromkeys(("dfrac", "tfrac", "cfrac"), "\\frac"),
    **dict.fromkeys(("ldots", "dots", "cdots", "dotsc", "dotsb"), "..."),
    "equal": "=",
    "plus": "+",
    "minus": "-",
    "lt": "<",
    "gt": ">",
    "div": "/",
    "to": "\\rightarrow",
}
SIGNS = str.maketrans(
    dict(zip("\u2212\u2013\u00d7\u22c5\u00b7\u00f7\u2019\uff1c\uff1e", "--***/'<>", strict=True))
    | dict(zip("\uff0c\uff1b\uff1a\uff1f", ",;:?", strict=True))
    | {"\u2264": "<=", "\u2265": ">=", "\u2a7d": "<=", "\u2a7e": ">=", "\u2260": "!="}
)
LAYOUT = re.compile(
    r"\\(?:left|right|big|Big|bigg|Bigg|displaystyle|textstyle|limits|nolimits|quad|qquad|"
    r"hspace\{[^{}]{0,20}\}|"
    r"text|mathrm|textrm|mathbf|textbf|textit|operatorname|mathit|rm|bf|it|mbox|emph)(?![A-Za-z])|"
    r"\\[,;:! ]|~|\\\\\(|\\[()\[\]]"
)
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_ALONE = re.compile(r"[\s${}\u200b*`]|(?<=\d),(?=\d{3}(?!\d))|[.,;:?!]+(?=\s|$)|\\$")
_WORD = re.compile(r"[a-z]+|[\u4e00-\u9fff\u3040-\u30ff\uac00-\ud7af\u0400-\u04ff]")
_NUMBER = re.compile(r"(?P<sign>-\s?)?(?P<digits>\d+(?:\.\d+)?)")
DECIMAL_GROUPS = re.compile(r"(?<=\d)(?:,|\{,\}|\\,|\\!,)(?=\d{3}(?!\d))")
_TEENS = (
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
)
_UNITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", *_TEENS, "twenty")
_ORDINALS = (
    *(
        "zeroth",
        "first",
        "second",
        "third",
        "fourth",
        "fifth",
        "sixth",
        "seventh",
        "eighth",
        "ninth",
        "tenth",
    ),
    *("eleventh", "twelfth"),
    *(word + "th" for word in _TEENS[3:]),
    "twentieth",
)
_TENS = {
    **{word: 10 * tens for tens, word in enumerate(("thirty", "forty", "fifty", "sixty"), 3)},
    **{word: 10 * tens for tens, word in enumerate(("seventy", "eighty", "ninety", "hundred"), 7)},
    **{"thousand": 1000, "million": 1_000_000, "dozen": 12, "triple": 3, "thrice": 3},
    **dict.fromkeys(("half", "halves", "twice", "double"), 2),
    **dict.fromkeys(("quarter", "quarters"), 4),
}
NUMBER_WORDS = (
    {word: str(value) for value, word in enumerate(_UNITS)}
    | {word: str(value) for value, word in enumerate(_ORDINALS) if value > 2}
    | {word + "s": str(value) for value, word in enumerate(_ORDINALS) if value > 2}
    | {word: str(value) for word, value in _TENS.items()}
)
_ONE = frozenset({"zero", "one"})
DRAWINGS = (
    ("[asy]", "[/asy]"),
    ("<asy>", "</asy>"),
    (r"\begin{asy}", r"\end{asy}"),
    (r"\begin{tikzpicture}", r"\end{tikzpicture}"),
)
_IN_PARENTHESES = re.compile(r"\([^()]{5,160}\)")
_CONTEST = re.compile(
    r"\b(?:Olympiad|Competition|Contest|Exam|Examination|League|Test|Trial|Championship|Tournament|Selection|AHSME|AIME|"
    r"IMO|AMC|Round)\b"
)
_WHICH_ONE = re.compile(r"\b(?:\d+(?:st|nd|rd|th)|(?:19|20)\d\d)\b")
_MAX_CHARS = 20_000


@dataclass(frozen=True)
class Features:
    """Lower-case words (mathematical names included) and numbers (decimal spellings, signed) of a text."""

    words: frozenset[str]
    numbers: frozenset[str]

    @property
    def tokens(self) -> frozenset[str]:
        """Words and numbers together."""
        return self.words | self.numbers


def normal_form(text: str) -> str:
    """The text without white space, mark-up and closing punctuation, every operator kept."""
    text = unicodedata.normalize("NFKC", text.translate(SIGNS)).translate(SIGNS)
    text = _COMMAND.sub(lambda found: SYNONYMS.get(found[1], found[0]), LAYOUT.sub("", text))
    return _ALONE.sub("", text).casefold()


def exact_key(text: str) -> bytes:
    """16 bytes that are equal for texts of the same normal form."""
    return hashlib.blake2b(normal_form(text).encode("utf-8", "replace"), digest_size=16).digest()


def features(text: str) -> Features:
    """Words and numbers of the first 20,000 characters, drawings and credits left out."""
    text = without_credits(without_drawings(text)[:_MAX_CHARS])
    words = _words(text)
    return Features(frozenset(words), frozenset(_numbers(text, words)))


def number_list(text: str) -> list[str]:
    """Every number of the text, in figures or in words (zero and one only in figures)."""
    text = without_credits(text)
    return _numbers(text, _words(text))


def _numbers(text: str, words: list[str]) -> list[str]:
    numbers = [NUMBER_WORDS[word] for word in words if word in NUMBER_WORDS and word not in _ONE]
    grouped = DECIMAL_GROUPS.sub("", text.translate(SIGNS).lower())
    for found in _NUMBER.finditer(grouped):
        negative = found["sign"] is not None and _is_unary(grouped, found.start())
        numbers.append(("-" if negative else "") + _decimal(found["digits"]))
    return numbers


def without_drawings(text: str) -> str:
    """The text without the programs of its drawings: copies of one problem differ most in these."""
    for opening, closing in DRAWINGS:
        if opening in text:
            head, *rest = text.split(opening)
            text = head + " ".join(part.partition(closing)[2] if closing in part else part for part in rest)
    return text


def without_credits(text: str) -> str:
    """The text without "(From the 41st ... Exam, 1990)", whose numbers are not the problem's."""
    if "(" not in text or not _CONTEST.search(text):
        return text
    return _IN_PARENTHESES.sub(
        lambda found: "" if _CONTEST.search(found[0]) and _WHICH_ONE.search(found[0]) else found[0], text
    )


def _words(text: str) -> list[str]:
    plain = LAYOUT.sub(" ", text.translate(SIGNS)).lower()
    return _WORD.findall(_COMMAND.sub(lambda found: " " + SYNONYMS.get(found[1], found[1]) + " ", plain))


def letter_grams(text: str, length: int = 5) -> frozenset[str]:
    """Substrings of ``length`` of the normal form, drawings left out."""
    form = normal_form(without_drawings(text)[:_MAX_CHARS])
    return frozenset(form[start : start + length] for start in range(max(1, len(form) - length + 1)))


def jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    """Size of the intersection over size of the union; 1 for two empty sets."""
    if not left and not right:
        return 1.0
    common = len(left & right)
    return common / (len(left) + len(right) - common)


def _decimal(digits: str) -> str:
    whole, _, fraction = digits.partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{fraction}" if fraction else "")


def _is_unary(text: str, position: int) -> bool:
    before = text[max(0, position - 12) : position]
    stripped = before.rstrip()
    if not stripped or stripped[-1] in "(=<>,;:[{$|*/+^":
        return True
    return before[-1].isspace() and bool(re.search(r"\\[a-z]+$|[a-z]{2}$", stripped))
