"""Parses one item of an answer: sets, relations, equations, names, groups; leaves go to `parse_scalar`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from ulorl.verify.exact.algebra import Unsupported
from ulorl.verify.grammar.congruences import parse_congruence
from ulorl.verify.grammar.equalities import EQUALITIES, near, parse_equal
from ulorl.verify.grammar.expressions import parse_expression
from ulorl.verify.grammar.groups import parse_group
from ulorl.verify.grammar.inequalities import BOUND_WORDS, RELATIONS, parse_bound_in_words, parse_inequality
from ulorl.verify.grammar.matrices import parse_environment
from ulorl.verify.grammar.names import parse_name
from ulorl.verify.grammar.number_sets import number_set
from ulorl.verify.grammar.scalars import parse_scalar
from ulorl.verify.grammar.split import commands, is_wrapped, spelling, split, symbols
from ulorl.verify.grammar.tokens import Token, words
from ulorl.verify.grammar.values import (
    Alternatives,
    Group,
    Listing,
    Membership,
    Named,
    NumberSet,
    Scalar,
    SetOperation,
    Value,
)

MAX_SIGNS = 3
_UNION, _INTERSECTION = words("cup cupdot sqcup bigcup"), words("cap bigcap")
_SET_OPERATORS = commands("cup", "cupdot", "sqcup", "bigcup", "cap", "bigcap", "setminus", "smallsetminus", "backslash")
_MEMBER = commands("in", "notin")
_MODULAR = words("equiv mod pmod bmod modulo")
_RELATIONAL = (
    BOUND_WORDS
    | words(": = < > le ge ne in notin leqq geqq equiv mod pmod bmod modulo approx simeq doteq only exactly Only")
    | words("cup cupdot sqcup bigcup cap bigcap setminus smallsetminus backslash ∖")
    | {"\\"}
)
_BRACKETED = words("( [ { langle mathbb mathbf begin pm mp")
_UNSUPPORTED = words("ne approx equiv mid setminus cap cup mod le ge in Rightarrow implies iff sim propto subset perp")


def parse_item(tokens: Sequence[Token]) -> Value:
    """The value that all of ``tokens`` state; raises `Unsupported`."""
    if not tokens:
        raise Unsupported("an empty item")
    texts = {token.text for token in tokens}
    if texts.isdisjoint(_RELATIONAL) and ("mathbb" not in texts or "-" not in texts):
        return parse_simple(tokens)
    if len(tokens) > 1 and tokens[0].kind == "text" and tokens[0].text.lower() in ("only", "exactly"):
        tokens = tokens[1:]
    if not tokens:
        raise Unsupported("an empty item")
    if tokens[0].text == "(" and is_wrapped(tokens) and _is_statement(tokens[1:-1]):
        return parse_item(tokens[1:-1])
    bounded = parse_bound_in_words(tokens)
    if bounded is not None:
        return bounded
    labelled = _labelled(tokens)
    if labelled is not None:
        return labelled
    members, found = split(tokens, _MEMBER)
    if len(found) == 1:
        return _membership(members[0], found[0], members[1])
    equal, equalities = split(tokens, EQUALITIES)
    operation = None if equalities else _set_operation(tokens)
    if operation is not None:
        return operation
    sides, relations = split(tokens, RELATIONS)
    if relations:
        return _parse_inequality(sides, relations)
    if texts & _MODULAR:
        congruence = _with_sign(tokens, parse_congruence) or parse_congruence(tokens)
        if congruence is not None:
            return congruence
    is_set = tokens[0].text == "{" and tokens[0].kind == "command"
    if len(equal) == 2 and not is_set and not any(parse_name(side) for side in equal):
        both = _with_sign(tokens, parse_item)
        if both is not None:
            return both
    return parse_equal(equal, equalities, parse_simple) if equalities else parse_simple(tokens)


def _is_statement(inner: Sequence[Token]) -> bool:
    """Whether brackets hold a relation and no list."""
    return bool(split(inner, RELATIONS | symbols("="))[1]) and not split(inner, symbols(",;"))[1]


def _with_sign(tokens: Sequence[Token], parse: Callable[[Sequence[Token]], Value | None]) -> Value | None:
    """Both readings of tokens with one plus-minus sign; None without one."""
    signs = [i for i, token in enumerate(tokens) if token.kind == "command" and token.text in ("pm", "mp")]
    if len(signs) != 1:
        return None
    readings = [parse([*tokens[: signs[0]], Token("symbol", mark), *tokens[signs[0] + 1 :]]) for mark in "+-"]
    values = tuple(reading for reading in readings if reading is not None)
    return Listing(values) if len(values) == 2 else None


def _parse_inequality(sides: Sequence[list[Token]], relations: Sequence[str]) -> Value:
    """``x \\ne \\pm 1`` leaves out both; other inequalities hold no plus-minus."""
    if list(relations) != ["ne"]:
        return parse_inequality(sides, relations)
    values = parse_simple(sides[1]) if any(token.text == "pm" for token in sides[1]) else None
    if not isinstance(values, Listing) or parse_name(sides[0]) is None:
        return parse_inequality(sides, relations)
    return Membership(
        parse_name(sides[0]) or "", SetOperation("difference", (NumberSet("R"), Group("{", "}", values.items)))
    )


def parse_simple(tokens: Sequence[Token]) -> Value:
    """A group, matrix, number set, plus-minus, or a scalar: what holds no relation outside brackets."""
    if _BRACKETED.isdisjoint(token.text for token in tokens):
        return _parse_leaf(tokens)
    named_set = number_set(tokens)
    if named_set is not None and tokens[0].kind == "command":
        return named_set
    environment = parse_environment(tokens, parse_item, _parse_rows)
    if environment is not None:
        return environment
    is_set = is_wrapped(tokens) and tokens[0].text == "{" and tokens[0].kind == "command"
    signs = [i for i, token in enumerate(tokens) if token.kind == "command" and token.text in ("pm", "mp")]
    if signs and not is_set:
        return _plus_minus(tokens, signs)
    if len(tokens) > 4 and tokens[0].kind == "letters" and _is_point(tokens):
        return Named(tokens[0].text, parse_simple(tokens[1:]))
    transposed = len(tokens) > 3 and "".join(t.text for t in tokens[-4:] if t.text not in "{}").endswith("^T")
    if transposed:
        cut = max(i for i, token in enumerate(tokens) if token.text == "^")
        group = parse_group(tokens[:cut], parse_item)
        if group is not None:
            return group
    group = parse_group(tokens, parse_item)
    return group if group is not None else _parse_leaf(tokens)


def _is_point(tokens: Sequence[Token]) -> bool:
    """``M(-4, -3)``: a capital letter before coordinates."""
    letter = tokens[0].text
    if len(letter) != 1 or not letter.isupper() or tokens[1].text != "(" or not is_wrapped(tokens[1:]):
        return False
    return len(split(tokens[2:-1], symbols(","))[1]) in (1, 2)


def _parse_leaf(tokens: Sequence[Token]) -> Value:
    for token in tokens:
        if token.kind == "command" and token.text in _UNSUPPORTED:
            raise Unsupported(f"\\{token.text}")
    return parse_scalar(_without_approximation(tokens))


def _parse_rows(tokens: Sequence[Token]) -> Value:
    # The two modules call each other: rows and conditions are lists, whose items are parsed here.
    from ulorl.verify.grammar.lists import parse_list

    return parse_list(tokens)


def _labelled(tokens: Sequence[Token]) -> Value | None:
    """``Minimum: 1``: words before a colon name what follows."""
    sides, colons = split(tokens, symbols(":"))
    if len(colons) != 1 or not sides[0] or not sides[1]:
        return None
    label = sides[0]
    if all(token.kind in ("letters", "text") for token in label) and any(len(token.text) > 2 for token in label):
        return Named(spelling(label).lower(), parse_item(sides[1]))
    return None


def _membership(left: Sequence[Token], relation: str, right: Sequence[Token]) -> Value:
    name = parse_name(left)
    if name is None:
        parse_expression(left)  # Understood, or `Unsupported`.
        name = spelling(left)
    within = _parse_set(right)
    if relation == "notin":
        within = SetOperation("difference", (NumberSet("R"), within))
    return Membership(name, within)


def _set_operation(tokens: Sequence[Token]) -> Value | None:
    operands, found = split(_spelled_differences(tokens), _SET_OPERATORS)
    if not found:
        return None
    kinds = {"union" if f in _UNION else "intersection" if f in _INTERSECTION else "difference" for f in found}
    if len(kinds) > 1 or (kinds == {"difference"} and len(found) > 1):
        raise Unsupported("set operations that can be read in two ways")
    items = tuple(_parse_set(operand) for operand in operands)
    return SetOperation(kinds.pop(), items)  # type: ignore[arg-type]


def _spelled_differences(tokens: Sequence[Token]) -> list[Token]:
    """``\\mathbb{R} - \\{0\\}`` and the characters for a difference as \\setminus."""
    result: list[Token] = []
    for index, token in enumerate(tokens):
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        minus = token.text == "-" and following is not None and following.text == "{" and following.kind == "command"
        if token.kind == "symbol" and (token.text in "∖\\" or (minus and result and result[0].text == "mathbb")):
            result.append(Token("command", "setminus", token.spaced))
        else:
            result.append(token)
    return result


def _parse_set(tokens: Sequence[Token]) -> Value:
    """An operand of a set operation: braces without a backslash are a set here, a parenthesis may hold a set."""
    if is_wrapped(tokens) and tokens[0].text == "{" and tokens[0].kind == "symbol":
        tokens = [Token("command", "{"), *tokens[1:-1], Token("command", "}")]
    elif is_wrapped(tokens) and tokens[0].text == "(" and not split(tokens[1:-1], symbols(",;"))[1]:
        return parse_item(tokens[1:-1])
    named_set = number_set(tokens)
    return named_set if named_set is not None else parse_item(tokens)


def _without_approximation(tokens: Sequence[Token]) -> Sequence[Token]:
    """Drops ``(\\text{about } 18.9 \\text{ cards})`` at the end, if it is near the value before it."""
    start = next((i for i, token in enumerate(tokens) if i and "(" in token.text and _says_about(tokens, i)), None)
    if start is None or (tokens[-1].text not in (")", "") and not tokens[-1].text.endswith(")")):
        return tokens
    numbers = [token for token in tokens[start:] if token.kind == "number"]
    value = parse_scalar(tokens[:start])
    if len(numbers) != 1 or not isinstance(value, Scalar):
        return tokens
    return tokens[:start] if near(value.expression, parse_expression(numbers)) else tokens


def _says_about(tokens: Sequence[Token], index: int) -> bool:
    text = tokens[index].text.lower()
    if text == "(" and index + 1 < len(tokens):
        following = tokens[index + 1]
        return following.text.lower() in ("about", "approximately", "approx", "approx.", "roughly")
    return text in ("(about", "(approximately", "(approx.", "(roughly")


def _plus_minus(tokens: Sequence[Token], signs: Sequence[int]) -> Value:
    """Both values of a plus-minus; several signs are independent or, with \\mp or as a second reading, tied."""
    if len(signs) > MAX_SIGNS:
        raise Unsupported("too many plus-minus signs")

    def chosen(directions: Sequence[bool]) -> Value:
        changed = list(tokens)
        for index, upper in zip(signs, directions, strict=True):
            changed[index] = Token(
                "symbol", "+" if upper == (tokens[index].text == "pm") else "-", tokens[index].spaced
            )
        return parse_simple(changed)

    tied = Listing((chosen([True] * len(signs)), chosen([False] * len(signs))))
    if len(signs) == 1 or any(tokens[index].text == "mp" for index in signs):
        return tied
    return Alternatives((Listing(tuple(chosen(choice) for choice in product((True, False), repeat=len(signs)))), tied))
