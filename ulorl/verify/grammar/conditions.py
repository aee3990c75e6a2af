"""Trailing clauses of an answer: ``k \\in \\mathbb{Z}``, ``for all real x``, ``where n is an integer``.

Invariant: a clause is split off only with all its tokens, and what is not understood is kept as words, so that
a dropped or changed condition is seen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ulorl.verify.exact.algebra import Unsupported
from ulorl.verify.grammar.names import parse_name
from ulorl.verify.grammar.number_sets import number_set
from ulorl.verify.grammar.split import commands, depth_change, spelling, split, symbols
from ulorl.verify.grammar.tokens import Token, words
from ulorl.verify.grammar.values import Condition

_STARTERS = re.compile(r"[(,; ]*(?:where|for|with|when|whenever|if|such that|in which|provided|其中|当)(?![A-Za-z]).*")
_FILLERS = words(
    """where for with when if all any every each some a an is are be being and or the given such that arbitrary
    number numbers fixed whenever constant constants const parameter ranging over runs through 其中 为 是 当 任意"""
)
_DOMAINS = (
    (("positive", "integer"), "Z+"), (("nonnegative", "integer"), "Z0+"), (("non-negative", "integer"), "Z0+"),
    (("negative", "integer"), "Z-"), (("natural",), "N"), (("integer",), "Z"), (("整数",), "Z"), (("正整数",), "Z+"),
    (("positive", "real"), "R+"), (("nonnegative", "real"), "R0+"), (("nonzero", "real"), "R*"), (("real",), "R"),
    (("实数",), "R"), (("rational",), "Q"), (("complex",), "C"),
)  # fmt: skip
_RELATIONS = frozenset({"<", ">", "le", "ge", "ne"})
FREE_CONSTANT = "R"


def split_clause(tokens: Sequence[Token]) -> tuple[list[Token], list[Token]]:
    """What stands before a trailing clause, and the clause ([] for none); both outside brackets."""
    depth = 0
    for index, token in enumerate(tokens):
        is_word = token.kind in ("text", "letters") or token.text in ("其", "当")
        if depth == 0 and is_word and _STARTERS.fullmatch(token.text.lower() if token.text != "其" else "其中"):
            return list(tokens[:index]), list(tokens[index:])
        if token.kind == "command" and token.text == "forall" and depth == 0 and index:
            return list(tokens[:index]), list(tokens[index:])
        depth += depth_change(token)
    inside = _bracketed_clause(tokens)
    return inside if inside is not None else (list(tokens), [])


def _bracketed_clause(tokens: Sequence[Token]) -> tuple[list[Token], list[Token]] | None:
    """``2k\\pi (k \\in \\mathbb{Z})``: brackets at the end with a membership inside."""
    if len(tokens) < 4 or tokens[-1].text != ")":
        return None
    depth = 0
    for index in range(len(tokens) - 1, 0, -1):
        depth -= depth_change(tokens[index])
        if depth == 0:
            if tokens[index].text != "(":
                return None
            inner = list(tokens[index + 1 : -1])
            condition = parse_condition(inner) if inner else None
            if condition is None and _states_relation(inner):
                return list(tokens[:index]), inner
            if condition is None or (condition.domain.startswith("?") and inner[0].kind != "text"):
                return None
            return list(tokens[:index]), inner
    return None


def parse_condition(tokens: Sequence[Token]) -> Condition | None:
    """One clause; None where it does not say what kind of number a name is and has no clause word."""
    tokens = [token for token in tokens if token.text not in (",", ";")]
    members, found = split(tokens, commands("in"))
    if len(found) == 1:
        names = _names(_without_fillers(members[0]))
        domain = number_set(_without_fillers(members[1]))
        if names is not None and domain is not None:
            return Condition(names, domain.name)
    spoken = _spoken(tokens)
    if spoken is not None:
        return spoken
    if found and _names(_without_fillers(members[0])) is not None:
        return Condition(_names(_without_fillers(members[0])) or (), "?" + spelling(_without_fillers(tokens)))
    if tokens and tokens[0].kind in ("text", "letters") and _STARTERS.fullmatch(tokens[0].text.lower()):
        return Condition((), "?" + spelling(_without_fillers(tokens)))
    return None


def _spoken(tokens: Sequence[Token]) -> Condition | None:
    """``k is an integer``, ``for some integer t``, ``c any real constant``."""
    parts = [part for token in tokens for part in _words_of(token)]
    said = [part for part in parts if len(part) > 1 and part.lower() not in ("and", "or")]
    names = tuple(part for part in parts if len(part) == 1 and part.isalpha() and part.lower() != "a")
    if any(
        token.kind not in ("text", "letters") and token.text not in ("(", ")", "整", "数", "为") for token in tokens
    ):
        return None
    stems = {word.lower() if len(word) < 4 else word.lower().removesuffix("s") for word in said}
    for keys, domain in _DOMAINS:
        if set(keys) <= stems and stems - set(keys) <= _FILLERS | {"number", "constant"}:
            return Condition(names, domain)
    if stems & {"constant", "arbitrary", "parameter"} and stems <= _FILLERS | {"constant", "arbitrary", "parameter"}:
        return Condition(names, FREE_CONSTANT) if names else None
    return None


def _words_of(token: Token) -> list[str]:
    return re.findall(r"[A-Za-z-]+|[^\sA-Za-z,.()-]+", token.text) if token.kind in ("text", "letters") else []


def _without_fillers(tokens: Sequence[Token]) -> list[Token]:
    """Tokens without words that carry no meaning of their own, such as "where" and "for all"."""
    kept: list[Token] = []
    for token in tokens:
        if token.kind in ("text", "letters") and len(token.text) > 1:
            rest = [part for part in token.text.replace(",", " ").split() if part.lower().strip(".") not in _FILLERS]
            kept.extend(Token("text", part) for part in rest)
        elif token.text not in ("forall", ",", "exists"):
            kept.append(token)
    return kept


def _names(tokens: Sequence[Token]) -> tuple[str, ...] | None:
    """Names that stand side by side or between commas; None for anything else."""
    parts, _ = split(tokens, symbols(","))
    names = [parse_name(piece) for part in parts for piece in ([part] if parse_name(part) else [[t] for t in part])]
    return tuple(name for name in names if name) if names and all(names) else None


def _states_relation(tokens: Sequence[Token]) -> bool:
    return any(token.text in _RELATIONS for token in tokens)


def restricts(part: Sequence[Token], first: Sequence[Token]) -> bool:
    """Whether ``part`` is an inequality for a variable of ``first``, an equation for another: ``y = 1/x, x > 0``."""
    left, equal = split(first, symbols("="))
    letters = {token.text for token in part if token.kind == "letters"}
    return (
        _states_relation(part)
        and len(equal) == 1
        and bool(letters & {token.text for token in left[1] if token.kind == "letters"})
        and not letters & {token.text for token in left[0][:1]}
    )


def safe_condition(tokens: Sequence[Token]) -> Condition:
    """A clause that is known to be one."""
    condition = parse_condition(tokens)
    if condition is None and _states_relation(tokens):
        return Condition((), "?" + spelling(_without_fillers(tokens)))
    if condition is None:
        raise Unsupported("a clause that is not understood")
    return condition
