"""Line plots and scatter plots as SVG: one drawing for the page, for paper and for files.

Invariants:
- a drawing names classes and no colours; a style sheet gives them (``PALETTE``), so that the page can be dark;
- a curve is labelled at its end in its own colour and drawn with its own dash, never by colour alone;
- no spike is lost where there are more points than a drawing can hold (``scale.fewer``), and what is not finite
  breaks the line and is counted in the caption.

Does not decide what is plotted (``curves_training``, ``curves_evaluation``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ulorl.report.markup import Markup, element, number
from ulorl.report.scale import Point, compact, fewer, log_ticks, moving_mean, runs, ticks

WIDTH, HEIGHT, SQUARE = 360.0, 216.0, 316.0
"""Of a plot, and the height of a scatter plot, in units of about a pixel."""
SVG = "http://www.w3.org/2000/svg"
_TOP, _BOTTOM, _LEFT = 24.0, 34.0, 40.0
_LINE = 12.0
FONTS = "'Helvetica Neue',Helvetica,Arial,'Liberation Sans','Noto Sans','DejaVu Sans',sans-serif"
MOST_POINTS = 480
SMOOTH_FROM = 80
"""Points from which a curve is drawn faintly with its moving mean over it."""
LABEL_CHARS = 18

PALETTE = {
    # Okabe and Ito's colours, which are told apart with any colour vision; darkened to read on white.
    "light": ("#0067a5", "#c04f00", "#00795a", "#a3477d", "#6b6b6b", "#8a6a00"),
    "dark": ("#63b3e8", "#f0955a", "#4cc7a1", "#dd95bd", "#a8a8a8", "#dcc35a"),
}


@dataclass(frozen=True)
class Curve:
    """One line. ``band`` holds (x, low, high); ``slot`` is the number of its colour, from 1."""

    label: str
    points: Sequence[Point]
    slot: int = 1
    dashed: bool = False
    dots: bool = False
    band: Sequence[tuple[float, float, float]] = ()


@dataclass(frozen=True)
class Event:
    """Something that happened at ``x``: a vertical line with its label above the axes, the ``chief`` ones' first."""

    x: float
    label: str
    chief: bool = False


@dataclass(frozen=True)
class Figure:
    """A plot. ``name`` is the stem of its files; ``unit`` stands above the vertical axis.

    ``limits`` are the least extent of the vertical axis: data beyond them widens it. ``marks`` (x, y, problems)
    make it a square scatter plot of shares with its diagonal.
    """

    name: str
    title: str
    caption: str = ""
    curves: Sequence[Curve] = ()
    unit: str = ""
    x_label: str = "step"
    share: bool = False
    limits: tuple[float, float] | None = None
    log_x: bool = False
    log_y: bool = False
    marks: Sequence[tuple[float, float, int]] = ()
    events: Sequence[Event] = ()
    notes: tuple[str, ...] = field(default=())


def draw(figure: Figure) -> Markup:
    """The plot as an SVG element for the page, to be styled by ``plot_style``."""
    return element(
        "svg", *_contents(figure), class_="plot", role="img", aria_label=_words(figure), viewbox=_box(figure)
    )


def standalone(figure: Figure) -> str:
    """The plot as an SVG file of its own, light, with its colours inside."""
    head = element("style", Markup(plot_style(light_values())))
    back = element("rect", width=WIDTH, height=_height(figure), fill="#ffffff")
    contents = (head, element("title", figure.title), back, *_contents(figure))
    size = {"width": WIDTH, "height": _height(figure)}
    body = element("svg", *contents, class_="plot", viewbox=_box(figure), xmlns=SVG, **size)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def light_values() -> dict[str, str]:
    """Colours by role, for light paper."""
    colours = {f"c{slot}": colour for slot, colour in enumerate(PALETTE["light"], start=1)}
    return colours | {"ink": "#1a1a1a", "muted": "#5c5c5c", "grid": "#e3e3e3", "paper": "#ffffff"}


def plot_style(values: dict[str, str]) -> str:
    """Style sheet of the drawings; ``values`` are colours or ``var(--name)`` by role."""
    muted, grid = values["muted"], values["grid"]
    rules = [
        f".plot text{{font:11px {FONTS};fill:{muted}}}",
        f".plot .grid{{stroke:{grid}}}.plot .zero,.plot .diagonal{{stroke:{muted}}}",
        ".plot .diagonal{stroke-dasharray:3 3}",
        f".plot .event{{stroke:{muted};stroke-dasharray:2 3}}",
        ".plot .line{fill:none;stroke-width:1.75;stroke-linejoin:round;stroke-linecap:round}",
        ".plot .faint{stroke-width:1;opacity:.38}.plot .dashed{stroke-dasharray:5 3}",
        ".plot .band{stroke:none;opacity:.16}.plot .mark{opacity:.75}",
        ".plot .end{text-anchor:end}.plot .middle{text-anchor:middle}",
    ]
    for slot in range(1, len(PALETTE["light"]) + 1):
        colour = values[f"c{slot}"]
        rules.append(f".plot .s{slot}{{stroke:{colour}}}.plot .f{slot},.plot text.f{slot}{{fill:{colour}}}")
    return "\n".join(rules)


@dataclass(frozen=True)
class _Axes:
    """From values to coordinates."""

    x: Callable[[float], float]
    y: Callable[[float], float]
    x_ticks: Sequence[float]
    y_ticks: Sequence[float]
    right: float


def _contents(figure: Figure) -> list[Markup]:
    axes = _axes(figure)
    parts = _grid(figure, axes) + _events(figure, axes)
    if figure.marks:
        ends = {"x1": axes.x(0), "y1": axes.y(0), "x2": axes.x(1), "y2": axes.y(1)}
        parts.append(element("line", class_="diagonal", **ends))
    for curve in figure.curves:
        if curve.band:
            parts.append(_band(curve, axes))
    for curve in figure.curves:
        parts += _lines(curve, axes)
    parts += [_mark(mark, axes) for mark in figure.marks]
    return parts + _labels(figure, axes)


def _sides(axes: _Axes) -> list[Markup]:
    """What the two sides of the diagonal mean."""
    return [
        element("text", "↑ gained", class_="f3", x=axes.right + 4, y=axes.y(1) - 3),
        element("text", "↓ lost", class_="f2", x=axes.right + 4, y=axes.y(1) + 13),
    ]


def _height(figure: Figure) -> float:
    return SQUARE if figure.marks else HEIGHT


def _axes(figure: Figure) -> _Axes:
    points = [point for curve in figure.curves for point in curve.points if math.isfinite(point[1])]
    points += [(x, edge) for curve in figure.curves for x, *edges in curve.band for edge in edges]
    points += [(0.0, 0.0), (1.0, 1.0)] if figure.marks else []
    xs = [x for x, _ in points] or [0.0, 1.0]
    ys = [y for _, y in points if y > 0 or not figure.log_y] or [0.1, 1.0]
    low, high = min(ys), max(ys)
    if figure.log_y:
        y_ticks = log_ticks(low, high)
    else:
        least, most = figure.limits or (min(0.0, low), high)
        y_ticks = ticks(min(low, least), max(high, most))
    longest = max((len(_short(curve.label)) for curve in figure.curves), default=0)
    bottom = _height(figure) - _BOTTOM
    right = WIDTH - (12.0 if len(figure.curves) < 2 else 10.0 + 6.2 * longest)
    if figure.marks:
        right = _LEFT + bottom - _TOP
    first, last = min(xs), max(xs)
    if first == last:
        first, last = (first / 2, last * 2) if figure.log_x and first > 0 else (first - 1, last + 1)
    if figure.log_x:
        x_ticks = [2.0**power for power in range(math.ceil(math.log2(first)), math.floor(math.log2(last)) + 1)]
        x_ticks = x_ticks[:: 1 + len(x_ticks) // 9]
    else:
        x_ticks = [tick for tick in ticks(first, last) if first <= tick <= last]
    return _Axes(
        _scaled(first, last, _LEFT, right, figure.log_x),
        _scaled(y_ticks[0], y_ticks[-1], bottom, _TOP, figure.log_y),
        x_ticks,
        y_ticks,
        right,
    )


def _scaled(low: float, high: float, start: float, end: float, log: bool) -> Callable[[float], float]:
    def place(value: float) -> float:
        if log:
            share = (math.log(max(value, low)) - math.log(low)) / (math.log(high) - math.log(low))
        else:
            share = (value - low) / (high - low)
        return start + share * (end - start)

    return place


def _grid(figure: Figure, axes: _Axes) -> list[Markup]:
    parts, bottom = [], _height(figure) - _BOTTOM
    for value in axes.y_ticks:
        y, label = axes.y(value), f"{100 * value:.4g} %" if figure.share else compact(value)
        name = "zero" if value == axes.y_ticks[0] else "grid"
        parts.append(element("line", class_=name, x1=_LEFT, x2=axes.right, y1=y, y2=y))
        parts.append(element("text", label, class_="end", x=_LEFT - 5, y=y + 4))
    for value in axes.x_ticks:
        parts.append(element("text", _x_label(figure, value), class_="middle", x=axes.x(value), y=bottom + 15))
    parts.append(element("text", figure.x_label, class_="middle", x=(_LEFT + axes.right) / 2, y=bottom + 30))
    if figure.unit:
        parts.append(element("text", figure.unit, x=2, y=11))
    return parts


def _events(figure: Figure, axes: _Axes) -> list[Markup]:
    """The lines of all events within the axes; labels that would run into another are left to the tooltip."""
    parts, taken = [], list[tuple[float, float]]()
    for event in sorted(figure.events, key=lambda one: (not one.chief, one.x)):
        x = axes.x(event.x)
        if not _LEFT - 0.5 <= x <= axes.right + 0.5:
            continue
        what = element("title", f"{figure.x_label} {compact(event.x)}: {event.label}")
        ends = {"x1": x, "x2": x, "y1": _TOP, "y2": _height(figure) - _BOTTOM}
        parts.append(element("line", what, class_="event", **ends))
        half = 3.1 * len(event.label)
        centre = min(max(x, half), WIDTH - half)
        if all(centre + half < low or centre - half > high for low, high in taken):
            parts.append(element("text", event.label, class_="middle", x=centre, y=_TOP - 4))
            taken.append((centre - half - 4, centre + half + 4))
    return parts


def _x_label(figure: Figure, value: float) -> str:
    return f"{100 * value:.4g} %" if figure.marks else compact(value)


def _lines(curve: Curve, axes: _Axes) -> list[Markup]:
    found = runs(curve.points)
    points = sum(len(run) for run in found)
    smooth = points >= SMOOTH_FROM and not curve.dashed
    name = f"line s{curve.slot}" + (" dashed" if curve.dashed else "")
    parts = []
    for run in found:
        most = max(4, MOST_POINTS * len(run) // points)
        parts.append(_path(fewer(run, most), axes, f"{name} faint" if smooth else name))
        if smooth:
            parts.append(_path(fewer(moving_mean(run, smoothing(points)), most), axes, name))
    if curve.dots or points <= 2:
        name = f"f{curve.slot}"
        parts += [element("circle", class_=name, r=2.4, cx=axes.x(x), cy=axes.y(y)) for run in found for x, y in run]
    return parts


def smoothing(points: int) -> int:
    """Points that the moving mean of a curve takes together: an odd number, 1 where it is not drawn."""
    return 1 if points < SMOOTH_FROM else points // 25 | 1


def _path(points: Sequence[Point], axes: _Axes, name: str) -> Markup:
    steps = "L".join(f"{number(axes.x(x))} {number(axes.y(y))}" for x, y in points)
    return element("path", class_=name, d=f"M{steps}")


def _band(curve: Curve, axes: _Axes) -> Markup:
    there = [(axes.x(x), axes.y(high)) for x, _, high in curve.band]
    back = [(axes.x(x), axes.y(low)) for x, low, _ in reversed(curve.band)]
    outline = " ".join(f"{number(x)},{number(y)}" for x, y in there + back)
    return element("polygon", class_=f"band f{curve.slot}", points=outline)


def _mark(mark: tuple[float, float, int], axes: _Axes) -> Markup:
    x, y, count = mark
    slot = 3 if y > x else 2 if y < x else 5
    noun = "problem" if count == 1 else "problems"
    what = element("title", f"{100 * x:.0f} % before, {100 * y:.0f} % after: {count} {noun}")
    return element(
        "circle", what, class_=f"mark f{slot}", cx=axes.x(x), cy=axes.y(y), r=2.6 * math.sqrt(min(count, 30))
    )


def _labels(figure: Figure, axes: _Axes) -> list[Markup]:
    """The name of each curve at its right end, moved apart where two ends are close."""
    if figure.marks:
        return _sides(axes)
    if len(figure.curves) < 2:
        return []
    ends = []
    for curve in figure.curves:
        finite = [y for _, y in curve.points if math.isfinite(y)]
        if finite:
            ends.append((axes.y(moving_mean(list(enumerate(finite)), smoothing(len(finite)))[-1][1]), curve))
    ends.sort(key=lambda end: end[0])
    places = _apart([y for y, _ in ends], _TOP, HEIGHT - _BOTTOM)
    return [
        element("text", _short(curve.label), class_=f"f{curve.slot}", x=axes.right + 6, y=y + 4)
        for y, (_, curve) in zip(places, ends, strict=True)
    ]


def _apart(wanted: Sequence[float], low: float, high: float) -> list[float]:
    """Heights near the wanted ones (ascending), at least a line apart, within the axes where they fit."""
    places: list[float] = []
    for y in wanted:
        places.append(max(y, places[-1] + _LINE) if places else max(y, low))
    limit = high
    for at in range(len(places) - 1, -1, -1):
        places[at] = min(places[at], limit)
        limit = places[at] - _LINE
    return places


def _short(label: str) -> str:
    return label if len(label) <= LABEL_CHARS else label[: LABEL_CHARS - 1] + "…"


def _box(figure: Figure) -> str:
    return f"0 0 {number(WIDTH)} {number(_height(figure))}"


def _words(figure: Figure) -> str:
    """What the plot says, for a reader who cannot see it."""
    said = []
    for curve in figure.curves:
        finite = [(x, y) for x, y in curve.points if math.isfinite(y)]
        if finite:
            (first, start), (last, end) = finite[0], finite[-1]
            said.append(f"{curve.label} from {compact(start)} at {compact(first)} to {compact(end)} at {compact(last)}")
    said += [f"{event.label} at {compact(event.x)}" for event in figure.events]
    return f"{figure.title}. {'; '.join(said)}"
