"""Task ``stem``: multiple choice with shuffled options, and short answers with units and tolerances.

A row with the column ``choices`` is multiple choice (`ulorl.verify.tasks.choices`); any other is a short answer, whose
reference may be followed by its tolerance, as in "9.81 ± 0.02 m/s^2" or "9.81 m/s^2 ± 2%"
(`ulorl.verify.tasks.quantities`). The columns ``unit``, ``tolerance`` (a number in the reference's unit, or a
percentage) and ``policy`` (settings of [verify]) say so apart.

Invariant: what decides about values is the verifier; the order of options follows from the problem's id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pydantic import ValidationError

from ulorl.errors import UserError
from ulorl.problem import Problem
from ulorl.recipe import VerifyRecipe
from ulorl.verify.policy import policy_of
from ulorl.verify.tasks.answers import visible
from ulorl.verify.tasks.base import NO_ANSWER, Attempt, Reward, Task
from ulorl.verify.tasks.choices import RowError, choices_of, is_choice, letter_and_rest, matching
from ulorl.verify.tasks.quantities import measured, tolerance_of, with_unit
from ulorl.verify.verdict import Item, Verdict
from ulorl.verify.verifier import Verifier

_SLACK = Fraction(1, 10**9)
"""Added to a tolerance, so that the bound itself is within it however floats round."""


@dataclass(frozen=True)
class Short:
    """A short answer's reference without its tolerance, and the settings of [verify] for it alone."""

    reference: str
    policy: Mapping[str, Any]


class StemTask(Task):
    """See the module."""

    def __init__(self, config: VerifyRecipe) -> None:
        super().__init__(config)
        self._verifier = Verifier(config)

    def check(self, problem: Problem) -> str | None:
        try:
            if choices_of(problem) is not None:
                return None
            short = short_answer(problem)
            policy_of(self.config, short.policy)
        except (RowError, UserError) as error:
            return str(error)
        except ValidationError as error:
            return f"the column policy: {error.errors()[0]['msg']}"
        fault = self._verifier.check_reference(short.reference)
        return None if fault is None else f"the reference {problem.answer[:60]!r} cannot be verified ({fault})"

    def prompt(self, problem: Problem) -> str:
        choices = choices_of(problem)
        return problem.problem if choices is None else f"{problem.problem}\n\n{choices.shown()}"

    def score(self, attempts: Sequence[Attempt]) -> list[Reward]:
        rewards: dict[int, Reward] = {}
        items: dict[int, Item] = {}
        for place, attempt in enumerate(attempts):
            if choices_of(attempt.problem) is not None:
                rewards[place] = self._choice(attempt)
            else:
                short = short_answer(attempt.problem)
                text = attempt.problem.problem
                items[place] = Item(short.reference, attempt.response, text, policy=short.policy)
        verdicts = self._verifier.verify(list(items.values()))
        rewards |= {place: _short_reward(verdict) for place, verdict in zip(items, verdicts, strict=True)}
        return [rewards[place] for place in range(len(attempts))]

    def close(self) -> None:
        self._verifier.close()

    def _choice(self, attempt: Attempt) -> Reward:
        """By letter, or by the value of an option; a letter with another option's text is wrong.

        A response that is no more than a letter or an option's text need not say that it is the answer.
        """
        choices = choices_of(attempt.problem)
        assert choices is not None
        whole = visible(attempt.response)
        bare = is_choice(whole, choices.options)
        answers = (whole,) if bare else self._verifier.extraction(Item("", attempt.response)).answers
        if not answers:
            return Reward(0.0, NO_ANSWER)
        chosen = {answer: self._meant(answer, choices.options) for answer in answers}
        answer = answers[-1]
        if len(set(chosen.values())) > 1:
            return Reward(0.0, "several answers", ", ".join(answers))
        number = chosen[answer]
        if number is None:
            return Reward(0.0, "no option", answer)
        letter = choices.letter(number)
        right = number == choices.right
        return Reward(float(right), f"{letter}, {'the' if right else 'not the'} right option", letter)

    def _meant(self, answer: str, options: Sequence[str]) -> int | None:
        """The number of the option that an answer names; None for none, or for more than one."""
        number, rest = letter_and_rest(answer, len(options))
        found = matching(rest, options) if rest else []
        if not found and rest and number is None:
            items = [Item(option, rest, is_answer=True) for option in options]
            verdicts = self._verifier.verify(items)
            found = [place for place, verdict in enumerate(verdicts) if verdict.equivalent]
        if number is not None:
            return number if not found or number in found else None
        return found[0] if len(found) == 1 else None


def short_answer(problem: Problem) -> Short:
    """The reference and policy of a row. RowError says what is wrong with it."""
    reference, extra = problem.answer.strip().replace("+/-", "±"), problem.extra
    if not reference:
        raise RowError("no reference: the column answer is empty")
    policy = extra.get("policy") or {}
    if not isinstance(policy, dict):
        raise RowError("the column policy is no object of settings of [verify]")
    policy = {name: value for name, value in policy.items() if value is not None}
    found, share = measured(reference), None
    if found is not None:
        reference, share = found.reference, found.share
    reference = with_unit(reference, extra.get("unit"))
    given = extra.get("tolerance")
    if given is not None and given != "":
        if found is not None:
            raise RowError("a tolerance stands both in the reference and in the column tolerance; give one")
        share = tolerance_of(given, reference)
    if share is None:
        return Short(reference, policy)
    return Short(reference, {"relative_tolerance": float(share + _SLACK)} | policy)


def _short_reward(verdict: Verdict) -> Reward:
    if verdict.answer is None and verdict.reason == NO_ANSWER:
        return Reward(0.0, NO_ANSWER)
    return Reward(verdict.reward, verdict.reason or verdict.rule, verdict.answer)
