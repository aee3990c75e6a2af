"""Rows of a file as items to judge, with their labels.

Invariants: every row becomes exactly one item, in order; a row that cannot be one is a `UserError` that names the
file, the row and what to do; the file is streamed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ulorl.columns import BadValueError, plain
from ulorl.errors import UserError
from ulorl.problem import MATH, BadRow, Problem, problem_id
from ulorl.raw_rows import read_file
from ulorl.recipe import VerifyRecipe
from ulorl.verify.policy import policy_of
from ulorl.verify.verdict import Item

REFERENCE_FIELDS = ("reference", "ref", "answer", "gold")
RESPONSE_FIELDS = ("response", "pred", "prediction", "output")
PROBLEM_FIELDS = ("problem", "question")
BARE_FIELDS = frozenset({"pred", "prediction"})
"""Fields that hold a bare answer, unless the row says ``"kind": "response"``."""
_LABELS = {"true": True, "1": True, "false": False, "0": False, "": None}


@dataclass(frozen=True)
class LabelledItem:
    """``number`` is the row's line or row in the file, counted from 1; ``label`` None where there is none."""

    number: int
    item: Item
    label: bool | None


def read_items(path: Path) -> Iterator[LabelledItem]:
    """The rows of a JSON lines, JSON, CSV or Parquet file, gzipped or not."""
    if not path.is_file():
        raise UserError(f"{path}: is a directory; give a file" if path.is_dir() else f"{path}: no such file")
    empty = True
    for row in read_file(path):
        if isinstance(row, BadRow):
            raise UserError(f"{path}, row {row.line}: {row.reason}; give JSON lines, CSV or Parquet")
        empty = False
        yield _read(row.columns, row.line, f"{path}, row {row.line}")
    if empty:
        raise UserError(f"{path}: no rows")


def _read(row: dict[str, Any], number: int, where: str) -> LabelledItem:
    response = _field(row, RESPONSE_FIELDS, where)
    kind = row.get("kind")
    bare = kind == "answer" or (kind != "response" and response in BARE_FIELDS)
    if row.get("task") not in (None, MATH):
        item = replace(_of_task(row, response, where), is_answer=bare)
        return LabelledItem(number, item, truth(row.get("label"), where))
    reference = _field(row, REFERENCE_FIELDS, where)
    problem = next((row[name] for name in PROBLEM_FIELDS if row.get(name)), None)
    item = Item(
        _text(row[reference]),
        _text(row[response]),
        None if problem is None else _text(problem),
        is_answer=bare,
        policy=_policy(row.get("policy"), where),
    )
    return LabelledItem(number, item, truth(row.get("label"), where))


def _of_task(row: dict[str, Any], response: str, where: str) -> Item:
    """A response to a problem of another task, which is judged by the whole row; it may have no reference."""
    text = next((_text(row[name]) for name in (*PROBLEM_FIELDS, "prompt") if row.get(name)), "")
    reference = next((_text(row[name]) for name in REFERENCE_FIELDS if row.get(name) is not None), "")
    try:
        extra = {str(name): plain(value) for name, value in row.items() if name not in (response, "task", "label")}
    except BadValueError as error:
        raise UserError(f"{where}: {error}") from error
    problem = Problem(problem_id(text), text, reference, where, task=_text(row["task"]), extra=extra)
    return Item.of(problem, _text(row[response]))


def _field(row: dict[str, Any], names: tuple[str, ...], where: str) -> str:
    """The first of ``names`` with a value, else the first there is: a missing value is judged undecided."""
    present = [name for name in names if name in row]
    if not present:
        raise UserError(f"{where}: none of the fields {', '.join(names)}; it has {', '.join(sorted(row)) or 'none'}")
    return next((name for name in present if row[name] is not None), present[0])


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def truth(value: Any, where: str) -> bool | None:
    """A row's ``label``, as text or number too; UserError for anything else that is there."""
    if value is None or isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text not in _LABELS:
        raise UserError(f"{where}: label is {value!r}; give true, false or null")
    return _LABELS[text]


def _policy(value: Any, where: str) -> dict[str, Any] | None:
    """The settings of one row; Parquet fills the keys that a row lacks with nulls."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise UserError(f"{where}: policy is {value!r}; give an object of settings of [verify]")
    policy = {name: setting for name, setting in value.items() if setting is not None}
    try:
        policy_of(VerifyRecipe(), policy)
    except UserError as error:
        raise UserError(f"{where}: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{where}: policy: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    return policy
