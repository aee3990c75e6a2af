"""Units of measurement and currencies: which words are units, their sizes and what they measure.

A unit is read by our own grammar from a fixed list of names; the sizes of single names are those of pint, as exact
rationals (`unit_sizes`). Invariants: a text is a unit only if all of it is understood; a
name with several meanings (m for metre and minute, C for coulomb and Celsius, pound for mass and money) has
several readings. Months and years are a dimension of their own, because they have no fixed number of days, and
every currency is one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache

from ulorl.verify.grammar.unit_names import CURRENCIES, NAMES, OWN, PREFIXED_NAMES, PREFIXED_SYMBOLS, PREFIXES, SYMBOLS
from ulorl.verify.grammar.unit_sizes import SIZES

MAX_READINGS = 16
MAX_PIECES = 24
_PIECE = re.compile(r"\\?[A-Za-zµμΩÅ]+|[°][A-Z]?|[\u4e00-\u9fff]+|\d+|\S")
_POWER_WORDS = {"square": 2, "squared": 2, "sq": 2, "cubic": 3, "cubed": 3, "cu": 3}
_CHINESE_POWERS = {"平方": 2, "立方": 3}
_DIMENSION = re.compile(r"([a-z]+)(-?\d)?")


@dataclass(frozen=True)
class Unit:
    """``factor * pi**pi`` base units of dimension ``dims``; ``zero`` is the offset of a temperature scale."""

    factor: Fraction
    dims: tuple[tuple[str, int], ...]
    pi: int = 0
    zero: Fraction | None = None


Factor = tuple[str, int, int]
"""A single name, the power of ten of its prefix, and its exponent."""
Product = tuple[Factor, ...]


@lru_cache(maxsize=4096)
def products(text: str) -> tuple[Product, ...]:
    """Every meaning of ``text`` as a product of single units, without their sizes; () where it is not a unit."""
    pieces = _PIECE.findall(text)
    if not pieces or len(pieces) > MAX_PIECES:
        return ()
    parser = _Parser(pieces)
    try:
        result = parser.product()
    except _NotAUnit:
        return ()
    return tuple(dict.fromkeys(result)) if parser.position == len(pieces) else ()


@lru_cache(maxsize=4096)
def readings(text: str) -> tuple[Unit, ...]:
    """Every meaning of a unit such as ``km/h``, ``kg m/s^2`` or ``square feet``; () where it is not a unit."""
    units = []
    for product in products(text):
        unit = Unit(Fraction(1), ())
        for name, power, exponent in product:
            unit = _times(unit, _size(name), power, exponent)
        if len(product) == 1 and product[0][2] == 1:
            unit = replace(unit, zero=_size(product[0][0]).zero)
        units.append(unit)
    return tuple(dict.fromkeys(units))


class _NotAUnit(Exception):
    pass


class _Parser:
    """``unit (("/" | "per" | "*" | "-" | "") unit)*``; everything after "/" or "per" divides."""

    def __init__(self, pieces: list[str]) -> None:
        self.pieces = pieces
        self.position = 0

    def peek(self) -> str:
        return self.pieces[self.position] if self.position < len(self.pieces) else ""

    def product(self) -> list[Product]:
        divides = False
        result: list[Product] = [()] if self.peek() in ("/", "per") else self.power()
        while (piece := self.peek()) and piece != ")":
            if piece in ("/", "per"):
                divides = True
                self.position += 1
            elif piece in ("*", "·", "-", "."):
                self.position += 1
            sign = -1 if divides else 1
            result = [a + _raise(b, sign) for b in self.power() for a in result]
            if len(result) > MAX_READINGS:
                raise _NotAUnit
        return result

    def power(self) -> list[Product]:
        exponent = _POWER_WORDS.get(self.peek().lower(), 1)
        if exponent != 1:
            self.position += 1
            if self.peek() == ".":
                self.position += 1
        base = self.atom()
        after = _POWER_WORDS.get(self.peek().lower(), 1)
        if after != 1 and self.peek().lower().endswith("d") and exponent == 1:
            self.position += 1
            exponent = after
        elif self.peek() == "^":
            self.position += 1
            sign = 1
            if self.peek() == "-":
                self.position += 1
                sign = -1
            if not re.fullmatch("[1-9]", self.peek()) or exponent != 1:
                raise _NotAUnit
            exponent = sign * int(self.peek())
            self.position += 1
        return [_raise(product, exponent) for product in base]

    def atom(self) -> list[Product]:
        piece = self.peek()
        self.position += 1
        if piece == "(":
            inner = self.product()
            if self.peek() != ")":
                raise _NotAUnit
            self.position += 1
            return inner
        table = _spellings()
        if self.peek() and (found := table.get(f"{piece} {self.peek()}")):
            self.position += 1
            return [((name, power, 1),) for name, power in found]
        found = table.get(piece) or (table.get(piece.lower()) if len(piece) > 3 else None)
        if not found:
            exponent = _CHINESE_POWERS.get(piece[:2], 0)
            found = table.get(piece[2:]) if exponent else None
            if not found:
                raise _NotAUnit
            return [((name, power, exponent),) for name, power in found]
        if self.peek() == "." and len(piece) <= 4:  # an abbreviation such as "ft."
            self.position += 1
        return [((name, power, 1),) for name, power in found]


def _raise(product: Product, exponent: int) -> Product:
    if exponent == 1:
        return product
    raised = tuple((name, power, old * exponent) for name, power, old in product)
    if any(not -9 <= new <= 9 for _, _, new in raised):
        raise _NotAUnit
    return raised


def _times(a: Unit, b: Unit, power: int, exponent: int) -> Unit:
    dims = dict(a.dims)
    for name, old in b.dims:
        dims[name] = dims.get(name, 0) + old * exponent
    kept = tuple(sorted((name, exponent) for name, exponent in dims.items() if exponent))
    return Unit(a.factor * (b.factor * Fraction(10) ** power) ** exponent, kept, a.pi + exponent * b.pi)


@cache
def _spellings() -> dict[str, tuple[tuple[str, int], ...]]:
    """Spelling -> (pint's or our own name, power of ten of its prefix), the most usual first."""
    table: dict[str, dict[tuple[str, int], None]] = {}

    def add(spelling: str, name: str, power: int = 0) -> None:
        table.setdefault(spelling, {})[name, power] = None

    for name, symbols in SYMBOLS.items():
        for symbol in symbols.split():
            add(symbol, name)
    for name, spellings in [*NAMES.items(), *OWN.items(), *CURRENCIES.items()]:
        for spelling in spellings.split(","):
            add(spelling, name)
    for prefix, (prefix_symbols, power) in PREFIXES.items():
        for name, bases in PREFIXED_NAMES.items():
            for base in bases.split():
                add(prefix + base, name, power)
        for name, bases in PREFIXED_SYMBOLS.items():
            for base in bases.split():
                for symbol in prefix_symbols.split():
                    add(symbol + base, name, power)
    return {spelling: tuple(meanings) for spelling, meanings in table.items()}


_OWN_SIZES = {
    "degree": Unit(Fraction(1), (("angle", 1),)),
    "arcminute": Unit(Fraction(1, 60), (("angle", 1),)),
    "arcsecond": Unit(Fraction(1, 3600), (("angle", 1),)),
    "gradian": Unit(Fraction(9, 10), (("angle", 1),)),
    "turn": Unit(Fraction(360), (("angle", 1),)),
    "radian": Unit(Fraction(180), (("angle", 1),), pi=-1),
    "kelvin": Unit(Fraction(1), (("temperature", 1),), zero=Fraction(0)),
    "celsius": Unit(Fraction(1), (("temperature", 1),), zero=Fraction(27315, 100)),
    "fahrenheit": Unit(Fraction(5, 9), (("temperature", 1),), zero=Fraction(45967, 180)),
    "month": Unit(Fraction(1), (("calendar", 1),)),
    "year": Unit(Fraction(12), (("calendar", 1),)),
    "decade": Unit(Fraction(120), (("calendar", 1),)),
    "century": Unit(Fraction(1200), (("calendar", 1),)),
    "acre": Unit(Fraction("4046.8564224"), (("length", 2),)),  # 4,840 square yards, of which 640 are a square mile
    "rpm": Unit(Fraction(6), (("angle", 1), ("time", -1))),
}


@cache
def _size(name: str) -> Unit:
    if name in _OWN_SIZES:
        return _OWN_SIZES[name]
    if name in CURRENCIES:
        currency, _, part = name.partition("/")
        return Unit(Fraction(1, int(part or 1)), ((currency, 1),))
    factor, spelled = SIZES[name]
    dims = (_DIMENSION.fullmatch(part) for part in spelled.split())
    return Unit(Fraction(factor), tuple((found[1], int(found[2] or 1)) for found in dims if found))
