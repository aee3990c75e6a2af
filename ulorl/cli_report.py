"""``ulorl report DIR``: a page to look at, a summary for a pull request or a program, plots for papers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ulorl.cli_options import AsJson, print_json


def report(
    directory: Annotated[Path, typer.Argument(help="A run's directory (runs/NAME), or one stage's.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The page; else DIR/report.html, beside DIR for one stage.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a summary in Markdown instead.")] = False,
    plots: Annotated[Path | None, typer.Option(help="Also write every plot there, as SVG and PNG.")] = None,
    as_json: AsJson = False,
) -> None:
    """One self-contained HTML page of a run, finished or not: funnel, curves, gains and losses, samples, recipe."""
    from ulorl.report.brief import markdown as render_markdown
    from ulorl.report.brief import summary
    from ulorl.report.export import write_page, write_plots
    from ulorl.report.run_data import read_run

    data = read_run(directory)
    page = None
    if output is not None or not (markdown or as_json):
        page = write_page(data, output)
    written: list[Path] = []
    if plots is not None:
        written, problem = write_plots(data, plots)
        if problem:
            print(f"ulorl: {problem}", file=sys.stderr)
    if as_json:
        return print_json(summary(data) | {"page": page and str(page), "plots": [str(path) for path in written]})
    if markdown:
        return print(render_markdown(data), end="")
    for path in written:
        print(path)
    print(page)
