"""The final answer of a response as the response spells it, for tasks whose answers are not mathematics.

Invariants: nothing inside a thinking part counts; time is linear in the response.
"""

from __future__ import annotations

import re

from ulorl.verify.extraction.boxes import find_boxes
from ulorl.verify.extraction.extract import extract
from ulorl.verify.extraction.thinking import after_thinking

_OPEN, _CLOSE = "<answer>", "</answer>"
_WRAPPED = re.compile(r"\\(?:text|textbf|mathrm|mathbf|mathtt|texttt)\s?\{([^{}]*)\}")


def visible(response: str) -> str:
    """The response without its thinking part."""
    return after_thinking(response).strip()


def stated(response: str) -> str | None:
    """What the response gives as its answer; None where it gives none.

    In order of trust: the last ``<answer>`` tag, the last box, and what the verifier's extraction finds in sentences.
    White space inside an answer stays, for answers that are boards.
    """
    text = visible(response)
    tagged = _tagged(text)
    if tagged is not None:
        return tagged or None
    boxes = find_boxes(text)
    if boxes:
        inner = boxes[-1].content
        wrapped = _WRAPPED.fullmatch(inner)
        return wrapped[1].strip() if wrapped else inner
    found = extract(response).answers
    return found[-1].strip() if found else None


def _tagged(text: str) -> str | None:
    end = text.rfind(_CLOSE)
    start = text.rfind(_OPEN, 0, max(0, end))
    return None if start < 0 or end < 0 else text[start + len(_OPEN) : end].strip()
