"""Is a problem multiple choice: lettered options, or numbered statements to choose among?

Invariants: options are a list of three or more labels whose parts ask nothing; numbered statements make a choice
only where the text asks which of them hold, and not how many do. Linear in the text.
"""

from __future__ import annotations

import re

from ulorl.curate.answers import option_letter, same_text, short_answer
from ulorl.curate.enumeration import Enumeration
from ulorl.curate.parts import asking_lists
from ulorl.curate.tasks import asks, sentences, starts_task

_MAX_OPTION_CHARS = 400
_WHICH = re.compile(
    r"\b(?:which|what) (?:\w+ ){0,3}(?:of|among) (?:the )?(?:\w+ )?(?:following|these|those|above|statements?|"
    r"propositions?|conclusions?)\b"
    r"|\bamong (?:the|these|those|them)\b|\b(?:correct|true|false|incorrect|wrong) "
    r"(?:\w+ ){0,2}(?:statement|proposition|conclusion|option|choice|answer|one|number|judg[e]?ment|inference)s?\b"
    r"|\bfollowing (?:\w+ ){0,3}(?:is|are) (?:\w+ )?(?:correct|true|false|incorrect)\b"
    r"|\b(?:numbers?|ones?|statements?|propositions?|conclusions?)\W{1,4}(?:\w+ ){0,3}(?:is|are|which)[ /](?:\w+ )?"
    r"(?:correct|true|false|incorrect)\b"
    r"|\bwhich (?:\w+ ){0,2}(?:statement|conclusion|option|choice|proposition|one)s?\b|\b(?:serial|sequence) numbers?\b"
    r"|\u4e0b\u5217|\u4ee5\u4e0b",
    re.IGNORECASE,
)
_WHICH_NAMED = re.compile(
    r"\b(?:which|what) (?:\w+ ){0,3}(?:of|among) (?:the )?(?:following|these|those|statements|propositions)\b"
    r"|\bamong the(?:se)? (?:following|(?:\w+ )?(?:statements|propositions|conclusions|events|functions))\b"
    r"|\b(?:correct|true|false|incorrect) (?:\w+ ){0,2}(?:statement|proposition|conclusion|option|choice|answer)s?\b"
    r"|\bfollowing (?:\w+ ){0,3}(?:is|are) (?:\w+ )?(?:correct|true|false|incorrect)\b"
    r"|\bwhich (?:\w+ ){0,2}(?:statement|conclusion|option|choice|proposition)s?\b|\b(?:serial|sequence) numbers?\b"
    r"|\u4e0b\u5217|\u4ee5\u4e0b",
    re.IGNORECASE,
)
_WHICH_WORDS = (
    "which",
    "among",
    "correct",
    "true",
    "false",
    "following",
    "number",
    "what",
    "\u4e0b\u5217",
    "\u4ee5\u4e0b",
)
_NONE_OF_THESE = re.compile(
    r"^\W{0,3}(?:none of (?:the above|these|the (?:others|options|answers))|all of the above|"
    r"another answer|not enough|cannot be determined)",
    re.IGNORECASE,
)
_ASKS_COUNT = re.compile(
    r"\bhow many\b|\bthe number of\b|\bfind all\b|\bdetermine all\b|\bfor (?:which|what|how)\b|\bprobability\b",
    re.IGNORECASE,
)
_BRACKETED = re.compile(r"\([\dIVXivx]{1,3}\)|[\u2460-\u2469]")
_LETTERS = re.compile(r"[A-H](?:\s{0,2}(?:(?:,|and)\s{0,2})?[A-H])*")
_NAMED = re.compile(r"[\u2460-\u2469]|\d{1,2}|[IVX]{1,4}|[ivx]{1,4}|[\u2160-\u2169]")
_NAMES_ONLY = re.compile(r"(?:[\s,;$(){}.\u3001\uff0c&\\\u2460-\u2469\u2160-\u2169\dIVXivx]|and|or)*")
_OPTION_START = re.compile(r"^\W{0,6}(?:\\\w{1,12}\s?\{)?\W{0,6}[A-E]\s?[).]")
_OPTION_LINE = re.compile(r"(?:^|\n)\W{0,4}[A-E]\W")
_BLANK = re.compile(r"__|\\_ ?\\_")
_SEPARATORS = re.compile(r"(?:\\qquad|\\quad|\\\\|\\|[\s;,])+$")
_LEADING_SPACE = re.compile(r"^(?:\\[ ,;:]|\\quad|[\s~])+")
_LOST_OPTIONS = re.compile(
    r"\bwhich (?:one )?of (?:the following|these) (?:\w+ ){0,2}?(?:could|can|may|might|cannot|can't|must|is not|"
    r"are not|does not|is (?:always|never|necessarily|true|false|correct|incorrect|closest|a possible))\b"
    r"|\bcan \$?\w\$? not (?:be|equal)\b",
    re.IGNORECASE,
)


def options(enumerations: list[Enumeration]) -> Enumeration | None:
    """The list of lettered options, if there is one: three or more, no tasks, nothing asked after it."""
    for enumeration in reversed(enumerations):
        if enumeration.family not in ("ALPHA", "alpha") or len(enumeration.parts) < 3 or not enumeration.preamble:
            continue
        if any(starts_task(part, strict=True) or "?" in part for part in enumeration.parts):
            continue
        if enumeration.family == "alpha" and any(starts_task(part) for part in enumeration.parts):
            continue
        if any(asks(part) for part in enumeration.parts[-1:]):
            continue
        if all(enumeration.parts) and max(len(part) for part in enumeration.parts) <= _MAX_OPTION_CHARS:
            return enumeration
    return None


def choice_evidence(text: str, reference: str, enumerations: list[Enumeration]) -> tuple[str, bool]:
    """(why the problem is multiple choice, empty if no rule says so; whether the rules are sure of that)."""
    lettered = options(enumerations)
    if lettered is not None and _are_options(lettered, text, reference):
        if any(lettered.parts[0] not in one.parts[-1] for one in asking_lists(enumerations)):
            return "", True
        return f"options {', '.join(lettered.labels)}", True
    lowered = text.lower()
    asking = [one for one in enumerations if _has_tasks(one)]
    for enumeration in enumerations:
        if any(one is enumeration or one.start < enumeration.start for one in asking):
            continue
        if _BRACKETED.search(reference) and len(enumeration.parts) >= 3 and names_labels(reference, enumeration.labels):
            return f"the reference {reference!r} names the statements {', '.join(enumeration.labels)}", True
    which = _WHICH.search(text) if any(word in lowered for word in _WHICH_WORDS) else None
    if which:
        for enumeration in enumerations:
            if _are_statements(enumeration, enumerations, text, reference):
                return f"{which[0]!r} over the numbered statements {', '.join(enumeration.labels)}", True
        if _LETTERS.fullmatch(reference.strip()) and len(reference.strip()) > 1:
            return f"{which[0]!r}, and the reference {reference!r} names options", True
    names_option = option_letter(reference) and len(reference) > 1 and _OPTION_START.match(reference)
    if names_option and not _states_value(reference, text):
        return f"the reference {reference[:40]!r} names an option", True
    lost = _LOST_OPTIONS.search(text) if which else None
    if lost:
        return f"{lost[0]!r}, and the options are not in the text", False
    return "", which is None


def _states_value(reference: str, text: str) -> bool:
    """Whether the text has no options and the reference has the value of its option beside the letter."""
    return option_letter(short_answer(reference)[0]) is None and len(_OPTION_LINE.findall(text)) < 3


def _are_options(lettered: Enumeration, text: str, reference: str) -> bool:
    if lettered.family == "ALPHA":
        return True
    letter = option_letter(reference)
    if letter and letter.lower() in lettered.labels:
        return True
    if _NONE_OF_THESE.search(lettered.parts[-1]):
        return True
    answer = short_answer(reference)[0]
    return any(same_text(part.rstrip(";,. "), answer) for part in lettered.parts)


def _are_statements(enumeration: Enumeration, enumerations: list[Enumeration], text: str, reference: str) -> bool:
    """Whether the numbered list holds statements of which the text asks which hold."""
    if enumeration.family in ("alpha", "ALPHA", "glued") or len(enumeration.parts) < 2:
        return False
    if any(one is not enumeration and one.start < enumeration.start for one in asking_lists(enumerations)):
        return False
    named = names_labels(reference, enumeration.labels)
    if any(_has_tasks(one) and one.start <= enumeration.start for one in enumerations):
        return False
    others = [one for one in enumerations if one is not enumeration and one.family != "circled"]
    if not named and any(sum(map(starts_task, one.parts)) >= 2 for one in others):
        return False
    asked = [sentence for sentence in sentences(text) if _WHICH.search(sentence) or asks(sentence)]
    if any(_ASKS_COUNT.search(sentence) for sentence in asked) and len(asked) == 1:
        return False
    if named:
        return not any(_ASKS_COUNT.search(sentence) for sentence in asked[-1:])
    return (
        len(enumeration.parts) >= 3
        and bool(_WHICH_NAMED.search(text))
        and not any(starts_task(part) for part in enumeration.parts[:-1])
        and not any(_ASKS_COUNT.search(sentence) for sentence in asked)
        and not re.fullmatch(r"-?[\d,.]+", reference.strip("$ "))
    )


def _has_tasks(enumeration: Enumeration) -> bool:
    """Whether two parts or more, the last apart, ask for a value or have a blank."""
    return sum(starts_task(part, strict=True) or bool(_BLANK.search(part)) for part in enumeration.parts[:-1]) >= 2


def names_labels(reference: str, labels: tuple[str, ...]) -> bool:
    """Whether ``reference`` is a list of some of ``labels``: ``①③``, ``(1)(4)``, ``2, 3``."""
    reference = reference.replace("\\text", "").strip()
    if not reference or len(reference) > 60 or not _NAMES_ONLY.fullmatch(reference):
        return False
    places = [_place(one, labels) for one in _NAMED.findall(reference)]
    # An order of the labels is no choice among them.
    return bool(places) and 0 not in places and places == sorted(places)


def _place(named: str, labels: tuple[str, ...]) -> int:
    """Which of the labels, from 1 on, is named; 0 for none."""
    if named in labels:
        return labels.index(named) + 1
    ordinal = ord(named) - 0x2460 + 1 if "\u2460" <= named <= "\u2469" else int(named) if named.isdigit() else 0
    return ordinal if ordinal <= len(labels) else 0


def option_value(part: str) -> str:
    """The value of one option, without what stands around it."""
    part = _SEPARATORS.sub("", _LEADING_SPACE.sub("", part[:401]))
    if part.count("$") % 2:
        part = part.removesuffix("$").removeprefix("$")
    if part.count("}") == part.count("{") + 1:
        part = part.rstrip().removesuffix("}")
    return short_answer(part)[0]
