"""What of a response is its visible answer: the part after the thinking, up to the end of the model's turn.

Invariant: nothing written inside an unclosed or closed thinking part is visible. Time is linear.
"""

from __future__ import annotations

import re

_NAMES = r"(?:think|thinking|thought|reasoning|seed:think)"
CLOSED = re.compile(
    rf"</{_NAMES}>|<\|end_of_thought\|>|◁/think▷|\[/THINK\]|<\|channel\|>final(?: [^<]{{0,40}})?<\|message\|>"
)
OPENED = re.compile(rf"<{_NAMES}>|<\|begin_of_thought\|>|◁think▷|\[THINK\]|<\|channel\|>(?:analysis|commentary)\b")
END_OF_TURN = re.compile(
    r"<\|(?:im_end|im_start|endoftext|end_of_text|eot_id|end|return)\|>|<end_of_turn>|<｜end▁of▁sentence｜>|</s>"
)


def after_thinking(response: str) -> str:
    """What follows the last closed thinking part, up to one that opens after it or to the end of the turn.

    A response that only opens a thinking part has no more than the text before it.
    """
    start = 0
    for match in CLOSED.finditer(response):
        start = match.end()
    opened = OPENED.search(response, start)
    visible = response[start : opened.start() if opened else len(response)]
    begin = 0
    for match in END_OF_TURN.finditer(visible):
        if turn := visible[begin : match.start()].strip():
            return turn
        begin = match.end()
    return visible[begin:]
