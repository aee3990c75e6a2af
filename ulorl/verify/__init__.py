"""Is the final answer of a response equivalent to the reference?

The names below are imported when they are first used: worker processes need none of what a `Verifier` imports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ulorl.verify.classes import equivalence_classes
    from ulorl.verify.verdict import Item, Verdict
    from ulorl.verify.verifier import Verifier

__all__ = ["Item", "Verdict", "Verifier", "equivalence_classes"]

_MODULES = {"Item": "verdict", "Verdict": "verdict", "Verifier": "verifier", "equivalence_classes": "classes"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
