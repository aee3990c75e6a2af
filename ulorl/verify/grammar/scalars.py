"""Parses one value with its currency sign, percent sign, degree sign or trailing unit.

Rules of what is a unit: it follows a number or a closing bracket, and is text, a word of four letters or more
after a space, or a short symbol that is no product of variables (cm, kJ). A word that is no unit of measurement
is a count noun and only labels the number; words that change a number ("squared", "or") are neither. One letter
after a space ("3 m") is a unit whose second reading is a variable, without a space ("3m") the other way round.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from ulorl.verify.exact import algebra
from ulorl.verify.exact.algebra import Expression, Unsupported
from ulorl.verify.grammar import units
from ulorl.verify.grammar.characters import MONEY
from ulorl.verify.grammar.expressions import parse_expression
from ulorl.verify.grammar.number_words import MULTIPLES
from ulorl.verify.grammar.primaries import parse_number
from ulorl.verify.grammar.times import clock_seconds
from ulorl.verify.grammar.tokens import Token, tokenise, words
from ulorl.verify.grammar.values import Group, Ratio, Scalar, Value, Word

MAX_UNIT_WORDS = 6
MONEY_SIGNS = frozenset({MONEY, "€", "£", "¥", "￥", "₹"})
CURRENCY_CODES = words("USD EUR GBP CNY RMB JPY INR CHF Rs")
ORDINAL = "ordinal"
SUBSTANCE = " of "
"""Between a unit and what is measured: "146 g of hcl"."""
_SHORT_UNITS = words(
    """mm cm dm km nm µm μm um kg mg lb lbs oz ft in yd yds mi nmi mL ml cL dL kL hr hrs min mins sec secs yr yrs wk
    wks mph kph kmh psi rpm rad rads deg kJ MJ kW MW GW mW kN mN MN Hz kHz MHz GHz Pa kPa MPa eV keV MeV GeV atm mol
    mols cal kcal kWh mA mV kV kg gm gms cc gal qt hp ha GB MB KB kB TB Btu BTU bar Wb lbf day days hour cup cups mile
    acre cent cents foot feet inch year week USD EUR yen euro euros yuan pint pound gram liter litre meter metre
    dollar dollars torr tons ton turn watt volt joule dozen dyn erg ergs mmol"""
)
_BARE_LETTERS = words("m g s h N J W V A K C L")
_COUNT_WORDS = words(
    "men pie pies egg eggs pen pens box cow cows dog dogs cat cats bag bags car cars toy toys way ways boy boys kid "
    "kids red set sets bus hen hens ant ants nut nuts bus pig pigs row rows job jobs key keys hat hats cup pts"
)
_NOT_UNITS = words(
    """and or am pm to if not no in mod plus minus between from than at least most about hundred thousand million
    billion trillion half halves third thirds quarter quarters percent where when is are was infinity pi squared
    cubed factorial choose root roots power over less unless except but
    dozen ten twenty tenth hundredth thousandth fourth fifth sixth seventh eighth ninth below above under beyond before
    after ago away short each off sin cos tan cot sec csc log exp sqrt arcsin arccos
    arctan alpha beta gamma delta epsilon theta lambda sigma omega"""
)
_GENERIC = re.compile(r"(?i)(?:(?:square|sq|cubic|cu)\.? ?)?units?(?:\.|\^[23]| squared| cubed)?(?: of length)?")
_PERCENT = words("percent percentage pct 百分")
_NOUN = re.compile(r"\(?(?:[A-Za-z]{2,}\.?(?:['’]s)?|a)(?:[ /-](?:[A-Za-z]{2,}|a)){0,5}\)?|[\u4e00-\u9fff]{1,4}")
_IRREGULAR = {"feet": "foot", "inches": "inch", "men": "man", "women": "woman", "children": "child", "people": "person"}
_SPELLED = {"degree": "°", "mu": "µ", "Omega": "Ω", "ohm": "Ω", "cdot": "*", "times": "*", "AA": "Å"}
_NUMERIC = words("- + times cdot ^ { }")
_ARITHMETIC = _NUMERIC | words("frac sqrt div overline")
_OPERATORS = words("_ ^ / ( * + - = [ {")
_HOURS = words("h hr hrs hour hours")
_DEGREES = words("° deg degrees degree Degrees")
_ORDINAL = re.compile(r"(?:st|nd|rd|th)(?: [a-z]+)?$")
_PLURAL = re.compile(r"[a-z]*[aeiou][a-z]*[b-df-hj-np-tv-z]s|[a-z]*[aeiou][a-z]*es")
_FUNCTION = re.compile(r"sin|cos|tan|cot|sec|csc|ln|log|exp|sqrt|pi|mod|max|min")
_ELEMENTS = "H|He|Li|Be|B|C|N|O|F|Ne|Na|Mg|Al|Si|P|S|Cl|CL|K|Ca|Ti|Cr|Mn|Fe|Co|Ni|Cu|Zn|Br|BR|Ag|Sn|I|Ba|Pt|Au|Hg|Pb"
_FORMULA = re.compile(rf"(?=..)(?:(?:{_ELEMENTS})(?:_?\{{?\d{{1,2}}\}}?)?){{1,8}}")
_AMOUNTS = words("gram mole liter pound ounce force_pound fluid_ounce kilogram")
_DIGIT = re.compile(r"\d")


def parse_scalar(tokens: Sequence[Token]) -> Value:
    """One number or expression with what is written around it, a ratio, or plain words; raises `Unsupported`."""
    if not tokens:
        raise Unsupported("an empty item")
    if len(tokens) == 1:
        if tokens[0].text == "emptyset":
            return Group("{", "}", ())
        if tokens[0].kind == "number":
            return _number(tokens)
    texts = [token.text for token in tokens]
    if any(text in MONEY_SIGNS or text in CURRENCY_CODES for text in texts[:2]):
        return _money(tokens)
    if len(tokens) == 3 and texts[1] == "to" and tokens[0].kind == tokens[2].kind == "number":
        return Ratio((parse_expression(tokens[:1]), parse_expression(tokens[2:])))
    if ":" in texts and (ratio := _ratio(tokens)):
        return ratio
    if texts[-1] == "%" or (texts[-1].lower() in _PERCENT and len(tokens) > 1):
        return _number(tokens[:-1], "%")
    if texts[-1] == "per cent" or texts[-2:] == ["per", "cent"]:
        return _number(tokens[: -1 if texts[-1] == "per cent" else -2], "%")
    if texts[-1] == "degree" and all(t.kind in ("number", "symbol") or t.text in _ARITHMETIC for t in tokens[:-1]):
        return _number(tokens[:-1], "degree")
    compound = compound_quantity(tokens)
    if compound is not None:
        return compound
    with_unit = _with_unit(tokens)
    if with_unit is not None:
        return with_unit
    spelled = all(token.kind in ("text", "letters") and not _DIGIT.search(token.text) for token in tokens)
    if spelled and any(len(text) > 3 for text in texts):
        return Word(" ".join(texts).lower())
    return _number(tokens)


def _number(tokens: Sequence[Token], unit: str = "") -> Scalar:
    if len(tokens) == 3 and tokens[1].text == "over" and tokens[0].kind == tokens[2].kind == "number":
        tokens = [tokens[0], Token("symbol", "/"), tokens[2]]
    expression = parse_expression(tokens)
    return Scalar(expression, unit, _step(tokens, expression))


def _step(tokens: Sequence[Token], expression: Expression) -> Fraction | None:
    """Place value of the last digit of a decimal numeral, perhaps times a power of ten; 0 where digits repeat."""
    start = next((i for i, token in enumerate(tokens) if token.text not in ("-", "+", "(")), len(tokens))
    if start == len(tokens) or tokens[start].kind != "number" or "." not in tokens[start].text:
        return None
    text = tokens[start].text
    value, mantissa = expression.rational(), parse_number(text)
    if any(token.text in ("overline", "dots", "dot") for token in tokens):
        return Fraction(0)
    if not value or not mantissa:
        return None
    scale = abs(value / mantissa)
    if scale != 1 and (start + 1 == len(tokens) or tokens[start + 1].text not in ("times", "cdot", "*", "e", "E")):
        return None
    power = (scale.numerator * scale.denominator) if 1 in (scale.numerator, scale.denominator) else 0
    if not power or str(power).strip("0") != "1":
        return None
    return scale / 10 ** len(text.partition(".")[2])


def _money(tokens: Sequence[Token]) -> Value:
    signs = [i for i, token in enumerate(tokens) if token.text in MONEY_SIGNS or token.text in CURRENCY_CODES]
    rest = [token for i, token in enumerate(tokens) if i not in signs]
    if len(signs) > 1 or not rest:
        raise Unsupported("several currency signs")
    value = parse_scalar(rest)
    if not isinstance(value, Scalar):
        raise Unsupported("a currency sign before something other than a number")
    sign = tokens[signs[0]].text
    sign = "$" if sign == MONEY else sign
    if value.unit == "%":
        raise Unsupported("a currency sign and percent")
    if not value.unit or {unit.dims for unit in units.readings(value.unit)} & {u.dims for u in units.readings(sign)}:
        return replace(value, unit=sign, other=None)
    return replace(value, unit=f"{sign} {value.unit}", other=None)


def _ratio(tokens: Sequence[Token]) -> Ratio | None:
    """``a : b : c``; None where a colon stands inside brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if token.text == ":" and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    if len(parts) == 1:
        return None
    if not all(parts):
        raise Unsupported("an empty term of a ratio")
    seconds = None
    if len(parts) <= 3 and all(len(part) == 1 and part[0].text.isdigit() for part in parts):
        seconds = clock_seconds(*(part[0].text for part in parts))
    return Ratio(tuple(parse_expression(part) for part in parts), seconds)


def compound_quantity(tokens: Sequence[Token]) -> Scalar | None:
    """``5 ft 6 in``, ``1 hour and 30 minutes``, ``30°15'``: numbers with units that fall, as one quantity."""
    if tokens[0].kind != "number":
        return None
    tokens = [
        part
        for token in tokens
        if token.text not in ("and", "{", "}")
        for part in (tokenise(token.text) if token.kind == "text" and _DIGIT.search(token.text) else [token])
    ]
    starts = [i for i, token in enumerate(tokens) if token.kind == "number"]
    if not 1 <= len(starts) <= 4 or any(b - a < 2 for a, b in pairwise(starts)):
        return None
    ends = [*starts[1:], len(tokens)]
    spelled = [_unit_text(tokens[i + 1 : end]) for i, end in zip(starts, ends, strict=True)]
    if spelled[-1] in ("'", '"', "''"):
        marks = {"°": "degree", "'": "arcminute", '"': "arcsecond", "''": "arcsecond"}
        if spelled[0] == "'" and len(spelled) > 1:
            marks = {"'": "foot", '"': "inch", "''": "inch"}
        elif spelled[0] != "°":
            return None
        spelled = [marks.get(text, "") for text in spelled]
    elif len(starts) < 2:
        return None
    if spelled[0] in _HOURS:
        spelled = ["minute" if text == "m" else text for text in spelled]
    if not all(spelled) or not all(units.products(text) for text in spelled):
        return None
    found = [units.readings(text)[0] for text in spelled]
    if len({unit.dims for unit in found}) != 1 or any(unit.pi for unit in found):
        return None
    total, larger = Fraction(0), None
    for start, unit in zip(starts, found, strict=True):
        amount = parse_number(tokens[start].text) * unit.factor
        if larger is not None and not (unit.factor < larger and amount < larger):
            return None
        total, larger = total + amount, unit.factor
    return Scalar(algebra.number(total / found[0].factor), spelled[0])


def _with_unit(tokens: Sequence[Token]) -> Scalar | None:
    """A number followed by a unit or count noun; None where there is none."""
    depth = 0
    for index in range(1, len(tokens)):
        before, token = tokens[index - 1], tokens[index]
        depth += (before.text in ("(", "[", "{")) - (before.text in (")", "]", "}"))
        if depth > 0 and token.kind == "command" and token.text == "degree":  # of an angle within
            continue
        if token.kind in ("number", "symbol") and token.text not in ("µ", "μ", "Ω", "(", "Å", "℃", "℉", "/"):
            continue
        if (before.kind == "symbol" and before.text in _OPERATORS) or before.text in ("frac", "sqrt"):
            continue
        first = token.text.split()[0].lower() if token.text else ""
        if first in MULTIPLES and token.kind in ("letters", "text"):
            return _multiple(tokens, index, first)
        certain = token.kind != "letters" or any(t.text == "Omega" for t in tokens[index:])
        if token.text == "(" and not (before.kind == "number" and _is_word_unit(tokens[index + 1 :])):
            continue
        if token.kind == "command" and token.text not in ("degree", "mu", "Omega"):
            continue
        if token.text in _SPELLED and token.kind == "command" and index + 1 == len(tokens):
            return _bare(tokens, index, "Ω") if token.text == "Omega" else None
        text = _unit_text(tokens[index:])
        if units.products(text):
            if token.text == "/" and not (before.kind == "number" and _is_word_unit(tokens[index + 1 :])):
                continue
            if certain:
                return _quantity(tokens[:index], text)
            if token.kind == "letters":
                return _bare(tokens, index, text)
        elif (measured := _measured(tokens, index)) is not None:
            return _number(tokens[:index], measured)
        elif token.kind in ("letters", "text") and _is_noun(tokens[index:], text):
            return _quantity(tokens[:index], _singular(text))
        elif token.kind in ("text", "letters") and _GENERIC.fullmatch(text):
            return _number(tokens[:index])
    return None


def _measured(tokens: Sequence[Token], index: int) -> str | None:
    """``g of water`` and ``g HCl``: a unit, and what there is so much of; None for anything else."""
    if tokens[index - 1].kind != "number":
        return None
    parts = " ".join(token.text for token in tokens[index:]).split()
    if "of" in parts[1:-1] and all(part.isalpha() for part in parts):
        cut = parts.index("of")
        unit, what = " ".join(parts[:cut]), " ".join(parts[cut + 1 :])
        is_unit = unit not in _DEGREES and bool(units.products(unit))
        return f"{unit}{SUBSTANCE}{what.lower()}" if is_unit and len(parts) - cut <= MAX_UNIT_WORDS else None
    formula = "".join(parts[1:])
    if not _FORMULA.fullmatch(formula):
        return None
    names = {name for product in units.products(parts[0]) for name, _, _ in product}
    return f"{parts[0]}{SUBSTANCE}{formula}" if names and names <= _AMOUNTS else None


def _is_word_unit(tokens: Sequence[Token]) -> bool:
    """Whether a bracket or "/" after a number begins a unit, as in "5 (cm)" and "$5/hour", and no factor "5 (t)"."""
    return bool(tokens) and (tokens[0].kind == "text" or tokens[0].text in _SHORT_UNITS or len(tokens[0].text) > 3)


def _quantity(tokens: Sequence[Token], unit: str) -> Scalar:
    if _GENERIC.fullmatch(unit):
        unit = ""
    elif _ORDINAL.match(unit):
        unit = ORDINAL
    elif unit in _DEGREES:
        unit = "degree"
    return _number(tokens, unit)


def _bare(tokens: Sequence[Token], index: int, text: str) -> Scalar | None:
    """A unit in plain letters: certain for words and well-known symbols, else one of two readings."""
    first = tokens[index].text
    if first in _SHORT_UNITS or (len(first) > 3 and tokens[index].kind == "letters"):
        glued = index == 1 and tokens[0].kind == "number" and first.islower()
        certain = tokens[index].spaced or glued or first in _SHORT_UNITS
        return _quantity(tokens[:index], text) if certain else None
    if len(first) == 1 and first not in _BARE_LETTERS:
        return None
    if any(token.kind in ("letters", "text") for token in tokens[:index]):
        return None
    likely = tokens[index].spaced and all(t.kind == "number" or t.text in _NUMERIC for t in tokens[:index])
    unit = _quantity(tokens[:index], text)
    try:
        variable = Scalar(parse_expression(tokens))
    except Unsupported:
        return unit if likely else None
    return replace(unit, other=variable) if likely else replace(variable, other=unit)


def _multiple(tokens: Sequence[Token], index: int, word: str) -> Scalar:
    """``3 million``, ``5 dozen eggs``: the number times what the word says, with the unit behind it."""
    rest = tokens[index].text.split()[1:]
    tail = ([Token(tokens[index].kind, " ".join(rest), True)] if rest else []) + list(tokens[index + 1 :])
    one = Token("number", "1")
    unit = parse_scalar([one, *tail]) if tail else Scalar(algebra.number(1))
    if not isinstance(unit, Scalar) or unit.expression.rational() is None or unit.unit == "%":
        raise Unsupported(f"the word {word!r} before something other than a unit")
    value = _number(tokens[:index])
    times = algebra.multiply(algebra.number(MULTIPLES[word]), unit.expression)
    step = None if value.step is None else value.step * MULTIPLES[word]
    return Scalar(algebra.multiply(value.expression, times), unit.unit, step)


def _is_noun(tokens: Sequence[Token], text: str) -> bool:
    if not _NOUN.fullmatch(text) or len(text.split()) > MAX_UNIT_WORDS:
        return False
    if any(
        not {part.lower(), part.lower().removesuffix("s")}.isdisjoint(_NOT_UNITS)
        for part in re.split(r"[ /-]", text.strip("()"))
    ):
        return False
    first = tokens[0]
    if first.kind == "text":
        return True
    if not first.spaced:
        return first.text in _COUNT_WORDS or (len(tokens) == 1 and _is_plural(first.text))
    return first.text in _COUNT_WORDS or len(first.text) > 3 or (len(first.text) == 3 and len(tokens) > 1)


def _is_plural(text: str) -> bool:
    """``apples`` of "5apples", which is no product of variables and no function."""
    return _PLURAL.fullmatch(text) is not None and not _FUNCTION.search(text)


def _unit_text(tokens: Sequence[Token]) -> str:
    """The unit as written, without braces; spaces where the text had them or a word ended."""
    parts: list[str] = []
    for token in tokens:
        if token.text in ("{", "}") and token.kind == "symbol":
            continue
        word = token.kind in ("text", "letters")
        if parts and parts[-1] != "µ" and (token.spaced or token.kind == "text") and (word or token.kind == "number"):
            parts.append(" ")
        parts.append(_SPELLED.get(token.text, token.text) if token.kind == "command" else token.text)
    return " ".join("".join(parts).split())


def _singular(text: str) -> str:
    """One spelling a noun: lower case, the last word in the singular."""
    text = text.strip("() ").lower()
    head, _, last = text.rpartition(" ")
    last = _IRREGULAR.get(last, last.removesuffix("s") if len(last) > 3 else last)
    return f"{head} {last}".strip()
