"""Counts and parts of a text that constraints speak of. Pure functions; linear in the text."""

from __future__ import annotations

import re

WORD = re.compile(r"\w+")
_SPOKEN = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])[\"'”’)\]]{0,3}(?:\s+(?=\S)|(?<=[。！？])(?=\S))")
_ABBREVIATION = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|sr|jr|vs|etc|e\.g|i\.e|fig|vol|dept|approx|inc|ltd)\.|\b[A-Z]\.|^\s{0,4}\d{1,3}\.)$",
    re.IGNORECASE | re.MULTILINE,
)
_LONGEST_ABBREVIATION = 12


def words(text: str) -> list[str]:
    """Runs of letters, digits and underscores, as IFEval counts words."""
    return WORD.findall(text)


def capital_words(text: str) -> int:
    """Words in capital letters; one letter is enough."""
    return sum(word.isupper() for word in _SPOKEN.findall(text))


def sentences(text: str) -> list[str]:
    """Sentences: ended by punctuation and white space, but not after an abbreviation, an initial or a list's number."""
    found, start = list[str](), 0
    for end in _SENTENCE_END.finditer(text):
        before = text[max(start, end.start() - _LONGEST_ABBREVIATION) : end.start()]
        if _ABBREVIATION.search(before) and not end[0].strip():
            continue
        found.append(text[start : end.end()].strip())
        start = end.end()
    found.append(text[start:].strip())
    return [one for one in found if WORD.search(one)]


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
