"""Verdict on one privacy claim, from accountant, lower bound and audit.

:func:`verdict_of` is the only place where the three are combined. Command line, study pages,
privacy table, report and Python show its result. The first line of this table that applies decides:

==  ============================================================  ===========================
    condition                                                     verdict
==  ============================================================  ===========================
1   nothing is claimed (epsilon infinite)                         no claim
2   the lower bound is above the claim, or the audit's verdict    violated
    is "violated"
3   the audit's verdict is "differs from its declaration"         differs from its declaration
4   the accountant's epsilon is above the claim, or a             not proven
    sensitivity is not proven, or the audit's verdict is "not proven"
5   the audit's verdict is "inconclusive"                         inconclusive
6   a printed argument or constant for the claim is wrong         holds by slack
7   none of these                                                 holds
==  ============================================================  ===========================

An accountant computes epsilon of the releases that an algorithm declares. Its result is valid for
the executed algorithm only if the execution is as declared. Therefore:

* A deterministic finding that weakens privacy (line 3) excludes "holds" for every accountant.
* An audit that was not executed (line 5) neither refutes nor confirms the declaration.
* Without an audit, lines 6 and 7 state what the accountant proves of the declaration.
"""

import math
from collections.abc import Mapping
from typing import Any

from private_consensus.common.errors import require

VIOLATED, NOT_PROVEN, NO_CLAIM = "violated", "not proven", "no claim"
DIFFERS, INCONCLUSIVE = "differs from its declaration", "inconclusive"
HOLDS_BY_SLACK, HOLDS = "holds by slack", "holds"
NOT_CONTRADICTED = "not contradicted"
VERDICTS = (VIOLATED, DIFFERS, NOT_PROVEN, INCONCLUSIVE, NO_CLAIM, HOLDS_BY_SLACK, HOLDS)
"""Verdicts on a claim, the worst first."""
AUDIT_VERDICTS = (VIOLATED, DIFFERS, NOT_PROVEN, INCONCLUSIVE, NOT_CONTRADICTED)
"""Verdicts of an audit, the worst first."""

SLACK = 1e-9
"""Relative rounding error of an epsilon that was calibrated to the claim."""


def verdict_of(
    row: Mapping[str, Any], *, audit: str | None = None, argument_broken: bool = False
) -> str:
    """Return the verdict on the claim of a setting; all epsilons are for one delta and relation.

    Parameters
    ----------
    row : mapping
        Privacy row of the setting: ``epsilon_claimed``, infinite if nothing is claimed;
        ``epsilon_accountant`` of the declared releases; ``epsilon_lower``, None if no lower bound
        is known; and ``proven``, True if every declared sensitivity is proven.
    audit : str or None
        One of :data:`AUDIT_VERDICTS`, at the error level of the table that shows the verdict; None
        if the setting was not audited.
    argument_broken : bool
        True if the printed argument for the claim is known to be wrong.
    """
    is_valid = audit is None or audit in AUDIT_VERDICTS
    require(is_valid, "audit", audit, f"None or one of {', '.join(AUDIT_VERDICTS)}")
    claimed, lower = row["epsilon_claimed"], row["epsilon_lower"]
    limit = claimed * (1 + SLACK)
    if claimed == math.inf:
        return NO_CLAIM
    if audit == VIOLATED or (lower is not None and lower > limit):
        return VIOLATED
    if audit == DIFFERS:
        return DIFFERS
    if audit == NOT_PROVEN or not (row["proven"] and row["epsilon_accountant"] <= limit):
        return NOT_PROVEN
    if audit == INCONCLUSIVE:
        return INCONCLUSIVE
    return HOLDS_BY_SLACK if argument_broken else HOLDS
