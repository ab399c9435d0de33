"""Clipped gradient descent that declares the sensitivity of adding a record.

Declares T Gaussian releases of sensitivity :math:`C/N` for replacing one record. Two opposite
gradients of norm C move the mean by :math:`2C/N`.
"""

from dataclasses import dataclass

from .clipped_record_descent import ClippedRecordDescent


@dataclass(frozen=True, kw_only=True)
class OneSidedClipDescent(ClippedRecordDescent):
    """Clipped gradient descent that declares the sensitivity of adding a record."""

    def change(self, problem):
        return super().change(problem) / 2.0


ALGORITHM = OneSidedClipDescent
EXAMPLE = "logistic_regression"
