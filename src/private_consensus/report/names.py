"""Displayed names of algorithms and figures, titles of figures, and links to the papers."""

from __future__ import annotations

import re

from .formats import words

ALGORITHMS = {
    "admm": "ADMM",
    "canary_audit": "audit by canaries",
    "coordinate_descent": "random coordinate descent",
    "d_zoa": "D-ZOA",
    "decor": "DECOR",
    "dgd": "DGD",
    "dp_admm": "DP-ADMM",
    "dp_ci": "DP-CI",
    "dp_ci_moments": "DP-CI, exact moments",
    "dsgd": "DSGD",
    "dvp": "DVP",
    "exact_admm": "ADMM with the exact update",
    "fair_classification": "private and fair classifiers",
    "gradient_descent": "DP consensus GD",
    "ipp_admm": "IPP-ADMM",
    "ldp_admm": "LDP-ADMM",
    "ldp_gradient_descent": "LDP gradient descent",
    "ldp_subgradient": "LDP subgradient method",
    "logistic": "logistic regression",
    "m_admm": "M-ADMM",
    "mafalda_sgd": "MAFALDA-SGD",
    "muffliato": "Muffliato",
    "muffliato_gd": "Muffliato-GD",
    "p_admm": "P-ADMM",
    "pdop": "PDOP",
    "pflr": "PFLR",
    "pp_admm": "PP-ADMM",
    "pp_admm_renyi": "PP-ADMM, Rényi account",
    "pr_admm": "PR-ADMM",
    "q_dpsgd_1": "Q-DPSGD-1",
    "q_dpsgd_2": "Q-DPSGD-2",
    "r_admm": "R-ADMM",
    "random_aggregation": "random aggregation",
    "release_audit": "audit of one release",
    "sdm_dsgd": "SDM-DSGD",
    "zip_dl": "Zip-DL",
}

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


def algorithm_title(algorithm: str) -> str:
    """Return the displayed name of an algorithm, e.g. "DP-ADMM" for ``dp_admm``."""
    return ALGORITHMS.get(algorithm, words(algorithm))


def figure_name(name: str) -> str:
    """Return the displayed name of a figure or table, e.g. "Figure 13 us" for ``ding_fig13_us``."""
    short = name.partition("_")[2] or name
    return words(re.sub(r"^(fig|table)", lambda match: _KINDS[match[1]], short))


def heading(title: str, number: str) -> str:
    """Remove the number of the paper, such as ``001``, from the title of a figure."""
    text = title.removeprefix(f"Paper {number}").lstrip(",: ")
    return text[:1].upper() + text[1:] if text[:1].isascii() else text


def short_title(title: str, number: str) -> str:
    """Return the part of a title before the colon, without the number of the paper."""
    return heading(title, number).partition(":")[0]


_KINDS = {"fig": "Figure ", "table": "Table "}
