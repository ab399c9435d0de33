"""What papers and algorithms are called where a reader sees them, from one place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

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

_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


def called(algorithm: str) -> str:
    """An algorithm's name in print; one of somebody else's package is called as it is."""
    return ALGORITHMS.get(algorithm, words(algorithm))


def short_title(paper: Mapping[str, Any]) -> str:
    """Short title and year of a paper, as ``PaperInfo`` dumps it."""
    title = paper.get("short") or paper["title"]
    years = _YEAR.findall(paper["where"]) if paper["authors"] else []
    return f"{title}, {years[-1]}" if years else title
