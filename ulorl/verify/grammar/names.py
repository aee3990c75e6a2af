"""Reads what may stand left of "=" as a mere name: x, a_1, f(x), f(2), AB, \\angle ABC, (p, q), NO / BO.

A name is a text; a tuple of names is "(p,q)". The names of what is computed from drawings (capital letters) may
be quotients and products, since nobody solves for A in "AB = 4".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ulorl.verify.grammar.split import is_wrapped, spelling, split, symbols
from ulorl.verify.grammar.tokens import Token, words

_GREEK = words(
    """alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau
    upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega ell hbar"""
)
_PREFIXES = words("angle triangle overrightarrow vec overline widehat hat bar measuredangle max min")
_SET_MARKS = words("cup cap complement setminus")
_COMPUTED = words("( ) { } , + - / ^ frac sqrt")
_CAPITALS = re.compile(r"[A-Z]{2,5}")
_VARIABLE = re.compile(r"[A-Za-z]|\\?[a-zA-Z]+(?:_.+)?|[A-Za-z]_.+")


def parse_name(tokens: Sequence[Token]) -> str | None:
    """The name that all of ``tokens`` spell, or None."""
    if is_wrapped(tokens) and tokens[0].text == "(":
        parts, commas = split(tokens[1:-1], symbols(","))
        if commas:
            names = [parse_name(part) for part in parts]
            return "(" + ",".join(name for name in names if name) + ")" if all(names) else None
        return None
    if len(tokens) == 3 and tokens[1].text == ":" and all(_is_symbol(tokens[i]) for i in (0, 2)):
        return spelling(tokens)
    extremum = _extremum(tokens)
    if extremum and parse_name(tokens[: -len(extremum)]) is not None:
        return spelling(tokens)
    if tokens and _end_of_name(tokens) == len(tokens):
        return spelling(tokens).replace(" _ ", "_").replace(" ", "")
    return spelling(tokens) if _is_measure(tokens) or _is_derivative(tokens) else None


def tuple_names(name: str) -> tuple[str, ...]:
    """The names of a tuple of names; a single name is a tuple of one."""
    if not name.startswith("("):
        return (name,)
    parts, depth = [""], 0
    for character in name[1:-1]:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return tuple(parts)


def function_of(name: str) -> tuple[str, tuple[str, ...]] | None:
    """``f(x,y)`` as ("f", ("x", "y")); None for a variable, and for a value such as f(2)."""
    function, bracket, rest = name.partition("(")
    if not bracket or not function or not rest.endswith(")"):
        return None
    arguments = tuple(rest[:-1].split(","))
    if len(set(arguments)) != len(arguments):
        return None
    return (function, arguments) if all(_VARIABLE.fullmatch(argument) for argument in arguments) else None


def _end_of_name(tokens: Sequence[Token]) -> int:
    """Where the name at the start of ``tokens`` ends; 0 where there is none."""
    position = 0
    first = tokens[0]
    if first.kind == "command" and first.text in _PREFIXES:
        position = 1
    if position == len(tokens):
        return 0
    token = tokens[position]
    if position and token.text == "{":
        position = _closing(tokens, position) + 1
    elif not _is_symbol(token) and not (position and token.kind == "letters"):
        return 0
    else:
        position += 1
    if position < len(tokens) and tokens[position].text == "_":
        position += 1
        if position == len(tokens):
            return 0
        position = _closing(tokens, position) + 1
    while position < len(tokens) and tokens[position].text == "'":
        position += 1
    if [token.text for token in tokens[position : position + 5]] == ["^", "{", "-", "1", "}"]:
        position += 5
    if position < len(tokens) and tokens[position].text == "(" and tokens[position].kind == "symbol":
        closing = _closing(tokens, position)
        inner = tokens[position + 1 : closing]
        if not _is_application(inner):
            return 0
        # "x(x)" would be a product; only letters that name functions take an argument.
        if len(first.text) == 1 and first.text in "xyztabc" and all(t.text == first.text for t in inner):
            return 0
        position = closing + 1
        if position + 1 < len(tokens) and tokens[position].text == "_":
            position = _closing(tokens, position + 1) + 1
    return position


def _extremum(tokens: Sequence[Token]) -> Sequence[Token]:
    """``_{\\max}`` at the end of ``|AB|_{\\max}`` and ``(ab)_{\\min}``; nothing after a letter, whose name it is."""
    for length in (4, 2):
        tail = tokens[-length:]
        if len(tokens) > length and tail[0].text == "_" and tail[length // 2].text in ("max", "min"):
            return tail if tokens[-length - 1].text in (")", "|") else []
    return []


def _is_application(inner: Sequence[Token]) -> bool:
    """What a function may be applied to in a name: names, or a number that may be computed, also by functions."""
    if not inner:
        return False
    if all(token.text in (",", "-") or _is_argument(token) for token in inner):
        return True
    letters = [i for i, token in enumerate(inner) if token.kind == "letters" or token.text in _GREEK]
    applied = all(len(inner[i].text) == 1 and i + 1 < len(inner) and inner[i + 1].text == "(" for i in letters)
    return applied and all(i in letters or t.kind == "number" or t.text in _COMPUTED for i, t in enumerate(inner))


def _closing(tokens: Sequence[Token], position: int) -> int:
    """Index of the bracket that closes the one at ``position``; ``position`` itself where none opens there."""
    if tokens[position].text not in ("{", "("):
        return position
    depth = 0
    for index in range(position, len(tokens)):
        depth += (tokens[index].text in ("{", "(")) - (tokens[index].text in ("}", ")"))
        if depth == 0:
            return index
    return len(tokens) - 1


def _is_symbol(token: Token) -> bool:
    if token.kind == "command":
        return token.text in _GREEK
    if token.kind == "text":
        return bool(token.text) and not token.text[0].isdigit() and token.text not in ("i", "e")
    if token.kind != "letters" or token.text in ("i", "e", "pi", "sqrt", "sin", "cos", "tan"):
        return False
    return len(token.text) == 1 or len(token.text) > 3 or _CAPITALS.fullmatch(token.text) is not None


def _is_argument(token: Token) -> bool:
    return token.kind == "number" or (token.kind == "letters" and len(token.text) == 1) or _is_symbol(token)


def _is_derivative(tokens: Sequence[Token]) -> bool:
    """``\\frac{dy}{dx}``."""
    texts = [token.text for token in tokens]
    return len(texts) == 7 and texts[0] == "frac" and texts[2][0] == texts[5][0] == "d" and len(texts[2]) == 2


def _is_measure(tokens: Sequence[Token]) -> bool:
    """Segments, angles and areas, their sums, quotients and sizes, and a trigonometric function of an angle."""
    if len(tokens) == 2 and tokens[0].text in ("sin", "cos", "tan", "cot") and tokens[1].kind == "command":
        return tokens[1].text in _GREEK
    if len(tokens) > 4 and tokens[0].text == tokens[-1].text == "|" and tokens[1].text in ("vec", "overrightarrow"):
        return True
    letters = [token for token in tokens if token.kind == "letters"]
    if not letters or not all(token.text.isupper() for token in letters) or len(tokens) > 24:
        return False
    if not any(len(token.text) > 1 for token in letters) and not any(t.text in _SET_MARKS for t in tokens):
        return len(letters) == 1 and tokens[0].kind == "command" and tokens[0].text in ("sin", "cos", "tan", "cot")
    allowed = words("frac angle triangle cdot times overrightarrow overline vec sin cos tan _ ^ { } / + - | ( ) :")
    return all(t.kind in ("letters", "number") or t.text in allowed | _SET_MARKS for t in tokens)
