"""What the generators of training pairs make: one answer in many spellings, and answers that are close to it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """``forms`` all mean the same; no one of ``misses`` means what any of ``forms`` means."""

    kind: str
    forms: tuple[str, ...]
    misses: tuple[str, ...]


Draw = Callable[[random.Random], Family]


def family(kind: str, forms: list[str], misses: list[str]) -> Family:
    """A family without repetitions; a miss that is spelled as a form is left out."""
    kept = tuple(dict.fromkeys(forms))
    return Family(kind, kept, tuple(miss for miss in dict.fromkeys(misses) if miss not in kept))


def change_digit(text: str, rng: random.Random) -> str:
    """One digit replaced by another (never a leading zero where there was none); the text itself without digits."""
    places = [place for place, character in enumerate(text) if character in "0123456789"]
    if not places:
        return text
    place = rng.choice(places)
    leading = place == 0 or not (text[place - 1].isdigit() or text[place - 1] == ".")
    choices = [digit for digit in "0123456789" if digit != text[place] and not (leading and digit == "0")]
    return text[:place] + rng.choice(choices) + text[place + 1 :]
