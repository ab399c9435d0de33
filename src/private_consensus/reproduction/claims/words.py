"""Define the names of verdicts, on claims and on theorems, and combine verdicts on parts."""

from __future__ import annotations

from collections.abc import Sequence

HELD, IN_PART, NOT_HELD = "held", "held in part", "did not hold"
UNDECIDED, UNTESTABLE = "undecided", "cannot be tested"

MEANINGS = {
    HELD: "every part of the claim is confirmed",
    IN_PART: "parts of the claim differ: some are confirmed, some are contradicted",
    NOT_HELD: "contradicted: a bound by one point, a compound claim in a part while none is "
    "confirmed",
    UNDECIDED: "too few runs, or neither proven nor refuted; the number of runs that would decide "
    "stands beside it",
    UNTESTABLE: "no number of runs decides, for the reason that stands beside it",
}
"""Each verdict with what it means, in the order in which verdicts are counted."""

VERDICTS = tuple(MEANINGS)

CONFIRMED, CONTRADICTED, TIED, OPEN = "confirmed", "contradicted", "tied", "undecided"
"""States of an element. Tied: exactly equal where the claim says smaller or larger."""


def combined(verdicts: Sequence[str]) -> str:
    """Combine the verdicts on the parts of a claim.

    No parts: cannot be tested. All held: held. Some held, some not: held in part. None held, some
    not: did not hold. Otherwise undecided.
    """
    if not verdicts:
        return UNTESTABLE
    if all(verdict == HELD for verdict in verdicts):
        return HELD
    if NOT_HELD in verdicts:
        return IN_PART if HELD in verdicts else NOT_HELD
    return UNDECIDED
