"""Verdicts for whole files of pairs or responses, and the step-by-step explanation of one verdict.

Reads JSON lines (also gzipped) and Parquet. Writes nothing.
"""

from __future__ import annotations

import gzip
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ulorl.errors import UserError
from ulorl.recipe import VerifyRecipe
from ulorl.verify.policy import policy_of
from ulorl.verify.tiers import RULES, read_answer
from ulorl.verify.verdict import Item, Verdict
from ulorl.verify.verifier import Verifier

REFERENCE_FIELDS = ("reference", "ref", "answer", "gold")
RESPONSE_FIELDS = ("response", "pred", "prediction", "output")
BARE_FIELDS = frozenset({"pred", "prediction"})
"""Fields that hold a bare answer, unless the row says ``"kind": "response"``."""


def verify_file(path: str | Path, config: VerifyRecipe) -> dict[str, Any]:
    """Judges every row of ``path``.

    Returns ``n``, ``labelled``, ``accepted`` (share equivalent of all), ``accuracy`` (share of labelled
    rows whose acceptance agrees with the label: undecided is not accepted), ``false_positive_rate``
    (accepted among those labelled unequal), ``false_negative_rate`` (not accepted among those labelled
    equal), ``undecided``, ``undecided_reasons``, ``pairs_per_second``, ``by_rule`` (counts) and ``rows``
    (one dict a row: row, reference, answer, equivalent, rule, reason, label). Rates are None where nothing
    is labelled. Raises `UserError` for unreadable rows.
    """
    items, labels = _read_items(Path(path))
    start = time.perf_counter()
    verdicts = Verifier(config).verify(items)
    seconds = time.perf_counter() - start
    return {
        **_rates(verdicts, labels),
        "pairs_per_second": len(items) / seconds if seconds > 0 else 0.0,
        "rows": [
            {
                "row": index,
                "reference": item.reference,
                "answer": verdict.answer,
                "equivalent": verdict.equivalent,
                "rule": verdict.rule,
                "reason": verdict.reason,
                "label": label,
            }
            for index, (item, verdict, label) in enumerate(zip(items, verdicts, labels, strict=True))
        ],
    }


def explain(reference: str, answer: str, config: VerifyRecipe) -> list[str]:
    """The steps that lead to the verdict on one pair, as lines of text."""
    verifier = Verifier(config)
    item = Item(reference, answer, is_answer=True)
    problem = verifier.check_reference(reference)
    extraction = verifier.extraction(item)
    lines = [f"reference: {reference!r}" + (f" - unusable: {problem}" if problem else "")]
    lines.append(f"extracted ({extraction.how}): {', '.join(map(repr, extraction.answers)) or 'nothing'}")
    left = verifier.read_reference(reference)[0]
    for text in extraction.answers:
        right = read_answer(text)
        for side, read in (("reference", left), ("answer", right)):
            parsed = repr(read.value) if read.value is not None else f"outside the grammar: {read.problem}"
            lines.append(f"{side}: {read.normal!r} -> {parsed}")
        for tier in RULES:
            outcome = tier.compare(left, right, policy_of(config))
            lines.append(f"tier {tier.name}: {outcome.relation}" + (f" ({outcome.reason})" if outcome.reason else ""))
            if outcome.relation != "undecided":
                break
    verdict = verifier.verify([item])[0]
    conclusion = {True: "equivalent", False: "not equivalent", None: "undecided"}[verdict.equivalent]
    lines.append(f"verdict: {conclusion}, rule {verdict.rule}" + (f" ({verdict.reason})" if verdict.reason else ""))
    return lines


def _rates(verdicts: list[Verdict], labels: list[bool | None]) -> dict[str, Any]:
    judged = [(v.equivalent is True, label) for v, label in zip(verdicts, labels, strict=True) if label is not None]
    equal = [accepted for accepted, label in judged if label]
    unequal = [accepted for accepted, label in judged if not label]
    return {
        "n": len(verdicts),
        "labelled": len(judged),
        "accepted": _share(sum(v.equivalent is True for v in verdicts), len(verdicts)),
        "accuracy": _share(sum(accepted == label for accepted, label in judged), len(judged)),
        "false_positive_rate": _share(sum(unequal), len(unequal)),
        "false_negative_rate": _share(len(equal) - sum(equal), len(equal)),
        "undecided": sum(v.equivalent is None for v in verdicts),
        "undecided_reasons": dict(Counter(v.reason for v in verdicts if v.equivalent is None).most_common()),
        "by_rule": dict(Counter(v.rule for v in verdicts).most_common()),
    }


def _share(count: int, total: int) -> float | None:
    return count / total if total else None


def _read_items(path: Path) -> tuple[list[Item], list[bool | None]]:
    items: list[Item] = []
    labels: list[bool | None] = []
    for number, row in enumerate(_rows(path), start=1):
        where = f"{path}, row {number}"
        reference = _field(row, REFERENCE_FIELDS, where)
        response = _field(row, RESPONSE_FIELDS, where)
        label = row.get("label")
        if label is not None and not isinstance(label, bool) and label not in (0, 1):
            raise UserError(f"{where}: label is {label!r}; give true, false or null")
        problem = row.get("problem") or row.get("question")
        bare = response in BARE_FIELDS and row.get("kind") != "response"
        items.append(Item(_text(row[reference]), _text(row[response]), problem, is_answer=bare))
        labels.append(None if label is None else bool(label))
    if not items:
        raise UserError(f"{path}: no rows")
    return items, labels


def _field(row: dict[str, Any], names: tuple[str, ...], where: str) -> str:
    """The first of ``names`` with a value, else the first there is: a missing value is judged undecided."""
    present = [name for name in names if name in row]
    if not present:
        raise UserError(f"{where}: none of the fields {', '.join(names)}; it has {', '.join(sorted(row))}")
    return next((name for name in present if row[name] is not None), present[0])


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        yield from pq.read_table(path).to_pylist()
        return
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise UserError(f"{path}, line {number}: not a JSON object")
                yield row
    except (json.JSONDecodeError, UnicodeDecodeError, gzip.BadGzipFile) as error:
        raise UserError(f"{path}: not JSON lines ({error}); give .jsonl, .jsonl.gz or .parquet") from error
