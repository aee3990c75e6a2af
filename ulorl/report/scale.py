"""Numbers on axes and in text: round ticks, formats, and fewer points without losing a spike. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

Point = tuple[float, float]


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten) from below ``low`` to above ``high``, about ``most`` of them."""
    if high - low <= max(1e-9 * max(abs(low), abs(high)), 1e-300):
        high = low + (abs(low) if abs(low) > 1e-290 else 1.0)
    raw = (high - low) / max(1, most - 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{position * step:.12g}") for position in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten from below ``low`` to above ``high``, both positive; every second or third where they are many."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    last = max(last, first + 1)
    stride = 1 + (last - first) // 6
    return [10.0**power for power in range(last, first - stride, -stride)][::-1]


def compact(value: float) -> str:
    """A number in few characters: 12.5k, 0.25, 1e-06, a dash for what is not finite."""
    if not math.isfinite(value):
        return "–"
    size = abs(value)
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= limit:
            return f"{value / (1e3 if letter == 'k' else limit):.3g}{letter}"
    if size and size < 1e-3:
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"{mantissa.removesuffix('.0')}e{int(exponent)}"
    return f"{value:,.0f}" if size >= 100 else f"{value:.3g}"


def percent(value: float) -> str:
    """A share as 12.3 %."""
    return f"{100 * value:.1f} %"


def fewer(points: Sequence[Point], most: int) -> list[Point]:
    """At most ``most`` points (at least 4) that draw the same line: of each stretch its first, least, greatest and
    last.

    A spike of a single point is always kept, unlike with means or every n-th point. (Jugel et al. 2014, "M4",
    VLDB 7(10).) Every value must be finite.
    """
    if len(points) <= most:
        return list(points)
    stretches = max(1, most // 4)
    kept: list[Point] = []
    for stretch in range(stretches):
        begin, end = stretch * len(points) // stretches, (stretch + 1) * len(points) // stretches
        places = range(begin, end)
        chosen = {begin, end - 1, min(places, key=lambda at: points[at][1]), max(places, key=lambda at: points[at][1])}
        kept += [points[at] for at in sorted(chosen)]
    return kept


def runs(points: Sequence[Point]) -> list[list[Point]]:
    """The stretches of finite values: a line is broken where a value is not finite."""
    found: list[list[Point]] = [[]]
    for point in points:
        if math.isfinite(point[1]):
            found[-1].append(point)
        elif found[-1]:
            found.append([])
    return [run for run in found if run]


def moving_mean(points: Sequence[Point], width: int) -> list[Point]:
    """The mean of the ``width`` points around each point; fewer at the ends. Every value must be finite."""
    totals = [0.0]
    for _, value in points:
        totals.append(totals[-1] + value)
    half = width // 2
    smooth = []
    for at, (x, _) in enumerate(points):
        low, high = max(0, at - half), min(len(points), at + half + 1)
        smooth.append((x, (totals[high] - totals[low]) / (high - low)))
    return smooth
