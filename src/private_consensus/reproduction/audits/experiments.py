"""Audits that are experiments of their own: D-ZOA's release and the canaries of Q-DPSGD-1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl


class AuditExperiment(NamedTuple):
    """Interpretation of the rows of an audit that is an experiment.

    Parameters
    ----------
    audited : str
        Name of the audited algorithm.
    level : str
        Part of the algorithm that is audited.
    bound, claimed, p_value : str
        Names of the quantities with these values.
    correct : float
        Value of the axis ``share`` of a correct copy.
    """

    audited: str
    level: str
    bound: str
    claimed: str
    p_value: str
    correct: float | None


EXPERIMENTS: Mapping[str, AuditExperiment] = {
    "release_audit": AuditExperiment(
        "d_zoa", "release", "epsilon_bound", "epsilon_claimed", "bound_p_value", None
    ),
    "canary_audit": AuditExperiment(
        "q_dpsgd_1", "one-run canaries", "bound_gradients", "formula", "p_value_gradients", 1.0
    ),
}


def of_experiments(runs: pl.DataFrame) -> list[dict[str, Any]]:
    """Bounds of the first run of each setting: one run each, so that the confidence is that of one.

    Parameters
    ----------
    runs : DataFrame
        Rows as cells write them, of the algorithms in :data:`EXPERIMENTS`.
    """
    found = []
    for audit, how in EXPERIMENTS.items():
        kept = (
            runs.filter(pl.col("algorithm") == audit, pl.col("run") == 0) if runs.height else runs
        )
        axes = [name for name in ("epsilon", "delta", "share") if name in kept.columns]
        keys = ["variant", *axes]
        for _, part in kept.group_by(keys, maintain_order=True) if kept.height else ():
            numbers = dict(zip(part["quantity"], part["value"], strict=True))
            row = part.row(0, named=True)
            share = row.get("share")
            copy = "correct" if share in (None, how.correct) else f"{share:g} of the noise"
            found.append(
                {
                    "experiment": "",
                    "algorithm": audit,
                    "variant": row["variant"],
                    "setting": _setting(row, axes),
                    "level": f"{how.level} of {how.audited}", "copy": copy,
                    "delta": float(numbers["bound_delta"]),
                    "claimed": float(numbers[how.claimed]), "bound": float(numbers[how.bound]),
                    "ceiling": float("nan"), "runs": 1,
                    "confidence": float(numbers["bound_confidence"]),
                    "p_value": float(numbers[how.p_value]),
                    "flagged": bool(numbers[how.bound] > numbers[how.claimed]),
                }
            )  # fmt: skip
    return found


def _setting(row: Mapping[str, Any], axes: list[str]) -> str:
    values = ", ".join(f"{name} {row[name]:g}" for name in axes if row[name] is not None)
    return f"{row['variant']}, {values}" if values else row["variant"]
