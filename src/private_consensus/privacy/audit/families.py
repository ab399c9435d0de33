"""Simultaneous verdicts on many claims, with a family-wise error of at most alpha.

Each claim has a p-value for the hypothesis "this epsilon is true", from the stored rates of all its
bounds. Holm's method contradicts the i-th smallest of m while it is at most alpha/(m - i + 1),
which keeps the family-wise level under any dependence (Holm, "A simple sequentially rejective
multiple test procedure", Scandinavian Journal of Statistics 1979). A bound that was computed and
not sampled is not wrong by chance: it uses none of the level and is no member of the family.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from private_consensus.common.errors import require
from private_consensus.common.multiplicity import holm as adjusted_p_values

from .bounds import Bound


def claim_p_value(bounds: Iterable[Bound], claim: Mapping[str, Any]) -> float:
    """Return the p-value of one claim from all bounds of an audit.

    The error fractions of the bounds, which sum to at most 1, are taken into account. The claim is
    ``{"epsilon": value}``, ``{"mu": value}`` or ``{"profile": Profile}``.
    """
    min_p_value = 1.0
    # The p-value is computed only if its lower bound is below the smallest so far.
    for p_value_bound, bound in sorted(
        ((bound.p_value_lower_bound(**claim), bound) for bound in bounds), key=lambda pair: pair[0]
    ):
        if p_value_bound < min_p_value:
            min_p_value = min(min_p_value, bound.p_value(**claim))
    return min_p_value


def holm(rows: Sequence[Mapping[str, Any]], level: float) -> list[dict[str, Any]]:
    """Return the claims that a table contradicts, with a family-wise error of at most ``level``.

    Parameters
    ----------
    rows : sequence of mappings
        With ``p_value`` of the claim; NaN or None if the bound was computed, and then
        ``bound`` and ``claimed``.
    level : float
        Family-wise error level, in (0, 1).

    Returns
    -------
    list of dict
        The rows with ``adjusted``, the smallest family-wise level at which the claim is
        contradicted (0 or 1 if computed), and ``contradicted``.
    """
    require(0 < level < 1, "level", level, "a number in (0, 1)")
    p_values = np.array([np.nan if row["p_value"] is None else row["p_value"] for row in rows])
    sampled = ~np.isnan(p_values.astype(float))
    adjusted = np.array([float(row.get("bound", 0) <= row.get("claimed", 0)) for row in rows])
    adjusted[sampled] = adjusted_p_values(p_values[sampled].astype(float), level)[0]
    return [
        {**row, "adjusted": float(p), "contradicted": bool(p <= level)}
        for row, p in zip(rows, adjusted, strict=True)
    ]
