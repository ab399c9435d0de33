"""Gossip of row averages without noise if all labels of an agent are equal.

Declares what row_average_gossip declares: one Gaussian release of sensitivity 2/N. An agent whose
labels are all equal is taken for a constant and sends its exact average.
"""

from dataclasses import dataclass

import numpy as np

from .row_average_gossip import RowAverageGossip


@dataclass(frozen=True, kw_only=True)
class EqualLabelsAverage(RowAverageGossip):
    """Gossip of row averages without noise if all labels of an agent are equal."""

    def noise(self, draw, problem):
        equal = (problem.labels == problem.labels[..., :1]).all(-1)[..., None]
        return np.where(equal, 0.0, super().noise(draw, problem))


ALGORITHM = EqualLabelsAverage
EXAMPLE = "logistic_regression"
