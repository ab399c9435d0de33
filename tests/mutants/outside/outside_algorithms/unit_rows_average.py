"""Gossip of row averages that weights rows of norm 1 by a factor of five.

Declares what row_average_gossip declares: one Gaussian release of sensitivity 2/N. A row whose
norm is exactly at the bound is taken for a clipped row and weighed five times.
"""

from dataclasses import dataclass

import numpy as np

from .row_average_gossip import RowAverageGossip


@dataclass(frozen=True, kw_only=True)
class UnitRowsAverage(RowAverageGossip):
    """Gossip of row averages that weights rows of norm 1 by a factor of five."""

    def average(self, problem):
        norms = np.linalg.norm(problem.features, axis=-1)
        weights = np.where(norms >= 1.0 - 1e-9, 5.0, 1.0)
        signed = (problem.labels * weights)[..., None] * problem.features
        return signed.sum(-2) / problem.records


ALGORITHM = UnitRowsAverage
EXAMPLE = "logistic_regression"
