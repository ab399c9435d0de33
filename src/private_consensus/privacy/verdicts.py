"""Verdict on one privacy claim, from accountant, lower bound and audit.

:func:`verdict` is the only place where the three are combined. Command line, study pages, privacy
table, report and Python show its result. The first line of this table that applies decides:

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
* An audit that could not test a decisive part (line 5) neither refutes nor confirms the
  declaration. The verdict then names the audit's outcome; it is never "violated" or "not proven".
* A conservative difference (more noise, a smaller effect of a record) is a note of the audit. It
  does not enter the table.
* Without an audit, lines 6 and 7 state what the accountant proves of the declaration. An audit
  with the verdict "no test" has too few runs for the claim and counts as no audit.

:func:`audit_verdict` combines the findings of one audit, by the first line that applies:

==  ============================================================  ===========================
    condition                                                     verdict of the audit
==  ============================================================  ===========================
1   outcomes refute the claim                                     violated
2   effect of a record, noise, messages or releases differ from   differs from its declaration
    the declaration in a way that weakens privacy
3   the declared releases cost more than is claimed               not proven
4   a decisive part was not tested                                inconclusive
5   the runs cannot refute the claim, and neither noise nor       no test
    effect of a record was recovered
6   none of these                                                 not contradicted
==  ============================================================  ===========================
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from private_consensus.common.errors import require

VIOLATED, NOT_PROVEN, NO_CLAIM = "violated", "not proven", "no claim"
DIFFERS, INCONCLUSIVE = "differs from its declaration", "inconclusive"
HOLDS_BY_SLACK, HOLDS = "holds by slack", "holds"
NO_TEST, NOT_CONTRADICTED = "no test", "not contradicted"
VERDICTS = (VIOLATED, DIFFERS, NOT_PROVEN, INCONCLUSIVE, NO_CLAIM, HOLDS_BY_SLACK, HOLDS)
"""Verdicts on a claim, the worst first."""
AUDIT_VERDICTS = (VIOLATED, DIFFERS, NOT_PROVEN, INCONCLUSIVE, NO_TEST, NOT_CONTRADICTED)
"""Verdicts of an audit, the worst first."""
FLAGGED = (VIOLATED, DIFFERS, NOT_PROVEN)
"""Verdicts of an audit that exclude "holds" and "holds by slack"."""

SLACK = 1e-9
"""Relative rounding error of an epsilon that was calibrated to the claim."""


def verdict(
    claimed: float,
    accounted: float,
    *,
    proven: bool,
    lower: float | None,
    argument_broken: bool = False,
    audit: str | None = None,
) -> str:
    """Combine accountant, lower bound and audit; all epsilons for one delta and one relation.

    Parameters
    ----------
    claimed : float
        Infinity if nothing is claimed.
    accounted : float
        Epsilon that the accountant computes for the declared releases; infinity for none.
    proven : bool
        True if every declared sensitivity is proven.
    lower : float or None
        Computed lower bound on epsilon. None: no bound is known.
    argument_broken : bool
        True if the printed argument for the claim is known to be wrong.
    audit : str or None
        One of :data:`AUDIT_VERDICTS`, at the error level of the table that shows the verdict. None:
        the setting was not audited.

    Returns
    -------
    str
        One of :data:`VERDICTS`.

    Raises
    ------
    InvalidInput
        With key ``audit``, for an unknown verdict of an audit.
    """
    is_valid = audit is None or audit in AUDIT_VERDICTS
    require(is_valid, "audit", audit, f"None or one of {', '.join(AUDIT_VERDICTS)}")
    limit = claimed * (1 + SLACK)
    if claimed == math.inf:
        return NO_CLAIM
    if audit == VIOLATED or (lower is not None and lower > limit):
        return VIOLATED
    if audit == DIFFERS:
        return DIFFERS
    if audit == NOT_PROVEN or not (proven and accounted <= limit):
        return NOT_PROVEN
    if audit == INCONCLUSIVE:
        return INCONCLUSIVE
    return HOLDS_BY_SLACK if argument_broken else HOLDS


def verdict_of(
    row: Mapping[str, Any], *, audit: str | None = None, argument_broken: bool = False
) -> str:
    """Apply :func:`verdict` to the privacy row of a setting.

    Parameters
    ----------
    row : mapping
        With ``epsilon_claimed``, ``epsilon_accountant``, ``epsilon_lower`` and ``proven``.
    audit : str or None
        Verdict of the audit of this setting.
    argument_broken : bool
        True if the printed argument for the claim is known to be wrong.

    Returns
    -------
    str
        One of :data:`VERDICTS`.
    """
    return verdict(
        row["epsilon_claimed"],
        row["epsilon_accountant"],
        proven=row["proven"],
        lower=row["epsilon_lower"],
        argument_broken=argument_broken,
        audit=audit,
    )


def audit_verdict(
    *, contradicted: bool, differs: bool, unproven: bool, complete: bool, testable: bool
) -> str:
    """Combine the findings of one audit.

    Parameters
    ----------
    contradicted : bool
        True if outcomes refute the claim, at the error level of the result or of the table.
    differs : bool
        True if a finding weakens privacy: the execution differs from the declaration.
    unproven : bool
        True if the declared releases cost more than is claimed.
    complete : bool
        True if every decisive part was tested.
    testable : bool
        True if the runs can refute the claim, or noise or the effect of a record was recovered.

    Returns
    -------
    str
        One of :data:`AUDIT_VERDICTS`.
    """
    conditions = (contradicted, differs, unproven, not complete, not testable, True)
    return next(word for word, holds in zip(AUDIT_VERDICTS, conditions, strict=True) if holds)


def worst_audit(verdicts: Iterable[str]) -> str | None:
    """Return the worst of several verdicts of audits, or None if there is none."""
    return min(verdicts, key=AUDIT_VERDICTS.index, default=None)
