"""The verdict on one claim of privacy, from what is known of it from above and from below.

``violated``
    no guarantee as small as the claim exists: a lower bound on epsilon, computed or statistical,
    lies above it;
``not proven``
    neither: what can be proven is more than is claimed, or nothing can, and no lower bound says
    that the claim is false;
``not private``
    nothing is claimed;
``holds by slack``
    at most what is claimed is proven, although an argument or a constant is wrong as printed;
``holds``
    at most what is claimed is proven.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

VIOLATED, NOT_PROVEN, NOT_PRIVATE = "violated", "not proven", "not private"
HOLDS_BY_SLACK, HOLDS = "holds by slack", "holds"
VERDICTS = (VIOLATED, NOT_PROVEN, NOT_PRIVATE, HOLDS_BY_SLACK, HOLDS)
"""The worst first."""

SLACK = 1e-9
"""Relative, what rounding may add to an epsilon that was calibrated to be the claim."""


def verdict(
    claimed: float,
    accounted: float,
    *,
    proven: bool,
    lower: float | None,
    argument_broken: bool = False,
) -> str:
    """One of :data:`VERDICTS`; all epsilons for one delta and one neighbouring relation.

    Parameters
    ----------
    claimed : float
        Infinity where nothing is claimed.
    accounted : float
        What an accountant grants; infinity for nothing.
    proven : bool
        Whether all that the accountant was told is proven.
    lower : float or None
        Below this there is no guarantee. None: no lower bound is known.
    argument_broken : bool
        Whether the argument for the claim, as printed, is known to be wrong.
    """
    if claimed == math.inf:
        return NOT_PRIVATE
    most = claimed * (1 + SLACK)
    if lower is not None and lower > most:
        return VIOLATED
    if not (proven and accounted <= most):
        return NOT_PROVEN
    return HOLDS_BY_SLACK if argument_broken else HOLDS


def verdict_of(
    row: Mapping[str, Any], *, audited: float | None = None, argument_broken: bool = False
) -> str:
    """:func:`verdict` on a privacy row of a setting.

    Parameters
    ----------
    row : mapping
        With ``epsilon_claimed``, ``epsilon_accountant``, ``epsilon_lower`` and ``proven``.
    audited : float or None
        A lower bound by an audit of this setting.
    """
    return verdict(
        row["epsilon_claimed"],
        row["epsilon_accountant"],
        proven=row["proven"],
        lower=row["epsilon_lower"] if audited is None else max(row["epsilon_lower"], audited),
        argument_broken=argument_broken,
    )
