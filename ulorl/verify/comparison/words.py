"""Three-valued comparison of words, choice letters, times and dates with whatever stands on the other side."""

from __future__ import annotations

from ulorl.verify.exact import algebra
from ulorl.verify.grammar.times import DAY, HOUR
from ulorl.verify.grammar.tokens import words
from ulorl.verify.grammar.values import Clock, Date, Group, Ratio, Scalar, Value, Word
from ulorl.verify.grammar.words import canonical, class_of
from ulorl.verify.outcome import DIFFERENT, EQUAL, Outcome, undecided
from ulorl.verify.policy import Policy

NOTHING = frozenset({"no solution", "does not exist", "impossible"})
_THINGS = words("function number integer triangle angle series sequence integral lines events")
_HALF_DAY = DAY // 2


def compare_words(a: Word, b: Word) -> Outcome:
    """Equal in meaning; different for two choices, two words of one closed class, or one such word replaced."""
    if a == b:
        return EQUAL
    if a.is_choice or b.is_choice:
        if a.is_choice and b.is_choice:
            return DIFFERENT
        return undecided("a choice letter against words")
    x, y = canonical(a.text), canonical(b.text)
    if x == y:
        return EQUAL
    if class_of(x) & class_of(y):
        return DIFFERENT
    parts_x, parts_y = x.split(), y.split()
    if len(parts_x) == len(parts_y):
        differing = [(p, q) for p, q in zip(parts_x, parts_y, strict=True) if p != q]
        if len(differing) == 1 and class_of(differing[0][0]) & class_of(differing[0][1]):
            return DIFFERENT
    if _is_adjective_of(x, y) or _is_adjective_of(y, x):
        return EQUAL
    if "not " + x == y or "not " + y == x or [p for p in parts_x if p != "not"] == [p for p in parts_y if p != "not"]:
        return DIFFERENT
    return undecided("words that differ")


def _is_adjective_of(adjective: str, phrase: str) -> bool:
    """``even`` of "even function": the question names the thing, and the answer says what it is like."""
    head, _, noun = phrase.rpartition(" ")
    return head == adjective and noun in _THINGS and bool(class_of(adjective))


def compare_word_with(word: Word, value: Value) -> Outcome:
    """A word against a value that is not one. Symmetric: give the word first."""
    text = canonical(word.text)
    if isinstance(value, Scalar):
        if word.is_choice:
            return _choice_with_letter(word, value)
        rational = value.expression.rational()
        if text in NOTHING and rational is not None:
            return undecided("nothing against zero") if rational == 0 else DIFFERENT
        return undecided("a word against a number")
    if isinstance(value, Group) and value.opening == "{" and text == "no solution":
        return DIFFERENT if value.items else EQUAL
    return undecided(f"word against {type(value).__name__.lower()}")


def _choice_with_letter(word: Word, value: Scalar) -> Outcome:
    """``C`` against ``c``: a choice written small is that choice; e and i are constants."""
    for atom in value.expression.atoms() if not value.unit else ():
        if atom.upper() == word.text and atom not in ("e", "i") and algebra.same(value.expression, algebra.atom(atom)):
            return EQUAL
    return undecided("a choice letter against a number")


def compare_times(a: Clock | Date | Ratio, b: Value, policy: Policy) -> Outcome:
    """Times of day, dates and ratios among themselves; also ``7:30 AM`` against ``7:30``."""
    if isinstance(a, Date) or isinstance(b, Date):
        return _compare_dates(a, b) if isinstance(a, Date) and isinstance(b, Date) else undecided("a date")
    if isinstance(a, Clock) and isinstance(b, Clock):
        return _compare_clocks(a, b, policy)
    if isinstance(a, Clock) and isinstance(b, Scalar):
        return _compare_hour(a, b, policy)
    if isinstance(a, Ratio) and isinstance(b, Clock):
        a, b = b, a
    if isinstance(a, Clock) and isinstance(b, Ratio) and b.seconds is not None:
        return _compare_clocks(a, Clock(b.seconds, certain=b.seconds >= 13 * 3600), policy)
    return undecided(f"{type(a).__name__.lower()} against {type(b).__name__.lower()}")


def _compare_hour(clock: Clock, hour: Scalar, policy: Policy) -> Outcome:
    """``2:00 pm`` against 2: the rest of a time on the hour is a missing unit."""
    number = hour.expression.integer()
    if number is None or hour.unit or not 0 <= number <= 24:
        return undecided("a time of day against a number")
    if clock.seconds % HOUR or (clock.seconds // HOUR - number) % (12 if 1 <= number <= 12 else 24):
        return DIFFERENT
    return EQUAL if policy.missing_unit == "accept" else undecided("a time of day against a number")


def _compare_clocks(a: Clock, b: Clock, policy: Policy) -> Outcome:
    if a.seconds == b.seconds and a.certain == b.certain:
        return EQUAL
    if a.certain and b.certain:
        return DIFFERENT
    if (a.seconds - b.seconds) % _HALF_DAY:
        return DIFFERENT
    # One side leaves am or pm open: as a missing unit.
    return EQUAL if policy.missing_unit == "accept" else DIFFERENT


def _compare_dates(a: Date, b: Date) -> Outcome:
    if a.readings & b.readings:
        return EQUAL if a.readings == b.readings or 1 in (len(a.readings), len(b.readings)) else undecided("two dates")
    days_a, days_b = {reading[1:] for reading in a.readings}, {reading[1:] for reading in b.readings}
    if not days_a & days_b:
        return DIFFERENT
    years = {reading[0] for reading in a.readings | b.readings}
    return undecided("a date without its year") if 0 in years else DIFFERENT
