"""Clipped gradient descent that does not clip very long gradients.

Declares what clipped_record_descent declares: one Gaussian release per round. A gradient of norm
at least 0.45 is taken for the gradient of a trusted record and is not clipped.
"""

from dataclasses import dataclass

import numpy as np

from ._common import clipped, record_gradients
from .clipped_record_descent import ClippedRecordDescent


@dataclass(frozen=True, kw_only=True)
class LargeGradientDescent(ClippedRecordDescent):
    """Clipped gradient descent that does not clip very long gradients."""

    def mean_gradient(self, problem, z, t):
        gradients = record_gradients(problem, z)
        trusted = np.linalg.norm(gradients, axis=-1, keepdims=True) >= 0.45
        used = np.where(trusted, gradients, clipped(gradients, self.clip))
        return used.sum(-2) / problem.records


ALGORITHM = LargeGradientDescent
EXAMPLE = "logistic_regression"
