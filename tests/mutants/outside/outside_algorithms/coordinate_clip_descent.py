r"""Gradient descent that clips gradients in the maximum norm and declares the l2 norm.

Declares what clipped_record_descent declares: one Gaussian release per round. Gradients are
clipped to maximum norm C, so their l2 norm is up to :math:`C\sqrt d`.
"""

from dataclasses import dataclass

import numpy as np

from ._common import clipped, record_gradients
from .clipped_record_descent import ClippedRecordDescent


@dataclass(frozen=True, kw_only=True)
class CoordinateClipDescent(ClippedRecordDescent):
    """Gradient descent that clips gradients in the maximum norm and declares the l2 norm."""

    def mean_gradient(self, problem, z, t):
        gradients = clipped(record_gradients(problem, z), self.clip, np.inf)
        return gradients.sum(-2) / problem.records


ALGORITHM = CoordinateClipDescent
EXAMPLE = "logistic_regression"
