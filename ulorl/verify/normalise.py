"""Rewrites the notation of an answer without changing what it says.

Lossless: spaces between tokens, matrix rows (a double backslash), signs and text are kept, so "3 1/2" never
becomes 31/2. Linear time; nothing is evaluated.
"""

from __future__ import annotations

import re

MONEY = "\uff04"
"""Stands for a currency sign that is not a mathematics delimiter (a full-width dollar)."""

ROW = "\ue000"
"""Stands for the double backslash that separates rows, so that no later step takes half of it."""

_COMMANDS = {
    "×": "times", "·": "cdot", "⋅": "cdot", "÷": "div", "π": "pi", "√": "sqrt", "∞": "infty",
    "°": "degree", "º": "degree", "≤": "le", "≥": "ge", "≠": "ne", "≈": "approx", "±": "pm", "∪": "cup",
    "∩": "cap", "∈": "in", "∅": "emptyset", "θ": "theta", "α": "alpha", "β": "beta", "λ": "lambda",
    "⟨": "langle", "⟩": "rangle",
}  # fmt: skip
_FRACTIONS = {"½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅛": (1, 8)}
_CHARACTERS = str.maketrans(
    {
        **{character: f"\\{name} " for character, name in _COMMANDS.items()},
        **{character: rf"\frac{{{top}}}{{{bottom}}}" for character, (top, bottom) in _FRACTIONS.items()},
        **{chr(ord(character) + 0xFEE0): character for character in "0123456789+-=()[]{},.:;%/"},
        **dict.fromkeys("−–﹣", "-"),
        **dict.fromkeys("⁄∕", "/"),
        **dict.fromkeys("’′", "'"),
        **dict.fromkeys("\u00a0\u2009\u202f\u3000", " "),
        **dict.fromkeys("\u200b\ufeff", ""),
        "∗": "*",
        "、": ",",
        "ℝ": r"\mathbb{R}",
        "ℤ": r"\mathbb{Z}",
    }
)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻ⁿ", "0123456789-n")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")

_STEPS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\\(?:left|right|(?:big|Big|bigg|Bigg)[lr]?)(?![A-Za-z])\.?", ""),
        (r"\\[dtc]frac(?![A-Za-z])", r"\\frac"),
        (r"\\(?:displaystyle|textstyle|scriptstyle|limits|nolimits)(?![A-Za-z])", " "),
        (r"(?<=\d)(?:,\\!\s?|\{,\}(?:\\!)?|\\,\{?,?\}?)(?=\d{3}(?!\d))", ""),
        (r"\\!", ""),
        (r"\\(?:[,;:> ]|quad(?![A-Za-z])|qquad(?![A-Za-z]))", " "),
        (r"~", " "),
        (r"\\(?:lbrace|\{)(?![A-Za-z])", r"\\{"),
        (r"\\(?:rbrace|\})(?![A-Za-z])", r"\\}"),
        (r"\\(?:leq|leqslant)(?![A-Za-z])", r"\\le"),
        (r"\\(?:geq|geqslant)(?![A-Za-z])", r"\\ge"),
        (r"\\neq(?![A-Za-z])", r"\\ne"),
        (r"\\(?:lt)(?![A-Za-z])", "<"),
        (r"\\(?:gt)(?![A-Za-z])", ">"),
        (r"\\(?:dots|ldots|cdots)(?![A-Za-z])|\.\.\.|…", r"\\dots "),
        (r"\\(?:varnothing|emptyset)(?![A-Za-z])", r"\\emptyset"),
        (r"\^\{?\s?\\circ\s?\}?", r"\\degree "),
        (r"\\%", "%"),
        (r"\s+", " "),
    )
)
_DOUBLE_ESCAPE = re.compile(r"\\\\(?=[A-Za-z])")
_SUPERSCRIPT = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁻ⁿ]+")
_SUBSCRIPT = re.compile(r"[₀₁₂₃₄₅₆₇₈₉]+")
_OUTER_BOX = re.compile(r"\\(?:boxed|fbox)\s?\{")
_WRAPPERS = (("**", "**"), ("`", "`"), ("\\(", "\\)"), ("\\[", "\\]"), ("$$", "$$"), ("$", "$"))


def normalise(text: str) -> str:
    """Canonical notation of an answer: one spelling a symbol, no outer delimiters, no trailing period."""
    text = _unwrap(text.strip())
    text = _SUPERSCRIPT.sub(lambda m: "^{" + m[0].translate(_SUPERSCRIPTS) + "}", text)
    text = _SUBSCRIPT.sub(lambda m: "_{" + m[0].translate(_SUBSCRIPTS) + "}", text)
    text = text.translate(_CHARACTERS)
    if "\\\\" in text and "\\begin" not in text:
        text = _DOUBLE_ESCAPE.sub(r"\\", text)
    text = text.replace("\\\\", ROW)
    text = _dollars(text)
    for pattern, replacement in _STEPS:
        text = pattern.sub(replacement, text)
    return _unwrap(text.strip())


def _unwrap(text: str) -> str:
    """Removes delimiters around the whole text, and a final period."""
    for _ in range(8):
        before = text
        text = text.removesuffix("\\\\").rstrip()
        if text.endswith((".", "。")) and not text.endswith(("\\.", "..")):
            text = text[:-1].rstrip()
        for opening, closing in _WRAPPERS:
            inner = text[len(opening) : len(text) - len(closing)]
            if (
                len(text) > len(opening) + len(closing)
                and text.startswith(opening)
                and text.endswith(closing)
                and opening not in inner
                and closing not in inner
            ):
                text = inner.strip()
        box = _OUTER_BOX.match(text)
        if box and text.endswith("}") and _closes_at_end(text, box.end() - 1):
            text = text[box.end() : -1].strip()
        if text == before:
            break
    return text


def _closes_at_end(text: str, opening: int) -> bool:
    depth = 0
    for position in range(opening, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return position == len(text) - 1
    return False


def _dollars(text: str) -> str:
    """Tells currency signs from mathematics delimiters and removes the latter."""
    text = text.replace("\\$", MONEY)
    if text.count("$") % 2:
        text = re.sub(r"\$(?=\s?[\d.])", MONEY, text, count=1)
    return text.replace("\\(", " ").replace("\\)", " ").replace("$", " ")
