"""The answer of the whole report in one or two sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from private_consensus.privacy import DIFFERS, INCONCLUSIVE, NOT_PROVEN, VIOLATED

from ...claims import HELD, IN_PART, NOT_HELD, UNDECIDED, UNTESTABLE
from ..formats import number
from ..reading import Results
from ..undecided import sentence
from .delivered import audits

Row = Mapping[str, Any]

PREDICATES = {
    HELD: ("holds", "hold"),
    IN_PART: ("holds in part", "hold in part"),
    NOT_HELD: ("does not hold", "do not hold"),
    UNDECIDED: ("is undecided", "are undecided"),
    UNTESTABLE: ("cannot be tested", "cannot be tested"),
}
"""Verdict on a claim to its predicate, for one claim and for several claims."""

ABLATION = "ablation"
"""Reading of settings that no paper contains."""


def sentences(results: Results) -> list[str]:
    """Compose the answer: claims, privacy, and the headline of the comparison.

    Parameters
    ----------
    results : Results
        Results of one scale.

    Returns
    -------
    list of str
        Two sentences at most. A scale that decides nothing gets one sentence that states this.
    """
    if not results.decides:
        return [sentence(results.scale)]
    clauses = [claims_in_words(results.claims), privacy_in_words(results.privacy)]
    answer = "; ".join(filter(None, clauses))
    headline = list(results.comparison.get("headline", []))[:1]
    return [*([f"{answer[0].upper()}{answer[1:]}."] if answer else []), *headline]


def claims_in_words(claims: Iterable[Row]) -> str:
    """Count the primary verdicts in one clause; empty without claims."""
    counts = Counter(row["verdict"] for row in claims if row["is_primary"])
    total = sum(counts.values())
    if not total:
        return ""
    clauses = [
        f"{number(counts[verdict])} {forms[counts[verdict] != 1]}"
        for verdict, forms in PREDICATES.items()
        if counts[verdict]
    ]
    listed = " and ".join(filter(None, [", ".join(clauses[:-1]), clauses[-1]]))
    return f"of {number(total)} claim{'s' if total != 1 else ''}, {listed}"


def privacy_in_words(privacy: Iterable[Row]) -> str:
    """Count the settings that do not deliver the claimed epsilon; empty without such claims.

    Audits claim no privacy, and ablations are settings of this repository. Both are left out.
    """
    counts = Counter(
        row["verdict"]
        for row in privacy
        if math.isfinite(row["epsilon_claimed"])
        and row["epsilon_claimed"] > 0
        and row["interpretation"] != ABLATION
        and row["algorithm"] not in audits()
    )
    total = sum(counts.values())
    if not total:
        return ""
    broken = counts[VIOLATED] + counts[DIFFERS]
    unproven = counts[NOT_PROVEN] + counts[INCONCLUSIVE]
    return (
        f"of {number(total)} settings that promise a finite ε, {number(broken)} deliver less "
        f"privacy than they promise and {number(unproven)} have no proof of it"
    )
