"""The closed list of reasons for which curation drops a row.

Invariant: a row is dropped only through ``drop``, so that no reason outside ``REASONS`` can reach a file.
"""

from __future__ import annotations

from ulorl.problem import Dropped, Problem

REASONS: dict[tuple[str, str], str] = {
    ("load", "malformed_row"): "The row could not be read as a problem with a reference.",
    ("normalise", "empty_problem"): "Nothing is left of the problem's text after cleaning.",
    ("normalise", "empty_answer"): "Nothing is left of the reference after cleaning.",
    ("answers", "no_final_answer"): "The reference is a text in which no final answer was found.",
    ("answers", "answer_too_long"): "The short answer is longer than curate.max_answer_chars.",
    ("answers", "matrix_answer"): "The short answer is a matrix (kept with curate.keep_matrices).",
    ("answers", "structured_answer"): "The short answer is a system of several lines.",
    ("answers", "text_answer"): "The short answer is prose, which cannot be compared reliably.",
    ("kinds", "multi_part"): "The problem asks several questions; one reference cannot answer them all.",
    ("kinds", "open_ended"): "The problem has many right answers.",
    ("kinds", "other"): "The text is no problem: nothing is asked.",
    ("kinds", "missing_figure"): "The problem cannot be solved without a figure that is not in its text.",
    (
        "rewrite",
        "option_dependent",
    ): "The choice cannot be asked without its options ('which of the following').",
    ("rewrite", "option_not_found"): "The reference names no option, or several options fit it.",
    (
        "rewrite",
        "true_false",
    ): "A yes/no question: guessing is right half the time and no rule rewrites it safely.",
    ("rewrite", "missing_figure"): "The choice cannot be asked without a figure that is not in its text.",
    ("rewrite", "proof"): "A proof, which has no short answer to compare, and no rule rewrites it safely.",
    ("rewrite", "not_rewritten"): "The model returned no usable rewriting of the problem.",
    (
        "rewrite",
        "unconfirmed_rewrite",
    ): "The model's own answers to its rewriting do not agree with the reference often enough.",
    (
        "duplicates",
        "exact_duplicate",
    ): "The same text as the row kept for it, but for spelling of white space and mark-up.",
    ("duplicates", "near_duplicate"): "Nearly the same words and the same numbers as the row kept for it.",
    ("contamination", "benchmark_leak"): "The same problem as a benchmark item.",
    (
        "contamination",
        "benchmark_template",
    ): "A benchmark item with other data or another question (dropped with curate.drop_templates).",
    (
        "references",
        "conflicting_references",
    ): "Duplicates of this problem have another reference; which one is right is unknown.",
    (
        "references",
        "duplicate",
    ): "A duplicate whose reference turned out equivalent to that of the row kept for it.",
    (
        "references",
        "unverifiable_reference",
    ): "The verifier does not recognise the reference as equivalent to itself.",
    (
        "references",
        "wrong_reference",
    ): "Several models agree with each other on another answer than the reference.",
    ("difficulty", "prompt_too_long"): "The prompt has more tokens than model.max_prompt_tokens.",
    ("difficulty", "too_easy"): "The start model solves it more often than difficulty.max_pass_rate.",
    ("difficulty", "too_hard"): "The start model solves it less often than difficulty.min_pass_rate.",
    ("difficulty", "unsolved"): "The start model never solves it (dropped with difficulty.drop_unsolved).",
    ("difficulty", "guessable"): "The start model is right without reasoning (with difficulty.guess).",
}
"""(step, reason) -> what it means, in one sentence."""


def drop(problem: Problem, step: str, reason: str, detail: str, other_id: str | None = None) -> Dropped:
    """A dropped row; the reason must be in the closed list."""
    assert (step, reason) in REASONS, f"unknown reason: {step}/{reason}"
    return Dropped(problem=problem, step=step, reason=reason, detail=detail, other_id=other_id)
