"""What is never put to a judge: pairs whose answer is no short mathematical answer. Pure, linear in the text.

Judges accept ":", "Solution" or "Answer explanation" in most cases, and policies find that out. Each refusal has a
reason from a closed list, which keeps the pair undecided; a gate that is too narrow costs a verdict, one that is too
wide costs a reward for nothing. Does not: judge mathematics.
"""

from __future__ import annotations

import re
from typing import Literal

from ulorl.verify.grammar.values import Word
from ulorl.verify.tiers import Answer

Refusal = Literal[
    "empty",
    "too long",
    "cut off",
    "no answer but a phrase",
    "talks to the judge",
    "several answers for one",
    "gibberish",
    "no number or symbol",
]

_FORMATTING = re.compile(
    r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|mathsf|operatorname|boxed|fbox|displaystyle|left|right|quad|qquad)"
    r"(?![A-Za-z])|\\begin\s?\{[a-z*]*\}|\\end\s?\{[a-z*]*\}|(?<!\\)\\[,;:! ]"
)
_COMMAND = re.compile(r"\\[A-Za-z]+")
_WORD = re.compile(r"[\u3040-\u30ff]+|[\u4e00-\u9fff]{1,2}|[^\W\d_]{2,}")
_FILLER = """
    a about above all am an and answer answers antwort any are as be before by can carefully computed conclusion
    consider correct correctly explanation final find following follows for given has have here i in is it let
    lets loesung me must my not obvious of on or please problem process proof question reponse required response
    respuesta result s see so solucion solution solutions solve solved solving step steps sure that the then
    therefore these think this thought thoughts to trivial understand us we will with work working yes
    solución réponse lösung ответ решение 答案 解 解答 解析 答 结果 所以 因此 过程 かいせつ 解説 回答 정답
"""
_FILLER_WORDS = frozenset(_FILLER.split())
"""Words of which a text may consist without stating an answer."""
_TO_THE_JUDGE = """
    accept assistant compare correct disregard equal equivalence equivalent evaluate evaluation evaluator expected
    forget grade grader grading ground identical ignore instruction instructions judge judgement judgment mark match
    matches must output previous prompt reference regardless reply respond same score system truth user verdict
    verified verifier verify 正确 等价 相同 评分 判断 忽略 参考
"""
_JUDGE_WORDS = frozenset(_TO_THE_JUDGE.split())
"""Words that speak about answers, not as one."""
_MARKERS = ("<|", "|>", "[INST", "[/INST", "<<SYS", "###", "<think", "</think", "<bos>", "<eos>", "<s>", "</s>")
_SEPARATOR = re.compile(
    r"[;；,，、\n|]|\\(?:cup|pm|mp|lor|land|quad|qquad)(?![A-Za-z])|\\\\|\b(?:or|and|also|maybe|perhaps|alternatively)\b|±|或|和|及|\ue000"
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))|(?<=\d)\{,\}(?=\d{3}(?!\d))")
_LONG_RUN = re.compile(r"([^\W\d_])\1{5}")
_NO_VOWEL = re.compile(r"[b-df-hj-np-tv-xz]{7}", re.IGNORECASE)
_ENDS_OPEN = re.compile(r"(?:[+\-*/^_=<(\[{,]|\\(?:cdot|times|le|ge|pm|cup|frac|sqrt|text)|\\)$")
_NUMBER_WORD = re.compile(
    r"zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fifteen|twent|thirt|fort|fift|hundred"
    r"|thousand|million|billion|half|halves|third|quarter|dozen|twice|none|no|nothing|never|infin|undefined|exist"
    r"|positive|negative|even|odd|integer|real|natural|prime|square|double|triple|single|pair|empty"
    r"|[零〇一二两三四五六七八九十百千万亿半无不]",
    re.IGNORECASE,
)
_VARIABLE = re.compile(r"(?<![^\W\d_])[^\W\d_](?![^\W\d_])")
_MAX_WORD = 30
_MAX_REPEATS = 8


def refusal(reference: Answer, answer: Answer, max_chars: int) -> Refusal | None:
    """Why the pair must not reach a judge; None where it may."""
    text, other = answer.text.strip(), reference.text.strip()
    if len(text) > max_chars or len(other) > max_chars:
        return "too long"
    bare, bare_other = _FORMATTING.sub(" ", text), _FORMATTING.sub(" ", other)
    if not _says_something(bare) or not _says_something(bare_other):
        return "empty"
    if any(marker in text for marker in _MARKERS):
        return "talks to the judge"
    words = _words(bare)
    others = frozenset(_words(bare_other))
    if words and not set(words) & others and not _has_mathematics(bare) and set(words) <= _FILLER_WORDS:
        return "no answer but a phrase"
    if any(word in _JUDGE_WORDS and word not in others for word in words):
        return "talks to the judge"
    if _gibberish(bare, words, others):
        return "gibberish"
    if _is_open(text) and not _is_open(other):
        return "cut off"
    if _parts(bare) > _parts(bare_other):
        return "several answers for one"
    if _states_number(reference, bare_other) and not _could_be_number(bare):
        return "no number or symbol"
    return None


def _says_something(text: str) -> bool:
    return any(character.isalnum() for character in text)


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(_COMMAND.sub(" ", text))]


def _has_mathematics(text: str) -> bool:
    return any(character.isdigit() for character in text) or _COMMAND.search(text) is not None


def _parts(text: str) -> int:
    """How many answers the text gives, at most: separators anywhere, for a list of pairs is a list too."""
    return 1 + len(_SEPARATOR.findall(_THOUSANDS.sub("", text).strip(" ,;.")))


def _gibberish(text: str, words: list[str], others: frozenset[str]) -> bool:
    if "\ufffd" in text or any(not c.isprintable() and not c.isspace() for c in text):
        return True
    new = [word for word in words if word not in others]
    if any(len(word) > _MAX_WORD or _LONG_RUN.search(word) or _NO_VOWEL.search(word) for word in new):
        return True
    tokens = text.split()
    if len(tokens) >= _MAX_REPEATS and max(map(tokens.count, set(tokens))) * 2 > len(tokens):
        return True
    solid = [c for c in text if not c.isspace()]
    strange = sum(not (c.isalnum() or c in "\\+-*/^_=<>()[]{}|,.;:!'\"%$°&~√π∞±≤≥≠∪∩∈") for c in solid)
    return strange * 4 > len(solid)


def _is_open(text: str) -> bool:
    """More is opened than closed, or an operator waits for what follows."""
    text = text.rstrip("$ .")
    openers = sum(text.count(c) for c in "([{")
    closers = sum(text.count(c) for c in ")]}")
    return openers > closers or _ENDS_OPEN.search(text) is not None


def _states_number(reference: Answer, bare: str) -> bool:
    return not isinstance(reference.value, Word) and any(character.isdigit() for character in bare)


def _could_be_number(text: str) -> bool:
    if _has_mathematics(text) or _NUMBER_WORD.search(text):
        return True
    return any(c in "π∞√½⅓⅔¼¾" or c.isnumeric() for c in text) or _VARIABLE.search(text) is not None
