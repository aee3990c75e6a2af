"""Names that the grammar of expressions knows."""

from __future__ import annotations

from ulorl.verify.grammar.tokens import words

GREEK = words(
    """alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma
    tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega ell hbar"""
)
_SAME = """sin cos tan cot sec csc sinh cosh tanh coth sech csch exp ln abs floor ceil arg cis sign gcd lcm max min"""
FUNCTIONS: dict[str, str] = {
    **{name: name for name in _SAME.split()},
    "tg": "tan", "ctg": "cot", "cotg": "cot", "cosec": "csc", "lg": "lg", "log": "log", "sgn": "sign",
    "Re": "re", "Im": "im", "conj": "conj", "ceiling": "ceil",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctg": "atan", "arccot": "acot", "arcctg": "acot",
    "arcsec": "asec", "arccsc": "acsc", "asin": "asin", "acos": "acos", "atan": "atan",
    "arsinh": "asinh", "arcosh": "acosh", "artanh": "atanh", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh",
}  # fmt: skip
"""Spelling to the name of the application; log and lg are resolved by the parser."""

INVERSES = {
    "sin": "asin", "cos": "acos", "tan": "atan", "cot": "acot", "sec": "asec", "csc": "acsc",
    "sinh": "asinh", "cosh": "acosh", "tanh": "atanh",
}  # fmt: skip
SEVERAL_ARGUMENTS = frozenset({"gcd", "lcm", "max", "min"})
LOGARITHMS = frozenset({"ln", "log", "lg"})
ONLY_AS_COMMANDS = words("tg ctg cotg lg Re Im arg cis sign sgn conj")
"""Spellings that are products of letters where they are not set as a name."""

OPERATORS = words("sum prod int lim")
ACCENTS = words("vec hat tilde widehat widetilde dot ddot overrightarrow")
BRACKETS = {"(": ")", "[": "]", "{": "}"}
FENCES = {"lvert": ("rvert", "abs"), "lfloor": ("rfloor", "floor"), "lceil": ("rceil", "ceil")}
FENCE_SYMBOLS = {"⌊": "lfloor", "⌋": "rfloor", "⌈": "lceil", "⌉": "rceil"}
TIMES = words("times cdot ast")
PRIMARIES = (
    GREEK
    | frozenset(FUNCTIONS)
    | OPERATORS
    | ACCENTS
    | frozenset(FENCES)
    | words("frac sqrt surd pi infty overline bar binom dbinom tbinom Re Im varpi")
)
"""Commands that start a factor."""

DIFFERENTIALS = words("dx dy dz dt du dv dr ds")
"""Letters that are rather a differential than a product."""
