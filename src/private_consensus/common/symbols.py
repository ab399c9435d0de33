"""Typeset texts of the configuration: Greek letters, powers, sub- and superscripts.

Configurations are written on a keyboard: ``epsilon``, ``x_s``, ``10^-3.5``, ``1e-6``.
"""

import re

LETTERS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eps": "ε",
    "zeta": "ζ", "eta": "η", "theta": "θ", "kappa": "κ", "lambda": "λ", "lam": "λ", "rho": "ρ",
    "sigma": "σ", "omega": "ω", "Phi": "Φ",
}  # fmt: skip
"""Unicode symbols by their names in a configuration. Words such as *to* are not symbols there."""
RAISED = str.maketrans("0123456789+-.tknmTδ", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻·ᵗᵏⁿᵐᵀᵟ")
LOWERED = str.maketrans("0123456789aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")

_LONGEST_FIRST = "|".join(sorted(LETTERS, key=len, reverse=True))
_NAME = re.compile(rf"(?<![A-Za-z])({_LONGEST_FIRST})(?![A-Za-z])")
_SCIENTIFIC = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)e([+-]?\d+)(?!\w)")
_POWER = re.compile(r"\^(?:\(([^()]*)\)|(-?[\w.]*\w))")
_INDEX = re.compile(r"(?<=[A-Za-zα-ωŝ])_(\w+)")
_ROOT = re.compile(r"\bsqrt\((\w+)\)")
_MINUS = re.compile(r"(?<![\w)²³])-(?=\d)|(?<=\s)-(?=\s)")
_WHOLE = re.compile(r"(?<== )(-?\d+)\.0(?!\d)")


def typeset(text: str) -> str:
    """Replace names of Greek letters, powers and indices in a text by Unicode symbols."""
    text = _SCIENTIFIC.sub(lambda match: power_of_ten(match[1], int(match[2])), text)
    text = _NAME.sub(lambda match: LETTERS[match[1]], text)
    text = _POWER.sub(_raised, text)
    text = _INDEX.sub(_lowered, text)
    text = _ROOT.sub(r"√\1", text)
    return _MINUS.sub("−", _WHOLE.sub(r"\1", text).replace("+-", "±"))


def power_of_ten(mantissa: str, exponent: int) -> str:
    """Format ``mantissa`` times a power of ten, without the mantissa if it is 1."""
    power = f"10{raised(str(exponent))}"
    return power if float(mantissa) == 1.0 else f"{mantissa}×{power}"


def raised(text: str) -> str:
    """Format a text as a superscript."""
    return text.translate(RAISED)


def _raised(match: re.Match[str]) -> str:
    power = match[1] or match[2] or ""
    text = raised(power)
    return text if not set(text) & set(power) else match[0]


def _lowered(match: re.Match[str]) -> str:
    text = match[1].lower().translate(LOWERED)
    return text if not set(text) & set(match[1].lower()) else match[0]
