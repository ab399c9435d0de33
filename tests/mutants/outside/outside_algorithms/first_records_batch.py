"""Gradient descent on fixed-size batches that always contain the first records.

Declares what fixed_batch_descent declares: uniform subsets of m records in each round. The batch
consists of the first m records in all rounds.
"""

from dataclasses import dataclass

import numpy as np

from .fixed_batch_descent import FixedBatchDescent


@dataclass(frozen=True, kw_only=True)
class FirstRecordsBatch(FixedBatchDescent):
    """Gradient descent on fixed-size batches that always contain the first records."""

    def draws(self, problem, streams):
        order = np.arange(problem.features.shape[-2]) / problem.features.shape[-2]
        for draw in super().draws(problem, streams):
            yield draw._replace(coins=order + np.zeros_like(draw.coins))


ALGORITHM = FirstRecordsBatch
EXAMPLE = "logistic_regression"
