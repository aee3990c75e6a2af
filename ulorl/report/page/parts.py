"""Pieces that several sections of the page share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ulorl.report.markup import Markup, element, join
from ulorl.report.plot import Figure, draw
from ulorl.report.scale import percent

NOTHING = "–"


def section(anchor: str, title: str, *children: str) -> Markup:
    """A section with its heading."""
    return element("section", element("h2", title), *children, id=anchor)


def missing(text: str) -> Markup:
    """Says that something is not there."""
    return element("p", text, class_="missing")


@dataclass(frozen=True)
class Group:
    """A heading inside a table: the rows below it belong to it."""

    title: str
    more: str = ""


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str] | Group], numbers: Iterable[int] = (), name: str = ""
) -> Markup:
    """A table that scrolls sideways where it is too wide; ``numbers``: the columns that are set to the right."""
    right = set(numbers)

    def line(tag: str, row: Sequence[str]) -> Markup:
        return element("tr", *(element(tag, cell, class_="n" if at in right else None) for at, cell in enumerate(row)))

    def group(heading: Group) -> Markup:
        text = (element("strong", heading.title), element("span", f" {heading.more}", class_="quiet"))
        return element("tr", element("th", *text, colspan=len(heads), scope="rowgroup"), class_="group")

    head = element("thead", line("th", heads))
    body = element("tbody", *(group(row) if isinstance(row, Group) else line("td", row) for row in rows))
    return element("div", element("table", head, body, class_=name), class_="wide")


def figures(shown: Sequence[Figure]) -> Markup:
    """Plots with their titles and captions, as many beside each other as fit."""
    return element("div", *(_figure(figure) for figure in shown), class_="figures")


def percent_interval(interval: Sequence[float] | None, changes: bool = False) -> str:
    """``12.3 to 14.5`` in hundredths, with signs for ``changes``; a dash where there is none."""
    if interval is None:
        return NOTHING
    return " to ".join(points(bound) if changes else f"{100 * bound:.1f}" for bound in interval)


def points(value: float) -> str:
    """A difference of shares in percentage points, with its sign."""
    return signed(100 * value)


def signed(value: float) -> str:
    """``+1.2`` or ``−1.2``, with a minus sign as wide as the plus."""
    return f"{value:+,.1f}".replace("-", "−")


def clipped(text: str, most: int) -> str:
    """The beginning of a text, saying how much of it is left out."""
    return text if len(text) <= most + 40 else f"{text[:most]} … ({len(text) - most:,} characters left out)"


def hundredths(value: float | None) -> str:
    """A share in per cent without the sign, or a dash where it is unknown."""
    return NOTHING if value is None else f"{100 * value:.1f}"


def moment(text: str) -> str:
    """An ISO 8601 time of a manifest, to be read; what is none as it is."""
    try:
        return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return text


def share(value: float | None) -> str:
    """``12.3 %``, or a dash where it is unknown."""
    return NOTHING if value is None else percent(value)


def plural(count: int, noun: str) -> str:
    """``1 row``, ``1,234 rows``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _figure(figure: Figure) -> Markup:
    caption = join(" ".join([figure.caption, *figure.notes]).strip())
    return element("figure", element("h4", figure.title), draw(figure), element("figcaption", caption))
