"""How large a sympy expression can become, estimated before anything is evaluated.

The estimate is the binary logarithm of an upper bound of the absolute value and of its reciprocal, with every variable
between 1/16 and 16; it costs one pass over the tree and no big integer.
"""

from __future__ import annotations

from math import e as euler
from math import inf, log2, pi
from typing import Any

MAX_BITS = 20_000.0
"""Of any value on the way, also inside a fraction or a logarithm."""
MAX_NODES = 2_000
MAX_RANGE = 2_000
"""Terms of a sum or factors of a product between given bounds."""
MAX_NESTED_RANGE = 40
"""The same, where each is a sum or product itself."""
SYMBOL_BITS = 4.0


def check_growth(expression: Any) -> str:
    """Why ``expression`` must not be evaluated; "" where it may."""
    import sympy

    for count, _ in enumerate(sympy.preorder_traversal(expression)):
        if count > MAX_NODES:
            return "expression too large"
    return "" if _bits(expression) <= MAX_BITS else "number too large"


def literal_digits(expression: Any) -> int:
    """Decimal digits of all numerals together."""
    import sympy

    return sum(
        int((abs(number.p).bit_length() + number.q.bit_length()) * 0.302) + 1
        for number in sympy.preorder_traversal(expression)
        if isinstance(number, sympy.Rational)
    )


def _bits(e: Any) -> float:
    """Upper bound of |log2|e||, infinite where a part of ``e`` is already too large."""
    import sympy

    if isinstance(e, sympy.Rational):
        return float(max(abs(e.p).bit_length(), e.q.bit_length()))
    if e.is_Atom:
        return _CONSTANTS.get(str(e), SYMBOL_BITS)
    if isinstance(e, sympy.Sum | sympy.Product | sympy.Integral | sympy.Limit):
        return _bits_of_range(e)
    parts = [_bits(part) for part in e.args]
    if not parts or max(parts) > MAX_BITS:
        return inf if parts else 0.0
    if isinstance(e, sympy.Add):
        return max(parts) + log2(len(parts))
    if isinstance(e, sympy.Mul):
        return sum(parts)
    if isinstance(e, sympy.Pow):
        return _size(e.args[1], parts[1]) * max(parts[0], 1.0)
    if isinstance(e, sympy.exp | sympy.sinh | sympy.cosh):
        return 1.5 * _size(e.args[0], parts[0])
    if isinstance(e, sympy.factorial):
        return _size(e.args[0], parts[0]) * max(parts[0], 1.0)
    if isinstance(e, sympy.binomial):
        return _size(e.args[0], parts[0])
    return max(parts)


_CONSTANTS = {"E": log2(euler), "pi": log2(pi), "I": 0.0}


def _size(e: Any, bits: float) -> float:
    """Upper bound of |e|, infinite beyond the bound."""
    if e.is_Rational and bits < 64:
        return abs(float(e))
    return 2.0**bits if bits < 32 else inf


def _bits_of_range(e: Any) -> float:
    import sympy

    bounds = [bound for limits in e.args[1:] if isinstance(limits, sympy.Tuple) for bound in limits[1:]]
    if any(_bits(bound) > 40 for bound in bounds):
        return inf
    inner = _bits(e.args[0])
    if isinstance(e, sympy.Sum | sympy.Product):
        for limits in e.limits:
            if len(limits) != 3 or len(e.limits) > 2:
                return inf
            low, high = limits[1:]
            if low.is_Integer and high.is_Integer:
                terms = int(high) - int(low) + 1
                if terms > (MAX_NESTED_RANGE if e.args[0].has(sympy.Sum, sympy.Product) else MAX_RANGE):
                    return inf
                inner = max(inner, 1.0) * max(terms, 1) if isinstance(e, sympy.Product) else inner + log2(max(terms, 2))
    return inner
