"""The page, the summaries and the plots of a run: what they say, what they never let through."""

import json
import re
import xml.etree.ElementTree as Xml
from html.parser import HTMLParser
from pathlib import Path

import pytest
from report_run import HOSTILE, make_curation, make_evaluation, make_run, make_training
from typer.testing import CliRunner

from ulorl.cli import app
from ulorl.errors import UserError
from ulorl.report.brief import markdown, summary
from ulorl.report.export import all_figures
from ulorl.report.page.build import build_page
from ulorl.report.plot import standalone
from ulorl.report.run_data import read_run

VOID = {"br", "hr", "meta", "link"}
SECTIONS = ("overview", "evaluation", "problems", "samples", "curation", "training", "lineage", "recipe")


class Page(HTMLParser):
    """Elements, their attributes and text; fails where elements do not nest."""

    def __init__(self, html):
        super().__init__()
        self.open, self.elements, self.text = [], [], ""
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data

    def ids(self):
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("report") / "toy-run")


@pytest.fixture(scope="module")
def page(run):
    return Page(build_page(read_run(run)))


def test_every_section_is_there_and_says_the_numbers_of_the_run(page):
    assert tuple(page.ids()) == SECTIONS
    assert "could not be made" not in page.text
    # Right before: 14 of 32 samples; after: 20 of 32.
    assert "43.8 % → 62.5 %" in page.text
    assert "+18.8" in page.text
    assert "13 rows in, 8 out (61.5 %)" in page.text
    assert "30 of 30 steps" in page.text
    assert "3 problems gained" in page.text and "1 problem lost" in page.text
    assert "multi part" in page.text and "The problem asks several questions" in page.text


def test_the_page_is_alone_and_runs_nothing(run):
    html = build_page(read_run(run))
    page = Page(html)
    names = {tag for tag, _ in page.elements}
    assert not names & {"script", "link", "img", "iframe", "object", "embed", "form", "base", "audio", "video"}
    for _, attributes in page.elements:
        assert not any(name.startswith("on") or name in ("style", "src", "srcset") for name in attributes)
        assert attributes.get("href", "#").startswith("#")
    policy = next(a["content"] for tag, a in page.elements if tag == "meta" and "http-equiv" in a)
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    assert "url(" not in html and "@import" not in html
    assert not re.search(r"https?://(?!www\.w3\.org/1998/Math/MathML)", html)


def test_the_policy_allows_exactly_the_style_sheet_that_is_there(run):
    import base64
    import hashlib

    html = build_page(read_run(run))
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src &#x27;sha256-{digest}&#x27;" in html


def test_what_a_model_wrote_is_shown_and_never_interpreted(tmp_path):
    run = make_run(tmp_path / "<b>run", text=HOSTILE)
    data = read_run(run)
    html = build_page(data)
    page = Page(html)
    assert "could not be made" not in page.text
    assert "<script>alert(1)</script><img src=x onerror=alert(2)>" in page.text
    assert not {"script", "img", "b"} & {tag for tag, _ in page.elements}
    assert not re.search("[\x00-\x08\x1b\ud800-\udfff]", html)
    html.encode("utf-8")
    assert "<script" not in markdown(data)
    for figure in all_figures(data):
        Xml.fromstring(standalone(figure))


def test_long_texts_are_cut_and_the_cut_is_told(tmp_path):
    run = make_run(tmp_path / "run", text="x" * 200_000)
    html = build_page(read_run(run))
    assert "196,800 characters left out" in html
    assert len(html) < 400_000


def test_a_run_that_is_under_way_is_reported_with_what_is_there(tmp_path):
    root = tmp_path / "run"
    root.mkdir()
    make_curation(root / "curate")
    make_evaluation(root / "before", [1, 2, 3])
    partial = make_training(root / "train", 12, 500, finished=False)
    make_evaluation(root / "after", [1, 2, 3], finished=False)
    with (partial / "metrics.jsonl").open("a") as file:
        file.write('{"step": 13, "reward/me')
    data = read_run(root)
    page = Page(build_page(data))
    assert tuple(page.ids()) == SECTIONS
    assert "train: unfinished" in page.text and "after: unfinished" in page.text
    assert "12 of 500 steps" in page.text
    assert "12 samples kept so far" in page.text
    assert summary(data)["stages"]["train"] == "unfinished"
    assert "train unfinished" in markdown(data)


def test_a_run_without_most_stages_says_what_is_missing(tmp_path):
    root = tmp_path / "run"
    root.mkdir()
    make_curation(root / "curate")
    page = Page(build_page(read_run(root)))
    assert "train: missing" in page.text and "evaluation: missing" in page.text
    for words in ("No training run is here", "No finished evaluation is here", "Two finished evaluations are needed"):
        assert words in page.text


@pytest.mark.parametrize("stage", ["curate", "train", "before"])
def test_a_single_stage_has_a_page_too(run, stage):
    data = read_run(run / stage)
    page = Page(build_page(data))
    assert tuple(page.ids()) == SECTIONS
    assert "could not be made" not in page.text
    assert "missing" not in summary(data)["stages"].values()


def test_damaged_files_cost_only_themselves(tmp_path):
    root = make_run(tmp_path / "run")
    (root / "curate" / "funnel.json").write_text("{")
    (root / "after" / "scores.parquet").write_bytes(b"PAR1 no")
    (root / "train" / "metrics.jsonl").write_text('broken\n{"step": 1}\n')
    (root / "train" / "rollouts" / "step_000001.parquet").write_bytes(b"")
    page = Page(build_page(read_run(root)))
    assert tuple(page.ids()) == SECTIONS
    for words in ("funnel.json is missing or damaged", "scores.parquet", "line 1: not a line of metrics", "rollouts:"):
        assert words in page.text
    assert "43.8" in page.text


def test_a_file_of_another_version_costs_its_section(tmp_path):
    root = make_run(tmp_path / "run")
    (root / "curate" / "funnel.json").write_text('{"rows_in": 3, "rows_out": 1, "steps": [{"step": "load"}]}')
    page = Page(build_page(read_run(root)))
    assert page.text.count("could not be made") == 1
    assert tuple(page.ids()) == SECTIONS


def test_a_directory_without_stages_is_refused(tmp_path):
    (tmp_path / "files").mkdir()
    with pytest.raises(UserError, match="holds no stage of ulorl"):
        read_run(tmp_path)
    with pytest.raises(UserError, match="no such directory"):
        read_run(tmp_path / "nowhere")


def test_summary_and_markdown_agree_with_the_comparison(run):
    data = read_run(run)
    short = json.loads(json.dumps(summary(data), allow_nan=False))
    avg = short["comparison"]["benchmarks"]["toy"]["measures"]["avg"]
    assert avg["before"] == pytest.approx(14 / 32) and avg["after"] == pytest.approx(20 / 32)
    assert short["curation"]["dropped"] == {"kinds": {"multi_part": 5}}
    assert short["training"]["steps"] == 30
    assert short["training"]["metrics"]["mismatch/max"]["not_finite"] == 1
    assert "| toy, avg@4 | 43.8 | 62.5 | **+18.8** |" in markdown(data)


def test_the_command_writes_the_page_and_prints_where(run, tmp_path):
    out = tmp_path / "there" / "page.html"
    result = CliRunner().invoke(app, ["report", str(run), "-o", str(out)])
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(out)
    assert out.read_text().startswith("<!doctype html>")
    result = CliRunner().invoke(app, ["report", str(run), "--json"])
    assert json.loads(result.stdout)["page"] is None
    assert not (run / "report.html").exists()
    result = CliRunner().invoke(app, ["report", str(run), "--markdown"])
    assert result.stdout.startswith("### toy-run\n")


def test_a_page_of_one_stage_lies_beside_its_finished_directory(tmp_path):
    make_curation(tmp_path / "curate")
    result = CliRunner().invoke(app, ["report", str(tmp_path / "curate")])
    assert result.stdout.strip() == str(tmp_path / "curate-report.html")


def test_plots_come_as_svg_and_png(run, tmp_path):
    pytest.importorskip("resvg_py", reason="the extra `report` is not installed")
    result = CliRunner().invoke(app, ["report", str(run), "--json", "--plots", str(tmp_path / "plots")])
    paths = json.loads(result.stdout)["plots"]
    assert len(paths) == 2 * len(all_figures(read_run(run))) >= 18
    for path in paths:
        contents = Path(path).read_bytes()
        assert contents.startswith(b"\x89PNG" if path.endswith(".png") else b"<?xml")
        assert len(contents) > 1000


def test_without_what_makes_png_files_the_svg_files_are_written_and_it_is_said(run, tmp_path, monkeypatch):
    blank = lambda **_: b"blank"  # noqa: E731
    for rasteriser, words in ((None, "they need resvg-py"), (blank, "has no font")):
        monkeypatch.setattr("ulorl.report.export._rasteriser", lambda rasteriser=rasteriser: rasteriser)
        result = CliRunner().invoke(app, ["report", str(run), "--json", "--plots", str(tmp_path / words[:4])])
        assert words in result.stderr
        paths = json.loads(result.stdout)["plots"]
        assert paths and all(path.endswith(".svg") for path in paths)


def test_a_place_that_cannot_be_written_is_named(run, tmp_path):
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(app, ["report", str(run), "-o", str(tmp_path / "file" / "page.html")])
    assert isinstance(result.exception, UserError) and "cannot write" in str(result.exception)
