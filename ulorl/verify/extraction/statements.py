"""Finds where a response announces its final answer in words, and what it announces there.

Two strengths: a *statement* ("#### 42", "Answer: 42", an answer tag, "答：42") is a line made to hold the answer;
a *phrase* ("the answer is 42", "故选C") is a sentence that says so. Only the last TAIL characters are read, so time
is bounded; what is announced is text, whatever it says.
"""

from __future__ import annotations

import json
import re
from collections import deque
from dataclasses import dataclass

from ulorl.verify.extraction.sentences import first_sentence, value_of

TAIL = 20_000
"""Announcements are looked for in this many final characters."""
MAX_CONTENT = 4000
MAX_BEFORE = 60
"""Characters of its line in front of a keyword that are looked at."""
MAX_READ = 32
"""Announcements read from the end before giving up."""

_KEY = re.compile(r"[Aa]nswer|ANSWER|####|答")
_BEFORE = re.compile(
    r"(?:^[^\w\n]{0,24}(?:(?:the|my) )?|(?:^|.*[.!?)$。] )[*_]{0,3}|.*\b(?=final ))(?P<final>final )?(?:correct )?",
    re.IGNORECASE | re.DOTALL,
)
_STATEMENT = re.compile(
    r"answers?(?:[*_ ]{0,4}(?:[:：]|(?=\n))[*_ ]{0,4}|(?= ?(?:\$|\\\(|\\\[)))|答案?[*_]{0,2}[:：]", re.IGNORECASE
)
_HASH = re.compile(r"####(?!#)[ \t]{0,9}")
_TAG = re.compile(r"answer>(?P<text>(?:(?!</?answer>).){1,2000}?)</answer>", re.IGNORECASE | re.DOTALL)
_JSON_BEFORE = re.compile(r'.*"(?:final[_ ]?|correct[_ ]?)?', re.IGNORECASE | re.DOTALL)
_JSON = re.compile(
    r'answer"\s{0,9}:\s{0,9}(?P<value>"(?:[^"\\\n]|\\.){0,2000}"|-?\d[\d.]{0,400}|true\b|false\b)', re.IGNORECASE
)
_CHINESE_BEFORE = re.compile(r"[^\w\n]{0,24}(?:最终|正确)?|.*最终", re.DOTALL)
_PHRASE = re.compile(
    r"\banswers?[*_]{0,3}(?: to [^\n.:]{1,100}| of [^\n.:]{1,60})? ?(?:(?:is|are|equals|must be|should be)\b|[=:：])"
    r"|\b(?:correct|right) (?:option|choice) is\b"
    r"|答案(?:应该|应)?[*_]{0,2}[是为：:选]{1,2}|(?:故|应|所以|因此)选(?:择)?[项:：]?",
    re.IGNORECASE,
)
_HASH_VALUE = re.compile(
    r"[-+$€£(]{0,4}[ ]?(?!\d{1,3}[.)]\s)[\d.\\][^\n]*|\(?[A-Z]\)?(?=\s|$)|(?:yes|no|true|false)\b", re.IGNORECASE
)
_LEAD = re.compile(r"[*_:： \t>]{0,16}")
_NEXT_LINE = re.compile(r"[*_:： \t>]{0,16}(?:\n[ \t>]{0,16}){1,3}")
_DISPLAYS = (("\\[", "\\]"), ("$$", "$$"))


@dataclass(frozen=True)
class Announcement:
    """``start`` is the offset of the marker; ``final`` says that it calls itself final."""

    start: int
    text: str
    final: bool = False


def last_statements(text: str, position: int = 0) -> list[Announcement]:
    """The statements with content from ``position`` on, in order; at most MAX_READ, the last ones."""
    found: list[Announcement] = []
    for key in deque(_KEY.finditer(text, max(position, len(text) - TAIL)), maxlen=4 * MAX_READ):
        statement = _statement(text, key)
        if statement is not None and statement.text:
            found.append(statement)
    return found[-MAX_READ:]


def _statement(text: str, key: re.Match[str]) -> Announcement | None:
    """What the keyword ``answer``, ``####`` or 答 announces, if it stands where an answer is stated."""
    start = key.start()
    line = text.rfind("\n", max(0, start - MAX_BEFORE), start) + 1
    before = text[max(line, start - MAX_BEFORE) : start]
    if key[0] == "####":
        match = _HASH.match(text, start)
        return Announcement(start, _hash_content(text, match.end())) if match and not before.endswith("#") else None
    if before.endswith("<") and (tag := _TAG.match(text, start)):
        return Announcement(start, value_of(tag["text"].strip()))
    if (json_value := _JSON.match(text, start)) and _JSON_BEFORE.fullmatch(before):
        return Announcement(start, _json_value(json_value["value"]))
    stated = _STATEMENT.match(text, start)
    place = stated and (_CHINESE_BEFORE if key[0] == "答" else _BEFORE).fullmatch(before)
    if not stated or not place:
        return None
    return Announcement(start, announced(text, stated.end()), bool(place.groupdict().get("final")))


def last_phrase(text: str) -> Announcement | None:
    """The last phrase with any content."""
    offset = max(0, len(text) - TAIL)
    for match in reversed(list(_PHRASE.finditer(text, offset))[-MAX_READ:]):
        if content := announced(text, match.end()):
            return Announcement(match.start(), content)
    return None


def announced(text: str, position: int) -> str:
    """The value announced in front of ``position``: a display, or the sentence up to its end."""
    text = text[position : position + MAX_CONTENT]
    start = _line_start(text, 0)
    if (display := _display(text, start)) is not None:
        return display
    line = text[start:].partition("\n")[0].rstrip()
    bare = line.rstrip("*_ ")
    if bare.endswith((" is", " are", ":", "：", "=", "为", "是")) or bare in ("is", "are"):
        after = start + len(line)
        following = _NEXT_LINE.match(text, after)
        if following and (display := _display(text, following.end())) is not None:
            return display
        if following:
            line = text[following.end() :].partition("\n")[0]
    return _whole_sentence(text, line)


def _whole_sentence(window: str, line: str) -> str:
    """The value of the first sentence; nothing where the window cuts it off, because half a number is another."""
    sentence = first_sentence(line)
    cut_off = len(window) == MAX_CONTENT and len(sentence) == len(line) and window.endswith(line)
    return "" if cut_off else value_of(sentence)


def _line_start(text: str, position: int) -> int:
    lead = _NEXT_LINE.match(text, position) or _LEAD.match(text, position)
    return lead.end() if lead else position


def _display(text: str, position: int) -> str | None:
    for opening, closing in _DISPLAYS:
        if text.startswith(opening, position):
            end = text.find(closing, position + 2)
            return text[position + 2 : end].strip().rstrip(".,").strip() if end > 0 else ""
    return None


def _hash_content(text: str, position: int) -> str:
    """A value behind "####", or whatever the last line of a response says there; other lines are headings."""
    window = text[position : position + MAX_CONTENT]
    line = window.partition("\n")[0]
    is_last = not text[position + len(line) :].strip()
    return _whole_sentence(window, line) if is_last or _HASH_VALUE.match(line) else ""


def _json_value(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:  # "\frac" is no JSON escape, but this is how models write it
        return text.strip('"').strip()
    return str(value).strip() if isinstance(value, str) else text
