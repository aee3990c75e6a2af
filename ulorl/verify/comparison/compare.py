"""Three-valued comparison of parsed answers.

"different" is said only of values that were both fully understood and cannot be equal under any reading we
know; whatever depends on the question (missing names, percent against number, other variables, units to
convert) is undecided. The first argument is the reference: only policies for rounding and missing units look at
which is which.

Policies: a number with a unit or currency sign equals the same number without one; the order of a list
without brackets does not matter, that of a tuple does; p% equals p/100, and equals p because questions that
ask for a percentage leave the sign out; with a tolerance of 0 a decimal equals only the rational number it
spells. A column vector is the tuple of its entries and a row matrix of one row is one too, but a column is not a
row; nested lists [[1, 2], [3, 4]] are a matrix.
"""

from __future__ import annotations

from ulorl.verify.comparison.conditions import compare_conditioned
from ulorl.verify.comparison.equations import (
    as_equation,
    compare_equations,
    compare_orderings,
    compare_with_roots,
    is_quantity,
)
from ulorl.verify.comparison.families import compare_families, may_be_families
from ulorl.verify.comparison.integer_sets import listed
from ulorl.verify.comparison.lists import compare_several
from ulorl.verify.comparison.matching import compare_distinct, compare_ordered
from ulorl.verify.comparison.scalars import compare_based, compare_ratio_with, compare_ratios, compare_scalars
from ulorl.verify.comparison.sets import as_set, compare_groups, compare_sets, may_be_points, one_element
from ulorl.verify.comparison.variables import rename, variables_of, with_same_constant
from ulorl.verify.comparison.words import compare_times, compare_word_with, compare_words
from ulorl.verify.exact import algebra
from ulorl.verify.exact.algebra import Unsupported
from ulorl.verify.grammar.matrices import as_matrix
from ulorl.verify.grammar.names import function_of, tuple_names
from ulorl.verify.grammar.values import (
    Alternatives,
    Based,
    Choice,
    Clock,
    Conditioned,
    Congruence,
    Date,
    Equation,
    Group,
    Listing,
    Matrix,
    Membership,
    Named,
    Ordering,
    Piecewise,
    Ratio,
    Scalar,
    Value,
    Word,
)
from ulorl.verify.outcome import DIFFERENT, EQUAL, Outcome, undecided
from ulorl.verify.policy import DEFAULT, Policy

MAX_COST = 10_000
COST_OF_EXPRESSIONS = 6
"""Of a comparison that may need numerical evaluation, where one of two rationals costs 1."""


def compare(a: Value, b: Value, policy: Policy = DEFAULT) -> Outcome:
    """Whether reference ``a`` and answer ``b`` are equivalent under ``policy``."""
    try:
        comparison = _Comparison(policy)
        outcome = comparison.compare(a, b)
        return outcome if outcome.relation == "equal" else comparison.as_families(a, b, outcome)
    except Unsupported as error:
        return undecided(str(error))


class _Comparison:
    """Comparison under one policy; ``compare`` is handed to the comparers of collections."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.budget = MAX_COST

    def compare(self, a: Value, b: Value) -> Outcome:
        self.budget -= 1
        if self.budget < 0:
            raise Unsupported("too many comparisons")
        if isinstance(a, Scalar) and isinstance(b, Scalar):
            if a.expression.rational() is None or b.expression.rational() is None:
                self.budget -= COST_OF_EXPRESSIONS
            outcome = compare_scalars(a, b, self.policy)
            if outcome.relation == "undecided" and (respelt := with_same_constant(a, b)) is not None:
                outcome = compare_scalars(a, respelt, self.policy)
            return outcome
        if isinstance(a, Alternatives) or isinstance(b, Alternatives):
            return self._readings(a, b)
        if not isinstance(a, Membership) and not isinstance(b, Membership):
            a, b = listed(a), listed(b)
        if isinstance(a, Conditioned) or isinstance(b, Conditioned):
            return compare_conditioned(a, b, self.compare)
        if isinstance(a, Congruence) or isinstance(b, Congruence):
            return self._congruences(a, b)
        return self._structures(a, b)

    def as_families(self, a: Value, b: Value, outcome: Outcome) -> Outcome:
        """Angles such as k pi and n pi, which need no clause to be families; whole answers only, so that k in
        one coordinate of a tuple stays the k of the other.
        """
        if not isinstance(a, Scalar | Named | Listing | Group) or not isinstance(b, Scalar | Named | Listing | Group):
            return outcome
        try:
            names_a, names_b = variables_of(a), variables_of(b)
            if may_be_families(names_a | names_b):
                return compare_families(a, b) or outcome
        except Unsupported:
            pass
        return outcome

    def _readings(self, a: Value, b: Value) -> Outcome:
        """Equal under the usual readings; different under all; else undecided."""
        readings_a = a.readings if isinstance(a, Alternatives) else (a,)
        readings_b = b.readings if isinstance(b, Alternatives) else (b,)
        first = self.compare(readings_a[0], readings_b[0])
        if first.relation == "equal":
            return first
        outcomes = [self.compare(x, y).relation for x in readings_a for y in readings_b]
        return DIFFERENT if set(outcomes) == {"different"} else undecided("signs that can be read in two ways")

    def _congruences(self, a: Value, b: Value) -> Outcome:
        congruence, other = (a, b) if isinstance(a, Congruence) else (b, a)
        if isinstance(congruence, Congruence) and isinstance(other, Scalar) and congruence.modulus is not None:
            residue, modulus, value = (e.rational() for e in (congruence.residue, congruence.modulus, other.expression))
            if residue is not None and value is not None and modulus and not congruence.name and not other.unit:
                if (residue - value) % modulus:
                    return DIFFERENT
                return EQUAL if 0 <= value < modulus else undecided("a remainder against another of its class")
        return compare_families(a, b) or undecided("a congruence against something else")

    def _structures(self, a: Value, b: Value) -> Outcome:
        if isinstance(a, Group) and isinstance(b, Group) and (a.opening == "{") != (b.opening == "{"):
            # All the points there are, of which there is one.
            only, other = (one_element(a), b) if a.opening == "{" else (one_element(b), a)
            if isinstance(only, Group) and only.opening == other.opening == "(":
                return self.compare(only, other)
        several = (Listing, Named, Membership)
        if isinstance(a, Choice) or isinstance(b, Choice):
            return self._choices(a, b)
        if isinstance(a, Named) and isinstance(b, Named):
            return self._named(a, b)
        if isinstance(a, Equation) or isinstance(b, Equation):
            return self._equations(a, b)
        if isinstance(a, Listing) or isinstance(b, Listing):
            return self._several(a, b)
        if (isinstance(a, Named) or isinstance(b, Named)) and not (as_set(a) or as_set(b)):
            return self._name_and_value(a, b)
        if as_set(a) or as_set(b):
            return self._sets(a, b)
        if isinstance(a, several) or isinstance(b, several):
            return compare_several(a, b, self.compare, self.policy)
        if isinstance(a, Group) or isinstance(b, Group) or isinstance(a, Matrix) or isinstance(b, Matrix):
            return self._brackets(a, b)
        return self._leaves(a, b)

    def _choices(self, a: Value, b: Value) -> Outcome:
        """``(B) 12`` against B, 12, or another choice."""
        if isinstance(a, Choice) and isinstance(b, Choice):
            if a.letter != b.letter:
                return DIFFERENT
            outcome = self.compare(a.content, b.content)
            return outcome if outcome.relation == "equal" else undecided("the same letter with another content")
        choice, other, is_first = (a, b, True) if isinstance(a, Choice) else (b, a, False)
        assert isinstance(choice, Choice)
        if isinstance(other, Word) and other.is_choice:
            return EQUAL if choice.letter == other.text else DIFFERENT
        if isinstance(other, Listing) and all(isinstance(item, Word) and item.is_choice for item in other.items):
            return DIFFERENT
        return self.compare(choice.content, other) if is_first else self.compare(other, choice.content)

    def _named(self, a: Named, b: Named) -> Outcome:
        names_a, names_b = set(a.name.split("=")), set(b.name.split("="))
        if names_a & names_b:
            own, other = self._function(a), self._function(b)
            if own is None or other is None:
                return self.compare(a.value, b.value)
            return self._functions(a.value, b.value, set(own) & set(other))
        function_a, function_b = (self._function(named) for named in (a, b))
        if function_a is None and function_b is not None:
            function_a = _abbreviated(a, b)
        elif function_b is None and function_a is not None:
            function_b = _abbreviated(b, a)
        if function_a is not None and function_b is not None:
            if len(function_a) != len(function_b):
                return undecided("functions of other variables")
            value = rename(b.value, dict(zip(function_b, function_a, strict=True)))
            return self._functions(a.value, value, set(function_a))
        if tuple_names(a.name) != (a.name,) or tuple_names(b.name) != (b.name,):
            return compare_several(a, b, self.compare, self.policy)
        left, right = as_equation(a), as_equation(b)
        if left is not None and right is not None and (variables_of(a.value) | variables_of(b.value)):
            return compare_equations(left, right)
        outcome = self.compare(a.value, b.value)
        constant = isinstance(a.value, Scalar) and isinstance(b.value, Scalar)
        if outcome.relation == "different" and constant and not (variables_of(a.value) | variables_of(b.value)):
            return DIFFERENT
        return undecided(f"{a.name} against {b.name}")

    def _functions(self, a: Value, b: Value, arguments: set[str]) -> Outcome:
        """Two rational functions of their arguments alone are different where their forms are."""
        outcome = self.compare(a, b)
        if outcome.relation != "undecided" or not (isinstance(a, Scalar) and isinstance(b, Scalar)):
            return outcome
        closed = variables_of(a) | variables_of(b) <= arguments
        rational = not a.expression.applications() and not b.expression.applications() and not a.unit and not b.unit
        return DIFFERENT if closed and rational and not algebra.same(a.expression, b.expression) else outcome

    def _function(self, named: Named) -> tuple[str, ...] | None:
        """The arguments of the function that is named; y = 2x + 3 names the same function as f(x) = 2x + 3."""
        for name in named.name.split("="):
            function = function_of(name)
            if function is not None:
                return function[1]
        if named.name == "y" and isinstance(named.value, Scalar):
            names = variables_of(named.value)
            return (names.pop(),) if len(names) == 1 and "y" not in names else None
        return None

    def _name_and_value(self, a: Value, b: Value) -> Outcome:
        """``f(x) = 2x`` against ``2x`` or ``2t``; tuples of names against tuples."""
        named, other, is_first = (a, b, True) if isinstance(a, Named) else (b, a, False)
        assert isinstance(named, Named)
        if tuple_names(named.name) != (named.name,):
            if isinstance(other, Group | Matrix):
                return self.compare(named.value, other) if is_first else self.compare(other, named.value)
            return compare_several(a, b, self.compare, self.policy)
        if "=" in named.name and isinstance(other, Group) and other.opening != "{":
            return compare_several(a, b, self.compare, self.policy)
        value = named.value
        function = function_of(named.name)
        if function is not None and len(function[1]) == 1 and isinstance(other, Scalar) and isinstance(value, Scalar):
            names, own = variables_of(other), variables_of(value)
            if own == set(function[1]) and len(names) == 1 and names != own:
                value = rename(value, {function[1][0]: names.pop()})
        return self.compare(value, other) if is_first else self.compare(other, value)

    def _equations(self, a: Value, b: Value) -> Outcome:
        left = as_equation(a) if isinstance(a, Named) else a
        right = as_equation(b) if isinstance(b, Named) else b
        for equation, other in ((a, b), (b, a)):
            if isinstance(equation, Equation) and isinstance(other, Listing | Named):
                outcome = compare_with_roots(equation, other)
                if outcome.relation != "undecided":
                    return outcome
        if isinstance(left, Equation) and isinstance(right, Equation):
            return compare_equations(left, right)
        if isinstance(a, Listing) or isinstance(b, Listing):
            return self._several(a, b)
        for equation, other in ((a, b), (b, a)):
            if isinstance(equation, Equation) and isinstance(other, Scalar) and is_quantity(equation):
                value = Scalar(equation.right)
                outcome = self.compare(value, other) if equation is a else self.compare(other, value)
                return outcome if outcome.relation == "equal" else undecided("an equation against a value")
            if isinstance(equation, Equation) and isinstance(other, Group) and other.opening == "{":
                name = next(iter(equation.difference.variables()), "")
                return compare_with_roots(equation, Listing(tuple(Named(name, item) for item in other.items)))
        return undecided("an equation against something else")

    def _several(self, a: Value, b: Value) -> Outcome:
        """Lists; choice letters against letters written together are one list."""
        if as_set(a) or as_set(b):
            outcome = compare_sets(a, b, self.compare)
            points = any(isinstance(side, Listing) and may_be_points(side) for side in (a, b))
            return undecided("points or intervals") if points and outcome.relation == "equal" else outcome
        return compare_several(a, b, self.compare, self.policy)

    def _sets(self, a: Value, b: Value) -> Outcome:
        if isinstance(a, Scalar | Named) or isinstance(b, Scalar | Named):
            bound = a if isinstance(a, Membership) else b
            if isinstance(bound, Membership) and not bound.name:
                return undecided("a bound against a value")
        if isinstance(a, Membership) and isinstance(b, Membership) and a.name != b.name and a.name and b.name:
            outcome = compare_sets(a, b, self.compare)
            return outcome if outcome.relation == "different" else undecided(f"{a.name} against {b.name}")
        if isinstance(a, Group) and isinstance(b, Group):
            return compare_groups(a, b, self.compare) if "{" not in (a.opening, b.opening) else DIFFERENT
        return compare_sets(a, b, self.compare)

    def _brackets(self, a: Value, b: Value) -> Outcome:
        if isinstance(a, Matrix) or isinstance(b, Matrix):
            return self._matrices(a, b)
        if isinstance(a, Group) and isinstance(b, Group):
            if a.opening == b.opening == "{":
                return compare_distinct(a.items, b.items, self._elements)
            if "{" not in (a.opening, b.opening):
                return compare_groups(a, b, self.compare)
            outcome = compare_distinct(a.items, b.items, self.compare)
            return outcome if outcome.relation == "different" else undecided("a set against a tuple")
        group, other, is_first = (a, b, True) if isinstance(a, Group) else (b, a, False)
        assert isinstance(group, Group)
        element = one_element(group)
        if element is not None and not isinstance(other, Word):
            return self.compare(element, other) if is_first else self.compare(other, element)
        if isinstance(other, Word):
            return compare_word_with(other, group)
        if group.opening == "{" and not group.items:
            return DIFFERENT
        if isinstance(other, Scalar) and group.opening == "{":
            several = Listing(group.items)
            sides = (several, other) if is_first else (other, several)
            return compare_several(sides[0], sides[1], self.compare, self.policy)
        if isinstance(other, Scalar) and _is_other_than(group, other):
            return DIFFERENT
        return undecided(f"{type(a).__name__.lower()} against {type(b).__name__.lower()}")

    def _elements(self, a: Value, b: Value) -> Outcome:
        """Elements of sets: a set of one is not its element here."""
        if (isinstance(a, Group) and a.opening == "{") != (isinstance(b, Group) and b.opening == "{"):
            return DIFFERENT
        return self.compare(a, b)

    def _matrices(self, a: Value, b: Value) -> Outcome:
        left, right = as_matrix(a), as_matrix(b)
        if left is None or right is None:
            return undecided(f"{type(a).__name__.lower()} against {type(b).__name__.lower()}")
        if len(left.rows) == 1 and isinstance(b, Group) and len(right.rows[0]) == 1:
            right = Matrix((tuple(row[0] for row in right.rows),))
        if len(right.rows) == 1 and isinstance(a, Group) and len(left.rows[0]) == 1:
            left = Matrix((tuple(row[0] for row in left.rows),))
        if (len(left.rows), len(left.rows[0])) != (len(right.rows), len(right.rows[0])):
            return DIFFERENT
        cells = [[cell for row in matrix.rows for cell in row] for matrix in (left, right)]
        return compare_ordered(cells[0], cells[1], self.compare)

    def _leaves(self, a: Value, b: Value) -> Outcome:
        match a, b:
            case Word(), Word():
                return compare_words(a, b)
            case Word(), _:
                return compare_word_with(a, b)
            case _, Word():
                return compare_word_with(b, a)
            case Based(), Based() | Scalar():
                return compare_based(a, b)
            case Scalar(), Based():
                return compare_based(b, a)
            case Ratio(), Ratio():
                return compare_ratios(a, b)
            case (Ratio() as ratio, Scalar() as scalar) | (Scalar() as scalar, Ratio() as ratio):
                return compare_ratio_with(ratio, scalar, self.policy)
            case Clock() | Date() | Ratio(), _:
                return compare_times(a, b, self.policy)
            case _, Clock() | Date():
                return compare_times(b, a, self.policy)
            case Ordering(), Ordering():
                return compare_orderings(a, b)
            case Piecewise(), Piecewise():
                return self._piecewise(a, b)
        return undecided(f"{type(a).__name__.lower()} against {type(b).__name__.lower()}")

    def _piecewise(self, a: Piecewise, b: Piecewise) -> Outcome:
        """The same values under the same conditions in any order."""
        for rows, others in ((a.rows, b.rows), (b.rows, a.rows)):
            for value, condition in rows:
                if not any(
                    self.compare(value, other).relation == self.compare(condition, under).relation == "equal"
                    for other, under in others
                ):
                    return undecided("functions by cases written in different ways")
        return EQUAL


def _abbreviated(named: Named, function: Named) -> tuple[str, ...] | None:
    """The variable of ``Cost = 1200 + 1.5 X`` against a function with the same first letter, such as C(x)."""
    names = variables_of(named.value) if isinstance(named.value, Scalar) else set()
    is_word = len(named.name) > 2 and named.name.isalpha() and function.name[1:2] == "("
    return tuple(names) if is_word and len(names) == 1 and named.name[0].upper() == function.name[0].upper() else None


def _is_other_than(group: Group, scalar: Scalar) -> bool:
    """A number is no tuple of numbers, unless the tuple's digits spell it (a decimal comma, thousands)."""
    items = [item.expression.rational() for item in group.items if isinstance(item, Scalar) and not item.unit]
    value = scalar.expression.rational()
    if len(items) != len(group.items) or len(items) < 2 or value is None or None in items:
        return False
    if abs(value) >= 10**15:  # more digits than a float spells
        return False
    digits = "".join(str(item) for item in items)
    return digits.strip("0") != str(float(value)).replace(".", "").strip("0") and algebra.number(value) is not None
