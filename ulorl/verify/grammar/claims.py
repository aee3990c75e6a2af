"""A bare answer that is a short sentence: "There are 5 apples", "the remainder is 5", "5 is the answer".

Invariants: the sentence has one verb and no word that turns, bounds or conditions what it says; the subject is
kept as a name, so that claims about different things are not equal; what is claimed has to be a full answer by
itself, or the sentence is not split. Linear time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_CLAIM = 200
_ADVERBS = (
    r"(?:exactly|approximately|approx\.?|about|around|roughly|nearly|almost|just|only|simply|equal to|a total of)"
)
_OPENING = r"(?:(?:so|thus|hence|therefore|then|and),? )?"
_PRONOUN = re.compile(
    rf"{_OPENING}(?:there (?:is|are|will be|would be|were)|(?:it|this|that) (?:is|takes|equals|costs|will take|will be)"
    r"|(?:he|she|they|we|you|it|I) (?:has|have|had|needs?|gets?|got|pays?|paid|earns?|earned|spends?|spent|makes?|made"
    rf"|sells?|sold|buys?|bought|will need|will have)|{_ADVERBS})(?: {_ADVERBS})? (?P<rest>.+)",
    re.IGNORECASE | re.DOTALL,
)
_SUBJECT = re.compile(
    rf"{_OPENING}(?P<name>[^=,;:.]{{1,120}}?) (?:is|are|equals|was|were|will be|would be)(?: {_ADVERBS})? "
    r"(?P<rest>.+)",
    re.IGNORECASE | re.DOTALL,
)
_FINDING = re.compile(
    r"(?:we|I) (?:find|get|obtain|conclude|see|know)(?: that)?,? (?P<rest>.+)", re.IGNORECASE | re.DOTALL
)
_CHINESE = re.compile(
    r"(?:一共|总共|共)?(?:有|是|为|等于|需要|约为?|大约[是为]?|答案[是为:]?|答:|共)\s?(?P<rest>[-\d\\].*)", re.DOTALL
)
_PREDICATE = re.compile(
    r"(?P<rest>[^ ].{0,60}?) (?:is|are) (?:correct|right|(?:the|our|my) (?:(?:only|final|correct|right) )?"
    r"(?:answers?|solutions?|results?|values?|choices?|options?|ones?))(?: here)?",
    re.IGNORECASE,
)
_NO_SOLUTION = re.compile(
    r"(?:[a-z ]{1,60} )?(?:has|have) no (?:real |integer )?(?:solutions?|roots?|answers?)", re.IGNORECASE
)
_YES = re.compile(
    r"(yes|no|true|false)[,.;:] (?:because|since|it|they|he|she|we|you|this|that|there|the|such|one)\b[a-z ']{0,80}",
    re.IGNORECASE,
)
_VERB = re.compile(r"\b(?:is|are|equals|was|were|be|has|have|had|becomes?)\b", re.IGNORECASE)
_DOUBT = re.compile(
    r"\b(?:not|no|never|nor|neither|cannot|if|when|unless|either|whether|but|except|than|least|most|between|suppose|assume"
    r"|maybe|perhaps|might|may|could|should|must|which|that|because|since|where|why|how|what)\b|n't|\?",
    re.IGNORECASE,
)
_ARTICLES = re.compile(r"^(?:the|a|an|its|his|her|their|our|my|your) ", re.IGNORECASE)


@dataclass(frozen=True)
class Claim:
    """``rest`` is what is said, ``name`` of what it is said; "" for nothing in particular."""

    name: str
    rest: str


def split_claim(text: str) -> Claim | None:
    """What a short sentence claims; None where ``text`` is no sentence of a form that is safe to split."""
    if len(text) > MAX_CLAIM or not text[:1].isalnum() or (" " not in text and text.isascii()):
        return None
    if found := _YES.fullmatch(text):
        return Claim("", found[1])
    if _NO_SOLUTION.fullmatch(text):
        return Claim("", "no solution")
    if found := _FINDING.fullmatch(text) or _CHINESE.fullmatch(text):
        return Claim("", found["rest"])
    verbs = len(_VERB.findall(text))
    if verbs > 1:
        return None
    if verbs and (found := _PREDICATE.fullmatch(text)):
        return None if _DOUBT.search(text) else Claim("", found["rest"])
    if found := _PRONOUN.fullmatch(text):
        rest = found["rest"]
        return None if _DOUBT.search(text.removesuffix(rest)) else Claim("", rest)
    if verbs and (found := _SUBJECT.fullmatch(text)) and not _DOUBT.search(text):
        return Claim(_ARTICLES.sub("", found["name"].strip()).lower(), found["rest"])
    return None
