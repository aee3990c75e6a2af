"""Three-valued comparison of numbers with their units, percent signs and bases. See `policy` for the defaults.

Rounding (policy `rounding`): a reference that is a decimal of three significant digits or more equals an exact
answer, or one with more digits, that rounds to it: 6.46 = 84/13, 33.3 = 100/3, 13.63 = 13.625. Labelled pairs in
which people accept a rounded value have such references; with one or two digits (0.3, 0.33, 62) too many other
values round to them. Only the reference is taken for rounded: an answer with fewer digits than the reference, as
many digits, or a bar over them, is compared exactly, and so is a decimal against an exact reference.

Percent (policy `percent`): by default p% equals p and p/100. Questions ask "what percentage", so references leave
the sign out or write it without meaning, and a reward that punishes either spelling is noise; the price is that
0.5% equals 0.5, a slip that hardly any model makes.

Units (policy `missing_unit`): a unit on one side only is taken from the question by default, and so is the mark of
an ordinal (6th place against 6). Two units are
converted exactly; the readings of an ambiguous unit all have to differ for "different".
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from ulorl.verify.comparison.expressions import compare_expressions
from ulorl.verify.exact import algebra, numerics
from ulorl.verify.exact.algebra import Expression
from ulorl.verify.grammar import units
from ulorl.verify.grammar.scalars import ORDINAL, SUBSTANCE
from ulorl.verify.grammar.tokens import words
from ulorl.verify.grammar.units import Unit
from ulorl.verify.grammar.values import Based, Ratio, Scalar
from ulorl.verify.outcome import DIFFERENT, EQUAL, Outcome, undecided
from ulorl.verify.policy import Policy

MIN_DIGITS = 3
ROUNDED = Outcome("equal", rule="rounding")
SAME_QUANTITY = Outcome("equal", rule="units")
OTHER_QUANTITY = Outcome("different", rule="units")
_COLLECTIVE = words("pair couple dozen score gross trio half quarter set group bunch deck")


def compare_scalars(a: Scalar, b: Scalar, policy: Policy) -> Outcome:
    """``a`` is the reference where the policy for rounding applies."""
    outcome = _compare(a, b, policy)
    if outcome.relation == "equal" or (a.other is None and b.other is None):
        return outcome
    others = [outcome]
    for x, y in ((a.other, b), (a, b.other), (a.other, b.other)):
        # "3m" is three metres only against something that has a unit.
        if x is not None and y is not None and (x.unit == "") == (y.unit == ""):
            others.append(_compare(x, y, policy))
    return next((o for o in others if o.relation == "equal"), None) or (
        outcome if all(o.relation == "different" for o in others) else undecided("a unit or a variable")
    )


def _compare(a: Scalar, b: Scalar, policy: Policy) -> Outcome:
    if a.unit == b.unit:
        return _numbers(a, b, policy)
    if SUBSTANCE in a.unit or SUBSTANCE in b.unit:
        what = {x.unit.partition(SUBSTANCE)[2] for x in (a, b)}
        if len(what - {""}) > 1:
            return undecided(f"{a.unit} against {b.unit}")
        a, b = _without_substance(a, b)
    if ORDINAL in (a.unit, b.unit):
        return _compare_ordinal(a, b, policy)
    if "%" in (a.unit, b.unit):
        return _compare_percent(a, b, policy)
    if "" in (a.unit, b.unit):
        return _compare_missing(a, b, policy)
    meanings_a, meanings_b = units.readings(a.unit), units.readings(b.unit)
    if not meanings_a or not meanings_b:
        return _compare_nouns(a, b, bool(meanings_a or meanings_b), policy)
    outcomes = [_convert(a, u, b, v, policy) for u in meanings_a for v in meanings_b]
    for relation in ("equal", "undecided"):
        found = next((outcome for outcome in outcomes if outcome.relation == relation), None)
        if found is not None:
            return found
    return OTHER_QUANTITY


def _without_substance(a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    """``146 g of HCl`` as 146 g where the other side does not say of what, or says the same."""
    unit_a, unit_b = (x.unit.partition(SUBSTANCE)[0] for x in (a, b))
    if not all(not unit or (units.products(unit) and not unit.startswith("degree")) for unit in (unit_a, unit_b)):
        return a, b
    return replace(a, unit=unit_a), replace(b, unit=unit_b)


def _compare_ordinal(a: Scalar, b: Scalar, policy: Policy) -> Outcome:
    """``6th`` against 6: the mark of an ordinal on one side only is a missing unit."""
    numbers = _numbers(a, b, replace(policy, rounding="never"))
    if numbers.relation != "equal":
        return numbers
    if "" not in (a.unit, b.unit):
        return undecided("an ordinal against a quantity")
    return EQUAL if policy.missing_unit == "accept" else OTHER_QUANTITY


def _compare_missing(a: Scalar, b: Scalar, policy: Policy) -> Outcome:
    """A unit, a currency or a noun on one side only."""
    numbers = _numbers(a, b, policy)
    unit = a.unit or b.unit
    if unit == "degree":
        return _compare_angles(a, b, numbers, policy)
    if numbers.relation == "equal" and policy.missing_unit == "reject" and units.products(unit):
        return OTHER_QUANTITY
    if numbers.relation == "different" and unit.split()[-1] in _COLLECTIVE:
        return undecided(f"how many a {unit} is")
    if numbers.relation == "different" and unit in ("radian", "radians", "rad"):
        return _compare_angles(a, b, numbers, policy)
    return numbers


def _compare_angles(a: Scalar, b: Scalar, otherwise: Outcome, policy: Policy) -> Outcome:
    """Degrees against a number without a unit: the same number, or its radians."""
    if otherwise.relation == "equal" and policy.missing_unit == "accept":
        return otherwise
    degrees, other = (a, b) if a.unit else (b, a)
    if degrees.unit != "degree":
        return otherwise
    factor = algebra.divide(algebra.atom("pi"), algebra.number(180))
    if algebra.same(algebra.multiply(degrees.expression, factor), other.expression):
        return SAME_QUANTITY
    return otherwise if policy.missing_unit == "accept" else OTHER_QUANTITY


def _compare_percent(a: Scalar, b: Scalar, policy: Policy) -> Outcome:
    if a.unit and b.unit:
        return undecided("percent against a unit")
    if policy.percent == "strict":
        return DIFFERENT
    hundred = algebra.number(100)
    shares = [algebra.divide(x.expression, hundred) if x.unit else x.expression for x in (a, b)]
    steps = [None if x.step is None else x.step / (100 if x.unit else 1) for x in (a, b)]
    value = _numbers(Scalar(shares[0], step=steps[0]), Scalar(shares[1], step=steps[1]), policy)
    if value.relation == "equal" or policy.percent == "value":
        return value
    plain = _numbers(a, b, policy)
    return plain if plain.relation == "equal" else value


def _compare_nouns(a: Scalar, b: Scalar, one_is_unit: bool, policy: Policy) -> Outcome:
    """Count nouns label a number: the same number with one noun inside the other is equal."""
    numbers = _numbers(a, b, policy)
    words_a, words_b = a.unit.lower().split(), b.unit.lower().split()
    if numbers.relation == "equal" and words_a and words_b:
        small, large = sorted((set(words_a), set(words_b)), key=len)
        if small <= large and not one_is_unit:
            return numbers
    if numbers.relation == "different" and not one_is_unit and not set(words_a + words_b) & _COLLECTIVE:
        return numbers
    return undecided(f"{a.unit} against {b.unit}")


def _convert(a: Scalar, u: Unit, b: Scalar, v: Unit, policy: Policy) -> Outcome:
    if u.dims != v.dims:
        return _other_dimensions(a, u, b, v, policy)
    if u.zero is not None and v.zero is not None and u.zero != v.zero:
        return _compare_temperatures(a, u, b, v, policy)
    factor = v.factor / u.factor
    pi = algebra.atom("pi")
    expression = algebra.multiply(b.expression, algebra.number(factor))
    for _ in range(abs(v.pi - u.pi)):
        expression = algebra.multiply(expression, pi) if v.pi > u.pi else algebra.divide(expression, pi)
    step = b.step * factor if b.step is not None and u.pi == v.pi else None
    converted = Scalar(expression, step=step)
    numbers = _numbers(Scalar(a.expression, step=a.step), converted, policy)
    if numbers.relation == "equal":
        return SAME_QUANTITY
    if numbers.relation == "different":
        return (
            OTHER_QUANTITY
            if _is_exact(factor) or _far(a.expression, converted.expression)
            else undecided("a conversion between systems of units, perhaps rounded")
        )
    return numbers


def _other_dimensions(a: Scalar, u: Unit, b: Scalar, v: Unit, policy: Policy) -> Outcome:
    names = {name for name, _ in (*u.dims, *v.dims)}
    if names == {"angle", "temperature"} and len(u.dims) == len(v.dims) == 1:
        numbers = _numbers(a, b, policy)  # "100 degrees" may be Celsius
        return numbers if numbers.relation == "equal" else undecided("degrees of an angle or a temperature")
    if "calendar" in names and "time" in names:
        return undecided("months or years against days")
    return OTHER_QUANTITY


def _compare_temperatures(a: Scalar, u: Unit, b: Scalar, v: Unit, policy: Policy) -> Outcome:
    """Temperatures on two scales; as differences of temperature they decide nothing."""
    x, y = a.expression.rational(), b.expression.rational()
    if x is None or y is None or u.zero is None or v.zero is None:
        return undecided("temperatures that are no numbers")
    converted = (y * v.factor + v.zero - u.zero) / u.factor
    step = None if b.step is None else b.step * v.factor / u.factor
    reference = Scalar(a.expression, step=a.step)
    if _numbers(reference, Scalar(algebra.number(converted), step=step), policy).relation == "equal":
        return SAME_QUANTITY
    if x == y * v.factor / u.factor:
        return undecided("temperatures or differences of temperature")
    return OTHER_QUANTITY if abs(x - converted) > 1 else undecided("temperatures, perhaps rounded")


def _is_exact(factor: Fraction) -> bool:
    """Whether a factor between units is one people know exactly (1/100, 12, 5/18), unlike 1.609344."""
    rest = factor.numerator * factor.denominator
    for prime in (2, 3, 5, 7, 11):
        while rest % prime == 0:
            rest //= prime
    return rest == 1


def _far(a: Expression, b: Expression) -> bool:
    x, y = a.rational(), b.rational()
    return x is not None and y is not None and abs(x - y) * 100 > max(abs(x), abs(y))


def _numbers(a: Scalar, b: Scalar, policy: Policy) -> Outcome:
    """The numbers alone, exactly or by the rule for a rounded reference."""
    outcome = compare_expressions(a.expression, b.expression, policy)
    if outcome.relation == "equal" or policy.rounding == "never" or not a.step:
        return outcome
    x, y = a.expression.rational(), b.expression.rational()
    if x is None or abs(x) < a.step * 10 ** (MIN_DIGITS - 1):
        return outcome
    if b.step is not None and (b.step == 0 or b.step >= a.step):
        return outcome
    if y is None and not b.expression.variables():
        y = numerics.approximate(b.expression)
    return ROUNDED if y is not None and abs(x - y) <= a.step / 2 else outcome


def compare_ratios(a: Ratio, b: Ratio) -> Outcome:
    """Proportional terms; two texts that may both be times of day decide only where both readings agree."""
    if len(a.parts) != len(b.parts):
        return EQUAL if _is_same_time(a, b) else DIFFERENT
    first_a, first_b = a.parts[0], b.parts[0]
    same = all(
        algebra.same(algebra.multiply(x, first_b), algebra.multiply(y, first_a))
        for x, y in zip(a.parts[1:], b.parts[1:], strict=True)
    )
    times = None if a.seconds is None or b.seconds is None else a.seconds == b.seconds
    if same and first_a.numerator and first_b.numerator:
        return undecided("ratios or times of day") if times is False else EQUAL
    if any(part.rational() is None for part in a.parts + b.parts):
        return undecided("ratios of expressions")
    return DIFFERENT


def _is_same_time(a: Ratio, b: Ratio) -> bool:
    """``20:34:00`` and ``20:34``; a ratio has no term of zero."""
    longer = max(a, b, key=lambda ratio: len(ratio.parts))
    return a.seconds is not None and a.seconds == b.seconds and longer.parts[-1].rational() == 0


def compare_ratio_with(ratio: Ratio, scalar: Scalar, policy: Policy) -> Outcome:
    """``3:4`` against 3/4, but not ``5:30``, which may be a time of day."""
    if ratio.seconds is None and len(ratio.parts) == 2 and not scalar.unit and ratio.parts[1].numerator:
        quotient = algebra.divide(ratio.parts[0], ratio.parts[1])
        if compare_expressions(quotient, scalar.expression, policy).relation == "equal":
            return EQUAL
    return undecided("a ratio against a number")


def compare_based(a: Based, b: Based | Scalar) -> Outcome:
    """Numbers in bases; a base on one side only decides nothing where the digits agree."""
    value = _value_of(a)
    if isinstance(b, Based):
        return EQUAL if value == _value_of(b) else DIFFERENT
    rational = b.expression.rational()
    if rational is None or b.unit or (a.base != 10 and _has_digits(rational, a.digits)):
        return undecided("a base on one side only")
    return EQUAL if rational == value else DIFFERENT


def _value_of(based: Based) -> Fraction:
    whole, _, places = based.digits.partition(".")
    return Fraction(int(whole + places, based.base), based.base ** len(places))


def _has_digits(value: Fraction, digits: str) -> bool:
    """Whether ``digits`` spell ``value`` in base ten."""
    return digits.replace(".", "", 1).isdigit() and Fraction(digits) == value
