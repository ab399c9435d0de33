"""Audits of settings that figures show: the very algorithm, noise, iterations and claim of a cell,
on neighbouring data that an attacker chose.

The bound holds for the setting, since a guarantee is one for all data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from ..experiments.cells import calibrated_cell, worst_case
from ..privacy.audit.families import holm
from .audit import audit
from .configuration import selected_settings
from .examples import examples
from .neighbours import attacks, one_graph
from .probing import strongest
from .result import AuditResult

LEVEL = "transcript of this setting"
NOISE = "noise of the "
SCHEMA = {
    **dict.fromkeys(("experiment", "algorithm", "variant", "setting", "level", "copy"), pl.String),
    **dict.fromkeys(("delta", "claimed", "bound", "ceiling"), pl.Float64),
    "runs": pl.Int64, "confidence": pl.Float64, "p_value": pl.Float64, "sensitivity": pl.Float64,
    "flagged": pl.Boolean, "findings": pl.String,
}  # fmt: skip


def audit_cell(
    cell: Mapping[str, Any], entries: Iterable[Mapping[str, Any]], prepared: Mapping[str, Any],
    runs: int, confidence: float, most: int | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """A row for each setting that is named and claims something, at ``confidence`` each; of the
    first ``most`` of them."""
    rows = []
    for spec in selected_settings(cell, entries, most):
        calibration = calibrated_cell(cell, [spec], prepared)
        problem, (setting,) = calibration.problem, calibration.settings
        worst = worst_case(calibration, 0)
        noisy, network = worst.algorithm, one_graph(worst.network)
        world = problem, network, setting.budget, setting.horizon
        statement = noisy.statements(setting.budget, problem, network, setting.horizon)[0]
        if not math.isfinite(statement[1]):
            continue
        candidates = attacks(problem, network, noisy.largest_change, nearby=True)
        found = audit(
            setting.algorithm, *world, runs=runs, confidence=confidence,
            delta=setting.budget.delta, calibrated=noisy,
            attack=strongest(noisy, candidates, setting.horizon),
        )  # fmt: skip
        rows += as_rows(
            found, LEVEL, cell["experiment"], cell["algorithm"], spec["variant"],
            json.dumps(spec["columns"], sort_keys=True),
        )  # fmt: skip
    return rows


def audit_examples(runs: int, confidence: float) -> list[dict[str, Any]]:
    """Rows of every private algorithm on its small example."""
    rows = []
    for example in examples():
        found = audit(*example.world, runs=runs, confidence=confidence, delta=example.budget.delta)
        rows += as_rows(found, "transcript", "", example.name, "", "representative")
    return rows


def decided(rows: list[dict[str, Any]], level: float) -> list[dict[str, Any]]:
    """Rows whose claims are flagged where all p-values together contradict them.

    Half of ``level`` is for the claims, by Holm's method, half for the tests of noise, whose own
    confidence shares it.
    """
    claims = [row for row in rows if not row["level"].startswith(NOISE)]
    others = [row for row in rows if row["level"].startswith(NOISE)]
    return [
        *({**row, "flagged": row["contradicted"]} for row in holm(claims, level / 2)),
        *({**row, "adjusted": float("nan"), "contradicted": False} for row in others),
    ]


def as_rows(
    found: AuditResult, level: str, experiment: str, algorithm: str, variant: str, setting: str
) -> list[dict[str, Any]]:
    """An audit as rows of the table: its bound, and the noise at each declared site."""
    where = {
        "experiment": experiment, "algorithm": algorithm, "variant": variant, "setting": setting,
        "copy": "correct", "runs": found.runs, "confidence": found.confidence,
    }  # fmt: skip
    bound = {
        **where, "level": level, "delta": found.delta,
        "claimed": found.claimed, "bound": found.lower, "ceiling": found.ceiling,
        "p_value": found.pvalue, "sensitivity": found.sensitivity, "flagged": found.contradicted,
        "findings": "; ".join(finding.text for finding in found.findings),
    }  # fmt: skip
    noise = [
        {
            **where, "level": NOISE + one.site, "delta": 0.0, "claimed": 1.0, "bound": one.low,
            "ceiling": one.high, "p_value": 1.0, "sensitivity": float("nan"),
            "flagged": bool(one.findings), "findings": "; ".join(one.findings),
        }
        for one in found.noise
    ]  # fmt: skip
    return [bound, *noise]
