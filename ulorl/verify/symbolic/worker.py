"""What runs inside a worker process: ``python -m ulorl.verify.symbolic.worker SECONDS MEMORY_MIB``.

Invariant, beside those of `ulorl.verify.symbolic.service`: no string from a request can reach sympy's string parsers,
which would execute it, because they refuse in this process.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from ulorl.verify.symbolic.service import Answer, refuse_deeds, serve


def _prepare() -> Answer:
    """Fills caches, then takes away what hostile text could use."""
    sys.modules["numpy"] = sys.modules["scipy"] = None  # type: ignore[assignment] # sympy would load both, for nothing
    from ulorl.verify.symbolic.compare import compare_texts

    # Imports what sympy imports when it is first needed; some of its own modules make their constants from strings, so
    # this comes before strings are refused.
    for warm_up in (r"\int_0^1 \int_0^x \sqrt{y} dy dx", r"\sum_{k=1}^{\infty} \frac{1}{k!}"):
        compare_texts("7", warm_up, {})
    disarm()

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        try:
            relation, reason = compare_texts(request["reference"], request["answer"], request["policy"])
            return {"relation": relation, "reason": reason}
        except MemoryError:
            raise
        except RecursionError:
            return {"relation": "undecided", "reason": "nested too deeply"}
        except Exception as error:  # whatever a library makes of hostile mathematics
            return {"relation": "undecided", "reason": f"{type(error).__name__} in the computer algebra system"}

    return answer


def disarm() -> None:
    """Takes away every way from text to code that sympy has, and every deed that code could do."""
    import sympy.parsing.sympy_parser as parser
    from latex2sympy2_extended import latex2sympy2

    def refuse(*_: object, **__: object) -> NoReturn:
        raise TypeError("a string reached the parser of sympy")

    parser.eval_expr = parser.parse_expr = parser.stringify_expr = latex2sympy2.parse_expr = refuse
    sys.addaudithook(refuse_deeds)


if __name__ == "__main__":
    serve(float(sys.argv[1]), int(sys.argv[2]), _prepare)
