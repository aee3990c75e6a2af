"""The families of generated problems: how data are drawn, put into words, and worked step by step.

A problem is a header and labelled items, such as ``Triple and add, mod 10: a42 b17 c98``. Every item carries
a letter as its label, so that a worked step can name the item it is about. Items are two-digit numbers, of
which only the last digit counts: steps stay easy, while different problems share few numbers.

Invariants: ``walk`` is the only definition of a family's answer; the value written at every step goes through
``write``, so that a slip is a step whose written value is wrong and whose consequences are worked out
faithfully.
Does not: choose families and lengths, or build rows (``ulorl.quickstart.problems``).
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Write = Callable[[int, int], int]
"""(index of the step, right value) -> the value that is written down and worked on with."""


@dataclass(frozen=True)
class Step:
    """One worked step: with everything shown, and as its bare result."""

    full: str
    brief: str


Walk = Callable[[Sequence[str], Write], tuple[list[Step], int]]
"""(items, write) -> the steps and the final value."""


@dataclass(frozen=True)
class Family:
    """One kind of problem. ``header`` stands before the items, or holds a slot for each that it names."""

    name: str
    header: str
    max_steps: int
    draw: Callable[[random.Random, int], tuple[str, ...]]
    walk: Walk
    render: Callable[[str, Sequence[str]], str]


@dataclass(frozen=True)
class Task:
    """One drawn problem: its family, items and number of steps."""

    family: str
    items: tuple[str, ...]
    steps: int

    @property
    def text(self) -> str:
        """The problem in words, without a lead-in."""
        family = FAMILIES[self.family]
        return family.render(family.header, self.items)

    @property
    def answer(self) -> str:
        """The right answer."""
        return str(self.work(lambda _, value: value)[1])

    def work(self, write: Write) -> tuple[list[Step], int]:
        """Work the problem, writing down what ``write`` says."""
        return FAMILIES[self.family].walk(self.items, write)


def _join(header: str, items: Sequence[str]) -> str:
    return header + " ".join(items)


def _numbers(rng: random.Random, steps: int) -> tuple[str, ...]:
    return tuple(f"{label}{rng.randint(10, 99)}" for label in string.ascii_lowercase[:steps])


def _draw_signed(rng: random.Random, steps: int) -> tuple[str, ...]:
    return tuple(item.upper() if rng.random() < 0.5 else item for item in _numbers(rng, steps))


def _walk_signed(items: Sequence[str], write: Write) -> tuple[list[Step], int]:
    value, lines = 0, []
    for index, item in enumerate(items):
        label, digit = item[0], item[-1]
        sign = -1 if label.isupper() else 1
        before, value = value, write(index, (value + sign * int(digit)) % 10)
        lines.append(Step(f"{label}{'-' if sign < 0 else ''}{digit}+{before}={value} ", f"{label}{value} "))
    return lines, value


def _walk_triple(items: Sequence[str], write: Write) -> tuple[list[Step], int]:
    value, lines = 0, []
    for index, item in enumerate(items):
        label, digit = item[0], item[-1]
        before, tripled = value, 3 * value % 10
        value = write(index, (tripled + int(digit)) % 10)
        lines.append(Step(f"{label}{digit}+3*{before}={digit}+{tripled}={value} ", f"{label}{value} "))
    return lines, value


def _walk_total(items: Sequence[str], write: Write) -> tuple[list[Step], int]:
    value, lines = 0, []
    for index, item in enumerate(items):
        label, digit = item[0], item[-1]
        before, value = value, write(index, value + int(digit))
        lines.append(Step(f"{label}{digit}+{before}={value} ", f"{label}{value} "))
    return lines, value


def _draw_count(rng: random.Random, steps: int) -> tuple[str, ...]:
    bound = rng.randint(2, 7)
    numbers = [number for number in range(10, 100) if number % 10 != bound]
    return (str(bound), *(f"{label}{rng.choice(numbers)}" for label in string.ascii_lowercase[:steps]))


def _render_count(header: str, items: Sequence[str]) -> str:
    return header.format(items[0]) + " ".join(items[1:])


def _walk_count(items: Sequence[str], write: Write) -> tuple[list[Step], int]:
    bound, value, lines = items[0], 0, []
    for index, item in enumerate(items[1:]):
        label, digit = item[0], item[-1]
        above = digit > bound
        value = write(index, value + above)
        lines.append(Step(f"{label}{digit}{'>' if above else '<'}{bound}={value} ", f"{label}{value} "))
    return lines, value


def _draw_pairs(rng: random.Random, steps: int) -> tuple[str, ...]:
    items = [f"a{rng.randint(10, 99)}"]
    for index, label in enumerate(string.ascii_lowercase[1 : steps + 1], start=1):
        known = string.ascii_lowercase[max(0, index - 5) : index]
        second = rng.choice(known) if rng.random() < 0.4 else str(rng.randint(10, 99))
        items.append(f"{label}:{rng.choice(known)}{second}")
    return tuple(items)


def _walk_pairs(items: Sequence[str], write: Write) -> tuple[list[Step], int]:
    values = {"a": int(items[0][-1])}
    lines, value = [], 0
    for index, item in enumerate(items[1:]):
        label, first, second = item[0], item[2], item[-1]
        left, right = values[first], int(second) if second.isdigit() else values[second]
        value = values[label] = write(index, (left + right) % 10)
        given = f"{items[0][-1]}a " if index == 0 else ""
        lines.append(Step(f"{given}{item} {left}+{right}={value}{label} ", f"{label}{value} "))
    return lines, value


def _draw_repeat(rng: random.Random, steps: int) -> tuple[str, ...]:
    return str(rng.randint(10, 99)), str(rng.randint(10, 99)), str(steps)


def _render_repeat(header: str, items: Sequence[str]) -> str:
    return header.format(*items)


def _walk_repeat(items: Sequence[str], write: Write) -> tuple[list[Step], int]:
    value, digit, times = int(items[0]) % 10, int(items[1]) % 10, int(items[2])
    lines = []
    for index in range(times):
        before, value = value, write(index, (value + digit) % 10)
        lines.append(Step(f"{times - index}:{before}+{digit}={value} ", f"{times - index}:{value} "))
    return lines, value


_ALL = (
    Family("signed", "Add small, subtract big, mod 10: ", 20, _draw_signed, _walk_signed, _join),
    Family("triple", "Triple and add, mod 10: ", 20, _numbers, _walk_triple, _join),
    Family("total", "Total of last digits: ", 18, _numbers, _walk_total, _join),
    Family("count", "Count last digits above {}: ", 20, _draw_count, _walk_count, _render_count),
    Family("pairs", "Add pairs, mod 10: ", 15, _draw_pairs, _walk_pairs, _join),
    Family("repeat", "From {} add {}, {} times, mod 10", 24, _draw_repeat, _walk_repeat, _render_repeat),
)
FAMILIES: dict[str, Family] = {family.name: family for family in _ALL}
"""Every family by name."""
