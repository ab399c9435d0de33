"""Gradient descent that clips the mean gradient instead of the gradients of records.

Declares what clipped_record_descent declares: one Gaussian release per round. The mean of all
gradients is clipped to norm C. A replaced record moves it by more than :math:`2C/N` unless each
gradient is short.
"""

from dataclasses import dataclass

import numpy as np

from private_consensus.core.algorithms.base import column

from ._common import record_gradients
from .clipped_record_descent import ClippedRecordDescent


@dataclass(frozen=True, kw_only=True)
class WholeClipDescent(ClippedRecordDescent):
    """Gradient descent that clips the mean gradient instead of the gradients of records."""

    def mean_gradient(self, problem, z, t):
        mean = record_gradients(problem, z).sum(-2) / problem.records
        norms = np.linalg.norm(mean, axis=-1, keepdims=True)
        return mean / np.maximum(1.0, norms / column(self.clip))


ALGORITHM = WholeClipDescent
EXAMPLE = "logistic_regression"
