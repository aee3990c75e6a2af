"""Seventh step: references that can be trusted to reward.

Duplicates with different references (``conflicts``, from ``duplicates``) are compared by the verifier: where all are
equivalent the first is kept. Else only a consensus of models decides, for each member on its own text; a member about
which there is none is dropped, because the most frequent reference of such a group is right only about half the time.
Any other reference is dropped where models agree with each other and not with it (``consensus``), and where the
verifier does not find it equivalent to itself: it can never reward anyone.

Invariants: no majority among references decides; where no model was asked, nothing is called wrong. Does not ask models
(``votes``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from ulorl.curate.consensus import Finding
from ulorl.curate.reasons import drop
from ulorl.curate.result import StepResult
from ulorl.problem import Dropped, Problem
from ulorl.verify.verdict import Item, Verdict

_NOTES = {
    "confirmed": "references that the models confirm",
    "wrong": "references that the models agree against",
    "undecided": "consensus undecided, row not judged by it",
    "split": "models disagree, row not judged by them",
    "few": "too few models asked",
}


class ReferenceVerifier(Protocol):
    """What this step needs of ``ulorl.verify.Verifier``."""

    def verify(self, items: list[Item]) -> list[Verdict]: ...

    def check_reference(self, reference: str) -> str | None:
        """None when the reference is equivalent to itself, else why not."""
        ...


def references(
    problems: list[Problem],
    verifier: ReferenceVerifier,
    conflicts: Mapping[str, str] | None = None,
    findings: Mapping[str, Finding] | None = None,
) -> StepResult:
    """Settle ``conflicts`` (id -> id of its group), then drop what is unverifiable or, by ``findings``, wrong.

    ``findings`` (``Consensus.findings``) are by row id; kept rows carry in ``consensus`` the share of the models that
    votes for their reference.
    """
    findings = findings or {}
    groups: dict[str, list[Problem]] = {}
    for problem in problems:
        if conflicts and problem.id in conflicts:
            groups.setdefault(conflicts[problem.id], []).append(problem)
    fate: dict[str, Dropped] = {}
    for members in groups.values():
        fate.update(settle(members, verifier, findings))
    kept: list[Problem] = []
    dropped: list[Dropped] = []
    for problem in problems:
        finding = findings.get(problem.id)
        fault = None if problem.id in fate else verifier.check_reference(problem.answer)
        if problem.id in fate:
            dropped.append(fate[problem.id])
        elif fault is not None:
            detail = f"{problem.answer[:80]!r}: {fault}"
            dropped.append(drop(problem, "references", "unverifiable_reference", detail))
        elif finding is not None and finding.outcome == "wrong":
            dropped.append(_wrong(problem, finding, None))
        else:
            kept.append(problem if finding is None else replace(problem, consensus=finding.share_for_reference))
    outcomes = Counter(finding.outcome for finding in findings.values())
    notes = {_NOTES[outcome]: count for outcome, count in sorted(outcomes.items())}
    return StepResult(kept, dropped, notes=notes)


def settle(
    members: Sequence[Problem], verifier: ReferenceVerifier, findings: Mapping[str, Finding]
) -> dict[str, Dropped]:
    """id -> its fate, for the members of one group that are not kept."""
    first, *others = members
    if all(_equivalent(first, other, verifier) for other in others):
        return {other.id: _duplicate(other, first) for other in others}
    outcomes = {member.id: findings[member.id].outcome for member in members if member.id in findings}
    fate: dict[str, Dropped] = {}
    kept: list[Problem] = []
    for member in members:
        if outcomes.get(member.id) == "confirmed":
            same = next((one for one in kept if _same(one, member, verifier)), None)
            if same is None:
                kept.append(member)
            else:
                fate[member.id] = _duplicate(member, same)
    for member in members:
        if outcomes.get(member.id) == "wrong":
            fate[member.id] = _wrong(member, findings[member.id], kept[0].id if kept else None)
        elif outcomes.get(member.id) != "confirmed":
            fate[member.id] = _conflicting(member, members)
    return fate


def _same(one: Problem, other: Problem, verifier: ReferenceVerifier) -> bool:
    """Whether two confirmed members are one problem; near-duplicates with an answer each are two."""
    return one.problem == other.problem or _equivalent(one, other, verifier)


def _equivalent(one: Problem, other: Problem, verifier: ReferenceVerifier) -> bool:
    # In either order: an exact reference may be the answer that a rounded one accepts.
    pairs = ((one.answer, other.answer), (other.answer, one.answer))
    verdicts = verifier.verify([Item(reference, answer, one.problem, is_answer=True) for reference, answer in pairs])
    return any(verdict.equivalent for verdict in verdicts)


def _duplicate(member: Problem, kept: Problem) -> Dropped:
    detail = f"references {member.answer[:40]!r} and {kept.answer[:40]!r} are equivalent"
    return drop(member, "references", "duplicate", detail, kept.id)


def _wrong(problem: Problem, finding: Finding, right: str | None) -> Dropped:
    detail = f"{finding.told()}; the reference is {problem.answer[:40]!r}"
    return drop(problem, "references", "wrong_reference", detail, right)


def _conflicting(member: Problem, members: Sequence[Problem]) -> Dropped:
    listed = ", ".join(sorted({repr(one.answer[:40]) for one in members}))
    other = next(one for one in members if one.id != member.id)
    return drop(
        member,
        "references",
        "conflicting_references",
        f"references of this problem and its duplicates: {listed}",
        other.id,
    )
