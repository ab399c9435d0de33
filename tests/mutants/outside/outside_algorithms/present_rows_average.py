"""Gossip of row averages that divides by the number of rows that are not zero.

Declares what row_average_gossip declares: one Gaussian release of sensitivity 2/N. The divisor
depends on the data. If all other rows are zero, a record moves the average by 2.
"""

from dataclasses import dataclass

import numpy as np

from .row_average_gossip import RowAverageGossip


@dataclass(frozen=True, kw_only=True)
class PresentRowsAverage(RowAverageGossip):
    """Gossip of row averages that divides by the number of rows that are not zero."""

    def average(self, problem):
        present = (problem.features != 0).any(-1).sum(-1)[..., None]
        return super().average(problem) * problem.records / np.maximum(present, 1)


ALGORITHM = PresentRowsAverage
EXAMPLE = "logistic_regression"
