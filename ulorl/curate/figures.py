"""Does a problem need a figure that is not in its text?

A text that mentions a figure is most often complete without it, so the rules demand more: a name that is asked
for and defined nowhere, or a part that only a picture can show. Invariant: linear in the text.
"""

from __future__ import annotations

import re

_WORDS = (
    "diagram",
    "figure",
    "picture",
    "drawing",
    "illustrat",
    "image",
    "shown",
    "depict",
    "drawn",
    "graph",
    "seen",
    "grid",
    "provided",
)
_SHORT = 300
"""A text below so many characters has hardly room to describe its figure."""
_IMAGE = re.compile(r"!\[[^\]]{0,200}\]\(|<image>|<img\b|\\includegraphics|\[image\]", re.IGNORECASE)
_FIGURE = re.compile(
    r"\b(?:in|from|see|on) the (?:\w+ ){0,3}(?:diagram|figure|picture|drawing|illustration|image|"
    r"graph shown)\b"
    r"|\bas (?:is )?(?:shown|illustrated|pictured|depicted|drawn|seen)\b(?! that)"
    r"|\b(?:shown|pictured|depicted|drawn|illustrated) (?:below|above|here|to the right|at right|in the)\b"
    r"|\bthe (?:diagram|figure|picture|illustration)s? (?:below|above|shows?|at right|to the right)\b"
    r"|\b(?:diagram|figure|picture|illustration) (?:below|above|shows)\b",
    re.IGNORECASE,
)
_EMPTY = re.compile(
    r"(?<!\bnew )(?<!resulting )(?<!remaining )\b(?:shape|solid|pattern|design|net|logo|tile|letter|arrangement)s? "
    r"(?:is |are )?shown\b|"
    r"\b(?:squares|circles|boxes|cells|spaces|blanks|triangles|regions) (?:\w+ ){0,2}(?:in|of) the (?:\w+ )?"
    r"(?:figure|diagram|picture|drawing)\b|\bmarked (?:with|by) .{1,12}? in the (?:grid|figure|diagram)\b|"
    r"\bof the (?:given|following) (?:grid|diagram|figure|picture)\b|\bin the (?:given grid|provided example)\b",
    re.IGNORECASE,
)
_DRAWING = re.compile(r"\[asy\]|\\begin\{(?:tikzpicture|picture|array|tabular)|\|\s?-{3,}|\\hline", re.IGNORECASE)
_UNNAMED_WORDS = r"shaded|gray|grey|coloured|colored|dark(?:er)?|marked|blackened|unshaded"
_UNNAMED = re.compile(
    rf"\b(?:{_UNNAMED_WORDS}) "
    r"(?:\w+ ){0,2}(?:regions?|areas?|parts?|"
    r"portions?|triangles?|squares?|figures?|angles?|segments?|sections?|circles?|rectangles?|cells?)\b|"
    r"\bquestion mark\b|"
    r"\b(?:fraction|percent(?:age)?|proportion) [^.?!]{0,60}\b(?:is|are) (?:shaded|colou?red|gr[ae]y|black)\b",
    re.IGNORECASE,
)
_OUTLINED = (
    r"bounded by|enclosed (?:by|between)|between the|common to|(?:formed|created|made) by|(?:inside|within|outside|in) "
    r"(?:both|all|exactly|neither|none|only)\b|(?:inside|within)\b[^.?!]{1,80}\b(?:outside|formed by|not (?:in|inside|"
    r"within))\b|outside\b[^.?!]{1,80}\b(?:inside|within)\b"
)
_DESCRIBED = re.compile(
    rf"\b(?:{_UNNAMED_WORDS})\b[^.?!]{{0,60}}\b(?:{_OUTLINED})|"
    rf"\b(?:regions?|areas?|parts?|points)\b[^.?!]{{0,60}}\b(?:{_OUTLINED})[^.?!]{{0,80}}\b(?:{_UNNAMED_WORDS})\b",
    re.IGNORECASE,
)
"""A shaded part of which the text says what bounds it."""
_ASKED_NAME = re.compile(
    r"(?:value|measure|length|size|degrees?|area|number) (?:\w+ ){0,6}?(?:of|by|for) (?:angle )?"
    r"\$?(?:\\\()?\s?(?:\\angle\s?)?([a-zA-Z])\s?(?:\\\))?\$?\s?(?:is|\?|:|=|,|\.|in\b|$)",
    re.IGNORECASE,
)


def figure_evidence(text: str) -> tuple[str, bool]:
    """(why a figure is missing, empty if no rule says so; whether the rules are sure of that)."""
    lowered = text.lower()
    if not any(word in lowered for word in _WORDS) or _DRAWING.search(text):
        return "", True
    empty = _EMPTY.search(text)
    figure = _FIGURE.search(text) or empty
    if figure is None:
        return "", True
    if empty and len(text) < _SHORT:
        return f"{empty[0]!r}, which only the figure shows", False
    image = _IMAGE.search(text)
    if image:
        return f"{figure[0]!r}, and the image {image[0]!r} is not in the text", True
    asked = _ASKED_NAME.search(text)
    if asked:
        name = asked[1]
        before = text[: asked.start(1)]
        if not re.search(
            rf"(?<![A-Za-z\\]){re.escape(name)}(?![A-Za-z])\s?(?:\^|=|\+|-|[(]|\\|$|\S)",
            _without_articles(before, name),
        ):
            return f"{figure[0]!r}, and {name} is defined nowhere in the text", True
    if _UNNAMED.search(text) and len(text) < _SHORT and not _DESCRIBED.search(text):
        return f"{figure[0]!r}, and a part that only the figure shows", False
    return "", False


def _without_articles(text: str, name: str) -> str:
    """``text`` without the words in which a single letter is an article or a pronoun."""
    return re.sub(r"\b(?:a|I|A)\b(?=\s[a-z])", " ", text) if name in "aAI" else text
