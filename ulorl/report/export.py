"""Writing a report's files: the page, and each plot as SVG and PNG. Files appear whole or not at all."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ulorl.errors import UserError
from ulorl.files import write_atomic
from ulorl.report.curves_training import training_figures
from ulorl.report.markup import element
from ulorl.report.page.boundary import boundary_figures
from ulorl.report.page.build import build_page
from ulorl.report.page.evaluation import change_figures, pass_figures
from ulorl.report.plot import FONTS, SVG, Figure, standalone
from ulorl.report.run_data import RunData

PNG_WIDTH = 1440
"""Pixels: a plot of 9 cm at 400 dots an inch."""


def write_page(data: RunData, output: Path | None) -> Path:
    """Write the page; returns where. UserError when the disk refuses."""
    root = data.files.root
    beside = root.with_name(f"{data.files.name}-report.html")
    path = output or (beside if data.files.single else root / "report.html")
    return _write(path, build_page(data))


def write_plots(data: RunData, directory: Path) -> tuple[list[Path], str]:
    """Every plot as SVG and, where it can be made, as PNG; returns the paths and why there are no PNG files, or ""."""
    to_png = _rasteriser()
    problem = _unfit(to_png)
    written = []
    for figure in all_figures(data):
        drawing, stem = standalone(figure), re.sub(r"[^A-Za-z0-9._-]+", "-", figure.name)[:100]
        written.append(_write(directory / f"{stem}.svg", drawing))
        if not problem:
            png = bytes(to_png(svg_string=drawing, width=PNG_WIDTH))
            written.append(_write(directory / f"{stem}.png", png))
    return written, problem


def all_figures(data: RunData) -> list[Figure]:
    """Every plot of the page, in its order."""
    return [
        *pass_figures(data),
        *boundary_figures(data),
        *change_figures(data),
        *training_figures(data.metrics),
    ]


def _write(path: Path, contents: str | bytes) -> Path:
    data = contents.encode("utf-8", "replace") if isinstance(contents, str) else contents
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, data)
    except OSError as error:
        raise UserError(f"report: cannot write {path}: {error}") from error
    return path


def _rasteriser() -> Any:
    try:
        from resvg_py import svg_to_bytes
    except ImportError:
        return None
    return svg_to_bytes


def _unfit(to_png: Any) -> str:
    """Why no PNG files can be made; "" where they can."""
    if to_png is None:
        return "no PNG files: they need resvg-py (pip install 'ulorl[report]')"
    drawn, blank = (element("text", text, y=20, font_family=FONTS) for text in ("M", ""))
    with_text, without = (
        bytes(to_png(svg_string=element("svg", text, xmlns=SVG, width=30, height=30))) for text in (drawn, blank)
    )
    # Without any font the words of a plot would be left out in silence.
    return "no PNG files: this machine has no font (Debian: fonts-dejavu-core)" if with_text == without else ""
