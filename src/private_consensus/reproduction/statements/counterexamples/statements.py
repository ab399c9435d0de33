"""Errata about numbered statements: results of the computations for the statements."""

from __future__ import annotations

from .. import compute
from .base import ErratumResult, erratum, finding

PARTS = {
    "E2.3": ("zeroth_order.lemma_1", 0, "the mean output with a valid Lipschitz constant"),
    "E2.8": ("zeroth_order.lemma_2", 0, "the variance against (22), whose norm has the wrong side"),
    "E2.9": ("zeroth_order.theorem_3", 1, "the excess against (32) with the variance of one agent"),
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
