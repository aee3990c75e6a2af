r"""Find the lists in a problem: ``(1) .. (2) ..``, ``A) .. B) ..``, ``(I)``, ``①``, ``**p7.**``, ``\item``.

Invariants: case is kept (Roman numerals and options differ by it); a list has consecutive labels from the
first on, of one style; every regular expression is linear and every text is scanned once a pattern. Only the
last ``_MAX_CHARS`` characters are looked at.

Does not decide what a list means (``kinds``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_MAX_CHARS = 20_000
_MAX_MARKERS = 500
_ROMAN = {"i": 1, "ii": 2, "iii": 3, "iv": 4, "v": 5, "vi": 6, "vii": 7, "viii": 8, "ix": 9, "x": 10}
_SMALL_ROMAN_SIGNS = "\u2170\u2171\u2172\u2173\u2174\u2175\u2176\u2177\u2178\u2179"
_ROMAN_SIGNS = "\u2160\u2161\u2162\u2163\u2164\u2165\u2166\u2167\u2168\u2169"
_CIRCLED = "\u2460\u2461\u2462\u2463\u2464\u2465\u2466\u2467\u2468\u2469"
_TOKEN = rf"\d{{1,2}}|[ivx]{{1,4}}|[IVX]{{1,4}}|[{_ROMAN_SIGNS}{_SMALL_ROMAN_SIGNS}]|[a-hA-H]"
_FONT = r"\\(?:textbf|text|mathrm|mathbf|bf|rm|textrm|mbox)"
_BEFORE = rf"(?:(?:\*\*|\$|\\\\\(|\\\(|{_FONT} ?\{{|\{{{_FONT} |\{{) ?){{0,3}}"
_MARKER = re.compile(
    rf"(?:(?<![A-Za-z0-9_^\\])|(?<=quad)){_BEFORE}(?:"
    rf"[(\uff08]\s?(?P<paren>{_TOKEN})\s?[)\uff09]"
    rf"|(?P<half>{_TOKEN})\s?[)\uff09]"
    rf"|(?P<dot>{_TOKEN})[.\uff0e\u3001:](?=[\s}}$*\\])"
    rf"|(?P<circled>[{_CIRCLED}])"
    r"|\*{0,2}(?P<glued>[pP]\d{1,2})\.?\*{0,2}(?=[.\s])"
    rf"|\\item\s?\[[^\]\n]{{0,8}}?(?P<item>{_TOKEN})[^\]\n]{{0,3}}\]"
    r"|\\item(?P<plain_item>)(?!\w)"
    r"|(?P<bare>[A-E])(?=\*{0,2}[ \t]{1,4}[^\s&])"
    r")(?:\}|\*{1,2}|\$|\\\\\)|\\\))?"
)
_SCATTERED = re.compile(r"\\{1,2}\( ?\( ?\\{1,2}\) ?([\dA-Za-z\u2160-\u2179]{1,4}) ?\\{1,2}\( ?\) ?\\{1,2}\)")
"""A label whose brackets are each set as mathematics: \\\\((\\\\)I\\\\()\\\\)."""
_REFERRING = re.compile(
    r"(?:\b(?:in|of|from|parts?|conditions?|equations?|cases?|by|and|to|using|formulas?|questions?|"
    r"statements?|with|on"
    r"|fig|figure|steps?|or|propert(?:y|ies)|between|options?|choices?|type)\.?\s{0,3}|[A-Za-z0-9_)\]]|"
    r"\\right)$",
    re.IGNORECASE,
)
_SPACING = re.compile(r"\\(?:q?quad|hspace\{[^{}]{0,12}\}|\\|[,;: ])$")
_STOP = ".;:?!\uff0c\u3002\uff1b\uff1a\uff1f,"


@dataclass(frozen=True)
class Enumeration:
    """One list: ``preamble`` comes before it, ``parts[i]`` follows ``labels[i]``, the last to the end."""

    family: str
    """decimal, roman, ROMAN, alpha, ALPHA, circled, glued or item."""
    start: int
    labels: tuple[str, ...]
    parts: tuple[str, ...]
    preamble: str


@dataclass(frozen=True)
class _Marker:
    family: str
    bracket: str
    ordinal: int
    label: str
    start: int
    end: int


def find_enumerations(text: str) -> list[Enumeration]:
    """Every list of two labels or more, in order of their starts."""
    text = _SCATTERED.sub(r"(\1)", text[-_MAX_CHARS:])
    by_style: dict[tuple[str, str], list[_Marker]] = {}
    for marker in _markers(text):
        by_style.setdefault((marker.family, marker.bracket), []).append(marker)
    found = [_enumeration(text, run) for markers in by_style.values() for run in _runs(markers) if len(run) > 1]
    return sorted(found, key=lambda enumeration: enumeration.start)


def _markers(text: str) -> Iterator[_Marker]:
    items = 0
    for count, match in enumerate(_MARKER.finditer(text)):
        if count >= _MAX_MARKERS:
            return
        bracket = match.lastgroup or ""
        label = match[bracket]
        if bracket == "plain_item":
            items += 1
            yield _Marker("item", bracket, items, str(items), match.start(), match.end())
            continue
        start = match.start()
        if match[0].startswith("$ ") and text.count("$", 0, start) % 2:
            start += 2  # the sign closes what stands before the label
        at_line_start, before = _context(text, start)
        for family, ordinal in _readings(label):
            if _stands_free(family, bracket, at_line_start, before):
                yield _Marker(family, bracket, ordinal, label, start, match.end())


def _context(text: str, start: int) -> tuple[bool, str]:
    """(only white space, bullets or quotes since the line's start, the 30 characters before)."""
    before = text[max(0, start - 30) : start]
    line = before.rsplit("\n", maxsplit=1)[-1]
    at_line_start = not line.strip(" \t-*>#") and ("\n" in before or start <= 30)
    return at_line_start, before


def _stands_free(family: str, bracket: str, at_line_start: bool, before: str) -> bool:
    if at_line_start or bracket in ("circled", "glued", "item"):
        return True
    stripped = before.rstrip()
    after_stop = stripped[-1:] in _STOP if stripped else True
    if bracket == "bare":
        return False
    if bracket == "half" and before.count("(") > before.count(")"):
        return False
    if bracket == "paren":
        return after_stop or bool(_SPACING.search(before)) or not _REFERRING.search(before)
    if family == "ALPHA":
        return before[-1:].isspace() or before[-1:] in "$;,." or bool(_SPACING.search(before))
    return after_stop and stripped[-1:] != "," and (before[-1:].isspace() or before[-1:] in ";:?!")


def _readings(label: str) -> list[tuple[str, int]]:
    if label[0] in _CIRCLED:
        return [("circled", _CIRCLED.index(label[0]) + 1)]
    if label[0] in _ROMAN_SIGNS:
        return [("ROMAN", _ROMAN_SIGNS.index(label[0]) + 1)]
    if label[0] in _SMALL_ROMAN_SIGNS:
        return [("roman", _SMALL_ROMAN_SIGNS.index(label[0]) + 1)]
    if label[0] in "pP":
        return [("glued", int(label[1:]))]
    if label.isdigit():
        return [("decimal", int(label))]
    if label.lower() in _ROMAN:
        return [("ROMAN" if label.isupper() else "roman", _ROMAN[label.lower()])]
    if len(label) == 1:
        return [("ALPHA" if label.isupper() else "alpha", ord(label.lower()) - ord("a") + 1)]
    return []


def _runs(markers: list[_Marker]) -> Iterator[list[_Marker]]:
    run: list[_Marker] = []
    for marker in markers:
        if run and marker.ordinal == run[-1].ordinal + 1:
            run.append(marker)
        elif marker.ordinal == 1 or (marker.family == "glued" and not run):
            if run:
                yield run
            run = [marker]
    if run:
        yield run


def _enumeration(text: str, run: list[_Marker]) -> Enumeration:
    ends = [marker.start for marker in run[1:]] + [len(text)]
    parts = tuple(text[marker.end : end].strip() for marker, end in zip(run, ends, strict=True))
    return Enumeration(
        run[0].family,
        run[0].start,
        tuple(marker.label for marker in run),
        parts,
        text[: run[0].start].strip(),
    )
