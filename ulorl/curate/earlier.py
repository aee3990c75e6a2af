"""Samples made earlier, as ballots: what curate and eval left, or files of rows.

A row of a file has the problem's text (``problem``, ``question``, ...) or its id (``id``, ``problem_id``, ...), the
``model`` (else the file's name stands for it), and ``response`` (also ``output``, ``completion``, ...) with a text, or
a list of texts, from which the final answer is extracted. Where there is none, ``pred`` or ``answer`` is the bare
answer: a file of responses often carries the reference under that name, so a response goes first.

Invariants: a row that cannot be used is counted and never guessed about; texts are cleaned as curation cleans problems,
so that they are found again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ulorl.columns import SPELLINGS
from ulorl.curate.ballots import Ballot, Extract, text_key
from ulorl.errors import UserError
from ulorl.fingerprint import artifact_of
from ulorl.problem import BadRow
from ulorl.raw_rows import read_file
from ulorl.sample_store import SETTINGS_FILE

_RESPONSES = ("response", "responses", "output", "completion", "generation", "text", "generated_text")
_ANSWERS = ("pred", "prediction", "extracted_answer", "model_answer", "answer", "final_answer")
_NO_ANSWERS = {"guesses", "replies"}
"""Directories of a curation whose samples were not asked to solve the problem."""
_BATCH = 4096
_NAMED = 12


class EarlierSamples:
    """Ballots of several sources; ``unusable`` counts rows that are none, after reading."""

    def __init__(self, sources: tuple[str, ...], extract: Extract, names: Mapping[str, str]) -> None:
        """``names``: fingerprint of a model -> its name among the voters, so that it votes once."""
        self.unusable = 0
        self._sources, self._extract, self._names = sources, extract, names

    def __iter__(self) -> Iterator[Ballot]:
        for source in self._sources:
            path = Path(source)
            if not path.exists():
                raise UserError(f"curate.consensus.files: {source}: no such file or directory")
            found = 0
            for ballot in self._directory(path) if path.is_dir() else self._file(path):
                found += 1
                yield ballot
            if not found:
                raise UserError(
                    f"curate.consensus.files: {source}: holds no usable sample; a row needs the problem's text or id "
                    "and a response or an answer, and a directory is one that curate or eval made"
                )

    def _file(self, path: Path) -> Iterator[Ballot]:
        for row in read_file(path):
            if isinstance(row, BadRow):
                self.unusable += 1
                continue
            columns = {str(name).lower(): value for name, value in row.columns.items()}
            text, identity = _problem_of(columns)
            answers = _answers(columns, self._extract)
            if (text is None and identity is None) or answers is None:
                self.unusable += 1
                continue
            model = columns.get("model")
            name = model if isinstance(model, str) and model.strip() else path.name.split(".", 1)[0]
            for answer in answers:
                yield Ballot(name, answer, text, identity)

    def _directory(self, path: Path) -> Iterator[Ballot]:
        for settings in sorted(path.rglob(SETTINGS_FILE)):
            if not _NO_ANSWERS & set(settings.relative_to(path).parts):
                yield from self._store(settings.parent)

    def _store(self, directory: Path) -> Iterator[Ballot]:
        shards = sorted(directory.glob("shard-*.parquet"))
        try:
            settings = json.loads((directory / SETTINGS_FILE).read_bytes())
            model = str(settings["key"]["model"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{directory}: {SETTINGS_FILE} does not say which model sampled ({error})") from error
        name = self._names.get(model, model[:_NAMED])
        texts = _posed_texts(directory)
        seen: set[tuple[str, int]] = set()
        for shard in shards:
            for row in _sample_rows(shard):
                key = (row["problem_id"], row["sample_index"])
                text = texts.get(row["problem_id"], row["problem_id"]) if texts is not None else row["problem_id"]
                if key not in seen:
                    seen.add(key)
                    yield Ballot(name, self._extract(row["text"]), text)


def _sample_rows(shard: Path) -> Iterator[dict[str, Any]]:
    try:
        for batch in pq.ParquetFile(shard).iter_batches(_BATCH, columns=["problem_id", "sample_index", "text"]):
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{shard}: not a readable samples file: {str(error).splitlines()[0]}") from error


def _posed_texts(directory: Path) -> dict[str, str] | None:
    """Row id -> hash of the text that was posed, in a curation, where rewritten rows keep their first id; None where
    ids are such hashes."""
    found = artifact_of(directory)
    if found is None or found[1]["stage"] != "curate":
        return None
    texts: dict[str, str] = {}
    for name in ("problems.parquet", "dropped.parquet"):
        for batch in pq.ParquetFile(found[0] / name).iter_batches(_BATCH, columns=["id", "problem"]):
            texts.update((row["id"], text_key(row["problem"])) for row in batch.to_pylist())
    return texts


def _problem_of(columns: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """(hash of the cleaned text, id), the first of which is enough."""
    for name in SPELLINGS["problem"]:
        value = columns.get(name)
        if isinstance(value, str) and value.strip():
            return text_key(value), None
    for name in ("problem_id", *SPELLINGS["id"]):
        value = columns.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool):
            return None, str(value)
    return None, None


def _answers(columns: Mapping[str, Any], extract: Extract) -> list[str | None] | None:
    """The final answers of a row's samples; None where it has no sample."""
    for name in _RESPONSES:
        value = columns.get(name)
        texts = value if isinstance(value, list) else [value]
        responses = [text for text in texts if isinstance(text, str)]
        if responses and len(responses) == len(texts):
            return [extract(text) for text in responses]
    for name in _ANSWERS:
        value = columns.get(name)
        values = value if isinstance(value, list) else [value]
        if values and all(isinstance(one, str | int | float) and not isinstance(one, bool) for one in values):
            return [str(one).strip() or None for one in values]
    return None


def batches(ballots: Iterator[Ballot]) -> Iterator[list[Ballot]]:
    """Lists of some thousand ballots."""
    while batch := list(islice(ballots, _BATCH)):
        yield batch
