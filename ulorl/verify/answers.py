"""Parses a whole answer: what kind of thing it is, then its parts.

Every token is accounted for, or `Unsupported` is raised with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ulorl.verify import algebra
from ulorl.verify.algebra import Unsupported
from ulorl.verify.expressions import parse_expression
from ulorl.verify.inequalities import RELATIONS, interval
from ulorl.verify.normalise import ROW
from ulorl.verify.scalars import MONEY_SIGNS, parse_scalar
from ulorl.verify.tokens import Token, tokenise, words
from ulorl.verify.values import Based, Equation, Group, Listing, Matrix, Named, Scalar, Union, Value, Word

MAX_CHARACTERS = 4000
_CHOICE = re.compile(r"\(?([A-J])\)?[.:)]?")
_WORDS = re.compile(r"[A-Za-z][A-Za-z'-]*(?: [A-Za-z][A-Za-z'-]*){0,7}")
_TEXT_ONLY = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox)\s?\{([^{}]*)\}")
_MATRIX = re.compile(r"\\begin\{(?:[pb]?matrix|array)\}(?:\{[lcr|]*\})?(.*)\\end\{(?:[pb]?matrix|array)\}", re.DOTALL)
_BASED = re.compile(r"([0-9][0-9A-Fa-f]*|[A-Fa-f]{2,})_(?:\{ ?([0-9]{1,2}) ?\}|([0-9]))")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?![\d,])")
_SPACED_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?: \d{3})+(?:\.\d+)?")
_LISTED_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+")
_SCIENTIFIC = re.compile(r"(?<![A-Za-z\d])(\d+(?:\.\d+)?)[eE]([-+]?\d{1,4})(?![A-Za-z\d.])")
_OPENERS, _CLOSERS = frozenset("([{"), frozenset(")]}")
_UNSUPPORTED_RELATIONS = words("ne approx equiv mp to mid setminus cap mod")


def parse_answer(text: str) -> Value:
    """The value that a normalised answer states; raises `Unsupported` with the reason."""
    if not text:
        raise Unsupported("empty answer")
    if len(text) > MAX_CHARACTERS:
        raise Unsupported("answer too long")
    word = _parse_words(text)
    if word is not None:
        return word
    matrix = _MATRIX.fullmatch(text)
    if matrix:
        return _parse_matrix(matrix[1])
    based = _BASED.fullmatch(text)
    if based:
        return _parse_based(based)
    return _parse_list(tokenise(_join_digits(text)))


def other_reading(text: str) -> Value | None:
    """``100,200`` as a list of two numbers, where `parse_answer` reads one number; None for other texts."""
    if not _LISTED_THOUSANDS.fullmatch(text) or ",0" in text:
        return None
    return Listing(tuple(Scalar(parse_expression(tokenise(part))) for part in text.split(",")))


def _join_digits(text: str) -> str:
    """Removes thousands separators outside brackets and writes 3e-4 as a power of ten."""
    if _SPACED_THOUSANDS.fullmatch(text):
        text = text.replace(" ", "")
    if not any(bracket in text for bracket in ("(", "[", "\\{")) or text[:1] in MONEY_SIGNS:
        text = re.sub(r"(?<![\d,.])" + _THOUSANDS.pattern, lambda m: m[0].replace(",", ""), text)
    return _SCIENTIFIC.sub(r"(\1\\cdot 10^{\2})", text)


def _parse_words(text: str) -> Word | None:
    plain = " ".join(_TEXT_ONLY.sub(r" \1 ", text).split()).strip(" .")
    choice = _CHOICE.fullmatch(plain)
    if choice:
        return Word(choice[1], is_choice=True)
    if _WORDS.fullmatch(plain) and (len(plain) > 3 or "\\" in text or plain.lower() in ("yes", "no")):
        if plain in ("sqrt", "infty"):
            return None
        return Word(plain.lower())
    return None


def _parse_matrix(body: str) -> Matrix:
    rows = [row for row in body.split(ROW) if row.strip()]
    parsed = tuple(tuple(_parse_item(tokenise(cell)) for cell in row.split("&")) for row in rows)
    if not parsed or len({len(row) for row in parsed}) != 1:
        raise Unsupported("rows of different lengths")
    return Matrix(parsed)


def _parse_based(match: re.Match[str]) -> Value:
    digits, base = match[1].upper().lstrip("0") or "0", int(match[2] or match[3])
    if not 2 <= base <= 36 or any(int(digit, 36) >= base for digit in digits) or len(digits) > 400:
        raise Unsupported("digits outside the base")
    return Based(digits, base)


def _split(tokens: Sequence[Token], separators: frozenset[tuple[str, str]]) -> tuple[list[list[Token]], list[str]]:
    """Splits at separators outside brackets; any closing bracket ends any opening one."""
    parts: list[list[Token]] = [[]]
    found: list[str] = []
    depth = 0
    for token in tokens:
        if token.text in _OPENERS or (token.kind == "command" and token.text == "langle"):
            depth += 1
        elif token.text in _CLOSERS or (token.kind == "command" and token.text == "rangle"):
            depth -= 1
        if depth < 0:
            raise Unsupported("unbalanced brackets")
        if depth == 0 and (token.kind, token.text.lower()) in separators:
            parts.append([])
            found.append(token.text.lower())
        else:
            parts[-1].append(token)
    if depth:
        raise Unsupported("unbalanced brackets")
    return parts, found


_LIST_SEPARATORS = frozenset(
    [("symbol", mark) for mark in (",", ";")]
    + [("letters", word) for word in ("and", "or")]
    + [("text", word) for word in ("and", "or", ", and", ", or", ",")]
    + [("command", name) for name in ("lor", "land")]
)


def _parse_list(tokens: Sequence[Token]) -> Value:
    parts, found = _split(tokens, _LIST_SEPARATORS)
    if len(parts) == 1:
        return _parse_item(parts[0])
    # "1, 2, and 3" has an empty part between the comma and the word.
    filled = [part for part in parts if part]
    oxford = len(parts) - len(filled)
    if oxford > 1 or not parts[0] or not parts[-1]:
        raise Unsupported("an empty item in a list")
    joiners = {word.strip(", ") or "," for word in found} - {",", ";"}
    joiners = {{"lor": "or", "land": "and"}.get(word, word) for word in joiners}
    if len(joiners) > 1:
        raise Unsupported("both 'and' and 'or'")
    joiner = next(iter(joiners), ",")
    items = tuple(item for part in filled for item in _flat(_parse_item(part)))
    first = items[0]
    if isinstance(first, Named) and first.name.endswith(" in") and joiner != "and":
        # "x < 1 or x > 2" is a union.
        pieces = [item.value for item in items if isinstance(item, Named) and item.name == first.name]
        if len(pieces) == len(items):
            return Named(first.name, Union(tuple(pieces)))
    return Listing(items, joiner)


def _flat(value: Value) -> tuple[Value, ...]:
    """The two values of a plus-minus, or the value itself."""
    return value.items if isinstance(value, Listing) else (value,)


def _parse_item(tokens: Sequence[Token]) -> Value:
    if not tokens:
        raise Unsupported("an empty item")
    signs = [index for index, token in enumerate(tokens) if token.kind == "command" and token.text == "pm"]
    if len(signs) == 1:
        before, after = list(tokens[: signs[0]]), list(tokens[signs[0] + 1 :])
        return Listing(tuple(_parse_item([*before, Token("symbol", sign), *after]) for sign in "+-"))
    if signs:
        raise Unsupported("several plus-minus signs")
    unions, _ = _split(tokens, frozenset({("command", "cup")}))
    if len(unions) > 1:
        return Union(tuple(_parse_item(part) for part in unions))
    members, _ = _split(tokens, frozenset({("command", "in")}))
    if len(members) == 2 and len(members[0]) == 1 and members[0][0].kind == "letters":
        return Named(members[0][0].text + " in", _parse_item(members[1]))
    bounds, relations = _split(tokens, RELATIONS)
    if relations:
        return interval(bounds, relations)
    sides, _ = _split(tokens, frozenset({("symbol", "=")}))
    if len(sides) == 1:
        return _parse_simple(tokens)
    if len(sides) == 2:
        return _parse_equation(sides[0], sides[1])
    return _parse_chain(sides)


def _parse_equation(left: list[Token], right: list[Token]) -> Value:
    name = _name(left)
    if name is not None:
        return Named(name, _parse_simple(right))
    a, b = parse_expression(left), parse_expression(right)
    if not a.atoms() and not b.atoms():
        if algebra.same(a, b):
            return Scalar(b)
        raise Unsupported("an equation that does not hold")
    return Equation(algebra.subtract(a, b))


def _parse_chain(sides: list[list[Token]]) -> Value:
    """``x = 6/2 = 3``: the last value, if all sides but a first name are equal."""
    name = _name(sides[0])
    values = [_parse_simple(side) for side in (sides[1:] if name is not None else sides)]
    last = values[-1]
    for value in values:
        if not isinstance(value, Scalar) or not isinstance(last, Scalar) or value.unit not in ("", last.unit):
            raise Unsupported("a chain of equalities that is not one number")
        if not algebra.same(value.expression, last.expression):
            raise Unsupported("a chain of equalities that does not hold")
    return last if name is None else Named(name, last)


def _name(tokens: Sequence[Token]) -> str | None:
    """A variable, with subscript, or f(x): what may stand left of "=" as a mere name."""
    texts = [token.text for token in tokens]
    if len(texts) > 4 and texts[0] == "(" and texts[-1] == ")" and set(texts[2:-1:2]) == {","}:
        return "".join(texts) if all(len(text) == 1 and text.isalpha() for text in texts[1::2]) else None
    if not texts or tokens[0].kind not in ("letters", "text", "command"):
        return None
    if tokens[0].kind == "command" and texts[0] in (
        "frac",
        "sqrt",
        "pi",
        "sin",
        "cos",
        "tan",
        "log",
        "ln",
        "{",
        "angle",
    ):
        return None
    if len(texts) == 1:
        if tokens[0].kind == "letters" and texts[0] in ("i", "e", "pi"):
            return None
        return texts[0] if len(texts[0]) == 1 or tokens[0].kind != "letters" or len(texts[0]) > 3 else None
    if texts[1] == "_" and len(texts) in (3, 5):
        return texts[0] + "_" + "".join(texts[2:]).strip("{}")
    if len(texts) == 4 and len(texts[0]) == 1 and texts[1] == "(" and texts[3] == ")" and texts[2].isalpha():
        return "".join(texts)
    return None


def _parse_simple(tokens: Sequence[Token]) -> Value:
    group = _parse_group(tokens)
    if group is not None:
        return group
    for token in tokens:
        if token.kind == "command" and token.text in _UNSUPPORTED_RELATIONS:
            raise Unsupported(f"\\{token.text}")
    return parse_scalar(tokens)


def _parse_group(tokens: Sequence[Token]) -> Value | None:
    """Brackets around the whole that hold a comma, or braces of a set; None for mere parentheses."""
    if len(tokens) < 2:
        return None
    first, last = tokens[0], tokens[-1]
    opens = first.text in _OPENERS or first.text == "langle"
    closes = last.text in _CLOSERS or last.text == "rangle"
    if not opens or not closes:
        return None
    inner = tokens[1:-1]
    try:
        parts, _ = _split(inner, frozenset({("symbol", ","), ("symbol", ";")}))
    except Unsupported:
        return None
    is_set = first.kind == "command" and first.text == "{"
    if is_set and not inner:
        return Group("{", "}", ())
    if len(parts) < 2 and not is_set:
        return None
    if is_set and len(parts) == 1:
        condition = _set_builder(inner)
        if condition is not None:
            return condition
    return Group(first.text, last.text, tuple(item for part in parts for item in _flat(_parse_item(part))))


def _set_builder(inner: Sequence[Token]) -> Value | None:
    """``x | 1 < x < 2`` as the interval; None where there is no bar."""
    sides, bars = _split(inner, frozenset([("symbol", "|"), ("command", "mid"), ("symbol", ":")]))
    if len(bars) != 1 or len(sides[0]) != 1:
        return None
    condition = _parse_item(sides[1])
    if not isinstance(condition, Named) or condition.name != f"{sides[0][0].text} in":
        raise Unsupported("a set given by a condition")
    return condition.value
