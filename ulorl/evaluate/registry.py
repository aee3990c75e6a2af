"""What is known about the public benchmarks: where they are, how many items, which columns and answers, whose.

Texts are never in this repository: a benchmark is read from the hub, or from a file that stands in for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AnswerType = Literal["aime", "integer", "number", "expression"]
"""``aime``: an integer from 0 to 999; ``integer``; ``number``: with or without a unit; ``expression``: any
mathematics. The first two are checked when a benchmark is loaded."""

BOXED = "{problem}\n\nPlease reason step by step, and put your final answer within \\boxed{}."
BOXED_ZH = "{problem}\n\n请逐步推理，并把最终答案写在 \\boxed{} 中。"


@dataclass(frozen=True)
class KnownBenchmark:
    """A public benchmark.

    ``items`` holds the numbers of problems that its copies may have (one, but for OlympiadBench). ``files`` are names,
    without extension, under which copies lie in a directory. ``licence`` is that of the texts, as far as it is stated.
    """

    source: str
    items: tuple[int, ...]
    answers: AnswerType
    licence: str
    files: tuple[str, ...] = ()
    problem: str = "problem"
    answer: str = "answer"
    prompt: str = BOXED


def _olymmath(part: str) -> KnownBenchmark:
    return KnownBenchmark(
        f"hub:RUC-AIBOX/OlymMATH/{part}@test",
        (100,),
        "expression",
        "MIT (arXiv 2503.21380)",
        prompt=BOXED_ZH if part.startswith("zh") else BOXED,
    )


KNOWN: dict[str, KnownBenchmark] = {
    "aime2024": KnownBenchmark(
        "hub:HuggingFaceH4/aime_2024@train", (30,), "aime", "problems (c) MAA", ("aime24", "aime_2024")
    ),
    "aime2025": KnownBenchmark("hub:math-ai/aime25@test", (30,), "aime", "problems (c) MAA", ("aime25", "aime_2025")),
    "aime2026": KnownBenchmark(
        "hub:MathArena/aime_2026@train", (30,), "aime", "problems (c) MAA; CC-BY-NC-SA-4.0", ("aime26", "aime_2026")
    ),
    "beyondaime": KnownBenchmark("hub:ByteDance-Seed/BeyondAIME@test", (100,), "integer", "CC0-1.0"),
    "hmmt_feb_2025": KnownBenchmark(
        "hub:MathArena/hmmt_feb_2025@train", (30,), "expression", "problems (c) HMMT; CC-BY-NC-SA-4.0"
    ),
    "amc23": KnownBenchmark("hub:math-ai/amc23@test", (40,), "integer", "problems (c) MAA", problem="question"),
    "math500": KnownBenchmark("hub:HuggingFaceH4/MATH-500@test", (500,), "expression", "MIT", ("math_500", "MATH-500")),
    "gsm8k": KnownBenchmark(
        "hub:openai/gsm8k/main@test", (1319,), "integer", "MIT", ("gsm8k_test",), problem="question"
    ),
    # Open-ended competition mathematics in English: copies of 675 and of 674 rows are in use.
    "olympiadbench": KnownBenchmark(
        "hub:Hothan/OlympiadBench/OE_TO_maths_en_COMP@train",
        (675, 674),
        "expression",
        "Apache-2.0",
        ("olympiadbench_oe_maths_en", "OE_TO_maths_en_COMP"),
        problem="question",
        answer="final_answer",
    ),
    "minerva_math": KnownBenchmark(
        "hub:math-ai/minervamath@test",
        (272,),
        "number",
        "MIT OpenCourseWare, CC-BY-NC-SA-4.0",
        ("minervamath",),
        problem="question",
    ),
    "olymmath_en_easy": _olymmath("en-easy"),
    "olymmath_en_hard": _olymmath("en-hard"),
    "olymmath_zh_easy": _olymmath("zh-easy"),
    "olymmath_zh_hard": _olymmath("zh-hard"),
}
"""By name; a benchmark of the recipe with one of these names must be this one, whole."""
