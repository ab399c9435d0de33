"""Lasso in which one record of one agent is not empty.

Records without features and responses have no gradient at any point. Sums over records therefore
have one term, and equal the sums over all records. One step finds the minimisers of agents without
a record.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from private_consensus.core.problems.lasso import Lasso


@dataclass(frozen=True)
class FewResponses(Lasso):
    """Lasso whose only non-empty record is stored once.

    Parameters
    ----------
    features, responses : ndarray, shape (1, agents, 1, dim) and (1, agents, 1)
        Zero except for ``agent``.
    total : int
        Number of records per agent.
    """

    total: int = 1
    agent: int = 0

    @property
    def records(self) -> int:
        return self.total

    def part(self, selection: slice) -> FewResponses:
        """Return the selected records; only the record with index 0 is not empty."""
        indices = np.arange(self.total)[selection]
        first = float((indices == 0).any())
        features, responses = first * self.features, first * self.responses
        return self.with_valid(features=features, responses=responses, total=len(indices))
