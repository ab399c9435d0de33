"""Compose the result of the whole reproduction in one or two sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from private_consensus.privacy import DIFFERS, INCONCLUSIVE, NOT_PROVEN, VIOLATED
from private_consensus.reproduction.claims import HELD, IN_PART, NOT_HELD, UNDECIDED, UNTESTABLE

from ..formats import number
from ..reading import Results, Row
from ..undecided import scale_notice
from .delivered import audit_algorithms

PREDICATES = {
    HELD: ("holds", "hold"),
    IN_PART: ("holds in part", "hold in part"),
    NOT_HELD: ("does not hold", "do not hold"),
    UNDECIDED: ("is undecided", "are undecided"),
    UNTESTABLE: ("cannot be tested", "cannot be tested"),
}
"""Verdict to its predicate in a sentence, in singular and plural."""

ABLATION = "ablation"
"""Interpretation of settings that no paper contains."""


def sentences(results: Results) -> list[str]:
    """Compose the sentences of the front page: claims, privacy, and result of the comparison.

    Parameters
    ----------
    results : Results
        Results of one scale.

    Returns
    -------
    list of str
        At most two sentences. At a reduced scale, one sentence states that no claim is decided.
    """
    if not results.decides:
        return [scale_notice(results.scale)]
    clauses = [claims_clause(results.claims), privacy_clause(results.privacy)]
    answer = ". ".join(filter(None, clauses))
    headline = list(results.comparison.get("headline", []))[:1]
    return [*([f"{answer[0].upper()}{answer[1:]}."] if answer else []), *headline]


def claims_clause(claims: Iterable[Row]) -> str:
    """Describe the verdicts on the primary variants of all claims; empty without claims."""
    counts = Counter(row["verdict"] for row in claims if row["is_primary"])
    total = sum(counts.values())
    if not total:
        return ""
    of_all = f" of {number(total)} claim{'s' if total != 1 else ''}"
    clauses = []
    for verdict, forms in PREDICATES.items():
        if count := counts[verdict]:
            subject = f"{number(count)}{'' if clauses else of_all}"
            clauses.append(f"{subject} {forms[count != 1]}")
    return " and ".join(filter(None, [", ".join(clauses[:-1]), clauses[-1]]))


def privacy_clause(privacy: Iterable[Row]) -> str:
    """Count the settings that do not deliver the claimed epsilon; empty without private settings.

    Audits, which claim no privacy, and ablations, which no paper contains, are not counted. Papers
    have very different numbers of settings, so that those with violations are also counted alone.
    """
    settings = [
        (row["experiment"].partition("_")[0].capitalize(), row["verdict"])
        for row in privacy
        if math.isfinite(row["epsilon_claimed"])
        and row["epsilon_claimed"] > 0
        and row["interpretation"] != ABLATION
        and row["algorithm"] not in audit_algorithms()
    ]
    if not settings:
        return ""
    totals = Counter(paper for paper, _ in settings)
    violated = Counter(paper for paper, verdict in settings if verdict in (VIOLATED, DIFFERS))
    papers = ", ".join(
        f"{paper} {number(count)} of {number(totals[paper])}"
        for paper, count in violated.most_common()
    )
    unproven = sum(verdict in (NOT_PROVEN, INCONCLUSIVE) for _, verdict in settings)
    return (
        f"{number(violated.total())} of {number(len(settings))} settings with a finite claimed ε "
        f"deliver less privacy than claimed{f' ({papers})' if papers else ''}; for "
        f"{number(unproven)} settings, the claim is not proven"
    )
