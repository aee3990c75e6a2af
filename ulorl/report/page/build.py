"""The whole page: one HTML file that asks the network for nothing and runs no script.

Invariants: the policy in its head forbids scripts, frames, forms and every request, and allows exactly the one style
sheet, by its hash; a section that fails costs itself, and says so in its place.
"""

from __future__ import annotations

import base64
import hashlib
import logging
from collections.abc import Callable
from datetime import UTC, datetime

from ulorl.provenance import provenance
from ulorl.report.markup import Markup, element, join
from ulorl.report.page.boundary import boundary_section
from ulorl.report.page.curation import curation_section
from ulorl.report.page.evaluation import evaluation_section, problems_section
from ulorl.report.page.origins import lineage_section, recipe_section
from ulorl.report.page.overview import overview_section
from ulorl.report.page.parts import section
from ulorl.report.page.samples import samples_section
from ulorl.report.page.style import page_style
from ulorl.report.page.training import training_section
from ulorl.report.run_data import RunData

log = logging.getLogger(__name__)

_SECTIONS: tuple[tuple[str, str, Callable[[RunData], Markup]], ...] = (
    ("evaluation", "Evaluation", evaluation_section),
    ("boundary", "Boundary", boundary_section),
    ("problems", "Problems gained and lost", problems_section),
    ("samples", "Samples to read", samples_section),
    ("curation", "Curation", curation_section),
    ("training", "Training", training_section),
    ("lineage", "Lineage", lineage_section),
    ("recipe", "Recipe", recipe_section),
)


def build_page(data: RunData) -> str:
    """The HTML document."""
    style = Markup(page_style())
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", f"{data.files.name} – ulorl report"),
        element("style", style),
    )
    sections = [one for one in _SECTIONS if one[0] != "boundary" or data.files.boundaries]
    links = [element("li", element("a", title, href=f"#{anchor}")) for anchor, title, _ in sections]
    what = "one stage of a run" if data.files.single else "report of a run"
    body = element(
        "body",
        element("header", element("h1", data.files.name), element("p", what, class_="lead")),
        element("nav", element("ul", *links), aria_label="Sections"),
        _guarded("overview", "Overview", overview_section, data),
        element("main", *(_guarded(*one, data) for one in sections)),
        element("footer", _made()),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _guarded(anchor: str, title: str, make: Callable[[RunData], Markup], data: RunData) -> Markup:
    try:
        return make(data)
    except Exception as error:
        # A file of another version or a damaged one may lack anything; the other sections are worth having.
        log.warning("report: section %s left out", anchor, exc_info=True)
        text = f"This section could not be made from what is there ({type(error).__name__}: {str(error)[:300]})."
        return section(anchor, title, element("p", text, class_="bad"))


def _made() -> Markup:
    version = provenance()["packages"].get("ulorl", "")
    return join(f"Made by ulorl {version} on {datetime.now(UTC):%Y-%m-%d %H:%M} UTC.")
