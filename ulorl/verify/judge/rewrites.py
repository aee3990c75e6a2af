"""Families made from real references: notation that changes nothing, and one change that changes the answer."""

from __future__ import annotations

import random
import re

from ulorl.verify.exact.algebra import Unsupported
from ulorl.verify.grammar.values import Scalar
from ulorl.verify.judge.family import Family, change_digit, family
from ulorl.verify.judge.numbers import decimal, latex
from ulorl.verify.tiers import read_answer

MAX_REFERENCE = 60
"""Longer references are left out: training sequences stay short."""
_OPERATOR = re.compile(r"(?<=[\w})\]]) ?([+=<>-]) ?(?=[\w\\({\[])")
_SIGN = re.compile(r"(?<=[\w})\]]) ?([+-]) ?(?=[\w\\({\[])")
_VARIABLE = re.compile(r"(?<![A-Za-z\\])([a-z])(?![A-Za-z])")
_RELATIONS = {"<": r"\le", ">": r"\ge", r"\le": "<", r"\ge": ">", r"\cup": r"\cap", r"\sin": r"\cos", r"\cos": r"\sin"}
_RELATION = re.compile(r"\\(?:le|ge|cup|sin|cos)(?![A-Za-z])|[<>]")
_WORDS = {
    "and": "or", "or": "and", "even": "odd", "odd": "even", "less": "greater", "greater": "less", "all": "some",
    "increasing": "decreasing", "no": "every", "positive": "negative", "always": "never", "is": "is not",
    "are": "are not", "maximum": "minimum", "minimum": "maximum", "integers": "reals", "at least": "at most",
}  # fmt: skip
_WORD = re.compile(r"(?<![\\A-Za-z{])[A-Za-z]{2,}(?![A-Za-z}])")


def rewrite(reference: str, others: tuple[str, ...], rng: random.Random) -> Family | None:
    """The family of a reference, with ``others`` as further misses; None where it is no short answer."""
    text = reference.strip().strip("$").strip()
    if not text or len(text) > MAX_REFERENCE or not any(character.isalnum() for character in text):
        return None
    forms = [text, *_notations(text), *_values(text)]
    misses = [change_digit(text, rng), *_one_change(text, rng), *(other.strip().strip("$") for other in others)]
    return family(f"reference: {_kind(text)}", forms, [miss for miss in misses if miss and miss.strip() != text])


def _kind(text: str) -> str:
    value = read_answer(text).value
    return "text" if value is None else type(value).__name__.lower()


def _notations(text: str) -> list[str]:
    """Spellings that say the same letter by letter."""
    forms = [f"${text}$", rf"\boxed{{{text}}}", text.replace(r"\frac", r"\dfrac"), text.replace(r"\dfrac", r"\frac")]
    forms += [
        _OPERATOR.sub(r" \1 ", text),
        text.replace("(", r"\left(").replace(")", r"\right)"),
        f"The answer is {text}",
    ]
    forms += [text.replace(" ", "  "), text.replace(r"\cdot", r"\times"), text + "."]
    if re.fullmatch(r"[A-Za-z ,']+", text) and len(text) > 2:
        forms += [rf"\text{{{text}}}", text.lower(), f"It is {text}", text.capitalize()]
    if re.fullmatch(r"-?[\d.,/]+|-?\\frac\{\d+\}\{\d+\}", text):
        forms += [f"x = {text}", f"= {text}", rf"{text} \text{{ units}}", f"{text} (exact)"]
    return forms


def _values(text: str) -> list[str]:
    """Other spellings of a rational number."""
    try:
        value = read_answer(text).value
        rational = value.expression.rational() if isinstance(value, Scalar) and not value.unit else None
    except (Unsupported, ArithmeticError):
        return []
    if rational is None or len(str(rational)) > 12:
        return []
    forms = [latex(rational), str(rational)]
    point = decimal(rational)
    return [*forms, point] if point is not None else forms


def _one_change(text: str, rng: random.Random) -> list[str]:
    """The text with one thing changed in its meaning."""
    changed = [] if "=" in text else [f"-{text}" if not text.startswith("-") else text[1:]]
    changed += [text[: max(1, len(text) * 2 // 3)]] if len(text) > 3 else []
    if signs := list(_SIGN.finditer(text)):
        sign = rng.choice(signs)
        changed.append(text[: sign.start(1)] + ("-" if sign[1] == "+" else "+") + text[sign.end(1) :])
    if relations := list(_RELATION.finditer(text)):
        relation = rng.choice(relations)
        changed.append(f"{text[: relation.start()]}{_RELATIONS[relation[0]]} {text[relation.end() :].lstrip()}")
    if words := list(_WORD.finditer(text)):
        word = rng.choice(words)
        changed += [text[: word.start()] + text[word.end() :]] if len(words) > 1 else [f"not {text}"]
        for name, opposite in _WORDS.items():
            if re.search(rf"\b{name}\b", text):
                changed.append(re.sub(rf"\b{name}\b", opposite, text, count=1))
    if variables := sorted(set(_VARIABLE.findall(text))):
        changed.append(f"{text}{rng.choice(variables)}")
    if ", " in text:
        changed.append(text.rsplit(", ", 1)[0].strip("({[ "))
    return [one.strip() for one in changed]
