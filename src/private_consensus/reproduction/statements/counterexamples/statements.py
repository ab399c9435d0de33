"""Errata about numbered statements: results of the computations for the statements."""

from __future__ import annotations

from .. import compute
from .base import ErratumResult, erratum, finding

PARTS = {
    "E1.5": ("local.theorem_2_3", 0, "the average loss against (11)"),
    "E1.6": ("local.lemma_2_1", 0, "a quotient of posteriors against (8) without exponential"),
    "E1.10": ("local_remarks.sentence_1", 2, "epsilon of coordinate descent without ln(1/delta)"),
    "E1.11": ("local.theorem_3_1", 1, "the contraction of consensus on a path against (42)"),
    "E1.12": ("local.theorem_3_2", 2, "the contraction of (13) for M below 1 against (47)"),
    "E1.13": ("local.theorem_3_1", 2, "the distance in the norm with zeta instead of 1/zeta"),
    "E2.3": ("zeroth_order.lemma_1", 0, "the mean output with a valid Lipschitz constant"),
    "E2.8": ("zeroth_order.lemma_2", 0, "the variance against (22), whose norm has the wrong side"),
    "E2.9": ("zeroth_order.theorem_3", 1, "the excess against (32) with the variance of one agent"),
    "E3.5": ("consensus_innovation.theorem_4_11", 3, "the rate with the largest permitted b_0"),
    "E3.6": ("consensus_innovation.theorem_4_16", 0, "the error against (20) as published"),
    "E4.8d": ("concentrated.corollary_2", 1, "the variance on a grid without the factor eta^2"),
    "E4.12": ("concentrated.lemma_8", 0, "a divergence of a sample, divided by the order"),
    "E4.13": ("sgd.lemma_18", 0, "the recursion (41) with the same power of T twice"),
}
"""Computation for the statement, index of the inequality of the erratum, and its content."""


def _register(number: str, computation: str, index: int, quantity: str) -> None:
    """Register a computation that confirms an erratum if a part of a statement does not hold."""

    def compute_part() -> ErratumResult:
        part = compute(computation)[index]
        numbers = part.quantity, part.stated, part.measured
        return finding(*numbers, holds=not part.holds, description=quantity)

    compute_part.__doc__ = f"Compute {quantity}."
    erratum(number)(compute_part)


for _number, _arguments in PARTS.items():
    _register(_number, *_arguments)
