"""Does a problem ask several things, so that one reference cannot answer it?

Lists whose parts ask, one task put to each part of a list, several questions in prose, a reference that answers
parts. Invariants: a list of conditions is not a list of tasks; a later question that only combines earlier
results does not make a second part (``tasks.question_sentences``).
"""

from __future__ import annotations

import re

from ulorl.curate.enumeration import Enumeration, find_enumerations
from ulorl.curate.joined import joined_evidence
from ulorl.curate.tasks import asks, asks_value, question_sentences, sentences, starts_task
from ulorl.curate.yes_no import asks_yes_no

_MIN_REFERENCE, _MAX_REFERENCE = 6, 400
_CONDITIONS = re.compile(
    r"(?:\b(?:satisf\w+|conditions?|properties|property|rules?|such that|statements?|following holds?|facts?|"
    r"steps|operations?|moves?|defined|axioms|ways|where|if|constraints?|clues|requirements?|information|types?|"
    r"known that|criteria|game|has|have)\b)"
    r"[^.?!]{0,80}$",
    re.IGNORECASE,
)
_EACH_OF = re.compile(
    r"\bunder (?:each of )?the following (?:\w+ )?(?:conditions?|cases|situations|circumstances)\b|"
    r"\bhow (?:many|much)\b.{0,60}\bdo the following have\b",
    re.IGNORECASE,
)
_COMMA_LABEL = re.compile(r",(?=(?:\s|\\ ){0,3}\(?[a-eivx]{1,3}\))")
_COUNTS = re.compile(
    r"\b(?:number of|how many)\b.{0,60}\b(?:correct|true|false|incorrect|statements?|"
    r"propositions?|conclusions?)\b",
    re.IGNORECASE,
)
_FOLLOWING = re.compile(r"following (?:\w+ )?(?:conditions|cases|situations|expressions|equations)", re.IGNORECASE)
_BARE_TASK = re.compile(
    r"\b(?:find|calculate|determine|compute|evaluate|solve|answer|prove|simplify|indicate)"
    r"(?: the (?:following|values? of))?\W{0,3}$",
    re.IGNORECASE,
)
_QUANTITY_PART = re.compile(
    r"^\W{0,3}the (?:probability|values?|equations?|range|maximum|minimum|area|length|sum|number|measure|ratio|volume|"
    r"coordinates|distribution|degree|size|general (?:term|formula)|interval)\b"
    r"(?!.*\b(?:is|are|was|were|equals?|must|has)\b)",
    re.IGNORECASE,
)
_EACH_EXPRESSION = re.compile(
    r"\b(?:solve|simplify|factor\w*|calculate|compute|evaluate|find|expand|write|determine)\b[^.?!]{0,60}\b"
    r"(?:each of )?the following (?:\w+ )?(?:equations|inequalities|expressions|integrals|limits|sums|derivatives|"
    r"sequences|functions|numbers)\b",
    re.IGNORECASE,
)
_SCENARIOS = re.compile(
    r"\b(?:how (?:many|much)|for (?:what|which)|what|find|calculate|compute)\b.{0,300}\b(?:when|have|be|is):$",
    re.IGNORECASE | re.DOTALL,
)
_DERIVES = re.compile(
    r"\b(?:derive|verify|prove|solve|find|factor|show)\b[^.?!]{0,200}\b\w{1,30}s\b[^.?!]{0,60}:$", re.IGNORECASE
)
_PROSE = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{4,}")
_ASKS_ITSELF = re.compile(r"\b(?:what|which|how|who|where|when|why)\b", re.IGNORECASE)
_VALUE_PART = re.compile(r"^\W{0,4}[A-Za-z]\s?=[^,;]{1,20}\W*$")
_SATISFYING = re.compile(r"\b(?:satisf\w+|such that|meet\w*|obey\w*|fulfil\w*|propert\w+)\b", re.IGNORECASE)
_IF_SO = re.compile(
    r"\bif (?:so|yes|such|possible)\b|\bif not, (?:find|explain|give|state|specify|indicate|provide|what|prove)\b|"
    r"\bif (?:it|they|there) (?:is|are|does|do|exists?|can)\b|\bwhy\b|\bexplain\b|\bcorrect answer\b|"
    r"\bin the answer\b",
    re.IGNORECASE,
)
_ELLIPTIC = re.compile(
    r"^and\b[^?]{3,80}\?$|^[\d$\\][^?]{0,40}\?$|"
    r"^(?:and |or |but )?(?:(?:what|how) about|to|if|for|with|in|when|of|at|by)\b[^?]{3,200}\?$",
    re.IGNORECASE,
)
_SPOKEN = re.compile(r"^[^.?!]{1,40}:")
_OPERATIONS = re.compile(
    r"\b(?:types?|kinds|operations?|moves?|rules?|transactions?|steps|exchanges?|conditions?|properties)\b[^.?!]{0,80}:?$|"
    r"\bfollowing (?:\w+ ){0,2}(?:conditions?|properties|rules)(?: \w+){0,2}\.$",
    re.IGNORECASE,
)
_WHETHER_LIST = re.compile(r"^(?:is|are|does|do|did|can|could|will|must) [^.?!]{3,200}:$", re.IGNORECASE)
_SIMPLIFIES = re.compile(
    r"^(?:solve|simplify|factor(?:i[sz]e|i[sz]ation)?|calculat(?:e|ion)s?|compute|evaluate|find|expand|differentiate|"
    r"integrate|complete|convert)\b[^.?!]{0,80}:?$",
    re.IGNORECASE,
)


def parts_evidence(text: str, reference: str, answer: str, enumerations: list[Enumeration]) -> tuple[str, bool]:
    """(why the problem has several parts, empty if the rules see none; whether they are sure of it)."""
    evidence = _answered_parts(reference, enumerations) or _listed_parts(enumerations)
    if evidence:
        return evidence, True
    questions = question_sentences(text)
    if questions:
        return f"{len(questions)} questions: {questions[-1][:80]!r}", False
    return _whether_and_value(text) or joined_evidence(text, answer), False


def _whether_and_value(text: str) -> str:
    """A yes/no question beside a question for a value, or a question whose second half is left to be understood."""
    if "?" not in text or _IF_SO.search(text):
        return ""
    before = False
    asked: set[str] = set()
    for sentence in sentences(text):
        if asks_value(sentence):
            asked.add("value")
            before = sentence.endswith("?")
        elif not sentence.endswith("?"):
            before = False
        elif before and _ELLIPTIC.match(sentence) and not _ASKS_ITSELF.search(sentence):
            return f"a question and its variation: {sentence[:80]!r}"
        elif asks_yes_no(sentence) and not _SPOKEN.match(sentence):
            asked.add("whether")
        if len(asked) > 1:
            return f"a yes/no question and one for a value: {sentence[:80]!r}"
    return ""


def asking_lists(enumerations: list[Enumeration]) -> list[Enumeration]:
    """The lists of which two parts or more ask for a value or a proof."""
    return [one for one in enumerations if sum(starts_task(part, strict=True) for part in one.parts) >= 2]


def _answered_parts(reference: str, enumerations: list[Enumeration]) -> str:
    """A short reference that is a list of answers: ``a) 48; b) yes``."""
    if not _MIN_REFERENCE <= len(reference) <= _MAX_REFERENCE:
        return ""
    families = {enumeration.family for enumeration in enumerations}
    for answered in find_enumerations(_COMMA_LABEL.sub(";", reference)):
        if answered.preamble or len(answered.parts) < 2 or not all(answered.parts):
            continue
        if answered.family in families or answered.family in ("alpha", "roman", "ROMAN"):
            return f"the reference answers the parts {', '.join(answered.labels)}"
    return ""


def _listed_parts(enumerations: list[Enumeration]) -> str:
    for enumeration in enumerations:
        listed = ", ".join(enumeration.labels)
        if enumeration.family == "glued":
            return f"several problems in one text: {listed}"
        ruled = bool(_OPERATIONS.search(enumeration.preamble[-200:].rstrip(" :*\n-")))
        tasks = sum(starts_task(part, strict=ruled) for part in enumeration.parts)
        if tasks >= 2:
            return f"{tasks} of the parts {listed} ask something"
        if _preamble_asks(enumeration, tasks):
            return f"one task put to each of the parts {listed}"
    return ""


def _preamble_asks(enumeration: Enumeration, tasks: int) -> bool:
    """Calculate: (1) .. (2) .. - a task before a list whose parts are bare expressions, and none after it."""
    if enumeration.family in ("circled", "ALPHA"):
        return False
    preamble = re.sub(r"\([^()]{0,200}\)$", "", enumeration.preamble.rstrip(" \n*$-")).rstrip()
    if not preamble:
        return all(len(part) < 300 for part in enumeration.parts) and enumeration.family in ("decimal", "alpha")
    last = re.split(r"(?<=[.?!])\s", preamble)[-1]
    if _COUNTS.search(last):
        return False
    if _BARE_TASK.search(last):
        return True
    if preamble.endswith(":") and _WHETHER_LIST.match(last) and not _SATISFYING.search(last):
        return True
    if preamble.endswith(":") and _DERIVES.search(last) and not any(map(_PROSE.search, enumeration.parts)):
        return True
    if all(_QUANTITY_PART.match(part) for part in enumeration.parts):
        return True
    simplifies = bool(_SIMPLIFIES.match(last) or _EACH_EXPRESSION.search(last))
    if tasks and not (simplifies or _only_closing_question(enumeration, last)):
        return False
    if _EACH_OF.search(last) and (asks(last) or starts_task(last)):
        return True
    if not (starts_task(last, strict=True) or simplifies):
        return False
    if asks(enumeration.parts[-1]) and not simplifies and not _only_closing_question(enumeration, last):
        return False
    if simplifies and not _SATISFYING.search(last):
        return True
    if preamble[-1:] in "?.":
        return bool(_FOLLOWING.search(last)) and not _SATISFYING.search(last)
    if _SCENARIOS.search(last) or (preamble.endswith("if:") and all(map(_VALUE_PART.match, enumeration.parts))):
        return True
    return (preamble[-1:] in ":;,\uff1a" and not _CONDITIONS.search(last)) or not re.search(r"[.?!:,]$", preamble)


def _only_closing_question(enumeration: Enumeration, preamble: str) -> bool:
    """How large is: a) a cube; b) a ball? - the question mark at the end is the preamble's."""
    last = enumeration.parts[-1].rstrip(" $*")
    if not last.endswith("?") or re.search(r"(?:[.?!]|\bthat:?)$", preamble.rstrip(" $*\n")):
        return False
    if not (starts_task(preamble[-300:], strict=True) or asks(preamble)):
        return False
    return not any(starts_task(part) for part in (*enumeration.parts[:-1], last[:-1])) and len(last) < 200
