"""What a finished run prints."""

import io
import sys

from rich.console import Console

from ulorl.report.summary import print_summary

FUNNEL = {
    "rows_in": 10,
    "rows_out": 7,
    "steps": [
        {"step": "load", "rows_in": 10, "rows_out": 10, "dropped": {}, "examples": {}, "notes": {}},
        {
            "step": "duplicates",
            "rows_in": 10,
            "rows_out": 7,
            "dropped": {"exact_duplicate": 3},
            "examples": {
                "exact_duplicate": [
                    {"id": "0123", "detail": "the same text", "problem": "What is [red]2+3[/red]? " * 9}
                ]
            },
            "notes": {},
        },
    ],
}


def measure(before, after):
    interval = [after - before - 0.05, after - before + 0.05]
    return {"before": before, "after": after, "difference": after - before, "interval": interval, "detectable": 0.1}


def summary(directory):
    measures = {name: measure(0.2, 0.7) for name in ("avg", "pass@16", "pass@2")}
    measures |= {"truncated": measure(0.0, 0.1), "length": measure(17.0, 55.0)}
    benchmark = {"problems": 64, "measures": measures, "gained": ["p1", "p2"], "lost": ["p3"]}
    estimates = {"level": 0.95, "benchmarks": {"quickstart-test": {"samples": 32}}}
    comparison = {
        "level": 0.95,
        "benchmarks": {"quickstart-test": benchmark},
        "settings_differ": [],
        "population": "problems like these",
    }
    return {
        "directory": directory,
        "funnel": FUNNEL,
        "before": estimates,
        "after": estimates,
        "comparison": comparison,
    }


def test_what_to_try_next_is_a_variation_of_what_was_run():
    stream = io.StringIO()
    given = ["my recipe.toml", "--set", "train.steps=2"]
    print_summary(summary("runs/x"), Console(file=stream, width=200), given=given, masks=False)
    assert "run 'my recipe.toml' --set train.steps=2 --set seed=1 --set name=seed1" in stream.getvalue()
    assert "no masking" not in stream.getvalue()
    assert "no masking" in printed("runs/x", 200)


def test_names_are_no_markup():
    text = printed("runs/[v1]/[bold]q", 200)
    assert "Everything lies in runs/[v1]/[bold]q:" in text
    assert "lineage 'runs/[v1]/[bold]q'/after" in text


def printed(directory, width):
    stream = io.StringIO()
    print_summary(summary(directory), Console(file=stream, width=width))
    return stream.getvalue()


def test_the_summary_shows_funnel_gain_and_places_in_80_columns(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["ulorl"])
    text = printed("runs/a b", 80)
    for words in ("exact_duplicate", "10 rows in, 7 out", "quickstart-test", "train/metrics.jsonl"):
        assert words in text
    for words in ("20.0 %", "70.0 %", "+50.0", "+45.0 to +55.0"):
        assert words in text
    assert "[red]2+3[/red]" in printed("runs/a b", 200)
    assert text.index("pass@2 ") < text.index("pass@16 ")
    assert "lineage 'runs/a b'/after" in text


def test_commands_are_shown_as_the_program_was_called(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / ".venv" / "bin" / "ulorl"), "run"])
    text = printed("runs/x", 120)
    assert ".venv/bin/ulorl lineage runs/x/after" in text
    assert ".venv/bin/tensorboard --logdir runs/x/train" in text
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "my env" / "bin" / "ulorl"), "run"])
    text = printed("runs/x", 120)
    assert "'my env/bin/ulorl' lineage runs/x/after" in text
    assert "'my env/bin/tensorboard' --logdir runs/x/train" in text
