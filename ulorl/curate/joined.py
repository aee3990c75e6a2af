"""Two things asked in one sentence: "Find the sum and the product", "find a and determine the range of f".

Only where the reference is a single value: a tuple or a list answers such a question whole. Invariants: a second
clause that only combines what the first one found is no second thing; linear in the sentence.
"""

from __future__ import annotations

import itertools
import re

from ulorl.curate.tasks import SUBORDINATE, continues, question_like, sentences

_ASK = r"(?:find|determine|calculate|compute|evaluate|what (?:is|are|was|were))"
_SECOND = re.compile(
    r"\band (?:also |then |additionally |hence )?(?=(?:find|determine|calculate|compute|prove|show that|identify|"
    r"specify|state|what (?:is|are|was|were|will|would)|(?:by )?how (?:many|much|long|far|old|tall)|"
    r"(?:verify|check|conclude|decide) (?:whether|if|by (?:finding|calculating|computing)))\b)",
    re.IGNORECASE,
)
_WHICH_ONE = re.compile(
    rf"^(?:{SUBORDINATE}[^.?!]{{1,200}}, )?"
    r"(?:(?:(?:under|in|on|at|for|of|to|from) )?(?:which|who|where|when)|(?:under|in|on|at|for) what)\b[^?]*\?",
    re.IGNORECASE,
)
_WHETHER_TOO = re.compile(r"\w+ (?:whether|if)\b", re.IGNORECASE)
_COMBINES = re.compile(
    r"\b(?:find|determine|calculate|compute|what is) (?:the )?(?:\w+ )?"
    r"(?:difference|sum|total|product|ratio|quotient|average|"
    r"distance between)\b",
    re.IGNORECASE,
)
_BLANK = re.compile(
    r"_{3,}|\\boxed\{\s{0,9}\}|(?:\\_ ?){2,}|\\underline\{(?:\s|~|\\[a-z]*|\\hspace\{\w{1,8}\}){0,20}\}|"
    r"(?<=[A-Za-z])\s?=\s{1,4}(?=[,.;])"
)
_MIN_BETWEEN_BLANKS = 2
_COUNT = re.compile(r"\bhow many\b", re.IGNORECASE)
_COUNT_AND = re.compile(r"and (?:what (?:is|are|will|would)|how)\b", re.IGNORECASE)
_ONE_NAME = re.compile(r"(?<![A-Za-z\\])[A-Z](?![A-Za-z])|(?<=\$)[a-z](?=\$)")
_FIRST = re.compile(rf"\b(?:{_ASK}|solve|round|how (?:many|much|long|far|should|must))\b", re.IGNORECASE)
_REFERS = re.compile(
    r"\b(?:this|these|the result|the value\W*$|its value|their (?:sum|product|difference|ratio|average)|remainder|"
    r"numerator|if (?:it|they) exists?|"
    r"modulo|expressed?|the answer|it is (?:closest|nearest)|that (?:sum|value|number))\b",
    re.IGNORECASE,
)
_QUANTITY = (
    r"(?:sum|product|quotient|remainder|maximum|minimum|max|min|largest|smallest|greatest|least|longest|shortest|mean|median|"
    r"mode|average|variance|standard deviation|cent(?:er|re)|radius|diameter|area|surface area|perimeter|circumference|"
    r"domain|range|volume|image|preimage|length|width|height|amplitude|period|slope|vertex|axis)"
)
_PAIR = re.compile(
    rf"\b{_ASK} (?:both )?the {_QUANTITY}(?: \w+)? and (?:verify |give |state )?(?:the )?{_QUANTITY}\b",
    re.IGNORECASE,
)
_MATH = r"(?:\$[^$]{1,120}\$|\\\([^()]{0,20}(?:\([^()]{0,40}\)[^()]{0,40}){0,4}\\\))"
_TWO_EXPRESSIONS = re.compile(
    rf"\b(?:find|determine|calculate|compute|evaluate) (?:the )?(?:(?:exact )?(?:values?|measures?|lengths?) of )?"
    rf"(?:(?:angles?|the angles?|sides?) )?{_MATH}(?:, {_MATH}){{0,3}},? and "
    rf"(?:the (?:value|length|measure) of )?{_MATH}\W{{0,3}}$",
    re.IGNORECASE,
)
_TWO_SETS = re.compile(
    r"\bfind (?:the sets? )?\$[^$?.]{0,60}\\c[au]p[^$?.]{0,60}\$(?:,? and |, )\$[^$?.]{0,60}\\c[au]p[^$?.]{0,60}\$",
    re.IGNORECASE,
)
_INTERVAL = re.compile(r"\\?[\[({][^\[\](){};]{1,40}[\])}]")
_FOR_WHICH = re.compile(
    r"(?:\w+ )(?:for |at )?(?:(?:which|what) values?|when|where|all values? of|"
    r"the (?:corresponding )?values? of \W{0,3}\w{1,8}\W{0,3} (?:for|at|when))\b",
    re.IGNORECASE,
)
_OWNED = re.compile(
    rf"\b{_ASK} (?:both )?the (?:values?|equation|{_QUANTITY}) of [^.?!]{{1,90}}?,? (?:and|as well as) (?:its|the) "
    rf"(?:corresponding )?(?:values?|equation|coordinates|{_QUANTITY})\b(?P<rest>[^.?!]{{0,120}})",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\b(?:is|are|was|were|equals?|equal|such that|if|where|respectively|has|have|given|when|so that)\b|=",
    re.IGNORECASE,
)
_OF_BOTH = re.compile(r"\b(?:between|sum|difference|ratio|product|distance|average)\b", re.IGNORECASE)
_SEVERAL = re.compile(r",(?!\d{3})|;|\band\b|\bor\b|\bto\b|=.{0,80}=|\\quad|\\qquad|\\begin|\n|\\cup|\\pm")


def joined_evidence(text: str, answer: str) -> str:
    """Why one sentence asks two things of which the reference answers one; empty if it does not."""
    if not answer or len(answer) > 60:
        return ""
    if _SEVERAL.search(answer):
        sets = _TWO_SETS.search(text[-1000:]) if _INTERVAL.fullmatch(answer) else None
        return f"asks for two sets: {sets[0][:80]!r}" if sets else ""
    last = next((sentence for sentence in reversed(sentences(text)) if question_like(sentence)), "")[:1000]
    if not last:
        return _blanks(text)
    second = _SECOND.search(last)
    identity = _WHICH_ONE.match(last)
    if second and (identity or _FIRST.search(last[: second.start()])):
        tail = last[second.end() :]
        counted = _COUNT_AND.match(last, second.start()) and _COUNT.search(last[: second.start()])
        if (identity or counted) and not _COMBINES.search(last, second.end() + 1):
            return f"one sentence asks twice: {last[second.start() :][:80]!r}"
        if _FOR_WHICH.match(tail) or _WHETHER_TOO.match(tail):
            return f"one sentence asks twice: {last[second.start() :][:80]!r}"
        if (
            not _combines(last[: second.start()], tail)
            and not _REFERS.search(tail)
            and not continues(last[: second.start()], tail, text)
        ):
            return f"one sentence asks twice: {last[second.start() :][:80]!r}"
    pair = _PAIR.search(last) or _TWO_SETS.search(last) or _TWO_EXPRESSIONS.search(last)
    if pair and not _COMBINES.search(last, pair.end()):
        return f"asks for two quantities: {pair[0]!r}"
    owned = _OWNED.search(last)
    if owned and not _CONDITION.search(owned["rest"]) and not _OF_BOTH.search(owned[0]):
        return f"asks for two quantities: {owned[0][:80]!r}"
    return _blanks(text)


def _combines(earlier: str, later: str) -> bool:
    """Whether ``later`` asks for the sum, difference, ... of what ``earlier`` has named."""
    names = set(_ONE_NAME.findall(later))
    return bool(_COMBINES.match(later) and names and names <= set(_ONE_NAME.findall(earlier)))


def _blanks(text: str) -> str:
    """Two blanks or more to fill in, with something between them."""
    if not any(sign in text for sign in ("_", "\\underline", "\\boxed", "= ")):
        return ""
    found = list(_BLANK.finditer(text))
    gaps = [text[one.end() : other.start()] for one, other in itertools.pairwise(found)]
    apart = sum(any(map(str.isalpha, gap)) or sum(map(str.isalnum, gap)) >= _MIN_BETWEEN_BLANKS for gap in gaps)
    return f"{apart + 1} blanks to fill in" if apart else ""
