r"""Texts with LaTeX in them as markup: formulas become MathML, everything else is shown as it is.

Invariants:
- what stands in the page is rebuilt element by element from closed lists of MathML elements and attributes with
  our own escaping, because the converter passes ``\text{<b>}``, ``\href`` and ``\style`` on;
- formulas that define macros, nest deeply or are very long are shown as their source, as is whatever the
  converter fails on, so that no text can make the page slow or break it;
- the work is linear in the length of the text.

The converter is latex2mathml (extra ``report``); without it every formula is shown as its source.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from ulorl.report.markup import Markup, element, escape, join

LONGEST = 1500
"""Characters of the longest formula that is converted."""
DEEPEST = 24
"""Braces and scripts inside each other, above which a formula is not converted."""

_OPENERS = re.compile(r"\$\$|\$|\\\(|\\\[|\\begin\{(align\*?|equation\*?|gather\*?|multline\*?)\}|\\boxed(?=\{)")
_CLOSERS = {"$$": "$$", "\\(": "\\)", "\\[": "\\]"}
_DEFINES = re.compile(
    r"\\(?:def|gdef|edef|xdef|let|newcommand|renewcommand|providecommand|DeclareMathOperator|newenvironment"
    r"|href|url|style|class|cssId|unicode|require|includegraphics)(?![A-Za-z])"
)
_PAIRED = re.compile(r"\\(left|right|begin|end)(?![A-Za-z])")
_LOOKS_LIKE_MATH = re.compile(r"\\[A-Za-z]|[\^_]")
_ELEMENTS = frozenset(
    {
        "math",
        "mrow",
        "mi",
        "mn",
        "mo",
        "ms",
        "mtext",
        "mspace",
        "mfrac",
        "msqrt",
        "mroot",
        "msub",
        "msup",
        "msubsup",
        "munder",
        "mover",
        "munderover",
        "mtable",
        "mtr",
        "mtd",
        "mstyle",
        "mpadded",
        "mphantom",
        "menclose",
        "mmultiscripts",
        "mprescripts",
        "none",
        "merror",
    }
)
_ATTRIBUTES = {
    "accent": "true|false",
    "accentunder": "true|false",
    "columnalign": r"(?:left|center|right)(?: (?:left|center|right)){0,30}",
    "display": "inline|block",
    "displaystyle": "true|false",
    "fence": "true|false",
    "form": "prefix|infix|postfix",
    "largeop": "true|false",
    "linethickness": r"\d{1,2}(?:\.\d{1,3})?(?:px|em|pt)?",
    "mathvariant": "normal|bold|italic|bold-italic|monospace|script|fraktur|double-struck|sans-serif",
    "movablelimits": "true|false",
    "scriptlevel": r"[+-]?\d",
    "stretchy": "true|false",
    "width": r"-?\d{1,2}(?:\.\d{1,3})?(?:em|ex|pt|px|mu)",
}
_ALLOWED = {name: re.compile(values) for name, values in _ATTRIBUTES.items()}


def available() -> bool:
    """Whether formulas can be converted."""
    return _converter() is not None


def rich_text(text: str) -> Markup:
    """A text with LaTeX between dollars or in \\( \\), \\[ \\] and display environments, or in boxes."""
    return join(*_parts(text))


def formula(latex: str, display: bool = False) -> Markup:
    """One formula, given without delimiters; its source where it cannot be converted."""
    converted = _mathml(latex.strip(), display)
    return element("code", latex) if converted is None else converted


def short_answer(text: str) -> Markup:
    """A reference or an extracted answer: rendered where it looks like LaTeX, always with its exact characters."""
    source = element("code", text)
    bare = text.strip().strip("$")
    if not _LOOKS_LIKE_MATH.search(bare):
        return source
    converted = _mathml(bare, False)
    return source if converted is None else join(converted, " ", element("span", source, class_="source"))


def _parts(text: str) -> Iterator[Markup]:
    start = place = 0
    while opener := _OPENERS.search(text, place):
        found = _formula_at(text, opener)
        if found is None:
            place = opener.end()
            continue
        latex, end = found
        yield escape(text[start : opener.start()])
        display = opener.group() not in ("$", "\\(", "\\boxed")
        yield formula(latex, display)
        # A displayed formula ends its line itself.
        start = place = end + (display and text[end : end + 1] == "\n")
    yield escape(text[start:])


def _formula_at(text: str, opener: re.Match[str]) -> tuple[str, int] | None:
    """The formula that begins here and where it ends, or None where the characters mean something else."""
    mark, begin = opener.group(), opener.end()
    if opener.start() and text[opener.start() - 1] == "\\":
        return None
    if mark == "\\boxed":
        end = _brace_end(text, begin)
        return None if end is None else (text[opener.start() : end], end)
    closer = f"\\end{{{opener.group(1)}}}" if opener.group(1) else _CLOSERS.get(mark, "$")
    end = text.find(closer, begin, begin + LONGEST + len(closer))
    if end <= begin:
        return None
    latex = text[begin:end]
    after = end + len(closer)
    if mark == "$":
        # As Pandoc reads it: "costs $5 and $6" is no formula.
        money = latex[0].isspace() or latex[-1].isspace() or text[after : after + 1].isdigit()
        if money or "\n\n" in latex:
            return None
    if opener.group(1):
        latex = text[opener.start() : after]
    return latex, after


def _brace_end(text: str, begin: int) -> int | None:
    """Where the group that begins at ``begin`` ends, within the longest formula."""
    depth = 0
    for place in range(begin, min(len(text), begin + LONGEST)):
        depth += (text[place] == "{") - (text[place] == "}")
        if depth == 0:
            return place + 1
    return None


def _unfit(latex: str) -> bool:
    """Whether braces do not pair, of which the converter loses what follows, or too much lies in each other."""
    if _DEFINES.search(latex):
        return True
    depth = deepest = scripts = 0
    bare = latex.replace("\\\\", "").replace("\\{", "").replace("\\}", "")
    for letter in bare:
        depth += (letter == "{") - (letter == "}")
        deepest = max(deepest, depth)
        scripts += letter in "^_"
        if depth < 0:
            return True
    found = Counter(_PAIRED.findall(bare))
    pairs = found["left"] == found["right"] and found["begin"] == found["end"]
    return depth != 0 or not pairs or max(deepest, found["begin"], found["left"]) > DEEPEST or scripts > 200


@lru_cache(maxsize=4096)
def _mathml(latex: str, display: bool) -> Markup | None:
    convert = _converter()
    if convert is None or not latex or len(latex) > LONGEST or _unfit(latex):
        return None
    try:
        return _rebuilt(convert(display="block" if display else "inline").convert_to_element(latex))
    except Exception:
        # The converter raises its own errors, but IndexError, RecursionError and others as well, on broken LaTeX.
        return None


def _rebuilt(node: Any, depth: int = 0) -> Markup:
    """An element of the converter's tree as markup of ours; what is on no list is dropped, its contents kept."""
    if depth > 200:
        raise ValueError("nests too deeply")
    inner = [escape(html.unescape(node.text))] if node.text else []
    for child in node:
        inner.append(_rebuilt(child, depth + 1))
        if child.tail:
            inner.append(escape(html.unescape(child.tail)))
    if node.tag not in _ELEMENTS:
        return join(*inner)
    attributes = {
        name: value for name, value in node.attrib.items() if name in _ALLOWED and _ALLOWED[name].fullmatch(value)
    }
    if node.tag == "menclose":
        # MathML Core has no menclose: browsers draw nothing round it.
        return element("mrow", *inner, class_="boxed" if "box" in node.get("notation", "") else None)
    return element(node.tag, *inner, **attributes)


@lru_cache(maxsize=1)
def _converter() -> Any:
    try:
        from latex2mathml.converter import Converter
    except ImportError:
        return None
    return Converter
