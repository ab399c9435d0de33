"""Compose the result of the whole reproduction in one sentence."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from private_consensus.common.grouping import grouped
from private_consensus.privacy import DIFFERS, INCONCLUSIVE, NOT_PROVEN, VIOLATED
from private_consensus.reproduction.claims import HELD, IN_PART, NOT_HELD, UNDECIDED, UNTESTABLE

from ..formats import number
from ..names import algorithm_title
from ..reading import Results, Row
from .privacy import settings_of_papers

PREDICATES = {
    HELD: ("holds", "hold"),
    IN_PART: ("holds in part", "hold in part"),
    NOT_HELD: ("does not hold", "do not hold"),
    UNDECIDED: ("is undecided", "are undecided"),
    UNTESTABLE: ("cannot be tested", "cannot be tested"),
}
"""Verdict to its predicate in a sentence, in singular and plural."""


def summary(results: Results) -> str:
    """State the verdicts on the claims and the delivered privacy, for the front page.

    The text is empty without claims and private settings. At a reduced scale, it states that no
    claim is decided.
    """
    if not results.decides:
        return (
            f"The {results.scale} scale decides no claim: it tests the workflow, with fewer runs "
            "and shorter grids than the papers."
        )
    clauses = [claims_clause(results.claims), privacy_clause(settings_of_papers(results))]
    answer = ". ".join(filter(None, clauses))
    return f"{answer[0].upper()}{answer[1:]}." if answer else ""


def claims_clause(claims: Iterable[Row]) -> str:
    """Count the verdicts on the claims that the papers make; empty without claims."""
    primary = (row for row in claims if row["is_primary"] and not row["addition"])
    counts = Counter(row["verdict"] for row in primary)
    total = sum(counts.values())
    if not total:
        return ""
    of_all = f" of the {number(total)} claims that the papers make"
    clauses = []
    for verdict, forms in PREDICATES.items():
        if count := counts[verdict]:
            subject = f"{number(count)}{'' if clauses else of_all}"
            clauses.append(f"{subject} {forms[count != 1]}")
    return " and ".join(filter(None, [", ".join(clauses[:-1]), clauses[-1]]))


def privacy_clause(privacy: Iterable[Row]) -> str:
    """Count the settings that do not deliver the claimed epsilon; empty without private settings.

    Papers have very different numbers of settings, so that those with violations are also counted
    alone.
    """
    settings = [row for row in privacy if 0 < row["epsilon_claimed"] < math.inf]
    if not settings:
        return ""
    violated = [row for row in settings if row["verdict"] in (VIOLATED, DIFFERS)]
    totals = Counter(map(_paper, settings))
    papers = sorted(grouped(violated, _paper).items(), key=lambda item: -len(item[1]))
    of_papers = "; ".join(
        f"{paper} {number(len(rows))} of {number(totals[paper])}, {_methods(rows)}"
        for paper, rows in papers
    )
    unproven = sum(row["verdict"] in (NOT_PROVEN, INCONCLUSIVE) for row in settings)
    return (
        f"{number(len(violated))} of {number(len(settings))} settings with a finite claimed ε "
        f"deliver less privacy than claimed{f' ({of_papers})' if of_papers else ''}; for "
        f"{number(unproven)} settings, the claim is not proven"
    )


def _paper(row: Row) -> str:
    return row["experiment"].partition("_")[0].capitalize()


def _methods(rows: list[Row]) -> str:
    """Return the title of the only algorithm of some settings, or the number of algorithms."""
    names = {row["algorithm"] for row in rows}
    return algorithm_title(*names) if len(names) == 1 else f"{len(names)} methods"
