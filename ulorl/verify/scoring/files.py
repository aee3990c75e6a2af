"""Verdicts for whole files of answers or responses.

Invariants: a verdict a row, in order; rows are read, judged and written in batches, so a file of any length fits
in memory; an output file appears whole or not at all.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from ulorl.errors import UserError
from ulorl.files import writing
from ulorl.recipe import VerifyRecipe
from ulorl.verify.scoring.rates import Rates
from ulorl.verify.scoring.reading import LabelledItem, read_items
from ulorl.verify.tasks.scorer import Scorer

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 4096
OUTPUTS = (".jsonl", ".jsonl.gz", ".parquet")


@dataclass(frozen=True)
class JudgedRow:
    """A row of the output. ``row`` is the line or row of the input, counted from 1; ``answer`` what was extracted;
    ``reward`` from 0 to 1."""

    row: int
    reference: str
    answer: str | None
    equivalent: bool | None
    rule: str
    reason: str
    reward: float
    label: bool | None

    @property
    def disagrees(self) -> bool:
        """Whether acceptance differs from the label."""
        return self.label is not None and (self.equivalent is True) != self.label


def judge_file(path: str | Path, scorer: Scorer, rates: Rates) -> Iterator[JudgedRow]:
    """Judges every row of ``path`` and adds it to ``rates``. Raises `UserError` for unreadable rows."""
    items = read_items(Path(path))
    while batch := list(islice(items, BATCH)):
        yield from _judge(batch, scorer, rates)


def verify_file(
    path: str | Path,
    config: VerifyRecipe,
    *,
    output: Path | None = None,
    keep: Callable[[JudgedRow], bool] = lambda row: True,
) -> dict[str, Any]:
    """Judges every row of ``path``: the summary of `Rates`, and as ``rows`` those that ``keep`` picks, as dicts.

    With a judge, ``judge`` holds its counts (see `ulorl.verify.judge.tier.JudgeCounts`).

    Writes all of them to ``output`` if given, as JSON lines or Parquet by its name. Raises `UserError` for
    unreadable rows.
    """
    if output is not None and output.resolve() == Path(path).resolve():
        raise UserError(f"{output}: is the file that is read; name another with -o")
    rates = Rates()
    kept: list[dict[str, Any]] = []
    with ExitStack() as stack:
        write = stack.enter_context(_writer(output)) if output is not None else None
        scorer = stack.enter_context(Scorer(config))
        for batch in _batches(judge_file(path, scorer, rates)):
            kept += [asdict(row) for row in batch if keep(row)]
            if write is not None:
                write(batch)
        counts = scorer.judge_counts
    return {**rates.summary(), **({} if counts is None else {"judge": counts.as_dict()}), "rows": kept}


def _judge(batch: list[LabelledItem], scorer: Scorer, rates: Rates) -> Iterator[JudgedRow]:
    start = time.perf_counter()
    for one in batch:
        fault = None if one.item.row is None else scorer.check(one.item.row)
        if one.item.row is not None and fault is not None:
            raise UserError(f"{one.item.row.source}: task {one.item.row.task}: {fault}")
    verdicts = scorer.verify([one.item for one in batch])
    rates.seconds += time.perf_counter() - start
    for one, verdict in zip(batch, verdicts, strict=True):
        rates.add(verdict, one.label)
        yield JudgedRow(
            one.number,
            one.item.reference,
            verdict.answer,
            verdict.equivalent,
            verdict.rule,
            verdict.reason,
            verdict.reward,
            one.label,
        )


def _batches(rows: Iterator[JudgedRow]) -> Iterator[list[JudgedRow]]:
    while batch := list(islice(rows, BATCH)):
        yield batch


@contextmanager
def _writer(path: Path) -> Iterator[Callable[[list[JudgedRow]], object]]:
    if not path.name.endswith(OUTPUTS):
        raise UserError(f"{path}: unknown format; name it {', '.join(OUTPUTS)}")
    if not path.parent.is_dir():
        raise UserError(f"{path.parent}: no such directory; make it first")
    with writing(path) as temporary, ExitStack() as stack:
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            parquet = stack.enter_context(pq.ParquetWriter(temporary, _schema(), compression="zstd"))
            yield lambda rows: parquet.write_batch(_as_arrow(rows))
            return
        binary: IO[bytes] = stack.enter_context(temporary.open("wb"))
        if path.suffix == ".gz":
            binary = cast(IO[bytes], stack.enter_context(gzip.GzipFile("", "wb", fileobj=binary, mtime=0)))
        yield lambda rows: binary.write("".join(map(_line, rows)).encode())


def _line(row: JudgedRow) -> str:
    return json.dumps(asdict(row), ensure_ascii=False).encode("utf-8", "backslashreplace").decode() + "\n"


def _schema() -> pa.Schema:
    import pyarrow as pa

    texts = {name: pa.string() for name in ("reference", "answer", "rule", "reason")}
    types = {"row": pa.int64(), **texts, "equivalent": pa.bool_(), "reward": pa.float64(), "label": pa.bool_()}
    return pa.schema([(name, types[name]) for name in JudgedRow.__dataclass_fields__])


def _as_arrow(rows: list[JudgedRow]) -> pa.RecordBatch:
    import pyarrow as pa

    printable = [
        {name: _printable(value) if isinstance(value, str) else value for name, value in asdict(row).items()}
        for row in rows
    ]
    return pa.RecordBatch.from_pylist(printable, schema=_schema())


def _printable(text: str) -> str:
    """Lone surrogates, which UTF-8 lacks, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()
