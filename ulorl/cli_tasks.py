"""``ulorl tasks``: which tasks there are, and puzzles of the task `logic` as a file of problems."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ulorl.cli_options import AsJson, print_json
from ulorl.errors import UserError

app = typer.Typer(help="Tasks beside mathematics: what there is, and puzzles as problems.", no_args_is_help=True)
OUTPUTS = (".jsonl", ".jsonl.gz", ".parquet")


@app.command("list")
def list_tasks(
    name: Annotated[str, typer.Argument(help="logic for its data sets; a data set for its settings.")] = "",
    as_json: AsJson = False,
) -> None:
    """Tasks by name; with `logic` its data sets, with a data set its settings and their defaults."""
    if not name:
        from ulorl.verify.tasks.registry import summaries

        found: Any = summaries()
        return print_json(found) if as_json else _print_table(found)
    from ulorl.verify.tasks.puzzles.library import SettingError, names, settings_of

    if name == "logic":
        return print_json(names()) if as_json else print("\n".join(names()))
    try:
        settings = settings_of(name)
    except SettingError as error:
        raise UserError(f"tasks list: {error}") from error
    if as_json:
        return print_json(json.loads(json.dumps(settings, default=str)))
    _print_table({key: repr(value) for key, value in settings.items()})


@app.command()
def make(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Data sets; `ulorl tasks list logic`.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="File: .jsonl, .jsonl.gz or .parquet.")],
    size: Annotated[int, typer.Option(min=1, help="Puzzles of each data set.")] = 100,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Other seeds share no puzzles but by chance.")] = 0,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME.KEY=VALUE", help="A setting of a data set: its difficulty (repeat)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Puzzles of reasoning-gym as problems that `ulorl curate`, `train` and `eval` read."""
    if not output.name.endswith(OUTPUTS):
        raise UserError(f"{output}: unknown format; name it {', '.join(OUTPUTS)}")
    if not output.parent.is_dir():
        raise UserError(f"{output.parent}: no such directory; make it first")
    from ulorl.verify.tasks.puzzles.make import Puzzles, make

    settings = _settings(names, overrides or [])
    wanted = [Puzzles(name, size, settings[name]) for name in dict.fromkeys(names)]
    rows = make(wanted, seed, lambda line: print(f"ulorl: {line}", file=sys.stderr))
    counts = _write(output, rows)
    if as_json:
        return print_json({"file": str(output), "puzzles": counts})
    print(f"{output}: " + ", ".join(f"{count} {name}" for name, count in counts.items()))


def _settings(names: list[str], overrides: list[str]) -> dict[str, dict[str, Any]]:
    """Settings by data set from NAME.KEY=VALUE, VALUE being JSON, or else a text."""
    found: dict[str, dict[str, Any]] = {name: {} for name in names}
    for override in overrides:
        path, equals, text = override.partition("=")
        name, dot, key = path.partition(".")
        if not (equals and dot and key) or name not in found:
            raise UserError(
                f"--set {override}: give NAME.KEY=VALUE, NAME being one of the data sets named: {', '.join(found)}"
            )
        try:
            found[name][key] = json.loads(text)
        except ValueError:
            found[name][key] = text
    return found


def _write(output: Path, rows: Iterator[dict[str, Any]]) -> dict[str, int]:
    """Writes the rows and counts them by data set."""
    import gzip

    from ulorl.files import writing

    counts: dict[str, int] = {}
    kept: list[dict[str, Any]] = []
    with writing(output) as temporary:
        for row in rows:
            name = row["id"].partition("/")[0]
            counts[name] = counts.get(name, 0) + 1
            kept.append(row)
        if output.suffix == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            texts = ("id", "problem", "answer", "task", "metadata", "settings")
            schema = pa.schema([(name, pa.string()) for name in texts])
            pq.write_table(pa.Table.from_pylist(kept, schema=schema), temporary, compression="zstd")
        else:
            data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in kept).encode()
            temporary.write_bytes(gzip.compress(data, mtime=0) if output.suffix == ".gz" else data)
    return counts


def _print_table(rows: dict[str, str]) -> None:
    width = max(map(len, rows), default=0)
    for name, text in rows.items():
        print(f"{name:{width}}  {text}")
