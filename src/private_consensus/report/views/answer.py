"""Compose the result of the whole reproduction in one sentence."""

from collections import Counter
from collections.abc import Iterable

from private_consensus.privacy.verdicts import INCONCLUSIVE, NOT_PROVEN, VIOLATED
from private_consensus.reproduction.claims.words import MEANINGS, may_decide

from ..formats import number
from ..reading import Results, Row
from .privacy import LESS_THAN_CLAIMED, audit_of_release, by_method, worst_verdict


def summary(results: Results) -> str:
    """State the verdicts on the claims and the delivered privacy, for the front page.

    The text is empty without claims and private settings. At a reduced scale, it states that no
    claim is decided.
    """
    if not may_decide(results.scale):
        return (
            f"The {results.scale} scale decides no claim: it tests the workflow, with fewer runs "
            "and shorter grids than the papers."
        )
    clauses = [claims_clause(results.claims), privacy_clause(results)]
    answer = "; ".join(filter(None, clauses))
    return f"{answer[0].upper()}{answer[1:]}." if answer else ""


def claims_clause(claims: Iterable[Row]) -> str:
    """Count the verdicts on the claims that the papers make; empty without claims."""
    primary = (row for row in claims if row["is_primary"] and not row["addition"])
    counts = Counter(row["verdict"] for row in primary)
    listed = ", ".join(f"{counts[name]} {name}" for name in MEANINGS if counts[name])
    return f"{counts.total()} claims that the papers make: {listed}" if counts else ""


def privacy_clause(results: Results) -> str:
    """Count the methods that deliver less privacy than their papers claim, as published.

    A method counts once, with its worst setting: in the literal variants of an experiment if there
    are any, else in the resolved ones. Baselines of a paper are counted apart from the methods that
    it proposes. A method whose claim for one iteration is refuted by an audit delivers less than
    claimed. Controls of this study are not counted, and methods of papers whose claims no
    total counts neither. The text is empty without claims of privacy.
    """
    audits = results.audit.get("audits", [])
    counted = {claim["paper"] for claim in results.claims if not claim["addition"]}
    proposed, baselines = [], []
    for (paper, name), rows in by_method(results).items():
        info = results.papers[paper]["paper"]
        if paper not in counted or name in info.get("controls", []):
            continue
        with_text = {row["experiment"] for row in rows if row["interpretation"] == "literal"}
        published = [
            row
            for row in rows
            if row["interpretation"] == "literal" or row["experiment"] not in with_text
        ]
        release = audit_of_release(name, audits)
        is_refuted = release and release["verdict"] == VIOLATED
        verdict = VIOLATED if is_refuted else worst_verdict(published)
        (proposed if name in info["methods"] else baselines).append(verdict)
    if not proposed + baselines:
        return ""
    unproven = sum(verdict in (NOT_PROVEN, INCONCLUSIVE) for verdict in proposed)
    return (
        "as published, or as resolved where a text is silent, "
        f"{_less(proposed)} of the {number(len(proposed))} methods that the papers propose "
        f"deliver less privacy than claimed, and {_less(baselines)} of their "
        f"{number(len(baselines))} baselines; "
        f"for {number(unproven)} proposed methods, the claim is not proven"
    )


def _less(verdicts: list[str]) -> str:
    return number(sum(verdict in LESS_THAN_CLAIMED for verdict in verdicts))
