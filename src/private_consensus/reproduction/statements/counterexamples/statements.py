"""Errata about numbered statements: results of the computations for the statements."""

from __future__ import annotations

from .. import compute
from .base import ErratumResult, erratum, finding

PARTS = {
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
