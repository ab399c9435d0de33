"""Text as it is printed: Greek letters, powers, sub- and superscripts.

Configurations are written on a keyboard: ``epsilon``, ``x_s``, ``10^-3.5``, ``1e-6``.
"""

from __future__ import annotations

import re

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eps": "ε", "zeta": "ζ",
    "eta": "η", "theta": "θ", "kappa": "κ", "lambda": "λ", "lam": "λ", "rho": "ρ", "sigma": "σ",
    "omega": "ω", "Phi": "Φ",
}  # fmt: skip
RAISED = str.maketrans("0123456789+-.tknmT", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻·ᵗᵏⁿᵐᵀ")
LOWERED = str.maketrans("0123456789aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")

_NAME = re.compile(rf"(?<![A-Za-z])({'|'.join(sorted(GREEK, key=len, reverse=True))})(?![A-Za-z])")
_SCIENTIFIC = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)e([+-]?\d+)(?!\w)")
_POWER = re.compile(r"\^(?:\(([^()]*)\)|(-?[\w.]*\w))")
_INDEX = re.compile(r"(?<=[A-Za-zα-ω])_(\w+)")
_ROOT = re.compile(r"\bsqrt\((\w+)\)")
_MINUS = re.compile(r"(?<![\w)²³])-(?=\d)|(?<=\s)-(?=\s)")
_WHOLE = re.compile(r"(?<== )(-?\d+)\.0(?!\d)")


def typeset(text: str) -> str:
    """A line of a figure with its symbols set."""
    text = _SCIENTIFIC.sub(lambda found: power_of_ten(found[1], int(found[2])), text)
    text = _POWER.sub(_raised, text)
    text = _NAME.sub(lambda found: GREEK[found[1]], text)
    text = _INDEX.sub(_lowered, text)
    text = _ROOT.sub(r"√\1", text)
    return _MINUS.sub("−", _WHOLE.sub(r"\1", text).replace("+-", "±"))


def power_of_ten(mantissa: str, exponent: int) -> str:
    """``mantissa`` times a power of ten; a mantissa of 1 is not written."""
    power = f"10{raised(str(exponent))}"
    return power if float(mantissa) == 1.0 else f"{mantissa}×{power}"


def raised(text: str) -> str:
    """A superscript."""
    return text.translate(RAISED)


def _raised(found: re.Match[str]) -> str:
    power = found[1] if found[1] is not None else found[2]
    made = raised(power)
    return made if not set(made) & set(power) else found[0]


def _lowered(found: re.Match[str]) -> str:
    made = found[1].lower().translate(LOWERED)
    return made if not set(made) & set(found[1].lower()) else found[0]
