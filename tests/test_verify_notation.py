"""The parsers below the typed rules: number words, units, times, claims, normalising; round trips and bounds."""

import subprocess
import sys
import threading
import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ulorl.recipe import VerifyRecipe
from ulorl.verify.grammar import units
from ulorl.verify.grammar.answers import parse_answer
from ulorl.verify.grammar.claims import split_claim
from ulorl.verify.grammar.normalise import normalise
from ulorl.verify.grammar.number_words import chinese, english
from ulorl.verify.grammar.times import parse_time
from ulorl.verify.grammar.unit_sizes import SIZES
from ulorl.verify.grammar.values import Clock, Scalar
from ulorl.verify.grammar.words import canonical, class_of
from ulorl.verify.policy import Policy, policy_of
from ulorl.verify.tiers import RULES, decide, read_answer

DEFAULT = policy_of(VerifyRecipe())
NEVER = Policy(rounding="never")


def relation(reference: str, answer: str, policy: Policy = DEFAULT) -> str:
    return decide(RULES, read_answer(reference), read_answer(answer), policy)[1].relation


def rule(reference: str, answer: str) -> str:
    return decide(RULES, read_answer(reference), read_answer(answer), DEFAULT)[0]


SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety"


def spell(n: int) -> str:
    """English words, written independently of the parser."""
    small, tens = SMALL.split(), TENS.split()
    if n < 20:
        return small[n]
    if n < 100:
        return tens[n // 10] + (f"-{small[n % 10]}" if n % 10 else "")
    if n < 1000:
        return f"{small[n // 100]} hundred" + (f" and {spell(n % 100)}" if n % 100 else "")
    for size, name in ((10**9, "billion"), (10**6, "million"), (10**3, "thousand")):
        if n >= size:
            return f"{spell(n // size)} {name}" + (f" {spell(n % size)}" if n % size else "")
    raise AssertionError


def spell_chinese(n: int) -> str:
    """Chinese numerals below 10^8, with 零 where a digit is skipped."""
    digits = "零一二三四五六七八九"
    if n >= 10_000:
        rest = n % 10_000
        return (
            spell_chinese(n // 10_000)
            + "万"
            + ("零" if 0 < rest < 1000 else "") * 1
            + (spell_chinese(rest) if rest else "")
        )
    parts, skipped = "", False
    for size, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = n // size % 10
        if digit:
            parts += ("零" if skipped and parts else "") + digits[digit] + name
            skipped = False
        else:
            skipped = True
    return parts or "零"


@given(st.integers(min_value=0, max_value=10**12 - 1))
@settings(max_examples=150, deadline=None)
def test_number_words_read_back(n: int) -> None:
    words = spell(n).replace("-", " ").split()
    found = english(words)
    assert found is not None
    assert (found.value, found.words, found.ordinal) == (n, len(words), False)
    assert relation(str(n), spell(n)) == "equal"
    assert relation(str(n + 1), spell(n)) == "different"


@given(st.integers(min_value=0, max_value=10**8 - 1))
@settings(max_examples=150, deadline=None)
def test_chinese_numerals_read_back(n: int) -> None:
    assert chinese(spell_chinese(n)) == n


@pytest.mark.parametrize("text", ["one two", "two third", "hundred", "thousand thousand", "point five", "and", "minus"])
def test_what_people_do_not_say_is_no_number(text: str) -> None:
    found = english(text.split())
    assert found is None or found.words < len(text.split())


def test_sizes_of_units_are_those_of_pint_and_exact() -> None:
    import pint

    registry = pint.UnitRegistry(cache_folder=None)
    for ours, theirs in (
        ("km/h", "kilometer/hour"), ("kg m/s^2", "newton"), ("square feet", "foot**2"), ("cubic inches", "inch**3"),
        ("kWh", "kilowatt_hour"), ("mi", "mile"), ("lb", "pound"), ("gal", "gallon"), ("psi", "psi"),
        ("mL", "milliliter"), ("mmHg", "millimeter_Hg"), ("eV", "electron_volt"), ("knots", "knot"),
        ("Btu", "british_thermal_unit"),
    ):  # fmt: skip
        factor = units.readings(ours)[0].factor
        assert isinstance(factor, Fraction)
        assert float(factor) == pytest.approx(registry.Quantity(1, theirs).to_base_units().magnitude, rel=1e-12) or (
            float(factor) == pytest.approx(registry.Quantity(1000, theirs).to_base_units().magnitude, rel=1e-12)
        )


def test_the_table_of_sizes_is_that_of_pint() -> None:
    import pint

    registry = pint.UnitRegistry(non_int_type=Fraction, cache_folder=None)
    for name, (factor, spelled) in SIZES.items():
        dimensions = registry.get_dimensionality(name)
        expected = {str(key).strip("[]"): int(power) for key, power in dimensions.items()}
        assert units._size(name).dims == tuple(sorted(expected.items())), (name, expected)
        assert Fraction(factor) == registry.get_base_units(name)[0], (name, spelled)


def test_every_unit_has_a_size_and_an_acre_is_a_part_of_a_square_mile() -> None:
    for spelling, meanings in units._spellings().items():
        assert all(units._size(name).factor > 0 for name, _ in meanings), spelling
    assert units.readings("acre")[0].factor * 640 == units.readings("square mile")[0].factor


def test_units_do_not_load_a_registry() -> None:
    code = "from ulorl.verify.grammar import units; import sys; units.readings('km/h'); print('pint' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


@pytest.mark.parametrize(
    "text", ["", "apples", "x", "m^", "m^99", "m//s", "(m", "m)", "per", "/", "square", "m^-", "__import__"]
)
def test_what_is_no_unit(text: str) -> None:
    assert units.readings(text) == ()


def test_units_from_many_threads_at_once() -> None:
    names = ["km", "mile", "hour", "day", "kg", "lb", "joule", "liter", "gallon", "psi"] * 4
    found: list[Fraction] = []
    threads = [
        threading.Thread(target=lambda name=name: found.append(units.readings(name)[0].factor)) for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(units.readings(name)[0].factor for name in names)


@given(st.integers(0, 23), st.integers(0, 59))
@settings(max_examples=60, deadline=None)
def test_clocks_of_twelve_and_of_twenty_four_hours(hour: int, minute: int) -> None:
    half = "am" if hour < 12 else "pm"
    written = f"{(hour - 1) % 12 + 1}:{minute:02d} {half}"
    clock = parse_time(written)
    assert isinstance(clock, Clock)
    assert clock.seconds == 3600 * hour + 60 * minute
    assert relation(f"{hour:02d}:{minute:02d}", written) == "equal"
    assert relation(written, written.replace(half, "pm" if half == "am" else "am")) == "different"


def test_closed_classes_hold_canonical_words_once() -> None:
    for word in ("yes", "no", "monday", "red", "north", "odd", "ellipse", "increasing"):
        assert canonical(word) == word
        assert class_of(word)
    assert not class_of("saint")
    assert canonical("An Ellipse.") == canonical("椭圆") == "ellipse"


def test_a_claim_keeps_its_subject_and_refuses_conditions() -> None:
    claim = split_claim("The remainder is 5")
    assert claim is not None
    assert (claim.name, claim.rest) == ("remainder", "5")
    for text in (
        "5",
        "x",
        "If x is 4 then it is 5",
        "It is not 5",
        "The sum is at least 5",
        "5 is less than the answer",
    ):
        assert split_claim(text) is None or relation("5", text) != "equal"


def test_normalising_loses_nothing_that_tells_answers_apart() -> None:
    texts = [
        "3 1/2",
        "31/2",
        r"1\\2",
        r"1\2",
        "1,2",
        "12",
        "1.2",
        "-1",
        "1",
        "1-",
        "5\\%",
        "5",
        "x'",
        "x",
        "3'",
        "2_3",
        "23",
    ]
    assert len({normalise(text) for text in texts}) == len(texts)


@given(st.text(alphabet="0123456789.,'\"$%°^_{}()[]\\ abcmkgstextrfone两三百分之点:/-+~<>&;", max_size=40))
@settings(max_examples=400, deadline=None)
def test_any_text_is_normalised_once_and_parsed_without_an_exception(text: str) -> None:
    normal = normalise(text)
    assert len(normal) <= 12 * len(text) + 20
    answer = read_answer(text)
    assert answer.value is not None or answer.problem
    assert units.readings(text) is not None


@pytest.mark.parametrize(
    "unit",
    [
        "a ",
        "\\text{",
        "{",
        "0.",
        "1,",
        "five ",
        "m/",
        "百",
        "é",
        "(",
        "$",
        "<sup>",
        "1'",
        "_",
        "is ",
        "\\over",
        "0.3(",
        "^{",
        "and ",
    ],
)
def test_linear_time(unit: str) -> None:
    text = unit * (18_000 // len(unit))
    start = time.perf_counter()
    read_answer(text)
    normalise(text)
    assert time.perf_counter() - start < 1.0


def test_a_decimal_numeral_knows_its_last_place() -> None:
    for text, step in (
        ("3.14", Fraction(1, 100)),
        ("2.50e-7", Fraction(1, 10**9)),
        ("12", None),
        ("-0.5", Fraction(1, 10)),
    ):
        value = parse_answer(normalise(text))
        assert isinstance(value, Scalar)
        assert value.step == step
