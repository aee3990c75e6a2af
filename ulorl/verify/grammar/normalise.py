"""Rewrites the notation of an answer without changing what it says.

Lossless: spaces between tokens, matrix rows (a double backslash), signs and text are kept, so "3 1/2" never
becomes 31/2. Linear time; nothing is evaluated.
"""

from __future__ import annotations

import html
import re

from ulorl.verify.grammar.characters import CHARACTERS, CIRCLED, MONEY, SUBSCRIPTS, SUPERSCRIPTS

ROW = "\ue000"
"""Stands for the double backslash that separates rows, so that no later step takes half of it."""
MAX_PERIOD = 30
"""Longest block of repeating digits that is recognised before dots."""

Steps = tuple[tuple[str, re.Pattern[str], str], ...]
"""A step is tried only where its first item occurs in the text: looking for it is far cheaper than a search."""


def _steps(*steps: tuple[str, str, str]) -> Steps:
    return tuple((key, re.compile(pattern), replacement) for key, pattern, replacement in steps)


_TEXT = r"\\(?:text|textbf|textit|textrm|textsf|textup|textnormal|mathrm|mathbf|mathit|mathsf|mbox|hbox|bf|rm)"
_CIRCLE = rf"(?:\\circ|{_TEXT}\s?\{{\s?o\s?\}})(?![A-Za-z])"
_FUNCTIONS = "arcsin|arccos|arctan|arccot|sinh|cosh|tanh|sin|cos|tan|cot|csc|log|ln|exp"
_LATEX = _steps(
    ("\\left", r"\\left(?![A-Za-z])\.?", ""),
    ("\\right", r"\\right(?![A-Za-z])\.?", ""),
    ("\\b", r"\\(?:big|bigg)[lr]?(?![A-Za-z])\.?", ""),
    ("\\B", r"\\(?:Big|Bigg)[lr]?(?![A-Za-z])\.?", ""),
    ("frac", r"\\[dtc]frac(?![A-Za-z])", r"\\frac"),
    ("style", r"\\(?:display|text|script)style(?![A-Za-z])", " "),
    ("limits", r"\\(?:no)?limits(?![A-Za-z])", " "),
    ("b", r"\\(?:boldsymbol|bm|pmb)(?![A-Za-z])", " "),
    ("color", r"\\(?:text)?color\s?\{[A-Za-z]{1,20}\}", " "),
    (",", r"(?<=\d)(?:,\\!\s?|\{,\}(?:\\!)?|\\,\{?,?\}?)(?=\d{3}(?!\d))", ""),
    ("\\!", r"\\!", ""),
    ("\\", r"\\(?:[,;:> ]|q?quad|thinspace(?![A-Za-z])|hspace\*?\{[^{}]{0,12}\})", " "),
    ("\\lbrace", r"\\lbrace(?![A-Za-z])", r"\\{"),
    ("\\rbrace", r"\\rbrace(?![A-Za-z])", r"\\}"),
    ("\\leq", r"\\leq(?:slant|q)?(?![A-Za-z])", r"\\le"),
    ("\\geq", r"\\geq(?:slant|q)?(?![A-Za-z])", r"\\ge"),
    ("\\neq", r"\\neq(?![A-Za-z])", r"\\ne"),
    ("\\lt", r"\\lt(?![A-Za-z])", "<"),
    ("\\gt", r"\\gt(?![A-Za-z])", ">"),
    ("dots", r"\\[lc]?dots[cb]?(?![A-Za-z])", r"\\dots "),
    ("nothing", r"\\varnothing(?![A-Za-z])", r"\\emptyset"),
    ("\\O", r"\\O(?![A-Za-z])", r"\\emptyset"),
    ("dollar", r"\\(?:text)?dollar(?![A-Za-z])\s?", MONEY),
    ("\\pounds", r"\\pounds(?![A-Za-z])\s?", "£"),
    ("sterling", r"\\textsterling(?![A-Za-z])\s?", "£"),
    ("euro", r"\\(?:text)?euro(?![A-Za-z])\s?", "€"),
    ("\\", r"\\(?:textdegree|degrees|celsius)(?![A-Za-z])", r"\\degree "),
    ("^", rf"\^(?:\{{\s?{_CIRCLE}\s?\}}|\s?{_CIRCLE})", r"\\degree "),
    ("\\%", r"\\%", "%"),
    ("\\SI", r"\\SI\s?\{([^{}]{1,60})\}\s?\{([^{}\\]{1,40})\}", r"\1\\text{ \2}"),
    ("{", rf"\\(?:operatorname\*?|mathrm|text)\s?\{{\s?({_FUNCTIONS})\s?\}}", r"\\\1 "),
    ("operatorname", r"\\operatorname\*?\s?\{\s?(max|min|gcd|lcm)\s?\}", r"\\\1 "),
    ("{\\", r"\{\\(?:rm|bf|it|sf|tt)(?![A-Za-z])\s?([^{}\\]*)\}", r"\\text{\1}"),
    ("{", rf"(?<![\d.]){_TEXT}\s?\{{\s?(-?\d[\d.,]*)\s?\}}(?![\d.])", r"\1"),
    ("}_", rf"{_TEXT}\s?\{{([0-9A-F]+)\}}(?=_)", r"\1"),
    ("^{", rf"({_TEXT}\s?\{{[^{{}}^]{{0,40}})\^\{{(-?\d)\}}", r"\1^\2"),
    (
        "frac",
        rf"\\frac\s?\{{{_TEXT}\s?\{{([^{{}}\d]{{1,12}})\}}\}}\s?\{{{_TEXT}\s?\{{([^{{}}\d]{{1,12}})\}}\}}",
        r"\\text{ \1/\2}",
    ),
    ("\\over", r"\{([^{}]*)\\over(?![A-Za-z])([^{}]*)\}", r"\\frac{\1}{\2}"),
    ("\\AA", r"\\AA(?![A-Za-z])", "Å"),
    ("mathring", r"\\mathring\s?\{\s?(?:\\?(?:text|mathrm)\s?\{\s?)?A\s?\}?\s?\}", "Å"),
    ("mathcal", r"\\mathcal\s?(?:\{\s?O\s?\}|O)(?=\s?\()", "O"),
    ("\\", r"(?<![\w}\\])\\(?=\d)", ""),
    ("\\bar", r"\\bar\s?\{(\d{1,30})\}", r"\\overline{\1}"),
    ("\\dot", r"\\dot\s?\{(\d{1,30})\}", r"\\overline{\1}"),
    ("overline ", r"(?<=[.\d])\\overline\s(?=\{)", r"\\overline"),
)
_HTML = _steps(
    ("<s", r"<sup>([^<]{0,60})</sup>", r"^{\1}"),
    ("<s", r"<sub>([^<]{0,60})</sub>", r"_{\1}"),
    (">", r"<br ?/?>|</?(?:b|i|em|strong|p|span|math)>", " "),
)
_PLAIN = _steps(
    ("**", r"(?<!\S)\*\*(?=\S)([^*]{1,200})(?<=\S)\*\*(?![^\s.,;:)])", r"\1"),
    ("~", r"~", " "),
    ("...", r"\.\.\.", r"\\dots "),
    ("^", r"(?<=\d) ?\^ ?\{? ?(?:\\(?:text|mathrm|textrm) ?\{ ?)?(st|nd|rd|th)(?: ?\}){1,2}", r"\1"),
    ("10", r"(?<=\d)\s?[xX*]\s?(?=10\s?\^)", r"\\times "),
    ("_", r"(?<=\d)_(?=\d{3}(?!\d))", ""),
    ("或", r"(?<=[0-9A-Za-z)}\]])\s?或(?=[\s0-9A-Za-z({\[\\+-])", r" \\text{ or } "),
    ("和", r"(?<=[0-9A-Za-z)}\]])\s?和(?=[\s0-9A-Za-z({\[\\+-])", r" \\text{ and } "),
    ("且", r"(?<=[0-9A-Za-z)}\]])\s?且(?=[\s0-9A-Za-z({\[\\+-])", r" \\text{ and } "),
    ("¢", r"¢", r"\\text{ cents}"),
    ("Rs.", r"Rs\. ?(?=\d)", "Rs "),
    ("{,}", r"(?<=\d)\{,\}(?=\d{3}(?!\d))", ""),
)
_CHINESE_END = re.compile(r"(?<=[)}\]0-9])\s?([\u4e00-\u9fff]{1,6}(?:/[\u4e00-\u9fff]{1,4})?)$")
_LEADING_RELATION = re.compile(r"(?:=|\\(?:approx|sim)(?![A-Za-z])) ?")
_TIMES_POWER = re.compile(r"(?<=\d)\$(10 ?\^ ?(?:\{ ?-?\d{1,4} ?\}|-?\d{1,4}))\$")
"""``7.97$10^3$``, whose product sign was lost between text and mathematics."""
_LOST_ESCAPE = re.compile(
    r"\x0c(?:rac|box)(?=[{\d ])|\x08(?:inom|egin|oxed|ar|eta)(?![A-Za-z])|\t(?:imes|heta|frac|riangle)(?![A-Za-z])"
    r"|\t(?:ext|extbf)(?=\{)|\r(?:ight|angle|floor|ceil)(?![A-Za-z])"
)
"""Commands whose backslash a program took for an escape: a form feed and "rac" is \\frac."""
_ESCAPES = {"\x0c": "f", "\x08": "b", "\t": "t", "\r": "r"}
_ROW_WITH_SPACE = re.compile(r"\\\\\s?\[\s?-?[\d.]{1,6}\s?(?:pt|mm|cm|em|ex|in|px)\s?\]")
"""The end of a row of a matrix that asks for more room."""
_DOUBLE_ESCAPE = re.compile(r"\\\\(?=[A-Za-z])")
_SUPERSCRIPT = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ]+")
_SUBSCRIPT = re.compile(r"[₀₁₂₃₄₅₆₇₈₉]+")
_CIRCLES = re.compile(r"[①-⑳](?:\s?[,、]?\s?[①-⑳])*")
_REPEATING = re.compile(r"(?<![\d.])(\d{1,40})\.(\d{3,60})\s?\\dots ?(?=$|[\s,;)}\]])")
_BRACKETED_PERIOD = re.compile(r"(-?\d{1,40}\.\d{0,40})\((\d{1,30})\)")
_APOSTROPHES = re.compile(r"-?\d{1,3}(?:'\d{3})+(?:\.\d+)?")
_BASE_NAMES = {
    "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
    "ten": "10", "twelve": "12", "sixteen": "16", "binary": "2", "octal": "8", "decimal": "10", "hexadecimal": "16",
}  # fmt: skip
_BASE = re.compile(
    r"\(?([0-9][0-9A-Fa-f]{0,400}(?:\.[0-9A-Fa-f]{1,400}(?=\)? ?_))?|[A-Fa-f]{2,400})\)?"
    r"(?: ?_ ?\{? ?\(?(?:\\text ?\{ ?)?(?:base )?([a-z]+|\d{1,2})(?: ?\})?\)? ?\}?|,? \(?(?:in )?base[- ](\w{1,8})\)?"
    r"|,? \(?(?:in )?(binary|octal|hexadecimal|decimal)\)?)"
)
_SPACED_THOUSANDS = re.compile(r"^\d{1,3}(?: \d{3}){1,10}(?=(?:\.\d{1,40})? ?(?:\\text|\\mathrm|%|[A-Za-z]{2}))")
_PREFIXED = re.compile(r"0([bx])((?<=b)[01]{1,400}|(?<=x)[0-9A-Fa-f]{1,400})")
_OUTER_BOX = re.compile(r"\\(?:boxed|fbox|framebox|mathbf|boldsymbol|bm|displaystyle)\s?\{")
_OUTER_TEXT = re.compile(r"\\(?:text|textbf|textrm|textit|mbox|mathrm) ?\{(?=[^{}]*\d)")
_WRAPPERS = (("**", "**"), ("`", "`"), ("\\(", "\\)"), ("\\[", "\\]"), ("$$", "$$"), ("$", "$"), ("*", "*"))


def normalise(text: str) -> str:
    """Canonical notation of an answer: one spelling a symbol, no outer delimiters, no trailing period."""
    text = text.strip() if text.isprintable() else _LOST_ESCAPE.sub(_escaped, text).strip()
    if text.isdecimal() and text.isascii():
        return text
    text = _unwrap(text)
    if not text.isascii():
        text = _SUPERSCRIPT.sub(_superscript, text)
        text = _SUBSCRIPT.sub(lambda m: "_{" + m[0].translate(SUBSCRIPTS) + "}", text)
        text = _CIRCLES.sub(lambda m: ", ".join(CIRCLED[c] for c in m[0] if c in CIRCLED), text)
        text = text.translate(CHARACTERS)
    if "&" in text and "\\begin" not in text:
        text = html.unescape(text).translate(CHARACTERS)
    if "<" in text:
        text = _apply(_HTML, text)
    if "\\\\" in text and "\\begin" not in text:
        text = _DOUBLE_ESCAPE.sub(r"\\", text)
    text = _ROW_WITH_SPACE.sub(r"\\\\ ", text)
    text = text.replace("\\\\", ROW)
    text = _dollars(text)
    if "\\" in text:
        text = _apply(_LATEX, text)
    text = " ".join(_apply(_PLAIN, text).split())
    if text.startswith(("\\approx", "\\sim", "=")):
        text = _LEADING_RELATION.sub("", text, count=1)
    if not text.isascii():
        text = _CHINESE_END.sub(r"\\text{ \1}", text)
    if "." in text or "'" in text:
        text = _numerals(text)
    if text[:1].isdigit() and " " in text:
        text = _SPACED_THOUSANDS.sub(lambda m: m[0].replace(" ", ""), text, count=1)
    if len(text) < 450:
        if written := _BASE.fullmatch(text):
            text = _based(written)
        elif written := _PREFIXED.fullmatch(text):
            text = f"{written[2].upper()}_{{{2 if written[1] == 'b' else 16}}}"
    return _unwrap(text.strip())


def _apply(steps: Steps, text: str) -> str:
    for key, pattern, replacement in steps:
        if key in text:
            text = pattern.sub(replacement, text)
    return text


def _escaped(match: re.Match[str]) -> str:
    return "\\" + _ESCAPES[match[0][0]] + match[0][1:]


def _superscript(match: re.Match[str]) -> str:
    digits = match[0].translate(SUPERSCRIPTS)
    followed = match.string[match.end() : match.end() + 1].isdigit()
    return f"^{digits}" if len(digits) == 1 and not followed else f"^{{{digits}}}"


def _numerals(text: str) -> str:
    """``0.333...`` and ``0.(3)`` with a bar, ``1'000`` without marks."""
    text = _REPEATING.sub(_with_bar, text)
    bracketed = _BRACKETED_PERIOD.fullmatch(text)
    if bracketed:
        return rf"{bracketed[1]}\overline{{{bracketed[2]}}}"
    return text.replace("'", "") if _APOSTROPHES.fullmatch(text) else text


def _based(match: re.Match[str]) -> str:
    """``1011_{two}``, ``(1011)_2`` and ``1011 base 2`` as ``1011_{2}``; unchanged where the base is none we know."""
    base = (match[2] or match[3] or match[4]).lower()
    base = _BASE_NAMES.get(base, base)
    return f"{match[1]}_{{{base}}}" if base.isdigit() else match[0]


def _with_bar(match: re.Match[str]) -> str:
    """The shortest block that ends the digits twice, or three times for one digit; unchanged where none does."""
    digits = match[2]
    for length in range(1, min(MAX_PERIOD, len(digits) // 2) + 1):
        times = 3 if length == 1 else 2
        block = digits[-length:]
        if digits.endswith(block * times):
            head = digits
            while head.endswith(block):
                head = head[:-length]
            return rf"{match[1]}.{head}\overline{{{block}}}"
    return match[0]


def _unwrap(text: str) -> str:
    """Removes delimiters around the whole text, and a final period."""
    for _ in range(8):
        if text[-1:].isalnum():
            break
        before = text
        text = text.removesuffix("\\\\").rstrip()
        if text.endswith((".", "。", ",", ";", "，", "；")) and not text.endswith(("\\.", "..", "\\,", "\\;")):
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
        box = _OUTER_BOX.match(text) or _OUTER_TEXT.match(text)
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
    if "$" in text:
        text = text.replace("\\$", MONEY)
        if "$10" in text and text.count("$") % 2 == 0:
            text = _TIMES_POWER.sub(r"\\times \1", text)
        if text.count("$") % 2:
            text = re.sub(r"\$(?=\s?[\d.])", MONEY, text, count=1)
        text = text.replace("$", " ")
    return text.replace("\\(", " ").replace("\\)", " ")
