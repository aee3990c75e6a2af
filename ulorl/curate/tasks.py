"""Does a piece of a problem ask for something? The vocabulary that the rules of ``kinds`` share.

Invariant: linear in the text. Does not look at mathematics: a task is known by its words.
"""

from __future__ import annotations

import re

_VERBS = (
    "find|determine|calculate|compute|evaluate|solve|simplify|factor|factorise|factorize|prove|"
    "show that|write|express|"
    "discuss|compare|explain|draw|sketch|state|list|investigate|explore|judge|verify|analyze|analyse|"
    "choose|provide|construct|"
    "describe|derive|deduce|estimate|convert|identify|complete|fill in|try to|guess|conjecture|work out|give|"
    "what|which|how|who|whose|where|why|when will|when does|is there|are there|does there|do there|"
    "is it|does|do|can|could|is|"
    "are|will|would|must"
)
_STRICT = (
    "find|determine|calculate|compute|evaluate|solve|simplify|factor|factorise|factorize|what|which|"
    "how many|how much|how long|how far|how"
)
_LINK = (
    r"(?:then |and |hence |also |please |now |next |so |or |but |additionally, |finally, |therefore |"
    r"in that case, |thus )?"
)
_CLAUSE = r"(?:^|[.;:?!,\u3002\uff0c\uff1b\uff1a]\s{0,4}|\n\s{0,9}|\$ |\\\) )"
_TASK = re.compile(rf"{_CLAUSE}{_LINK}{_LINK}(?:{_VERBS})\b(?!\s{{0,2}}[=)])", re.IGNORECASE)
_STRICT_TASK = re.compile(rf"{_CLAUSE}{_LINK}{_LINK}(?:{_STRICT})\b", re.IGNORECASE)
_QUESTION = re.compile(r"\?|\uff1f|_{3,}|(?:\\_){2,}|\\underline\{|\bvalue of .{0,80};?$")
_RELATIVE = re.compile(
    r"(?:^|[,;]\s{0,3}|\$ |\\\) )(?:which|where|who|whose|is|are|does|do|can|must|will)\b", re.IGNORECASE
)
_CHINESE = re.compile("\u6c42|\u8ba1\u7b97|\u8bc1\u660e|\u5199\u51fa|\u786e\u5b9a|\u5224\u65ad|\u591a\u5c11")
_SENTENCE_END = re.compile(r"(?<=[.?!])\s{1,9}|\n")
_WH = re.compile(
    rf"^(?:[^.?!]{{0,200}}[,;] )?{_LINK}(?:(?:what|which|how (?:many|much|long|far|old)|who)\b[^?]*\?|"
    r"(?:find|determine if|determine|calculate|compute)\b)",
    re.IGNORECASE,
)
_RESTATES = re.compile(
    r"\b(?:in other words|that is|i\.e\.|hint|note|express|remainder|[a-z] ?[-+] ?[a-z]|same|"
    r"closest|nearest)\b|"
    r"[\"\u201c\u201d]|^(?:express|write|give|round|enter)\b",
    re.IGNORECASE,
)


def starts_task(text: str, strict: bool = False) -> bool:
    """Whether a clause of ``text`` begins with a task word, or a blank or a question mark is in it.

    ``strict`` counts only the words that ask for a value or a proof.
    """
    if strict:
        return bool(_STRICT_TASK.search(text)) or bool(_CHINESE.search(text))
    if _QUESTION.search(text) or _CHINESE.search(text):
        return True
    return bool(_TASK.search(_RELATIVE.sub(" ", text)))


def asking_paragraphs(text: str) -> list[str]:
    """Paragraphs that each ask for a value, hints and demands on the form of the answer left out."""
    paragraphs = re.split(r"\n\s{0,20}\n", text)
    return [part for part in paragraphs if starts_task(part, strict=True) and not _RESTATES.search(part)]


def asks(text: str) -> bool:
    """Whether ``text`` asks for a value, or has a question mark."""
    return "?" in text or starts_task(text, strict=True)


def question_sentences(text: str) -> list[str]:
    """Sentences that each ask for a value of its own, in a text without a list."""
    sentences = [sentence.strip() for sentence in _SENTENCE_END.split(text) if sentence.strip()]
    asking = [sentence for sentence in sentences if _WH.match(sentence) and not _RESTATES.search(sentence)]
    return asking if len(asking) >= 2 else []
