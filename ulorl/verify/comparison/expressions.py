"""Three-valued comparison of two expressions.

Equal: the same canonical form; or the same numerical value. For constants that means at least 40 significant
digits at two precisions, both beyond the size of every number on the way; it is evidence, not proof, and there is
no known pair of short closed forms that agree so far by accident. For expressions in the same variables it means
agreement to 30 digits or more at six points or more: positive ones, and negative and complex ones but for those
where both differ only because a branch of a root or logarithm is chosen there, so that ln(xy) = ln x + ln y but not
sqrt(x^2) = x; a logarithm that only one side takes of an absolute value is left undecided. Expressions in which a
variable can only be an integer (factorials, bounds of sums, (-1)^n) are compared at integers. Functions in pieces
(absolute values, maxima) have to agree in every piece; what rounds or takes remainders has to be a quasi-polynomial,
for which integers are a proof.

Different: canonical forms without functions that differ (they are unique), or values that are apart at a point
with positive coordinates where no branch of a root, logarithm or inverse function had to be chosen.

Undecided: other variables; agreement for positive values only (sqrt(x^2) and x); a difference that a reading of
``log`` (base 10 or e) or of a plain angle (degrees or radians) makes; whatever has no value here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction

from ulorl.verify.comparison.second_opinion import second_opinion
from ulorl.verify.exact import algebra, breakpoints, numerics
from ulorl.verify.exact.algebra import Application, Expression, Unsupported
from ulorl.verify.exact.functions import apply, substitute
from ulorl.verify.outcome import DIFFERENT, EQUAL, Outcome, undecided
from ulorl.verify.policy import Policy

POINTS = 18
POSITIVE_AGREEMENTS = 4
INTEGER_AGREEMENTS = 10
OTHER_POINTS = 6
AGREEMENTS = 6
_ONE_TERM = algebra.number(1).denominator
_COMPLEX_NAMES = frozenset({"z", "w"})
IN_PIECES = undecided("equal at some points of a function in pieces")


def compare_expressions(a: Expression, b: Expression, policy: Policy) -> Outcome:
    """Equal, different or undecided. The tolerance of the policy applies to constants."""
    outcome = _compare(a, b, policy)
    if outcome.relation != "undecided" or outcome is IN_PIECES or _is_in_pieces(a) or _is_in_pieces(b):
        return outcome  # A second opinion rests on points as well.
    return second_opinion(a, b, outcome)


def _is_in_pieces(expression: Expression) -> bool:
    return breakpoints.has_steps(expression) or numerics.pieces(expression) == numerics.MANY_PIECES


def _compare(a: Expression, b: Expression, policy: Policy) -> Outcome:
    if algebra.same(a, b):
        return EQUAL
    x, y = a.rational(), b.rational()
    if x is not None and y is not None:
        return EQUAL if abs(x - y) <= policy.relative_tolerance * max(abs(x), abs(y)) else DIFFERENT
    atoms = a.atoms() | b.atoms()
    if algebra.INFINITY in atoms:
        return _compare_infinite(a, b)
    if algebra.LOG_UNIT not in atoms:
        return _compare_read(a, b, policy, 0)
    natural, decimal = (_compare_read(a, b, policy, base) for base in (0, 10))
    return natural if natural.relation == decimal.relation else undecided("a logarithm without a base")


def _compare_infinite(a: Expression, b: Expression) -> Outcome:
    if algebra.INFINITY in a.top_atoms() and algebra.INFINITY in b.top_atoms():
        return DIFFERENT
    finite = b if algebra.INFINITY in a.atoms() else a
    infinite = a if finite is b else b
    if algebra.INFINITY in infinite.top_atoms() and not finite.variables() and not finite.applications():
        return DIFFERENT
    return undecided("infinity in a bound, or against something that may be infinite")


def _compare_read(a: Expression, b: Expression, policy: Policy, log_base: int) -> Outcome:
    variables_a, variables_b = a.variables(), b.variables()
    if variables_a ^ variables_b == {"I"}:
        return _compare_imaginary(a, b)
    has_functions = bool(a.applications() | b.applications()) or algebra.LOG_UNIT in a.atoms() | b.atoms()
    if not variables_a | variables_b:
        return _compare_constants(a, b, policy, log_base, has_functions)
    if not has_functions:
        return DIFFERENT if variables_a == variables_b else undecided("other variables")
    outcome = _compare_at_points(a, b, variables_a | variables_b, log_base)
    if outcome.relation == "equal" and not _is_everywhere(a, b, variables_a | variables_b, log_base):
        return IN_PIECES
    if outcome.relation == "different" and variables_a != variables_b:
        return undecided("other variables")
    return outcome


def _compare_imaginary(a: Expression, b: Expression) -> Outcome:
    """``a+bI`` and ``a+bi``: I is the imaginary unit if that makes the two equal."""
    unit = {"I": algebra.imaginary()}
    is_equal = algebra.same(substitute(a, unit), substitute(b, unit))
    return EQUAL if is_equal else undecided("other variables")


def _compare_constants(a: Expression, b: Expression, policy: Policy, log_base: int, has_functions: bool) -> Outcome:
    if policy.relative_tolerance and numerics.within(a, b, policy.relative_tolerance):
        return EQUAL
    difference, rest = _cancelled(a, b)
    if not has_functions or (rest.rational() == 0 and difference.rational() is not None):
        return DIFFERENT
    relation, branched = numerics.relation_at(difference, rest, {}, log_base)
    if relation == "same":
        return EQUAL
    if relation == "unclear" or branched:
        return undecided("constants whose values do not decide")
    if _degrees_would_agree(a, b, log_base):
        return undecided("an angle in degrees or radians")
    return DIFFERENT


def _compare_at_points(a: Expression, b: Expression, names: set[str], log_base: int) -> Outcome:
    integers = numerics.integer_variables(a) | numerics.integer_variables(b)
    points = numerics.positive_points(names, integers, POINTS)
    pieces = max(numerics.pieces(a), numerics.pieces(b))
    is_real = numerics.is_real_function(a) or numerics.is_real_function(b)
    bars_differ = _has_absolute_value(a) != _has_absolute_value(b)
    a, b = _cancelled(a, b)
    wanted = max(pieces, INTEGER_AGREEMENTS if integers else POSITIVE_AGREEMENTS)
    outcome, agreements = _agreements(a, b, points, wanted, log_base)
    if outcome is not None:
        return outcome
    if not integers and agreements:
        others = numerics.other_points(
            names, max(pieces, OTHER_POINTS), only_real=is_real and not names & _COMPLEX_NAMES
        )
        for point in others:
            relation, branched = numerics.relation_at(a, b, point, log_base)
            if relation == "apart" and (bars_differ or not branched):
                return undecided("equal for positive values only")
            agreements += relation == "same"
            if agreements >= AGREEMENTS + 1 and not pieces:
                break
        outcome, more = _agreements(a, b, points, AGREEMENTS - agreements, log_base)
        if outcome is not None:
            return outcome
        agreements += more
    return EQUAL if agreements >= AGREEMENTS else undecided("too few points where both are defined")


def _is_everywhere(a: Expression, b: Expression, names: set[str], log_base: int) -> bool:
    """Whether what agrees at some points does so in every piece of the functions in it."""
    if breakpoints.has_steps(a) or breakpoints.has_steps(b):
        name = next(iter(names))
        integers = numerics.integer_variables(a) | numerics.integer_variables(b)
        return len(names) == 1 <= len(integers) and breakpoints.agree_on_integers(a, b, name)
    if not numerics.pieces(a) and not numerics.pieces(b):
        return True
    fixed = next(iter(numerics.positive_points(names, set(), 1)))
    points = breakpoints.points_in_pieces(a, b, {name: _rational(value) for name, value in fixed.items()})
    if points is None:
        return False
    return all(numerics.relation_at(a, b, point, log_base)[0] == "same" for point in points)


def _rational(value: Fraction | tuple[Fraction, Fraction]) -> Fraction:
    return value if isinstance(value, Fraction) else value[0]


def _agreements(
    a: Expression, b: Expression, points: Iterator[numerics.Point], wanted: int, log_base: int
) -> tuple[Outcome | None, int]:
    """How many of the next points agree, up to ``wanted``; or an outcome, if some are apart."""
    found = 0
    while found < wanted and (point := next(points, None)) is not None:
        relation, branched = numerics.relation_at(a, b, point, log_base)
        if relation == "apart":
            return (undecided("functions with several branches") if branched else DIFFERENT), found
        found += relation == "same"
    return None, found


def _cancelled(a: Expression, b: Expression) -> tuple[Expression, Expression]:
    """a - b and 0, so that what is exact cancels first, as the 1 in 1 + 1/2009! - 1; as they are if that is large."""
    if a.denominator == b.denominator == _ONE_TERM:
        with suppress(Unsupported):
            return algebra.subtract(a, b), algebra.number(0)
    return a, b


def _has_absolute_value(expression: Expression) -> bool:
    return any(isinstance(name, Application) and name.name == "abs" for name in expression.walk())


def _degrees_would_agree(a: Expression, b: Expression, log_base: int) -> bool:
    """Whether plain numbers as angles, read as degrees, make the two agree."""
    try:
        in_degrees = _in_degrees(a), _in_degrees(b)
    except Unsupported:
        return True
    if in_degrees == (a, b):
        return False
    pairs = [(x, y) for x in (a, in_degrees[0]) for y in (b, in_degrees[1])]
    return any(algebra.same(x, y) or numerics.relation_at(x, y, {}, log_base)[0] != "apart" for x, y in pairs)


def _in_degrees(expression: Expression) -> Expression:
    """Sines and cosines of rational numbers as those of degrees."""
    replaced: dict[str, Expression] = {}
    for name in expression.applications():
        if name.name in ("sin", "cos") and (value := name.arguments[0].rational()) is not None:
            angle = algebra.multiply(algebra.number(value * Fraction(1, 180)), algebra.atom("pi"))
            replaced[name] = apply(name.name, angle)
    return _replace(expression, replaced) if replaced else expression


def _replace(expression: Expression, replaced: dict[str, Expression]) -> Expression:
    """``expression`` with outermost applications replaced."""
    names = {name: f"degrees {index}" for index, name in enumerate(sorted(replaced))}

    def renamed(terms: algebra.Terms) -> algebra.Terms:
        return {
            (radicand, turn, tuple((names.get(name, name), n) for name, n in atoms)): c
            for (radicand, turn, atoms), c in terms.items()
        }

    plain = Expression(renamed(expression.numerator), renamed(expression.denominator))
    return substitute(plain, {names[name]: value for name, value in replaced.items()})
