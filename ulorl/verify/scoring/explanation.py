"""One verdict, step by step: what was extracted, how both sides were read, what each tier said, the policy in force."""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction

from ulorl.recipe import VerifyRecipe
from ulorl.verify.cases import has_parts
from ulorl.verify.grammar.units import readings
from ulorl.verify.grammar.values import Scalar
from ulorl.verify.outcome import Outcome
from ulorl.verify.policy import Policy, policy_of
from ulorl.verify.scoring.describe import describe, describe_expression
from ulorl.verify.tiers import RULES, Answer, read_answer
from ulorl.verify.verdict import Item
from ulorl.verify.verifier import Verifier

_RELATIONS = {"equal": "equal", "different": "different", "undecided": "cannot tell"}
_HOW = {
    "given": "the answer as given",
    "boxed": "from a box",
    "statement": "from a line that states the answer",
    "phrase": 'from a phrase such as "the answer is"',
    "bold": "from the last bold text",
    "conclusion": "from what the last sentence concludes",
    "last_number": "the last number (verify.last_number)",
    "none": "no final answer found",
}


def explain(reference: str, answer: str, config: VerifyRecipe) -> list[str]:
    """The steps that lead to the verdict on one pair, as lines of text. ``answer`` may be a whole response."""
    policy = policy_of(config)
    with Verifier(config) as verifier:
        item = Item(reference, answer, is_answer=True)
        left, problem = verifier.read_reference(reference)
        extraction = verifier.extraction(item, parts=has_parts(left))
        lines = [f"reference  {_read(left)}" + (f" - unusable: {problem}" if problem else "")]
        how = _HOW[extraction.how if extraction.answers else "none"]
        lines.append(f"extracted  {', '.join(map(repr, extraction.answers)) or 'nothing'}: {how}")
        for text in extraction.answers:
            lines += _compared(left, read_answer(text), policy)
        verdict = verifier.verify([item])[0]
    if verdict.rule not in ("undecided", "hedge") and not any(line.startswith(f"{verdict.rule:10} ") for line in lines):
        lines.append(f"{verdict.rule:10} {'equal' if verdict.equivalent else 'different'}")
    lines.append("policy     " + ", ".join(f"{name} {_setting(value)}" for name, value in asdict(policy).items()))
    conclusion = {True: "equivalent", False: "not equivalent", None: "undecided"}[verdict.equivalent]
    lines.append(f"verdict: {conclusion}, rule {verdict.rule}" + (f" ({verdict.reason})" if verdict.reason else ""))
    return lines


def _compared(left: Answer, right: Answer, policy: Policy) -> list[str]:
    lines = [f"answer     {_read(right)}"]
    lines += _conversion("reference", left) + _conversion("answer", right)
    for tier in RULES:
        outcome = tier.compare(left, right, policy)
        lines.append(_line(outcome.rule or tier.name, outcome))
        if outcome.relation != "undecided":
            break
    return lines


def _line(rule: str, outcome: Outcome) -> str:
    return f"{rule:10} {_RELATIONS[outcome.relation]}" + (f": {outcome.reason}" if outcome.reason else "")


def _read(answer: Answer) -> str:
    if answer.value is None:
        return f"{answer.text!r} is outside the grammar: {answer.problem}"
    return f"{answer.text!r} is read as: {describe(answer.value)}"


def _conversion(side: str, answer: Answer) -> list[str]:
    """What a quantity is in base units, once for every meaning of its unit."""
    if not isinstance(answer.value, Scalar) or answer.value.unit in ("", "%"):
        return []
    number = answer.value.expression.rational()
    lines = []
    for unit in readings(answer.value.unit):
        what = " ".join(name if power == 1 else f"{name}^{power}" for name, power in unit.dims) or "no dimension"
        pi = {0: "", 1: " pi"}.get(unit.pi, f" pi^{unit.pi}")
        if number is None:
            size = f"({describe_expression(answer.value.expression)}) times {unit.factor}{pi}"
        else:
            size = f"{number * unit.factor}{pi}"
        offset = "" if not unit.zero else f", zero at {unit.zero}"
        lines.append(f"units      {side}: {size} in base units of {what}{offset}")
    return lines


def _setting(value: object) -> str:
    return str(float(value)) if isinstance(value, Fraction) else str(value)
