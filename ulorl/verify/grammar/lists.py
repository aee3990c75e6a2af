"""Parses lists of items with their connectives, names and trailing clauses.

Invariants: an item keeps the name it was given (``x = 1, 2`` names both values), inequalities of one variable
join to one set as their connective says, and a clause belongs to the whole list.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ulorl.verify.comparison.real_sets import EMPTY, equal_sets, real_set
from ulorl.verify.exact.algebra import Unsupported
from ulorl.verify.grammar.conditions import parse_condition, restricts, safe_condition, split_clause
from ulorl.verify.grammar.items import parse_item
from ulorl.verify.grammar.names import parse_name
from ulorl.verify.grammar.normalise import ROW
from ulorl.verify.grammar.split import Separators, commands, depth_change, is_wrapped, split, symbols
from ulorl.verify.grammar.tokens import Token
from ulorl.verify.grammar.values import (
    Alternatives,
    Condition,
    Conditioned,
    Congruence,
    Group,
    Listing,
    Matrix,
    Membership,
    Named,
    NumberSet,
    Scalar,
    SetOperation,
    Value,
)

_CONNECTIVES = {"and": "and", "or": "or", "lor": "or", "land": "and", "vee": "or", "wedge": "and", "或": "or",
                "或者": "or", "和": "and", "且": "and", "与": "and", "以及": "and", "&": "and"}  # fmt: skip
_SEPARATORS: Separators = (
    symbols(",;，；或和且与&")
    | commands("lor", "land", "vee", "wedge")
    | frozenset(
        (kind, word) for kind in ("letters", "text") for word in ("and", "or", "或", "和", "且", "或者", "以及")
    )
)
_CONNECTED = re.compile(r"([A-Za-z][A-Za-z/ -]{0,24}?) (and|or)|(and|or) ([A-Za-z][A-Za-z/ -]{0,24})")
_LABELS = "abcdef"
_ALL_EXCEPT = frozenset(
    f"all {numbers} {word}" for numbers in ("real numbers", "reals", "real") for word in ("except", "except for",
    "other than", "but", "not equal to", "excluding")
)  # fmt: skip


def parse_list(tokens: Sequence[Token]) -> Value:
    """One value, or a `Listing`, with the conditions of trailing clauses; raises `Unsupported`."""
    if len(tokens) < 2:
        return parse_item(tokens)
    parts_named = _labelled_parts(tokens)
    if parts_named is not None:
        return parts_named
    start, rest = _leading_words(tokens) if tokens and tokens[0].kind in ("text", "letters") else ("", [])
    if rest and start in _ALL_EXCEPT:
        return SetOperation("difference", (NumberSet("R"), _as_set(parse_list(rest))))
    tokens = rest if start in ("either", "both") else tokens
    parts, found = split(_plain_connectives(tokens), _SEPARATORS)
    parts, found = _without_oxford_comma(parts, found)
    items_tokens, conditions = _sort_out(parts, found)
    if not items_tokens:
        raise Unsupported("a clause without an answer")
    value = _joined([parse_item(part) for part in items_tokens], _joiner(found[: len(items_tokens) + 1]))
    return Conditioned(value, tuple(conditions)) if conditions else value


def _labelled_parts(tokens: Sequence[Token]) -> Value | None:
    """``(a) 5, (b) 6`` as values named after their parts; None where the labels do not follow each other."""
    starts = [0]
    for label in _LABELS if tokens[0].text == "(" else ():
        texts = [token.text for token in tokens[starts[-1] :]]
        found = next((i for i in range(len(texts) - 2) if texts[i : i + 3] == ["(", label, ")"]), None)
        if found is None or (label == "a" and found):
            break
        starts.append(starts[-1] + found + 3)
    ends = [start - 3 for start in starts[2:]] + [len(tokens)]
    if len(starts) < 3:
        return None
    parts = [list(tokens[start:end]) for start, end in zip(starts[1:], ends, strict=True)]
    try:
        values = [parse_item(_without_comma(part)) for part in parts]
    except Unsupported:
        return None
    return Listing(tuple(Named(f"part {label}", value) for label, value in zip(_LABELS, values, strict=False)))


def _without_comma(part: list[Token]) -> list[Token]:
    return part[:-1] if part and part[-1].text in (",", ";", "and") else part


def _leading_words(tokens: Sequence[Token]) -> tuple[str, list[Token]]:
    """The words before the first number or symbol, and what follows them."""
    end = next((i for i, t in enumerate(tokens) if t.kind not in ("text", "letters") or len(t.text) == 1), len(tokens))
    return " ".join(token.text.lower() for token in tokens[:end]), list(tokens[end:])


def _as_set(value: Value) -> Value:
    """Numbers that are left out, with or without a name (``except x = 3``)."""
    items = value.items if isinstance(value, Listing) else (value,)
    return Group("{", "}", tuple(item.value if isinstance(item, Named) else item for item in items))


def _plain_connectives(tokens: Sequence[Token]) -> list[Token]:
    """Text such as ", and" as the bare word."""
    result: list[Token] = []
    depth = 0
    for token in tokens:
        depth += depth_change(token)
        words = _CONNECTED.fullmatch(token.text) if token.kind == "text" else None
        if token.text == ROW and depth == 0:
            if result and result[-1].text not in (",", ";"):
                result.append(Token("symbol", ",", token.spaced))
        elif words is not None:
            pieces = [piece.strip(" ,") for piece in words.groups() if piece]
            result.extend(Token("text", piece, token.spaced) for piece in pieces)
        elif token.kind == "text" and token.text.strip(" ,;.").lower() in _CONNECTIVES:
            result.append(Token("text", token.text.strip(" ,;.").lower(), token.spaced))
        elif token.kind == "text" and not token.text.strip(" ,;"):
            result.append(Token("symbol", ",", token.spaced))
        else:
            result.append(token)
    return result


def _without_oxford_comma(parts: list[list[Token]], found: list[str]) -> tuple[list[list[Token]], list[str]]:
    """``1, 2, and 3`` has an empty part between the comma and the word; no other part may be empty."""
    kept_parts, kept_found = [parts[0]], []
    for separator, part, following in zip(found, parts[1:], [*found, ""][1:], strict=True):
        if not part and separator == "," and following in _CONNECTIVES:
            continue
        kept_parts.append(part)
        kept_found.append(separator)
    if any(not part for part in kept_parts):
        raise Unsupported("an empty item in a list")
    return kept_parts, kept_found


def _sort_out(parts: list[list[Token]], found: Sequence[str]) -> tuple[list[list[Token]], list[Condition]]:
    """The items, and the conditions that trailing clauses and memberships state."""
    items: list[list[Token]] = []
    clauses: list[list[Token]] = []
    for before, part in zip(("", *found), parts, strict=True):
        main, clause = split_clause(part)
        is_either = bool(clauses) and _CONNECTIVES.get(before) == "or"
        if items and not clause and _is_condition(part, items[0]) and not is_either:
            clauses.append(part)
        elif clauses and main and not clause and not _is_like(part, items[0] if items else []):
            clauses[-1] = [*clauses[-1], Token("symbol", "∨") if is_either else Token("symbol", ","), *part]
        else:
            if main:
                items.append(main)
            if clause:
                clauses.append(clause)
    return items, [safe_condition(clause) for clause in clauses]


def _is_condition(part: Sequence[Token], first: Sequence[Token]) -> bool:
    """Whether ``part`` says only what kind of number a name is, or where a variable of the first item lies."""
    if not any(token.text == "=" for token in part) and parse_condition(part) is not None:
        return True
    return restricts(part, first)


def _is_like(part: Sequence[Token], first: Sequence[Token]) -> bool:
    """Whether ``part``, after a clause, is one more item like the first: the same name, or both in brackets."""
    if is_wrapped(part) and is_wrapped(first):
        return True
    names = [parse_name(split(tokens, symbols("="))[0][0]) for tokens in (part, first)]
    return names[0] is not None and names[0] == names[1]


def _joiner(found: Sequence[str]) -> str:
    joiners = {_CONNECTIVES[word] for word in found if word in _CONNECTIVES}
    if len(joiners) > 1:
        return "mixed"
    return joiners.pop() if joiners else ","


def _joined(items: list[Value], joiner: str) -> Value:
    if len(items) == 1:
        return items[0]
    if any(isinstance(item, Alternatives) for item in items):
        count = max(len(item.readings) for item in items if isinstance(item, Alternatives))
        readings = (
            [i.readings[min(n, len(i.readings) - 1)] if isinstance(i, Alternatives) else i for i in items]
            for n in range(count)
        )
        return Alternatives(tuple(_joined(list(reading), joiner) for reading in readings))
    flat = [part for item in items for part in (item.items if isinstance(item, Listing) else (item,))]
    flat = _with_names(_with_moduli(flat))
    names = {item.name for item in flat if isinstance(item, Membership | Named)}
    members = [item for item in flat if isinstance(item, Membership)]
    if members and len(names) == 1 and all(isinstance(item, Membership | Named) for item in flat):
        name = names.pop()
        return Membership(name, _one_set([_within(item) for item in flat], joiner))
    if joiner == "mixed":
        if not all(isinstance(item, Named) for item in flat):
            raise Unsupported("both 'and' and 'or'")
        joiner = "or"
    return Listing(tuple(flat), joiner)


def _within(item: Value) -> Value:
    if isinstance(item, Membership):
        return item.within
    return Group("{", "}", (item.value,)) if isinstance(item, Named) else item


def _with_names(items: list[Value]) -> list[Value]:
    """``x = 1, 2``: values without a name take that of the first, if it is the only one."""
    first = items[0]
    if not isinstance(first, Named | Membership) or any(
        isinstance(i, Named | Membership) for i in items[1:] if getattr(i, "name", first.name) != first.name
    ):
        return items
    if isinstance(first, Membership):
        if isinstance(first.within, SetOperation) and first.within.operator == "difference":
            return [i if not isinstance(i, Scalar) else _removed(first.name, i) for i in items]
        return [Membership(first.name, i) if isinstance(i, Group | SetOperation) else i for i in items]
    same_kind = (Group, Matrix) if first.name.startswith("(") else (Scalar, Group, Matrix)
    return [Named(first.name, item) if isinstance(item, same_kind) else item for item in items]


def _removed(name: str, item: Scalar) -> Value:
    """``x \\ne 1, 2`` leaves out both."""
    return Membership(name, SetOperation("difference", (NumberSet("R"), Group("{", "}", (item,)))))


def _with_moduli(items: list[Value]) -> list[Value]:
    """``x \\equiv 2, 3 \\pmod 5``: the modulus belongs to all residues."""
    first, last = items[0], items[-1]
    if not isinstance(first, Congruence) or first.modulus is not None or not isinstance(last, Congruence):
        return items
    residues = [item.residue if isinstance(item, Congruence) else item.expression for item in items
                if isinstance(item, Congruence | Scalar)]  # fmt: skip
    if len(residues) != len(items) or last.modulus is None:
        raise Unsupported("a congruence without a modulus")
    return [Congruence(first.name, residue, last.modulus) for residue in residues]


def _one_set(sets: list[Value], joiner: str) -> Value:
    """Inequalities of one variable as one set.

    "or" is a union; "and" and a comma intersect. Sets without a common element are united after a comma, and
    refused after "and", which people write for either; so are overlapping sets after a comma.
    """
    union, intersection = SetOperation("union", tuple(sets)), SetOperation("intersection", tuple(sets))
    every = real_set(NumberSet("R"))
    try:
        covers, shared = equal_sets(real_set(union), every), real_set(intersection)
    except Unsupported:
        if joiner == "or":
            return union
        raise
    if joiner == "or":
        if covers:
            raise Unsupported("a union of all numbers")
        return union
    if equal_sets(shared, EMPTY) and joiner == "and":
        raise Unsupported("'and' between sets without a common element")
    if equal_sets(shared, EMPTY):
        return union
    if covers or joiner == "and":
        return intersection
    raise Unsupported("inequalities that overlap")
