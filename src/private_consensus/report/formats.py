"""Format numbers, intervals, and the names of algorithms and figures for readers."""

import math
import re
from collections.abc import Iterable, Mapping

from markupsafe import Markup, escape

from private_consensus.common.symbols import power_of_ten

NONE = "–"

ABBREVIATIONS = {
    "admm", "d_zoa", "decor", "dgd", "dp_admm", "dp_ci", "dsgd", "dvp", "inca", "ipp_admm",
    "ldp_admm", "m_admm", "mafalda_sgd", "p_admm", "pdop", "pflr", "pp_admm", "pr_admm",
    "q_dpsgd_1", "q_dpsgd_2", "r_admm", "sdm_dsgd",
}  # fmt: skip
"""Algorithms whose displayed name is their name in capital letters."""

ALGORITHMS = {
    "canary_audit": "audit by canaries",
    "coordinate_descent": "random coordinate descent",
    "dp_ci_moments": "DP-CI, exact moments",
    "exact_admm": "ADMM with the exact update",
    "fair_classification": "private and fair classifiers",
    "gradient_descent": "DP consensus GD",
    "ldp_gradient_descent": "LDP gradient descent",
    "ldp_subgradient": "LDP subgradient method",
    "logistic": "logistic regression",
    "muffliato": "Muffliato",
    "muffliato_gd": "Muffliato-GD",
    "pp_admm_renyi": "PP-ADMM, Rényi account",
    "random_aggregation": "random aggregation",
    "release_audit": "audit of one release",
    "random_walk_sgd": "random walk SGD",
    "whisper_dsgd": "Whisper D-SGD",
    "zip_dl": "Zip-DL",
}
"""Displayed names of algorithms, unless the words of the name are displayed."""

VARIANTS = {
    "b50": "batch of 50", "convex": "convex loss", "dual_unit": "noise of the duals as stated",
    "early": "tuned for all iterations",
    "full_zero": "sigma of Theorem 15, start 0", "lemma10": "sensitivity of Lemma 10",
    "lipschitz": "noise of Theorem 2", "literal": "as published", "main": "random start",
    "n20": "20 agents", "n30": "30 agents", "pair_fixed": "Algorithm 2, fixed weights",
    "repaired": "corrected Stage II", "resolved": "",
    "whole": "entire budget", "x_unit": "noise of the models as in the other methods",
    "zero": "start 0",
}  # fmt: skip
"""Words for variants that no figure labels."""

LINKS = {
    "showkatbakhsh": ("arXiv:1903.07792", "https://arxiv.org/abs/1903.07792"),
    "xiao": ("arXiv:1902.06101", "https://arxiv.org/abs/1902.06101"),
    "gratton": (
        "journal version, doi:10.1109/TIFS.2021.3139267",
        "https://doi.org/10.1109/TIFS.2021.3139267",
    ),
    "wang": ("doi:10.1007/s11424-022-2012-9", "https://doi.org/10.1007/s11424-022-2012-9"),
}
"""Key of a paper to its identifier and web address, if the identifier was verified."""


def number(value: float | int | None, digits: int = 3) -> str:
    """Format a number with significant ``digits``, or with a power of ten; None and NaN as a dash.

    Integers, and integral floats below 10^6, have all digits.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return NONE
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e6):
        return f"{int(value):,}".replace("-", "−")
    mantissa, _, exponent = f"{value:.{digits}g}".partition("e")
    text = power_of_ten(mantissa, int(exponent)) if exponent else mantissa
    return text.replace("-", "−")


def value_range(values: Iterable[float | None]) -> str:
    """Format the smallest and the largest value, or one number if both have the same format."""
    finite = [value for value in values if value is not None and not math.isnan(value)]
    if not finite:
        return NONE
    low, high = number(min(finite)), number(max(finite))
    return low if low == high else f"{low} to {high}"


def interval(low: float | None, high: float | None, digits: int = 3) -> str:
    """Format an interval as ``[low, high]``; empty if an end is missing."""
    ends = number(low, digits), number(high, digits)
    return "" if NONE in ends else f"[{ends[0]}, {ends[1]}]"


def region(low: float | None, high: float | None, digits: int = 3) -> str:
    """Describe the values for which a claim is true; a dash if an end is missing."""
    first, last = number(low, digits), number(high, digits)
    if NONE in (first, last):
        return NONE
    if low == -math.inf:
        return "any" if high == math.inf else f"at most {last}"
    return f"at least {first}" if high == math.inf else f"{first} to {last}"


def words(name: str) -> str:
    """Replace the underscores of a name by spaces."""
    return name.replace("_", " ")


def exponential(value: float) -> float:
    """Return exp(value); infinity instead of an overflow."""
    return math.inf if value > 700 else math.exp(value)


def algorithm_title(algorithm: str) -> str:
    """Return the displayed name of an algorithm, e.g. "DP-ADMM" for ``dp_admm``."""
    if algorithm in ABBREVIATIONS:
        return algorithm.upper().replace("_", "-")
    return ALGORITHMS.get(algorithm, words(algorithm))


def method_title(name: str, labels: Mapping[str, str]) -> str:
    """Return the label of ``algorithm.variant`` in figures, or the titles of both."""
    algorithm, _, variant = name.partition(".")
    text = VARIANTS.get(variant, words(variant))
    title = f"{algorithm_title(algorithm)} ({text})" if text else algorithm_title(algorithm)
    return labels.get(name, title)


def figure_name(name: str) -> str:
    """Return the displayed name of a figure or table, e.g. "Figure 13 us" for ``ding_fig13_us``."""
    short = name.partition("_")[2] or name
    return words(re.sub(r"^fig", "Figure ", short).replace("table", "Table ", 1))


def heading(title: str) -> str:
    """Capitalize the title of a figure, except a Greek letter."""
    return title[:1].upper() + title[1:] if title[:1].isascii() else title


def code(text: str) -> Markup:
    """Escape a text for HTML, and mark the parts between backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))


_CODE = re.compile(r"`([^`]+)`")
