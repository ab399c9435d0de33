"""Audits of settings of experiments, on neighbouring data sets that an attacker chooses.

An audit runs the algorithm of a setting with its noise and number of iterations, and tests its
claim. The bound holds for the setting, since a guarantee holds for all data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from private_consensus.audits.audit import audit
from private_consensus.audits.examples import examples
from private_consensus.audits.neighbours import attacks, one_graph
from private_consensus.audits.probing import strongest
from private_consensus.audits.result import CONTRADICTED, AuditResult
from private_consensus.common.errors import require
from private_consensus.privacy import DIFFERS, NOT_PROVEN, audit_verdict
from private_consensus.privacy.audit.families import holm
from private_consensus.privacy.verdicts import FLAGGED, NOT_CONTRADICTED

from ..experiments.cells import calibrated_cell, worst_case
from .configuration import selected_settings

LEVEL = "transcript of this setting"
NOISE = "noise of the "
SCHEMA = {
    **dict.fromkeys(("experiment", "algorithm", "variant", "setting", "level", "copy"), pl.String),
    **dict.fromkeys(("delta", "claimed", "bound", "ceiling"), pl.Float64),
    "runs": pl.Int64, "confidence": pl.Float64, "p_value": pl.Float64, "sensitivity": pl.Float64,
    "flagged": pl.Boolean,
    **dict.fromkeys(("verdict", "findings", "refutation", "notes", "untested"), pl.String),
    "differs": pl.Boolean, "unproven": pl.Boolean, "testable": pl.Boolean,
}  # fmt: skip
"""Columns of the audits of settings. ``verdict``: verdict of the audit. ``findings``: texts of the
findings that weaken privacy, without ``refutation``, the text of the outcomes that refute the
claim. ``notes``: texts of the other findings. ``untested``: decisive parts that were not tested."""


def audit_cell(
    cell: Mapping[str, Any], entries: Iterable[Mapping[str, Any]], prepared: Mapping[str, Any],
    runs: int, confidence: float, max_count: int | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Audit the settings of a cell that are selected and that claim a finite epsilon.

    There are at most ``max_count`` settings, each with ``runs`` runs on each of two data sets.
    """
    rows = []
    for spec in selected_settings(cell, entries, max_count):
        calibration = calibrated_cell(cell, [spec], prepared)
        problem, (setting,) = calibration.problem, calibration.settings
        worst = worst_case(calibration, 0)
        noisy, network = worst.algorithm, one_graph(worst.network)
        instance = problem, network, setting.budget, setting.horizon
        statement = noisy.statements(setting.budget, problem, network, setting.horizon)[0]
        if not math.isfinite(statement[1]):
            continue
        candidates = attacks(problem, network, noisy, nearby=True)
        result = audit(
            setting.algorithm, *instance, runs=runs, confidence=confidence,
            delta=setting.budget.delta, calibrated=noisy,
            attack=strongest(noisy, candidates, setting.horizon),
        )  # fmt: skip
        rows += as_rows(
            result, LEVEL, cell["experiment"], cell["algorithm"], spec["variant"],
            json.dumps(spec["columns"], sort_keys=True),
        )  # fmt: skip
    return rows


def audit_examples(runs: int, confidence: float) -> list[dict[str, Any]]:
    """Audit every private algorithm on its small example, with ``runs`` runs on either data set."""
    rows = []
    for example in examples():
        result = audit(*example.world, runs=runs, confidence=confidence, delta=example.budget.delta)
        rows += as_rows(result, "transcript", "", example.name, "", "representative")
    return rows


def decided(rows: Sequence[Mapping[str, Any]], level: float) -> list[dict[str, Any]]:
    """Decide the verdict of each audit at the error level of the whole table.

    All findings of one audit are wrong with probability at most 1 - ``confidence`` of this audit.
    The remainder of ``level`` is for the claims, by Holm's method. A wrong verdict anywhere in the
    table has probability at most ``level``.

    Parameters
    ----------
    rows : sequence of mappings
        Rows of :func:`as_rows` or :func:`.experiments.of_experiments`.
    level : float
        Error level of the table, in (0, 1).

    Returns
    -------
    list of dict
        The rows with ``adjusted`` (Holm's p-value), ``contradicted``, ``verdict`` and ``flagged``.
        A claim is contradicted if and only if ``verdict`` is "violated". ``flagged`` is True for
        the verdicts "violated", "differs from its declaration" and "not proven".

    Raises
    ------
    InvalidInput
        With key ``audits.confidence``, if the findings alone use the whole level.
    """
    claims = [row for row in rows if not row["level"].startswith(NOISE)]
    noise = [row for row in rows if row["level"].startswith(NOISE)]
    remainder = level - math.fsum(
        1 - row["confidence"] for row in claims if row.get("testable") is not None
    )
    min_confidence = min((row["confidence"] for row in claims), default=1.0)
    expected = f"above 1 - {level:g}/{len(claims)}, since all audits share the level {level:g}"
    require(remainder > 0, "audits.confidence", min_confidence, expected)
    return [
        *map(_decided, holm(claims, remainder)),
        *({**row, "adjusted": float("nan"), "contradicted": False} for row in noise),
    ]


def _decided(row: Mapping[str, Any]) -> dict[str, Any]:
    """Add verdict and texts to an audit, given ``contradicted`` at the level of the table."""
    contradicted, refutation = row["contradicted"], row.get("refutation") or ""
    outcome = audit_verdict(
        contradicted=contradicted,
        differs=bool(row.get("differs")),
        unproven=bool(row.get("unproven")),
        complete=not row.get("untested"),
        testable=row.get("testable") is not False,
    )
    if contradicted and not refutation:
        claimed, adjusted = row["claimed"], row["adjusted"]
        refutation = f"outcomes refute epsilon {claimed:.4g} (adjusted p {adjusted:.2g})"
    if refutation and not contradicted:
        refutation = f"{refutation}, not at the error level of the table"
    findings = [refutation if contradicted else "", row.get("findings") or ""]
    notes = ["" if contradicted else refutation, row.get("notes") or ""]
    return {
        **row, "verdict": outcome, "flagged": outcome in FLAGGED,
        "refutation": refutation if contradicted else "",
        "findings": _joined(findings), "notes": _joined(notes),
        "untested": row.get("untested") or "",
    }  # fmt: skip


def _joined(texts: Iterable[str]) -> str:
    """Join the texts that are not empty."""
    return "; ".join(filter(None, texts))


def as_rows(
    result: AuditResult, level: str, experiment: str, algorithm: str, variant: str, setting: str
) -> list[dict[str, Any]]:
    """Return an audit as rows of the table: one for the claim, and one per noise site.

    ``level`` is the audited part, such as :data:`LEVEL`. ``setting`` has the values on the axes as
    JSON.
    """
    labels = {
        "experiment": experiment, "algorithm": algorithm, "variant": variant, "setting": setting,
        "copy": "correct", "runs": result.runs, "confidence": result.confidence,
    }  # fmt: skip
    kinds = {finding.kind for finding in result.findings}
    texts: dict[str, list[str]] = {"findings": [], "refutation": [], "notes": []}
    for finding in result.findings:
        weakening = "refutation" if finding.kind == CONTRADICTED else "findings"
        texts[weakening if finding.weakens_privacy else "notes"].append(finding.text)
    untested = [site for site in result.coverage.untested if site.decisive]
    bound = {
        **labels, "level": level, "delta": result.delta,
        "claimed": result.claimed, "bound": result.lower, "ceiling": result.ceiling,
        "p_value": result.pvalue, "sensitivity": result.sensitivity,
        "verdict": result.verdict, "flagged": result.flagged,
        **{key: _joined(lines) for key, lines in texts.items()},
        "untested": _joined(map(str, untested)),
        "differs": DIFFERS in kinds, "unproven": NOT_PROVEN in kinds, "testable": result.testable,
    }  # fmt: skip
    noise = [
        {
            **labels, "level": NOISE + site.site, "delta": 0.0, "claimed": 1.0, "bound": site.low,
            "ceiling": site.high, "p_value": 1.0, "sensitivity": float("nan"),
            "flagged": bool(site.findings), "findings": "; ".join(site.findings),
            "verdict": DIFFERS if site.findings else NOT_CONTRADICTED,
            **dict.fromkeys(("refutation", "notes", "untested"), ""),
            "differs": bool(site.findings), "unproven": False, "testable": True,
        }
        for site in result.noise
    ]  # fmt: skip
    return [bound, *noise]
