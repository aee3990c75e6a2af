"""Is a sentence a yes/no question? Used to tell that kind, and to count what a problem asks.

Invariant: linear in the sentence. A question with alternatives ("even, odd, or neither?") is none; neither is one
that asks for a value in the clothes of one ("Can you find ...?").
"""

from __future__ import annotations

import re

from ulorl.curate.tasks import quoted

_YES_NO = re.compile(
    r"^(?:[^.?!]{0,160}[,:] )?(?:then |so |but |and )?(?:is|am|are|was|were|does|do|did|can|could|will|"
    r"would|must|has|have|"
    r"should|may)(?! not\b) ",
    re.IGNORECASE,
)
_WH_BEFORE = re.compile(r"^(?:\w{1,6} )?(?:which|what|how|who|whose|where|when|why)\b", re.IGNORECASE)
_OTHER_QUESTION = re.compile(r"\b(?:what|how|why)\b|\b(?:can|could|would|will) (?:you|the reader)\b", re.IGNORECASE)
_AND_ASKS = re.compile(r"\band (?:then |by )?(?:find|determine|calculate|compute|how|what)\b", re.IGNORECASE)
_ASKED_INSIDE = re.compile(
    r"\b(?:determine|tell|find(?: out)?|say|know|guess|name|figure out) (?:\w+ ){0,2}?(?:which|who|where|when)\b",
    re.IGNORECASE,
)
_QUESTION_END = re.compile(r"\?[ $\\\])*]{0,6}$")
_WHETHER = re.compile(
    r"^(?:[^.?!]{0,160}[,:] )?(?:prove or disprove|true or false|is it true|(?:determine|decide|state|"
    r"judge|verify|find out|investigate|prove|show|check|examine)"
    r" (?:whether|if)|can one|is it possible)\b",
    re.IGNORECASE,
)
_ALTERNATIVES = re.compile(r",? or neither\b|\bneither\W{0,3}$", re.IGNORECASE)


def asks_yes_no(sentence: str) -> bool:
    """Whether ``sentence`` asks for a yes or a no and for nothing else."""
    whether = bool(_WHETHER.match(sentence))
    if not whether and not (_QUESTION_END.search(sentence) and _YES_NO.match(sentence)):
        return False
    told = quoted(sentence) and not (whether and sentence[0].isalpha())
    if _AND_ASKS.search(sentence) or told or _ALTERNATIVES.search(sentence):
        return False
    if whether:
        return True
    if sentence[0].islower() or _WH_BEFORE.match(sentence):
        return False
    return not (_OTHER_QUESTION.search(sentence) or _ASKED_INSIDE.search(sentence))
