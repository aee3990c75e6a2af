r"""Is one text the other in trivially different words? What two texts of *different* references must be to be one.

Two problems that differ in a word, a sign or a point's name usually have different answers for a good reason, so that
a difference of references is evidence of two problems, which only a near-identity outweighs: the same formulas, numbers
and names in the same order (letters may be renamed throughout), the same words but for those that carry nothing
("Determine the value of"), and the same drawing where both have one.

Invariants: symmetric; linear in the texts (their first 20,000 characters); no word list decides by itself that two
problems are one. Does not read references (``duplicates``).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from ulorl.curate.features import (
    DECIMAL_GROUPS,
    DRAWINGS,
    LAYOUT,
    NUMBER_WORDS,
    SIGNS,
    SYNONYMS,
    without_credits,
    without_drawings,
)
from ulorl.curate.questions import CONCEPTS

_MAX_CHARS = 20_000
_IDLE_WORDS = (
    "a an the this that these those it its they them their he she his her him which who whom whose what where when how "
    "and but if then than as of in on at to from by for into onto upon over through while also each such so is are was "
    "were be been being has have had do does did can could will would may might must shall should there here let "
    "suppose assume given consider denote define defined call called say said take know known satisfy satisfies "
    "satisfying find determine calculate compute evaluate solve give gives expressed express write state answer value "
    "result equal equals get gets getting obtain obtained come comes up please your our we us you following follows "
    "respectively again just note shown below above diagram figure picture problem question using use expression "
    "quantity other another possible final consist consists consisting comprising comprise exist exists "
    "showing many much"
)
"""Words whose presence alone does not change what a sentence asks; "or", "exactly" and "both" are not among them."""
_IDLE = frozenset(_IDLE_WORDS.split())
_SAME = {
    word: words[0]
    for words in (
        ("choose", "chosen", "select", "selected", "pick", "picked"),
        ("probability", "chance", "likelihood"),
        ("random", "randomly"),
        ("divisor", "divisors", "divide", "divides", "factor", "factors"),
        ("counterclockwise", "anticlockwise"),
        ("people", "persons", "person"),
        ("number", "numbered", "numbers"),
    )
    for word in words
}
_FUNCTIONS = "sin cos tan cot sec csc arcsin arccos arctan log ln gcd lcm max min mod lim det deg arg"
_NAMES = frozenset(_FUNCTIONS.split())
_COMMANDS = {
    **{name: "\\" + name for name in _NAMES},
    **dict.fromkeys(("pmod", "bmod"), "\\mod"),
    **{"tg": "\\tan", "ctg": "\\cot", "arctg": "\\arctan", "operatorname": ""},
    **dict.fromkeys(
        ("mathcal", "mathbb", "mathbf", "boldsymbol", "vec", "overrightarrow", "dollar", "mid", "vert"), ""
    ),
    **{"angle": " angle ", "triangle": " triangle ", "circ": " degree ", "degree": " degree ", "square": " square "},
    **{"lbrace": "", "rbrace": "", "begin": "", "end": "", "Big": "", "bigl": "", "bigr": "", "prime": "'"},
}
_FORM = re.compile(
    r"\bthe (?:sum|series|product|expression|integral|limit):|"
    r"\b(?:Express|Give|Write|State|Leave|Enter) (?:your |the |this )?(?:final )?answer (?:as|in) "
    r"(?:an? )?(?:common|simplified|reduced|improper|simplest|lowest|exact|fully|radical|fraction|terms of)"
    r"[^.?!]{0,80}[.?!]?",
    re.IGNORECASE,
)
"""The form that the answer shall have, and what merely names the formula that follows."""
_FRACTION = re.compile(r"\\[dtc]?frac\s?\{([^{}]{1,40})\}\s?\{([^{}]{1,40})\}")
_SHORT_FRACTION = re.compile(r"\\[dtc]?frac\s?(\d)\s?(\d)")
_SEGMENT = re.compile(r"\\(?:overline|overrightarrow|widehat)\s?\{\s?([A-Z](?:\s?[A-Z])?)\s?\}")
_MATHS = re.compile(r"\$\$?|\\\\?[()\[\]]")
_PREFIX = re.compile(r"\b(non|counter|anti|semi|multi|co|sub)[- ](?=[a-z]{3})", re.IGNORECASE)
_DEGREES = re.compile(r"\^\s?\{?\s?\\circ\s?\}?|\u00b0|\^\s?\\circ")
_EMPHASIS = re.compile(
    r"\*{1,2}(?=[A-Za-z])|(?<=[A-Za-z])\*{1,2}|\([A-Z]{3,}\)|(?<=[a-z][a-z])'s?(?![A-Za-z])|"
    r"\[(?=[^\[\]()]{1,80}\]\(https?:)|\]\(https?://[^\s()]{1,200}\)"
)
"""Stars around a word, an abbreviation after its name, possessives, the target of a link."""
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_ARTICLE = re.compile(r"(?<![A-Za-z\d\\])(?:[aAI])(?= +(?:[A-Za-z]{2}|\d))")
_TOKEN = re.compile(r"\\[A-Za-z]+|\d+(?:\.\d+)?|\.\.\.|<=|>=|!=|[A-Za-z]+|[^\sA-Za-z\d{}$\\.,;:?!\"~`\u201c\u201d]")


def restated(left: str, right: str) -> bool:
    """Whether nothing that could change the answer differs between the two texts."""
    left, right = left[:_MAX_CHARS], right[:_MAX_CHARS]
    drawn = _drawing(left), _drawing(right)
    (here, here_words), (there, there_words) = _read(left), _read(right)
    # "Them" for "these numbers" is a word less on one side; a word less on each is "girls" for "boys".
    if here_words.keys() != there_words.keys() or (here_words - there_words and there_words - here_words):
        return False
    if all(drawn):
        here, there = here + drawn[0], there + drawn[1]
    return _renamed(here, there)


@lru_cache(maxsize=64)
def _read(text: str) -> tuple[list[str], Counter[str]]:
    """(formulas, numbers and names in order; how often each word that carries something occurs)."""
    symbols: list[str] = []
    words: Counter[str] = Counter()
    for token, in_maths in _tokens(without_credits(without_drawings(text))):
        lowered = token.lower()
        if lowered in NUMBER_WORDS and len(token) > 1:
            if lowered not in ("zero", "one"):
                symbols.append(NUMBER_WORDS[lowered])
        elif len(token) == 1 or not token.isalpha() or not token.isascii():
            symbols.append(token)
        elif lowered in _NAMES:
            symbols.append("\\" + lowered)
        elif token.isupper() or (in_maths and not _is_word(token)):
            symbols.extend(token)
        elif lowered not in _IDLE:
            words[_stem(lowered)] += 1
    return symbols, words


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    text = unicodedata.normalize("NFKC", text.translate(SIGNS)).translate(SIGNS)
    text = _DEGREES.sub(r"\\degree ", DECIMAL_GROUPS.sub("", _FORM.sub(" ", text.replace("\\$", " \\dollar "))))
    text = _SHORT_FRACTION.sub(r"\1/\2", _FRACTION.sub(r"(\1)/(\2)", _SEGMENT.sub(r" \1 ", text)))
    for at, part in enumerate(_MATHS.split(text)):
        in_maths = at % 2 == 1
        part = _COMMAND.sub(_named, LAYOUT.sub(" ", part))  # noqa: PLW2901
        if not in_maths:
            part = _ARTICLE.sub(" ", _PREFIX.sub(r"\1", _EMPHASIS.sub(" ", part)))  # noqa: PLW2901
        for token in _TOKEN.findall(_grouped(part, "+-*/" if in_maths else "+*/")):
            if in_maths or token != "-":
                yield token, in_maths


def _grouped(text: str, operators: str) -> str:
    """``text`` with parentheses around the groups that have an operator in them, whichever brackets they had."""
    out: list[str] = []
    opened: list[tuple[int, int, bool]] = []
    seen, before = 0, " "
    for char in text:
        if char in "({":
            opened.append((len(out), seen, char == "(" or before.isalpha() or before in "^_)}]"))
            out.append(" ")
        elif char in ")}":
            at, operators_before, counts = opened.pop() if opened else (0, seen, False)
            holds = counts and seen > operators_before
            out[at : at + 1] = "(" if holds else out[at : at + 1]
            out.append(")" if holds else " ")
        else:
            seen += char in operators
            out.append(char)
        before = before if char.isspace() else char
    return "".join(out)


def _named(found: re.Match[str]) -> str:
    name = found[1]
    return f" {_COMMANDS[name]} " if name in _COMMANDS else f" {SYNONYMS.get(name, found[0])} "


def _is_word(token: str) -> bool:
    """Whether letters in a formula are a word, as those of ``\\text`` are, and no product of variables."""
    return len(token) > 3 and token.islower()


def _stem(word: str) -> str:
    if word in _SAME:
        return _SAME[word]
    if word in CONCEPTS:
        return "{}/{}".format(*CONCEPTS[word])
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending).rstrip("e")
    return word.rstrip("e")


def _renamed(left: list[str], right: list[str]) -> bool:
    """Whether ``right`` is ``left``, letters renamed throughout.

    A letter that occurs once names what is asked for, or where in a figure to look: it is not renamed.
    """
    if len(left) != len(right):
        return False
    there: dict[str, str] = {}
    back: dict[str, str] = {}
    often = Counter(left)
    for one, other in zip(left, right, strict=True):
        if there.setdefault(one, other) != other or back.setdefault(other, one) != one:
            return False
        if one != other and not (_is_letter(one) and _is_letter(other) and often[one] > 1):
            return False
    return True


def _is_letter(token: str) -> bool:
    return len(token) == 1 and token.isalpha() and token.isascii()


def _drawing(text: str) -> list[str]:
    """The tokens of the programs of the drawings."""
    programs = []
    for opening, closing in DRAWINGS:
        programs += [part.partition(closing)[0] for part in text.split(opening)[1:]]
    return re.findall(r"\d+(?:\.\d+)?|[A-Za-z]+|[^\s\w$]", " ".join(programs))
