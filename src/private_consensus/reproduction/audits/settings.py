"""Audits of small examples and of settings of experiments, as rows of one table."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from private_consensus.audits.auditing import audit, audit_calibrated
from private_consensus.audits.result import NOT_CONTRADICTED, AuditResult
from private_consensus.common.multiplicity import holm
from private_consensus.core.claims import claims_of
from private_consensus.privacy import account
from private_consensus.privacy.verdicts import VIOLATED

from ..results.cells import calibrated_cell, worst_case

LEVEL, EXAMPLE = "this setting", "small example"
SCHEMA = {
    **dict.fromkeys(("experiment", "algorithm", "variant", "setting", "level", "copy"), pl.String),
    **dict.fromkeys(("verdict", "reason", "reached", "graph"), pl.String),
    **dict.fromkeys(("delta", "claimed", "declared", "bound", "confidence"), pl.Float64),
    **dict.fromkeys(("p_value", "adjusted"), pl.Float64),
    **dict.fromkeys(("pairs", "agents", "iterations"), pl.Int64),
    "flagged": pl.Boolean,
}  # fmt: skip
"""Columns of the table of audits. ``declared``: epsilon that the accountant computes for the
declared mechanisms. ``reached``: largest ratio of cost and declared loss per mechanism. Rows of
statistical audits have ``bound``, ``confidence`` and ``p_value`` instead."""


def audit_cell(
    cell: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], prepared: Mapping[str, Any],
    pairs: int, horizon: int, max_count: int | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Audit the settings of a cell that are selected and that claim a finite epsilon.

    There are at most ``max_count`` settings, each with ``pairs`` pairs of data sets and at most
    ``horizon`` iterations. The noise is that of the whole setting.
    """
    limits = [e["pairs"] for e in entries if "pairs" in e and e["algorithm"] == cell["algorithm"]]
    pairs, rows = min([pairs, *limits]), []
    for spec in selected_settings(cell, entries, max_count):
        calibration = calibrated_cell(cell, [spec], prepared)
        problem, (setting,) = calibration.problem, calibration.settings
        worst = worst_case(calibration, 0)
        noisy, network = worst.algorithm, worst.network.of_run(0)
        arguments, delta = (problem, network, setting.horizon), setting.budget.delta
        ((_, claimed), *_) = claims_of(noisy, setting.budget, *arguments)
        if not math.isfinite(claimed):
            continue
        few = min(setting.horizon, horizon)
        result = audit_calibrated(noisy, problem, network, few, delta, pairs=pairs)
        rows.append({
            "experiment": cell["experiment"], "algorithm": cell["algorithm"],
            "variant": spec["variant"], "setting": json.dumps(spec["columns"], sort_keys=True),
            "level": LEVEL, "claimed": float(claimed),
            "declared": account(noisy.releases(*arguments), delta).epsilon, **_numbers(result),
        })  # fmt: skip
    return rows


def selected_settings(
    cell: Mapping[str, Any], entries: Iterable[Mapping[str, Any]], max_count: int | None = None
) -> list[dict[str, Any]]:
    """Return the first ``max_count`` settings of a cell that at least one entry selects."""
    selected = [spec for spec in cell["settings"] if any(_matches(spec, cell, e) for e in entries)]
    return selected[:max_count]


def _matches(spec: Mapping[str, Any], cell: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Return True if an entry selects a setting of a cell."""
    same_cell = (cell["experiment"], cell["algorithm"]) == (entry["experiment"], entry["algorithm"])
    same_variant = entry.get("variant") in (None, spec["variant"])
    axes = entry.get("where", {}).items()
    same_point = all(spec["columns"].get(axis) == value for axis, value in axes)
    return same_cell and same_variant and same_point


def audit_examples(examples: Iterable[Any], pairs: int) -> list[dict[str, Any]]:
    """Audit algorithms on small examples, those of :mod:`private_consensus.audits.examples`."""
    rows = []
    for example in examples:
        result = audit(*example.setting, pairs=pairs)
        rows.append({
            "experiment": "", "algorithm": example.name, "variant": "", "setting": "",
            "level": EXAMPLE, "claimed": example.budget.epsilon, "declared": result.epsilon,
            **_numbers(result),
        })  # fmt: skip
    return rows


def _numbers(result: AuditResult) -> dict[str, Any]:
    reached = "; ".join(f"{name} {ratio:.3g}" for name, ratio in result.reached.items())
    names = ("delta", "verdict", "reason", "graph", "pairs", "agents", "iterations")
    return {
        **{name: getattr(result, name) for name in names},
        "copy": "correct", "reached": reached, "flagged": result.finding,
    }  # fmt: skip


def decided(rows: Sequence[Mapping[str, Any]], level: float) -> list[dict[str, Any]]:
    """Decide the statistical audits at the error level of the whole table, by Holm's method.

    ``level`` is the probability that any verdict of the table is wrong by chance. Only verdicts of
    statistical audits, the rows with ``p_value``, are subject to chance. They get ``adjusted``
    (Holm's p-value), ``verdict``, which is "violated" if the claim is contradicted, ``reason`` and
    ``flagged``.
    """
    rows = [{**row} for row in rows]
    sampled = [row for row in rows if row.get("p_value") is not None]
    p_values = holm([row["p_value"] for row in sampled], level)[0].tolist()
    for row, p in zip(sampled, p_values, strict=True):
        text = f"outcomes refute epsilon {row['claimed']:.4g} (adjusted p {p:.2g})"
        verdict, reason = (VIOLATED, text) if p <= level else (NOT_CONTRADICTED, "")
        row |= {"adjusted": p, "flagged": p <= level, "verdict": verdict, "reason": reason}
    return rows
