"""Does a piece of a problem ask for something? The vocabulary that the rules of ``kinds`` share.

Invariant: linear in the text. Does not look at mathematics: a task is known by its words.
"""

from __future__ import annotations

import re
from functools import lru_cache

_VERBS = (
    "find|determine|calculate|compute|evaluate|solve|simplify|factor|factorise|factorize|prove|"
    "show that|write|express|"
    "discuss|compare|explain|draw|sketch|state|list|investigate|explore|judge|verify|analyze|analyse|"
    "choose|provide|construct|"
    "describe|derive|deduce|estimate|convert|identify|complete|fill in|try to|guess|conjecture|work out|give|"
    "what|which|how|who|whose|where|why|when will|when does|is there|are there|does there|do there|"
    "is it|does|do|can|could|is|"
    "are|will|would|must|specify|indicate|arrange|predict|represent|plot|"
    "the same (?:question|problem|with|for|if|when)|design"
)
_STRICT = (
    "find|determine|calculate|compute|evaluate|solve|simplify|factor|factorise|factorize|what|which|"
    "how many|how much|how long|how far|how"
)
_LINK = (
    r"(?:then |and |hence |also |please |now |next |so |or |but |additionally, |finally, |therefore |"
    r"in that case, |thus )?"
)
_CLAUSE = (
    r"(?:^|[.;:?!,\u3002\uff0c\uff1b\uff1a][\"'\u201d\u2019)\]]?\s{0,4}|\n\s{0,9}|\$ |\\\) |"
    r"\((?:[ivx]{1,4}|[a-e]|\d)\)\s{1,2}|\(\d points?\) )"
)
_TASK = re.compile(
    rf"{_CLAUSE}{_LINK}{_LINK}(?:(?:{_VERBS})\b(?!\s{{0,2}}[=)])|(?:use|apply|try)\b[^.?!]{{0,80}} to (?:{_STRICT})\b)",
    re.IGNORECASE,
)
_STRICT_TASK = re.compile(rf"{_CLAUSE}{_LINK}{_LINK}(?:{_STRICT})\b", re.IGNORECASE)
_QUESTION = re.compile(
    r"\?|\uff1f|_{3,}|(?:\\_){2,}|\\underline\{|\bvalue of .{0,80};?$|"
    r"\b(?:is|are|equals|coordinates)\s?[.;:,]?\s*$|\bis;|=\s?(?:\\ |\\q?quad)?\s?\$\s?(?:[.,;]|$)"
)
SUBORDINATE = r"(?:if|when|given|let|after|suppose|assuming|since|for|in|at|on|with|by|of|under|from)\b"
"""How a clause begins that comes before the question it belongs to."""
_RELATIVE = re.compile(
    r"(?:^|[,;]\s{0,3}|\$ |\\\) )(?:which|where|who|whose|is|are|does|do|can|must|will)\b", re.IGNORECASE
)
_CHINESE = re.compile("\u6c42|\u8ba1\u7b97|\u8bc1\u660e|\u5199\u51fa|\u786e\u5b9a|\u5224\u65ad|\u591a\u5c11")
_SENTENCE_END = re.compile(r"[.?!](?:[)\"\u201d]|\$(?=\s{1,9}[A-Z]))?\s{1,9}|[\u3002\uff1f]|\n")
_TITLE_ENDS = (["Mr"], ["Mrs"], ["Ms"], ["Dr"], ["St"], ["vs"])
_MATH = r"(?:align|equation|gather|multline|split|cases|array|[pbvV]?matrix)"
_BEFORE_DISPLAY = re.compile(
    rf"\n{{1,2}}[ \t]{{0,8}}(?=\\[\[\]]|\$\$|\\begin\{{{_MATH}|\\end\{{{_MATH})|(?<=\\\[)[ \t]?\n|(?<=\$\$)[ \t]?\n"
)
_AFTER_DISPLAY = re.compile(rf"(\\\]|\$\$|\\end\{{{_MATH}(?:ed)?\*?\}})[ \t]{{0,8}}\n{{1,2}}(?=[a-z])")
_PREPOSITION = r"(?:(?:at|to|in|on|by|with|for|from|after|of|under|into|through|during) )?"
_WH = re.compile(
    rf"^(?:(?:[^.?!]|\.\d){{0,200}}[,;:] )?{_LINK}(?:{_PREPOSITION}"
    rf"(?:what|which|how \w+|who|whose|where|when)\b[^?]*\?|"
    r"(?:find|(?:determine|verify|check|state|decide) (?:if|whether)|determine|calculate|compute|evaluate)\b)",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"^\W{0,4}(?:hint|note|remark|comment|in other words|that is|i\.e|for example|example|for instance|express|write|"
    r"give|round|enter|provide|recall|list all|reminder|solution)\b|^(?:(?:find|determine|list|give|what are) all "
    r"(?:the )?(?:possible )?(?:options|answers|cases|possibilities|solutions|variants)\W*$)"
    r"|\b(?:in other words|form of (?:the|your) answer|i\.e\.|that is,|remainder|closest|nearest)\b",
    re.IGNORECASE,
)
_COMBINATION = re.compile(
    rf"^(?P<clause>(?:if|when|where) (?:the|it|its|this|he|she|your) [^.?!]{{0,160}}, )?"
    rf"{_LINK}(?:then,? |finally,? |specifically,? )?(?:find|compute|calculate|"
    r"determine|evaluate|what is)\s(?:the (?:value|sum|product|quantity|expression)(?: of)? ?)?[$(*\s]{0,4}"
    r"(?P<object>[-+*/^(){}\\\w\s]{1,60}?)\W{0,4}(?:mod(?:ulo)?\W.{0,12})?[.?]?\W*$",
    re.IGNORECASE,
)
_PROCEDURE = re.compile(
    r"\bwhat (?:is|are) the (?:\w+ ){0,8}?possible\b|"
    r"\b(?:of|square) this value\b|\b(?:of )?this (?:angle|number|sum|product|set|sequence|expression)\b",
    re.IGNORECASE,
)
_PROSE = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}|\d(?:st|nd|rd|th)\b")
_NAME = re.compile(r"\\[a-zA-Z]+|[A-Za-z](?:_\{?\w+\}?)?")
_STANDING_NAME = re.compile(r"\\[a-zA-Z]+|(?<![A-Za-z\\])[A-Za-z](?:_\{?\w+\}?)?(?![A-Za-z]{2})")
_FUNCTIONS = re.compile(
    r"\\(?:cdot|times|[dt]?frac|log|ln|lg|exp|sin|cos|tan|cot|sqrt|left|right|[lr]floor|[lr]ceil|binom|pmod|bmod|mod|big|Big|pi)"
    r"(?![A-Za-z])"
)
_TRIGONOMETRIC = re.compile(r"\\(?:sin|cos|tan|cot)(?![a-z])")
_QUALIFIED = re.compile(r",? (?:where|if|given|when)\b")


def starts_task(text: str, strict: bool = False) -> bool:
    """Whether a clause of ``text`` begins with a task word, or a blank or a question mark is in it.

    ``strict`` counts only the words that ask for a value or a proof.
    """
    if strict:
        return bool(_STRICT_TASK.search(text)) or bool(_CHINESE.search(text))
    if _QUESTION.search(text) or _CHINESE.search(text):
        return True
    return bool(_TASK.search(_RELATIVE.sub(" ", text)))


def asks(text: str) -> bool:
    """Whether ``text`` asks for a value, or has a question mark."""
    return "?" in text or starts_task(text, strict=True)


@lru_cache(maxsize=4)
def sentences(text: str) -> tuple[str, ...]:
    """Sentences and lines, without the empty ones; mathematics on lines of its own belongs to its sentence."""
    if "\n" in text:
        text = _AFTER_DISPLAY.sub(r"\1 ", _BEFORE_DISPLAY.sub(" ", text))
    found: list[str] = []
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if end[0][0] == "." and text[max(0, end.start() - 4) : end.start()].rsplit(maxsplit=1)[-1:] in _TITLE_ENDS:
            continue
        found.append(text[start : end.start() + (2 if end[0][1:2] == "$" else 1)].strip())
        start = end.end()
    found.append(text[start:].strip())
    return tuple(filter(None, found))


def question_sentences(text: str) -> list[str]:
    """Sentences that each ask for a value of its own, in a text without a list.

    A later question that only combines what an earlier one found ("Find x and y. What is x + y?"), repeats it
    in another language, or asks for the outcome of a procedure described as "compute ..., then ..." is not
    counted; neither are hints, remarks and demands on the form of the answer.
    """
    asking: list[str] = []
    for sentence in sentences(text):
        if not asks_value(sentence):
            continue
        if asking and continues(asking[-1], sentence, text):
            asking[-1] = sentence
        else:
            asking.append(sentence)
    return asking if len(asking) >= 2 else []


def asks_value(sentence: str) -> bool:
    """Whether ``sentence`` is a question or a demand for a value, not an aside, nor what someone says."""
    return (
        bool(_WH.match(sentence)) and not _ASIDE.search(sentence) and not quoted(sentence) and sentence.count(" ") > 1
    )


def quoted(sentence: str) -> bool:
    """Whether a sentence belongs to what someone says."""
    uneven = sentence.count('"') % 2 == 1 or ("\u201c" in sentence) != ("\u201d" in sentence)
    return uneven or sentence[0] in "\"\u201c'\u2018-"


def question_like(sentence: str) -> bool:
    """Whether a sentence has a clause that asks for a value."""
    return bool(_STRICT_TASK.search(sentence)) and not _ASIDE.match(sentence) and not quoted(sentence)


def continues(earlier: str, later: str, text: str) -> bool:
    """Whether the question ``later`` of ``text`` only combines or restates what ``earlier`` finds."""
    if "?" not in earlier and _PROCEDURE.search(later):
        return True
    qualifier = max((found.start() for found in _QUALIFIED.finditer(later)), default=len(later))
    combined = _COMBINATION.match(later) or _COMBINATION.match(later[:qualifier])
    if combined is None:
        return False
    wanted = _FUNCTIONS.sub(" ", combined["object"])
    if _PROSE.search(wanted):
        return False
    names = set(_NAME.findall(wanted))
    if len(names) == 1 and _TRIGONOMETRIC.search(combined["object"]):
        return False
    around = f"{text[: text.find(later)]} {combined['clause'] or ''} {later[qualifier:]}"
    before = earlier if len(names) == 1 else around
    return bool(names) and names <= set(_STANDING_NAME.findall(before))
