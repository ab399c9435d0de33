"""Words of the tables of claims: verdicts and their combination, measures and axes."""

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

CONFIRMED, CONTRADICTED, TIED, OPEN = "confirmed", "contradicted", "tied", "undecided"
"""States of one statistic of a claim. Tied: exactly equal although the claim states a strict
inequality."""


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
    """Return True for the scale with the numbers of runs, the grids and the data of the papers.

    A smaller scale only tests the workflow; its numbers are reported without verdicts.
    """
    return scale == "paper"


MEASURES = {
    "averaged.excess_loss": "excess loss of the mean of the iterates",
    "bias_ratio.value": "distance of the mean output to the exact update divided by sigma",
    "bound.value": "bound of the paper",
    "consensus.normalised_error": "normalised error of the mean of the released values",
    "deviation_ratio.value": "standard deviation of the outputs divided by sigma",
    "disagreement.value": "expected squared distance of the agents to their mean",
    "epsilon_bound.value": "lower bound on epsilon",
    "epsilon_claimed.value": "claimed epsilon",
    "exact.value": "average privacy loss relative to the worst case",
    "expected.value": "expected normalised error of the mean of the released values",
    "gap.value": "excess objective",
    "internal.normalised_error": "normalised error of the mean of the estimates before their noise",
    "largest_factor.value": "largest factor of the proof over iterations 1 to t",
    "least_eigenvalue.value": "smallest eigenvalue of the coupling",
    "mean.squared_error": "squared bias",
    "messages.value": "number of messages of an agent",
    "released.log_distance": "logarithm of the distance to the optimum",
    "released.origin_log_distance": "logarithm of the distance from 0 to the optimum",
    "printed_b0.value": "largest permitted b0",
    "realised.value": "privacy loss of the outputs that occurred",
    "realised_share.value": "privacy loss of the outputs that occurred divided by the worst case",
    "seconds.value": "simulated seconds",
    "squared_error.value": "mean square error",
    "theorem_4_16.value": "bound of Theorem 4.16",
    "total_exact.value": "exact total epsilon",
    "total_printed.value": "total epsilon by (29)",
    "unamplified.value": "fraction of outputs with the full privacy loss of fixed weights",
    "worst_case.value": "worst-case privacy loss",
}
"""Words for measures whose parts, such as released and test_accuracy, do not describe them."""

AXES = {
    "c_loss": "C_loss", "delta_power": "power of delta", "horizon": "T", "loss_scale": "C",
    "r_p": "R_P", "r_t": "R_T", "t": "iteration", "u": "U",
}  # fmt: skip
"""Symbols of axes."""


def measure_words(quantity: str, metric: str) -> str:
    """Return the words for a measure, such as "released test error"."""
    words = f"{quantity} {metric}".replace("_", " ")
    return MEASURES.get(f"{quantity}.{metric}", words)


def axis_words(axis: str | None) -> str:
    """Return the symbol of an axis, or its name."""
    return AXES.get(axis or "", axis or "")


def point_words(axis: str | None, value: float) -> str:
    """Return the words for a value of an axis, such as "C = 1750"."""
    return f"{axis_words(axis)} = {value:g}"
