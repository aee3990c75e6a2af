"""Unicode characters that answers use, and the LaTeX each one stands for."""

from __future__ import annotations

MONEY = "\uff04"
"""Stands for a currency sign that is not a mathematics delimiter (a full-width dollar)."""

_COMMANDS = {
    "×": "times", "✕": "times", "·": "cdot", "⋅": "cdot", "∙": "cdot", "•": "cdot", "÷": "div",
    "√": "surd", "∞": "infty",
    "°": "degree", "º": "degree", "˚": "degree", "≤": "le", "⩽": "le", "≦": "le", "≥": "ge", "⩾": "ge", "≧": "ge",
    "≠": "ne", "≈": "approx", "≡": "equiv", "±": "pm", "∓": "mp", "∪": "cup", "∩": "cap", "∈": "in", "∉": "notin",
    "∅": "emptyset", "∖": "setminus", "⟨": "langle", "⟩": "rangle", "⌊": "lfloor", "⌋": "rfloor", "⌈": "lceil",
    "⌉": "rceil", "∠": "angle", "△": "triangle", "⊥": "perp", "∥": "parallel", "∑": "sum", "∏": "prod", "∫": "int",
    "∧": "land", "∨": "lor", "→": "to", "∀": "forall", "∃": "exists", "⊂": "subset", "⊆": "subseteq",
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta", "η": "eta", "θ": "theta",
    "κ": "kappa", "λ": "lambda", "μ": "mu", "µ": "mu", "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma",
    "τ": "tau", "φ": "phi", "ϕ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega", "Γ": "Gamma", "Δ": "Delta",
    "Θ": "Theta", "Λ": "Lambda", "Π": "Pi", "Σ": "Sigma", "Φ": "Phi", "Ψ": "Psi", "Ω": "Omega", "ℓ": "ell",
    "ℏ": "hbar", "𝜋": "pi",
}  # fmt: skip
_FRACTIONS = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5), "⅗": (3, 5),
    "⅘": (4, 5), "⅙": (1, 6), "⅚": (5, 6), "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8), "⅞": (7, 8), "⅐": (1, 7),
    "⅑": (1, 9), "⅒": (1, 10),
}  # fmt: skip
CHARACTERS = str.maketrans(
    {
        **{character: f"\\{name} " for character, name in _COMMANDS.items()},
        **{character: rf"\frac{{{top}}}{{{bottom}}}" for character, (top, bottom) in _FRACTIONS.items()},
        **{chr(ord(character) + 0xFEE0): character for character in "0123456789+-=()[]{},.:;%/<>|!^_"},
        **{chr(ord(character) + 0xFEE0): character for character in map(chr, [*range(65, 91), *range(97, 123)])},
        **dict.fromkeys("−–﹣‐‑—", "-"),
        **dict.fromkeys("⁄∕", "/"),
        **dict.fromkeys("’′‘", "'"),
        **dict.fromkeys("”“″", '"'),
        **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u200a\u202f\u205f\u3000", " "),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\u2061\u2062\ufeff", ""),
        "∗": "*",
        "、": ",",
        "∶": ":",
        "ℝ": r"\mathbb{R}",
        "ℤ": r"\mathbb{Z}",
        "ℕ": r"\mathbb{N}",
        "ℚ": r"\mathbb{Q}",
        "ℂ": r"\mathbb{C}",
        "∛": r"\sqrt[3]",
        "∜": r"\sqrt[4]",
        "℃": r"\degree C",
        "℉": r"\degree F",
        "￥": "¥",
        "￡": "£",
        "…": r"\dots ",
        "⋯": r"\dots ",
    }
)
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ", "0123456789-+n")
SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
CIRCLED = {chr(0x2460 + number): str(number + 1) for number in range(20)}
