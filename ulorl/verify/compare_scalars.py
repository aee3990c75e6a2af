"""Three-valued comparison of numbers, expressions and words. See `compare` for the policies."""

from __future__ import annotations

from ulorl.verify import algebra
from ulorl.verify.algebra import Expression
from ulorl.verify.normalise import MONEY
from ulorl.verify.outcome import DIFFERENT, EQUAL, Outcome, undecided
from ulorl.verify.policy import Policy
from ulorl.verify.values import Based, Scalar, Word

_OPPOSITES = ({"yes", "no"}, {"true", "false"})


def compare_scalars(a: Scalar, b: Scalar, policy: Policy) -> Outcome:
    numbers = compare_expressions(a.expression, b.expression, policy)
    if a.unit == b.unit:
        return numbers
    if "%" in (a.unit, b.unit):
        return _compare_percent(a, b, policy)
    if "" in (a.unit, b.unit):
        return numbers if numbers.relation == "equal" else _compare_angles(a, b, numbers)
    if {a.unit, b.unit} <= {MONEY, "dollar", "usd"}:
        return numbers
    return undecided(f"{a.unit} against {b.unit}")


def _compare_angles(a: Scalar, b: Scalar, otherwise: Outcome) -> Outcome:
    """Degrees against radians."""
    if "degree" not in (a.unit, b.unit):
        return otherwise
    degrees, radians = (a, b) if a.unit == "degree" else (b, a)
    factor = algebra.divide(algebra.atom("pi"), algebra.number(180))
    return EQUAL if algebra.same(algebra.multiply(degrees.expression, factor), radians.expression) else otherwise


def _compare_percent(a: Scalar, b: Scalar, policy: Policy) -> Outcome:
    if a.unit and b.unit:
        return undecided("percent against a unit")
    percent, plain = (a, b) if a.unit else (b, a)
    if algebra.same(percent.expression, plain.expression):
        return EQUAL
    share = algebra.divide(percent.expression, algebra.number(100))
    return compare_expressions(share, plain.expression, policy)


def compare_expressions(a: Expression, b: Expression, policy: Policy) -> Outcome:
    if algebra.same(a, b):
        return EQUAL
    x, y = a.rational(), b.rational()
    if x is not None and y is not None:
        return EQUAL if abs(x - y) <= policy.relative_tolerance * max(abs(x), abs(y)) else DIFFERENT
    atoms_a, atoms_b = a.atoms(), b.atoms()
    if any(name.startswith("@") for name in atoms_a | atoms_b):
        return undecided("functions that are not evaluated")
    if policy.relative_tolerance and algebra.INFINITY not in atoms_a | atoms_b:
        return undecided("tolerance of irrational values")
    if atoms_a - algebra.CONSTANTS - {algebra.INFINITY} != atoms_b - algebra.CONSTANTS - {algebra.INFINITY}:
        return undecided("other variables")
    return DIFFERENT


def compare_words(a: Word, b: Word) -> Outcome:
    if a == b:
        return EQUAL
    if a.is_choice and b.is_choice:
        return DIFFERENT
    if any({a.text, b.text} == pair for pair in _OPPOSITES):
        return DIFFERENT
    return undecided("words that differ")


def compare_based(a: Based, b: Based | Scalar) -> Outcome:
    value = int(a.digits, a.base)
    if isinstance(b, Based):
        return EQUAL if value == int(b.digits, b.base) else DIFFERENT
    rational = b.expression.rational()
    if rational is None or b.unit or str(rational) == a.digits:
        return undecided("a base on one side only")
    return EQUAL if rational == value else DIFFERENT
