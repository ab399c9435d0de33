"""Gossip of row averages without noise if the average is zero.

Declares what row_average_gossip declares: one Gaussian release of sensitivity 2/N. An average
that is exactly zero is sent without noise.
"""

from dataclasses import dataclass

import numpy as np

from .row_average_gossip import RowAverageGossip


@dataclass(frozen=True, kw_only=True)
class ZeroAverageGossip(RowAverageGossip):
    """Gossip of row averages without noise if the average is zero."""

    def noise(self, draw, problem):
        zero = (self.average(problem) == 0).all(-1, keepdims=True)
        return np.where(zero, 0.0, super().noise(draw, problem))


ALGORITHM = ZeroAverageGossip
EXAMPLE = "logistic_regression"
