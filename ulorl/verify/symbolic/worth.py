"""Which undecided pairs are worth a worker's time: sums, products, integrals and limits of moderate size.

On rewritten references of real data sets those are what a computer algebra system decides beyond the rules; about
everything else it was never of any use. Whatever would grow without bound is refused here, by its tokens alone, so
that hardly any hostile text reaches a worker. Microseconds a pair; imports nothing heavy.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ulorl.verify.exact.algebra import Unsupported
from ulorl.verify.grammar.tokens import Token, tokenise
from ulorl.verify.grammar.values import Named, Scalar, Value
from ulorl.verify.symbolic.latex_to_sympy import check_latex
from ulorl.verify.tiers import Answer

MAX_CHARACTERS = 600
MAX_SCRIPT_DEPTH = 3
MAX_SCRIPT_DIGITS = 5
"""Of a numeral in a bound, an index or an exponent."""
MAX_FACTORIAL_DIGITS = 3
_BIG = re.compile(r"\\(?:sum|prod|int|lim)(?![A-Za-z])")
_WORD = re.compile(
    r"(?<![\\A-Za-z])(?!(?:arc|sin|cos|tan|log|sqrt)[a-z]{0,4}(?![A-Za-z]))[A-Za-z]{4,}|[^\W\d_\x00-\u03ff]"
)


def why_not(reference: Answer, answer: Answer) -> str:
    """Why a pair is not worth a worker's time; "" where it is."""
    sides = (reference, answer)
    if not any(_BIG.search(side.normal) for side in sides):
        return "no sum, product, integral or limit"
    if max(len(side.text) for side in sides) > MAX_CHARACTERS:
        return "too long for the symbolic tier"
    if any(_WORD.search(side.normal) for side in sides):
        return "words"
    variables = [_variables(side.value) for side in sides]
    if None not in variables and variables[0] != variables[1]:
        return "other variables"
    try:
        for side in sides:
            check_size(tokenise(side.normal) if side.value is not None else check_latex(side.normal))
    except Unsupported as problem:
        return str(problem)
    return ""


def _variables(value: Value | None) -> frozenset[str] | None:
    """The variables of an expression, alone or under a name; None for anything else."""
    if isinstance(value, Named):
        value = value.value
    return frozenset(value.expression.variables()) if isinstance(value, Scalar) else None


def check_size(tokens: Sequence[Token]) -> None:
    """Raises `Unsupported` for towers of powers, factorials of much, and long ranges."""
    groups: list[bool] = []  # of each open brace, whether it is a script
    texts = [token.text for token in tokens]
    for index, (token, before) in enumerate(zip(tokens, ["", *texts], strict=False)):
        following = texts[index + 1 : index + 4]
        if token.text == "{":
            groups.append(before in ("^", "_"))
        elif token.text == "}" and groups:
            groups.pop()
        is_script = before in ("^", "_")
        depth = sum(groups) + is_script
        if depth > MAX_SCRIPT_DEPTH:
            raise Unsupported("scripts nested too deeply")
        if token.kind == "number" and depth and len(token.text) > MAX_SCRIPT_DIGITS:
            raise Unsupported("a large number in a bound or an exponent")
        if token.kind == "number" and any(groups) and not is_script and _is_power(following):
            raise Unsupported("a power of a number in a bound or an exponent")
        if token.text == "!" and (
            before == "!" or (before == ")" and "!" in texts[:index]) or len(before) > MAX_FACTORIAL_DIGITS
        ):
            raise Unsupported("a factorial of something large")


def _is_power(following: Sequence[str]) -> bool:
    """Whether these tokens raise what is before them to a number."""
    mark, first, *_ = [text for text in (*following, "", "") if text != "{"]
    return mark == "^" and first[:1].isdigit()
