"""Parsed answers in readable words, for people who want to know why a verdict is what it is."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from ulorl.verify.exact.algebra import Application, Expression, Terms
from ulorl.verify.grammar.scalars import ORDINAL
from ulorl.verify.grammar.values import (
    Alternatives,
    Based,
    Choice,
    Clock,
    Condition,
    Conditioned,
    Congruence,
    Date,
    Equation,
    Group,
    Listing,
    Matrix,
    Membership,
    Named,
    NumberSet,
    Ordering,
    Piecewise,
    Ratio,
    Scalar,
    SetOperation,
    Value,
    Word,
)

MAX_SHOWN = 400


def describe(value: Value) -> str:
    """What the grammar took an answer for."""
    return _cut(_describe(value))


def describe_expression(expression: Expression) -> str:
    """The canonical form, as plain text."""
    return _cut(_expression(expression))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."


def _describe(value: Value) -> str:
    match value:
        case Scalar():
            return _scalar(value)
        case Ratio():
            text = f"the ratio {' : '.join(map(_expression, value.parts))}"
            return text if value.seconds is None else f"{text} (or the time of day {_time(value.seconds)})"
        case Clock():
            return f"the time of day {_time(value.seconds)}" + ("" if value.certain else ", am or pm left open")
        case Date():
            return "the date " + " or ".join(map(_date, sorted(value.readings)))
        case Based():
            return f"the number {value.digits} in base {value.base}"
        case Word():
            return f"the choice {value.text}" if value.is_choice else f"the words {value.text!r}"
        case Choice():
            return f"the choice {value.letter}, which is {_describe(value.content)}"
        case Group():
            return _group(value)
        case Listing():
            joiner = {",": "", "or": ' joined by "or"', "and": ' joined by "and"'}.get(value.joiner, "")
            return f"a list{joiner}: {_items(value.items)}"
        case Alternatives():
            return "either " + ", or ".join(map(_describe, value.readings))
        case NumberSet():
            return f"the set of numbers {value.name}"
        case SetOperation():
            return f"the {value.operator} of {_items(value.items)}"
        case Named():
            return f"{value.name} = {_describe(value.value)}"
        case Membership():
            return f"{value.name or 'what is asked for'} in {_describe(value.within)}"
    return _describe_statement(value)


def _describe_statement(value: Value) -> str:
    match value:
        case Equation():
            return f"the equation {_expression(value.left)} = {_expression(value.right)}"
        case Ordering():
            signs = [*value.relations, ""]
            chain = " ".join(f"{_expression(item)} {sign}" for item, sign in zip(value.items, signs, strict=True))
            return f"the inequality {chain.rstrip()}"
        case Congruence():
            modulus = "a modulus not given" if value.modulus is None else _expression(value.modulus)
            name = f"{value.name} " if value.name else ""
            return f"{name}congruent to {_expression(value.residue)} modulo {modulus}"
        case Conditioned():
            return f"{_describe(value.value)}, where {' and '.join(map(_condition, value.conditions))}"
        case Piecewise():
            return "by cases: " + "; ".join(f"{_describe(one)} if {_describe(when)}" for one, when in value.rows)
        case Matrix():
            return f"a {len(value.rows)} x {len(value.rows[0])} matrix with rows " + " ".join(map(_items, value.rows))
    return repr(value)


def _scalar(value: Scalar) -> str:
    exact = value.expression.rational() is not None
    text = f"{'number' if exact else 'expression'} {_expression(value.expression)}"
    if value.unit == "%":
        text += " percent"
    elif value.unit == ORDINAL:
        text += " in a row (an ordinal)"
    elif value.unit:
        text += f" with unit {'money' if value.unit == '$' else repr(value.unit)}"
    if value.step is not None:
        text += f", a decimal to the nearest {value.step}" if value.step else ", a decimal whose digits repeat"
    return text + (f" (or {_describe(value.other)})" if value.other is not None else "")


def _group(value: Group) -> str:
    if value.opening == "{":
        return f"a set: {_items(value.items)}" if value.items else "the empty set"
    return f"a bracketed list {value.opening} {value.closing}: {_items(value.items)}"


def _items(items: Iterable[Value]) -> str:
    return "[" + "; ".join(map(_describe, items)) + "]"


def _time(seconds: int) -> str:
    hours, rest = divmod(seconds, 3600)
    return f"{hours:02}:{rest // 60:02}" + (f":{rest % 60:02}" if rest % 60 else "")


def _date(reading: tuple[int, int, int]) -> str:
    year, month, day = reading
    parts = [f"{year:04}" if year else "", f"{month:02}", f"{day:02}" if day else ""]
    return "-".join(part for part in parts if part)


def _condition(condition: Condition) -> str:
    if condition.domain.startswith("?"):
        return repr(condition.domain[1:])
    return f"{', '.join(condition.names)} in {condition.domain}"


def _expression(expression: Expression) -> str:
    above, below = _sum(expression.numerator), _sum(expression.denominator)
    return above if below == "1" else f"({above})/({below})"


def _sum(terms: Terms) -> str:
    if not terms:
        return "0"
    text = " + ".join(_term(coefficient, *monomial) for monomial, coefficient in sorted(terms.items()))
    return text.replace("+ -", "- ")


def _term(coefficient: Fraction, radicand: int, imaginary: int, atoms: Iterable[tuple[str, int]]) -> str:
    factors = [f"sqrt({radicand})"] * (radicand != 1) + ["i"] * bool(imaginary)
    factors += [_atom(name) + (f"^{power}" if power != 1 else "") for name, power in atoms]
    if not factors:
        return str(coefficient)
    sign = {Fraction(1): "", Fraction(-1): "-"}.get(coefficient, f"{coefficient} ")
    return sign + " ".join(factors)


def _atom(name: str) -> str:
    if isinstance(name, Application):
        return f"{name.name}({', '.join(map(_expression, name.arguments))})"
    return name
