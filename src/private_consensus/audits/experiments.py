"""Audits that are experiments of their own: D-ZOA's release and the canaries of Q-DPSGD-1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from ..privacy.audit import CONFIDENCE

# algorithm of the audit: audited algorithm, level, quantity of the bound and of what is claimed,
# and what a correct copy has on its axis.
EXPERIMENTS: Mapping[str, tuple[str, str, str, str, float | None]] = {
    "release_audit": ("d_zoa", "release", "epsilon_bound", "epsilon_claimed", None),
    "canary_audit": ("q_dpsgd_1", "one-run canaries", "bound_gradients", "formula", 1.0),
}


def of_experiments(runs: pl.DataFrame) -> list[dict[str, Any]]:
    """Bounds of the first run of each setting: one run each, so that the confidence is that of one.

    Parameters
    ----------
    runs : DataFrame
        Rows as cells write them, of the algorithms in :data:`EXPERIMENTS`.
    """
    found = []
    for audit, (algorithm, level, bound, claimed, correct) in EXPERIMENTS.items():
        kept = (
            runs.filter(pl.col("algorithm") == audit, pl.col("run") == 0) if runs.height else runs
        )
        axes = [name for name in ("epsilon", "delta", "share") if name in kept.columns]
        keys = ["variant", *axes]
        for _, part in kept.group_by(keys, maintain_order=True) if kept.height else ():
            numbers = dict(zip(part["quantity"], part["value"], strict=True))
            row = part.row(0, named=True)
            share = row.get("share")
            copy = "correct" if share in (None, correct) else f"{share:g} of the noise"
            found.append(
                {
                    "experiment": "",
                    "algorithm": audit,
                    "variant": row["variant"],
                    "setting": _setting(row, axes),
                    "level": f"{level} of {algorithm}", "copy": copy,
                    "delta": float(row.get("delta") or 0.0),
                    "claimed": float(numbers[claimed]), "bound": float(numbers[bound]),
                    "ceiling": float("nan"), "runs": 1, "confidence": CONFIDENCE,
                    "flagged": bool(numbers[bound] > numbers[claimed]),
                }
            )  # fmt: skip
    return found


def _setting(row: Mapping[str, Any], axes: list[str]) -> str:
    values = ", ".join(f"{name} {row[name]:g}" for name in axes if row[name] is not None)
    return f"{row['variant']}, {values}" if values else row["variant"]
