"""Building HTML, SVG and MathML as text.

Invariants:
- a ``str`` that is not ``Markup`` is escaped wherever it is put in, so whatever a model, a data set or a file name
  holds is shown and never interpreted;
- what XML 1.0 forbids (control characters, lone surrogates) is shown as U+FFFD;
- neither event handlers nor style attributes are ever written: the page's policy forbids both.

Does not check that the elements nest as HTML demands.
"""

from __future__ import annotations

import html
import re

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_VOID = frozenset({"br", "hr", "meta", "link"})
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")


class Markup(str):
    """Text that is markup already; made by ``element``, ``escape`` and ``join`` alone."""

    __slots__ = ()


def escape(text: str) -> Markup:
    """Text as markup that shows exactly it."""
    return Markup(html.escape(_FORBIDDEN.sub("\ufffd", text), quote=True))


def join(*parts: str, separator: str = "") -> Markup:
    """The parts one after another, plain ones escaped."""
    shown = [part if isinstance(part, Markup) else escape(part) for part in parts]
    return Markup((separator if isinstance(separator, Markup) else escape(separator)).join(shown))


def element(tag: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """One element. An attribute's name loses a closing underscore (``class_``), inner ones become hyphens.

    Attributes that are None or "" are left out.
    """
    shown = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None and value != "")
    if tag in _VOID:
        return Markup(f"<{tag}{shown}>")
    return Markup(f"<{tag}{shown}>{join(*children)}</{tag}>")


def number(value: float) -> str:
    """A coordinate: at most two decimals, no trailing zeros."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("", "-0") else text


def _attribute(key: str, value: str | float | None) -> str:
    name = {"viewbox": "viewBox"}.get(key, key.rstrip("_").replace("_", "-"))
    assert _NAME.fullmatch(name) and name != "style" and not name.startswith("on"), name
    shown = value if isinstance(value, str) else number(float(value or 0))
    return f' {name}="{escape(shown)}"'
