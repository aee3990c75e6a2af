"""From a raw row to a problem: which column holds what, and which values can be used.

Invariants: a value is taken whole or the row is refused with the reason; numbers become text without loss
(integers exactly, floats as Python's shortest exact text); columns that are not used are kept in ``extra``.
Does not change a text in any way (that is curation's, which keeps the original).
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from ulorl.problem import Problem, problem_id
from ulorl.recipe import FieldNames

SPELLINGS: dict[str, tuple[str, ...]] = {
    "problem": ("problem", "question", "prompt", "query", "input", "instruction", "problem_text"),
    "answer": (
        "answer",
        "reference",
        "reference_answer",
        "gold",
        "ground_truth",
        "gt",
        "target",
        "final_answer",
        "expected_answer",
        "reward_model.ground_truth",
        "solution",
        "output",
        "response",
    ),
    "id": (
        "id",
        "source_id",
        "uid",
        "uuid",
        "unique_id",
        "problem_id",
        "question_id",
        "index",
        "extra_info.index",
    ),
    "pass_rate": ("pass_rate",),
}
"""Names looked for, in this order, in any case; a dot goes into a nested object."""
MAX_DEPTH = 100
_MISSING = object()


class BadValueError(Exception):
    """Why no problem can be made of a row."""


class NoColumnError(BadValueError):
    """The row has no column for a field that must be there; ``field`` is a name in ``data.fields``."""

    def __init__(self, field: str, given: str) -> None:
        self.field, self.given = field, given
        super().__init__(f"no column {given!r}" if given else f"no column for the {field}")


def to_problem(columns: Mapping[str, Any], fields: FieldNames, source: str) -> Problem:
    """The problem in a row; BadValueError says why there is none. ``source`` is recorded.

    A row of another task than mathematics needs no answer: what it is judged by may be in its other columns.
    """
    column, value = _find(columns, "problem", fields.problem)
    answer_column, answer = _find(columns, "answer", fields.answer)
    task = _label(columns.get("task")) or fields.task
    if column is None:
        raise NoColumnError("problem", fields.problem)
    text = _text("problem", column, _last_user_message(value) if isinstance(value, list) else value)
    if task != "math" and (answer_column is None or answer is None or answer == ""):
        reference = ""
    elif answer_column is None:
        raise NoColumnError("answer", fields.answer)
    else:
        reference = _text("answer", answer_column, _only_item(answer))
    id_column, own_id = _find(columns, "id", fields.id)
    rate_column, rate = _find(columns, "pass_rate", fields.pass_rate)
    used = {column, answer_column, id_column}
    kept: dict[str, Any] = {}
    for name in ("task", "kind"):
        if (label := _label(columns.get(name))) and name not in used:
            kept[name] = label
    if (known := _share(rate)) is not None:
        kept["pass_rate"] = known
        used.add(rate_column)
    extra = {str(name): plain(cell) for name, cell in columns.items() if name not in used and name not in kept}
    return Problem(
        id=problem_id(text),
        problem=text,
        answer=reference,
        source=source,
        source_id=None if own_id is _MISSING or own_id is None else _printable(str(own_id)),
        extra=extra,
        **{"task": task} | kept,
    )


def _label(value: Any) -> str | None:
    """A text that can be a label."""
    return value if isinstance(value, str) and _encodable(value) and value.strip() else None


def plain(value: Any, depth: int = 0) -> Any:
    """A value as JSON types: bytes in base64, NaN and infinities as null, other types as their text.

    BadValueError where it is nested more than MAX_DEPTH deep.
    """
    if depth > MAX_DEPTH:
        raise BadValueError(f"a value nested more than {MAX_DEPTH} deep")
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, depth + 1) for inner in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return str(value)


def _find(columns: Mapping[str, Any], field: str, given: str) -> tuple[str | None, Any]:
    """(column, value) for a field: the named one, or the first of the common spellings that is there."""
    if given and given in columns:
        return given, columns[given]
    folded = {str(name).lower().strip(): name for name in reversed(list(columns))}
    for spelling in (given,) if given else SPELLINGS[field]:
        outer, _, inner = spelling.lower().partition(".")
        if outer not in folded:
            continue
        column = folded[outer]
        if not inner:
            return column, columns[column]
        nested = _nested(columns[column], inner)
        if nested is not _MISSING:
            return spelling, nested
    return None, _MISSING


def _nested(value: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(value, Mapping):
            return _MISSING
        value = {str(key).lower(): inner for key, inner in value.items()}.get(name, _MISSING)
    return value


def _last_user_message(messages: list[Any]) -> Any:
    """The content of the last user turn of a chat; BadValueError when the list is no chat."""
    for message in reversed(messages):
        if isinstance(message, Mapping) and message.get("role", message.get("from")) in ("user", "human"):
            return message.get("content", message.get("value"))
    raise BadValueError("problem: a list without a chat message of the user")


def _only_item(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _text(field: str, column: str, value: Any) -> str:
    """The value as text that can be stored and tokenised."""
    where = field if field == column else f"{field} (column {column!r})"
    if value is None:
        raise BadValueError(f"{where}: null")
    if isinstance(value, float) and not math.isfinite(value):
        raise BadValueError(f"{where}: {value} is no answer")
    if isinstance(value, int | float | Decimal) and field == "answer":
        value = _digits(where, value)
    if not isinstance(value, str):
        raise BadValueError(f"{where}: a {type(value).__name__} where text must be")
    if not value.strip():
        raise BadValueError(f"{where}: empty")
    if "\0" in value:
        raise BadValueError(f"{where}: holds a NUL byte")
    if not _encodable(value):
        raise BadValueError(f"{where}: holds bytes or escapes that are not Unicode text")
    return value


def _share(value: Any) -> float | None:
    """A number from 0 to 1, also spelled in a text as CSV has it; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        share = float(value)
    except (ValueError, OverflowError):
        return None
    return share if 0 <= share <= 1 else None


def _digits(where: str, value: int | float | Decimal) -> str:
    try:
        return repr(value) if isinstance(value, float) else str(value)
    except ValueError as error:  # Python's limit on the digits of an integer
        raise BadValueError(f"{where}: {error}") from error


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def json_object(extra: Mapping[str, Any]) -> str:
    """Canonical JSON of ``Problem.extra``; ASCII, so that any string a file can hold survives."""
    return json.dumps(extra, sort_keys=True, separators=(",", ":"), allow_nan=False)
