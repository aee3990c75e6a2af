"""Seventh step: references that can be trusted to reward.

Duplicates with different references (``conflicts``, from ``duplicates``) are compared by the verifier: where
all are equivalent the first is kept; else all members are dropped, because the most frequent reference of
such a group is right only about half the time. A reference that the verifier does not find equivalent to
itself can never reward anyone and is dropped too.

Invariant: nobody's vote decides. Does not ask models for their opinion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ulorl.curate.reasons import drop
from ulorl.curate.result import StepResult
from ulorl.problem import Dropped, Problem
from ulorl.verify.verdict import Item, Verdict


class ReferenceVerifier(Protocol):
    """What this step needs of ``ulorl.verify.Verifier``."""

    def verify(self, items: list[Item]) -> list[Verdict]: ...

    def check_reference(self, reference: str) -> str | None:
        """None when the reference is equivalent to itself, else why not."""
        ...


def references(
    problems: list[Problem], verifier: ReferenceVerifier, conflicts: Mapping[str, str] | None = None
) -> StepResult:
    """Settle ``conflicts`` (id -> id of its group) and drop references that cannot be verified."""
    groups: dict[str, list[Problem]] = {}
    for problem in problems:
        if conflicts and problem.id in conflicts:
            groups.setdefault(conflicts[problem.id], []).append(problem)
    fate: dict[str, Dropped] = {}
    for members in groups.values():
        fate.update(settle(members, verifier))
    kept: list[Problem] = []
    dropped: list[Dropped] = []
    for problem in problems:
        fault = None if problem.id in fate else verifier.check_reference(problem.answer)
        if problem.id in fate:
            dropped.append(fate[problem.id])
        elif fault is not None:
            detail = f"{problem.answer[:80]!r}: {fault}"
            dropped.append(drop(problem, "references", "unverifiable_reference", detail))
        else:
            kept.append(problem)
    return StepResult(kept, dropped, notes={"groups compared by the verifier": len(groups)})


def settle(members: list[Problem], verifier: ReferenceVerifier) -> dict[str, Dropped]:
    """id -> its fate, for the members of one group that are not kept."""
    first, *others = members
    if not others:
        return {}
    items = [Item(first.answer, other.answer, first.problem, is_answer=True) for other in others]
    verdicts = verifier.verify(items)
    if all(verdict.equivalent for verdict in verdicts):
        return {
            other.id: drop(
                other,
                "references",
                "duplicate",
                f"references {other.answer[:40]!r} and {first.answer[:40]!r} are equivalent",
                first.id,
            )
            for other in others
        }
    listed = ", ".join(sorted({repr(member.answer[:40]) for member in members}))
    return {
        member.id: drop(
            member,
            "references",
            "conflicting_references",
            f"references of the same problem: {listed}",
            (first if member is not first else others[0]).id,
        )
        for member in members
    }
