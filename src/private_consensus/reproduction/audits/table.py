"""Verdict on the privacy of each setting, from accountant, lower bound, audits and errata.

The verdict is that of :func:`private_consensus.privacy.verdicts.verdict_of`. The audit's verdict
that enters it was decided at the error level of the table of audits (:func:`.settings.decided`).
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from private_consensus.audits.result import LEAKS, NO_GUARANTEE, NOT_EXECUTED, REFUSED, UNDERSTATED
from private_consensus.privacy.verdicts import (
    AUDIT_VERDICTS,
    DIFFERS,
    INCONCLUSIVE,
    NO_CLAIM,
    NOT_PROVEN,
    VIOLATED,
    verdict_of,
)

from ..statements.table import Erratum

NOT_AUDITED = "not audited"
MEANING = {
    LEAKS: DIFFERS, UNDERSTATED: DIFFERS, NO_GUARANTEE: NOT_PROVEN,
    REFUSED: INCONCLUSIVE, NOT_EXECUTED: INCONCLUSIVE,
}  # fmt: skip
"""Verdict of an audit to its meaning for a claim, if the words differ."""

Row = Mapping[str, Any]


class AuditOutcome(NamedTuple):
    """Result of the audits for one setting.

    ``verdict`` is None without an audit. ``bound`` is a lower bound on epsilon, valid at the
    confidence of its own audit, and at most the claim unless the table of audits contradicts the
    claim. ``description`` names the audit that gave the bound.
    """

    verdict: str | None = None
    bound: float | None = None
    description: str = NOT_AUDITED
    findings: str = ""


def judged(
    privacy: pl.DataFrame, errata: Mapping[str, Erratum], audits: Iterable[Row]
) -> pl.DataFrame:
    """Return the privacy rows with verdict, audit and errata.

    An audit of a setting decides for this setting. A setting without an audit inherits the verdict
    "differs from its declaration" from an audit of another setting of the same algorithm, or of its
    small example: the code is the same. ``proven`` is False if an audit refutes the releases that
    the accountant used.

    Parameters
    ----------
    privacy : DataFrame
        Rows of :func:`~private_consensus.reproduction.results.cells.privacy_rows`.
    audits : iterable of mappings
        Rows of :func:`.settings.decided`. ``variant`` is empty for the small example of an
        algorithm. ``experiment`` is empty for audits that are experiments of their own.
    """
    claims = [{**row, "verdict": MEANING.get(row["verdict"], row["verdict"])} for row in audits]
    return pl.DataFrame(
        [{**row, **_judgement(row, errata, claims)} for row in privacy.to_dicts()],
        infer_schema_length=None,
    ) if privacy.height else privacy  # fmt: skip


def _judgement(row: Row, errata: Mapping[str, Erratum], audits: Sequence[Row]) -> dict[str, Any]:
    """Return verdict, audit and errata of one privacy row."""
    names = {row["algorithm"], f"{row['algorithm']}.{row['variant']}"}
    entries = {number: entry for number, entry in errata.items() if names & {*entry.affects}}
    outcome = _audit_outcome(row, audits)
    is_broken = any(e.severity in {"breaks", "argument"} for e in entries.values())
    stated = verdict_of(row, audit=outcome.verdict, argument_broken=is_broken)
    if stated == NO_CLAIM:
        outcome = AuditOutcome()
    refuted = outcome.verdict == DIFFERS or (
        outcome.verdict == VIOLATED and row["epsilon_accountant"] <= row["epsilon_claimed"]
    )
    return {
        "proven": row["proven"] and not refuted,
        "verdict": stated,
        "errata": " ".join(entries),
        "epsilon_empirical": outcome.bound,
        "audit": outcome.description,
        "audit_verdict": outcome.verdict or NOT_AUDITED,
        "audit_findings": outcome.findings,
    }


def _audit_outcome(row: Row, audits: Sequence[Row]) -> AuditOutcome:
    """Return verdict and bound of the audits of a setting, or the verdict that it inherits."""
    matching = _matching(row, audits)
    if not matching:
        return _inherited(row, audits)
    best = max(matching, key=lambda audit: audit.get("bound") or 0.0)
    outcome = min((audit["verdict"] for audit in matching), key=AUDIT_VERDICTS.index)
    limit = math.inf if outcome == VIOLATED else row["epsilon_claimed"]
    return AuditOutcome(
        outcome,
        None if best.get("bound") is None else min(float(best["bound"]), limit),
        f"{best['level']}, delta {best['delta']:g}, claimed {best['claimed']:.3g}",
        "; ".join(filter(None, (audit["reason"] for audit in matching))),
    )


def _inherited(row: Row, audits: Sequence[Row]) -> AuditOutcome:
    """Return the verdict of an audit of the same algorithm with other parameters."""
    for audit in audits:
        if audit["algorithm"] == row["algorithm"] and audit["verdict"] == DIFFERS:
            labels = (audit["experiment"], audit["variant"], audit["setting"])
            label = ", ".join(filter(None, labels))
            description, findings = f"another setting: {label}", f"{label}: {audit['reason']}"
            return AuditOutcome(DIFFERS, None, description, findings)
    return AuditOutcome()


def _matching(row: Row, audits: Sequence[Row]) -> list[Row]:
    """Return the audits of a setting: with its variant, delta, claim and point."""
    return [
        audit
        for audit in audits
        if (audit["algorithm"], audit["variant"]) == (row["algorithm"], row["variant"])
        and math.isclose(audit["delta"], row["delta"])
        and math.isclose(audit["claimed"], row["epsilon_claimed"], rel_tol=1e-6)
        and audit["experiment"] in ("", row["experiment"])
        and (not audit["experiment"] or json.loads(audit["setting"]).items() <= row.items())
    ]
