"""A worker process that scores answers to puzzles: ``python -m ulorl.verify.tasks.puzzles.worker SECONDS MEMORY_MIB``.

Invariants, beside those of `ulorl.verify.symbolic.service`: no text of an answer is executed. Six data sets hand a
text to ``eval`` and five to sympy's parser, which does the same; here they get a reader of literals and a grammar of
expressions in their place, and anything else that would run code from a text is refused.
"""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from typing import Any

from ulorl.verify.symbolic.service import Answer, refuse_deeds, serve
from ulorl.verify.tasks.puzzles import expressions
from ulorl.verify.tasks.puzzles.codec import decode
from ulorl.verify.tasks.puzzles.library import SettingError, library, scorer

_EVALUATE = ("string_insertion", "spiral_matrix", "binary_matrix", "number_sorting")
_RUNS_TEXT = ("<string>", "<stdin>", "<unknown>", "<lambdifygenerated", "<fstring>")
"""How the names of files begin from which no code is loaded, but made."""
MAX_LITERAL = 20_000
_FOR_PEOPLE = {"difficulty", "source_index"}
"""Parts of a puzzle's metadata that no scorer reads."""


def _prepare() -> Answer:
    library()
    import numpy  # noqa: F401 - some scorers import these when they are first asked
    import sympy
    from dateutil import parser  # noqa: F401

    for module in ("_strptime", "sympy.simplify", "sympy.integrals", "sympy.solvers"):
        import_module(module)
    sympy.simplify(sympy.Symbol("x") ** 2 / sympy.Symbol("x"))
    _disarm()
    return _answer


def _disarm() -> None:
    """Puts readers where scorers would execute an answer, and refuses what is left."""
    import sympy
    import sympy.parsing.sympy_parser as parser

    for name in _EVALUATE:
        import_module(f"reasoning_gym.algorithmic.{name}").eval = _literal  # type: ignore[attr-defined]
    import_module("reasoning_gym.games.n_queens").eval = _literal  # type: ignore[attr-defined]
    import_module("reasoning_gym.arithmetic.bitwise_arithmetic").eval = expressions.integer  # type: ignore[attr-defined]
    for game in ("puzzle24", "countdown"):
        import_module(f"reasoning_gym.games.{game}").parse_expr = expressions.parse  # type: ignore[attr-defined]
    sympy.parse_expr = parser.parse_expr = parser.eval_expr = expressions.parse
    sys.addaudithook(refuse_deeds)
    sys.addaudithook(_refuse_code)


def _literal(text: str) -> Any:
    if not isinstance(text, str) or len(text) > MAX_LITERAL:
        raise ValueError("no literal, or too long a one")
    return ast.literal_eval(text)


def _refuse_code(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: code that does not come from a file on the disk is not run."""
    if event == "exec" and getattr(arguments[0], "co_filename", "<string>").startswith(_RUNS_TEXT):
        raise PermissionError("code from a text in a worker")


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    """``value``; or ``fault``, what is wrong with the puzzle; or ``raised``, what the scorer raised at the answer.

    Without an answer it is only asked whether there is a fault: a puzzle must hold what its data set gives others.
    """
    try:
        judge, metadata = _judge(request), _metadata(request)
        if request["answer"] is None:
            lacking = judge[0]["metadata"].keys() - metadata.keys() - _FOR_PEOPLE
            return {"fault": f"its metadata lacks {', '.join(sorted(lacking))}"} if lacking else {"value": 0.0}
    except MemoryError:
        raise
    except SettingError as error:
        return {"fault": str(error)[:200]}
    except Exception as error:  # settings that are accepted, with which there is no puzzle
        return {"fault": f"there is no puzzle with its settings: {type(error).__name__}: {error}"[:200]}
    entry = {"question": request["question"], "answer": request["reference"], "metadata": metadata}
    try:
        return {"value": float(judge.score_answer(request["answer"], entry))}
    except MemoryError:
        raise
    except Exception as error:
        return {"raised": f"{type(error).__name__}: {error}"[:200]}


def _judge(request: dict[str, Any]) -> Any:
    """The data set with the row's settings. SettingError where there is none."""
    try:
        settings = tuple(sorted((key, _hashable(value)) for key, value in request["settings"].items()))
        return scorer(request["dataset"], settings)
    except (TypeError, RecursionError) as error:
        raise SettingError(f"the column settings cannot be read: {error}") from error


def _metadata(request: dict[str, Any]) -> dict[str, Any]:
    """The row's metadata as the scorer takes it. SettingError where it is no such object."""
    try:
        found = decode(request["metadata"])
    except (TypeError, ValueError, RecursionError) as error:
        raise SettingError(f"the column metadata is not as `ulorl tasks make` writes it: {error}") from error
    if not isinstance(found, dict):
        raise SettingError(f"the column metadata is a {type(found).__name__}, not an object")
    return found


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


if __name__ == "__main__":
    serve(float(sys.argv[1]), int(sys.argv[2]), _prepare)
