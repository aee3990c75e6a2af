"""A few samples of a step as lines for a terminal (``ulorl train --watch``).

Invariants: whatever a model wrote, a line holds no control character, no line end and no mark that turns or hides the
text around it; of each kind (right, partly right, wrong, truncated) the first sample in order of the groups is shown,
never one by chance.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from ulorl.engine.prompts import Prompter
from ulorl.train.experience import Leaving
from ulorl.train.pool import Group, Sample

PROMPT_CHARACTERS = 80
"""Of a prompt its end is shown: what comes before is mostly the template."""
RESPONSE_CHARACTERS = 80
"""Shown of a response's beginning, and of its end."""
_CUT = " […] "
_LINE_END = "⏎"
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def watched(entries: Sequence[Leaving], prompter: Prompter) -> list[str]:
    """Lines that show a sample of each kind, of those that left."""
    found = dict[str, tuple[Group, Sample]]()
    for entry in entries:
        for sample in entry.samples:
            found.setdefault(_kind(sample), (entry.group, sample))
    return [line for kind in _KINDS if kind in found for line in _lines(kind, *found[kind], prompter)]


def shown_text(text: str) -> str:
    """``text`` on one line, with line ends and every character that does not print replaced by a sign."""
    return "".join(
        _LINE_END if character == "\n" else "\N{REPLACEMENT CHARACTER}" if _is_hidden(character) else character
        for character in text
    )


_KINDS = ("right", "partly right", "wrong", "truncated")


def _kind(sample: Sample) -> str:
    if sample.finish_reason == "length":
        return "truncated"
    assert sample.reward is not None
    return "right" if sample.reward >= 1 else "partly right" if sample.reward > 0 else "wrong"


def _lines(kind: str, group: Group, sample: Sample, prompter: Prompter) -> list[str]:
    prompt, response = prompter.decode(group.prompt_ids), prompter.decode(sample.token_ids)
    verdict, tokens, segments = sample.verdict, len(sample.token_ids), len(sample.segment_lengths)
    assert verdict is not None
    answer = "no answer" if verdict.answer is None else f"answer {shown_text(_ends(verdict.answer, 40))}"
    if group.problem.answer:  # unknown where rollouts are read
        answer += f", reference {shown_text(_ends(group.problem.answer, 40))}"
    reason = f"{verdict.rule}: {shown_text(_ends(verdict.reason, 60))}" if verdict.reason else verdict.rule
    return [
        f"{kind}: reward {sample.reward:g}, {tokens} tokens, {segments} segment{'s' if segments != 1 else ''}, {answer}"
        f" ({reason})",
        f"  prompt    {shown_text(_end(prompt))}",
        f"  response  {shown_text(_ends(response, RESPONSE_CHARACTERS))}",
    ]


def _end(text: str) -> str:
    return text if len(text) <= PROMPT_CHARACTERS else _CUT.lstrip() + text[-PROMPT_CHARACTERS:]


def _ends(text: str, most: int) -> str:
    """Beginning and end of a text that is longer than both."""
    return text if len(text) <= 2 * most + len(_CUT) else text[:most] + _CUT + text[-most:]


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN
