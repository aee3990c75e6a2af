"""Counts and parts of a text that constraints speak of. Pure functions; linear in the text."""

from __future__ import annotations

import re

WORD = re.compile(r"\w+")
_SPOKEN = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])[\"'”’)\]]{0,3}(?:\s+(?=\S)|(?<=[。！？])(?=\S))")
_ABBREVIATION = re.compile(
    r"(?:\b(?i:mr|mrs|ms|dr|prof|st|sr|jr|vs|e\.g|i\.e|fig|vol|dept|approx|inc|ltd)\.|^\s{0,4}\d{1,3}\.)$", re.MULTILINE
)
_OFTEN_LAST = re.compile(r"(?:\b(?i:etc|pp?)|\.[A-Za-z])\.$")
"""Abbreviations that also end sentences: before a capital they do."""
_INITIAL = re.compile(r"(?:\b[A-HJ-Z]|\.I)\.$")
_LONGEST_ABBREVIATION = 12


def words(text: str) -> list[str]:
    """Runs of letters, digits and underscores, as IFEval counts words."""
    return WORD.findall(text)


def capital_words(text: str) -> int:
    """Words in capital letters; one letter is enough."""
    return sum(word.isupper() for word in _SPOKEN.findall(text))


def sentences(text: str) -> list[str]:
    """Sentences: ended by punctuation and white space, but not after an abbreviation, an initial or a list's number.

    An initial is a capital before a capitalised word; I is one before another initial alone ("So do I. Then go.").
    """
    found, start = list[str](), 0
    for end in _SENTENCE_END.finditer(text):
        before = text[max(start, end.start() - _LONGEST_ABBREVIATION) : end.start()]
        if not end[0].strip() and _goes_on(before, text[end.end() : end.end() + 2]):
            continue
        found.append(text[start : end.end()].strip())
        start = end.end()
    found.append(text[start:].strip())
    return [one for one in found if WORD.search(one)]


def _goes_on(before: str, after: str) -> bool:
    """Whether a sentence goes on after a full stop, by the characters on either side of it and of its white space."""
    if _ABBREVIATION.search(before):
        return True
    if not after[0].isupper():
        return bool(_OFTEN_LAST.search(before))
    return bool(_INITIAL.search(before)) or (before.endswith("I.") and after[1:] == ".")


def starred_paragraphs(text: str) -> list[str]:
    """Paragraphs between dividers of three asterisks; an empty one at either end does not count."""
    parts = [part.strip() for part in re.split(r"\*\*\*", text)]
    if parts and not parts[0]:
        parts = parts[1:]
    if parts and not parts[-1]:
        parts = parts[:-1]
    return parts


def paragraphs(text: str) -> list[str]:
    """Paragraphs between empty lines, without blank ones."""
    return [part.strip() for part in text.split("\n\n") if part.strip()]


def first_word(paragraph: str) -> str:
    """The first word, without punctuation, in small letters."""
    head = (paragraph.split(maxsplit=1) or [""])[0].lstrip("\"'“‘*_#>([")
    found = re.match(r"[^.,?!'\"”’:;)\]*]*", head)
    return found[0].lower() if found else ""


def bullets(text: str) -> int:
    """Lines that begin with an asterisk (not two) or a hyphen."""
    return len(re.findall(r"^[ \t]{0,40}(?:\*(?!\*)[^\n]|-)", text, re.MULTILINE))


def highlights(text: str) -> int:
    """Parts in asterisks, *one* or **two** of them, with something inside."""
    single = re.findall(r"\*([^\n*]*)\*", text)
    double = re.findall(r"\*\*([^\n*]*)\*\*", text)
    return sum(bool(part.strip()) for part in (*single, *double))
