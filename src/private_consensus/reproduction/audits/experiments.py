"""Audits that are separate experiments: the release of D-ZOA, the canaries of Q-DPSGD-1."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl


class AuditExperiment(NamedTuple):
    """Audited part of an algorithm, and the quantities with bound, claimed epsilon and p-value."""

    level: str
    bound: str
    claimed: str
    p_value: str


EXPERIMENTS: Mapping[str, AuditExperiment] = {
    "release_audit": AuditExperiment(
        "release of d_zoa", "epsilon_bound", "epsilon_claimed", "bound_p_value"
    ),
    "canary_audit": AuditExperiment(
        "one-run canaries of q_dpsgd_1", "bound_gradients", "formula", "p_value_gradients"
    ),
}


def of_experiments(runs: pl.DataFrame) -> list[dict[str, Any]]:
    """Return one row of the table of audits per setting of :data:`EXPERIMENTS`.

    It has the bound of the first run, because a single run has the stated confidence.
    """
    rows = []
    for audit, roles in EXPERIMENTS.items() if runs.height else ():
        first_runs = runs.filter(pl.col("algorithm") == audit, pl.col("run") == 0)
        axes = [name for name in ("epsilon", "delta", "share") if name in runs.columns]
        for _, group in first_runs.group_by(["variant", *axes], maintain_order=True):
            numbers = dict(zip(group["quantity"], group["value"], strict=True))
            row = group.row(0, named=True)
            share = row.get("share")
            rows.append({
                "experiment": "", "algorithm": audit, "variant": row["variant"],
                "setting": _setting(row, axes), "level": roles.level,
                "copy": "correct" if share in (None, 1.0) else f"{share:g} of the noise",
                "delta": float(numbers["bound_delta"]),
                "claimed": float(numbers[roles.claimed]), "bound": float(numbers[roles.bound]),
                "confidence": float(numbers["bound_confidence"]),
                "p_value": float(numbers[roles.p_value]),
            })  # fmt: skip
    return rows


def _setting(row: Mapping[str, Any], axes: list[str]) -> str:
    """Return the variant and the values of the axes as text."""
    values = ", ".join(f"{name} {row[name]:g}" for name in axes if row[name] is not None)
    return f"{row['variant']}, {values}" if values else row["variant"]
