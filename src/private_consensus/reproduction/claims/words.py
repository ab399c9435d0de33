"""Verdicts on claims and theorems: names, combination, and the scale that decides them."""

from __future__ import annotations

from collections.abc import Sequence

HELD, IN_PART, NOT_HELD = "held", "held in part", "did not hold"
NOT_REFUTED, UNDECIDED = "not refuted", "undecided"
UNTESTED, UNTESTABLE = "not tested", "cannot be tested"

MEANINGS = {
    HELD: "every part of the claim is confirmed",
    IN_PART: "some parts of the claim are confirmed, and some are contradicted",
    NOT_HELD: "a point contradicts the bound, or a part is contradicted and none is confirmed",
    NOT_REFUTED: "a theorem that no computation contradicts, without a proof that was checked",
    UNDECIDED: "the runs do not decide; the reason, or the number of runs that would, is given",
    UNTESTED: "a run could decide, but not the runs of this study; the missing runs are named",
    UNTESTABLE: "no number of runs can decide; the reason is given",
}
"""Meaning of each verdict, in the order in which reports count verdicts."""

VERDICTS = tuple(MEANINGS)

CONFIRMED, CONTRADICTED, TIED, OPEN = "confirmed", "contradicted", "tied", "undecided"
"""States of one statistic of a claim. Tied: exactly equal although the claim states a strict
inequality."""

DECISIVE = "paper"
"""Scale with the numbers of runs, the grids and the data of the papers."""


def combined(verdicts: Sequence[str]) -> str:
    """Return the verdict on a claim from the verdicts on its parts.

    It is "cannot be tested" without parts, "held" if all parts held, "held in part" if some held
    and some did not, "did not hold" if some did not and none held, and otherwise "undecided".
    Parts with one verdict have this verdict.
    """
    if len(set(verdicts)) <= 1:
        return verdicts[0] if verdicts else UNTESTABLE
    if NOT_HELD in verdicts:
        return IN_PART if HELD in verdicts else NOT_HELD
    return UNDECIDED


def may_decide(scale: str) -> bool:
    """Return True if results of a scale may decide a claim.

    A smaller scale has fewer runs and shorter grids. It only tests the workflow; its numbers are
    reported without verdicts.
    """
    return scale == DECISIVE
