"""The final answer of a response as the response spells it, for tasks whose answers are not mathematics.

Invariants: nothing inside a thinking part counts; time is linear in the response.
"""

from __future__ import annotations

import re

from ulorl.verify.extraction.boxes import find_boxes
from ulorl.verify.extraction.extract import extract
from ulorl.verify.extraction.thinking import after_thinking

_OPEN, _CLOSE = "<answer>", "</answer>"
_FENCED = re.compile(r"(?P<fence>```|~~~)[^`\n]*\n(?P<inside>.*)\n(?P<indent>[ \t]*)(?P=fence)", re.DOTALL)
_BOLD = re.compile(r"\*\*(?P<inside>[^*\n](?:[^\n]*[^*\n])?)\*\*")
_WRAPPED = re.compile(r"\\(?:text|textbf|mathrm|mathbf|mathtt|texttt)\s?\{([^{}]*)\}")


def visible(response: str) -> str:
    """The response without its thinking part."""
    return after_thinking(response).strip()


def stated(response: str) -> str | None:
    """What the response gives as its answer; None where it gives none.

    In order of trust: the last ``<answer>`` tag, the last box, and what the verifier's extraction finds in sentences.
    White space inside an answer stays, for answers that are boards; a fence or asterisks for bold around all of a
    tagged one do not.
    """
    text = visible(response)
    tagged = _tagged(text)
    if tagged is not None:
        return _bare(tagged) or None
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


def _bare(answer: str) -> str:
    """An answer without the fence, or the asterisks, around it."""
    fenced, bold = _FENCED.fullmatch(answer), _BOLD.fullmatch(answer)
    if fenced is not None and fenced["fence"] not in fenced["inside"]:
        width = len(fenced["indent"])
        lines = fenced["inside"].split("\n")
        return "\n".join(line[min(width, len(line) - len(line.lstrip(" \t"))) :] for line in lines).strip()
    return bold["inside"].strip() if bold is not None and "**" not in bold["inside"] else answer
