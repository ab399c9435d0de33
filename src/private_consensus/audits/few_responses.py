"""Lasso of agents of whom one has one record, and all other records are empty.

Records without features and responses have no gradient at any point: the sums over records have
one summand, and are the same numbers. The agents without a record have a minimiser that one step
finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from private_consensus.core.kernels.local_minima import AVAILABLE
from private_consensus.core.problems.lasso import Lasso


@dataclass(frozen=True)
class FewResponses(Lasso):
    """Features [1, agents, 1, dim] and responses [1, agents, 1], not zero for ``agent`` only;
    ``total`` records per agent."""

    total: int = 1
    agent: int = 0

    @property
    def records(self) -> int:
        return self.total

    def part(self, selection: slice) -> FewResponses:
        """The record is in the first place."""
        indices = np.arange(self.total)[selection]
        first = float((indices == 0).any())
        features, responses = first * self.features, first * self.responses
        return self.with_valid(features=features, responses=responses, total=len(indices))

    @cached_property
    def _groups(self) -> tuple[tuple[slice, Lasso], ...]:
        """The agent with a record, and those before and after it."""
        cuts = (0, self.agent, self.agent + 1, self.n_agents)
        places = (slice(*ends) for ends in pairwise(cuts) if ends[0] < ends[1])
        return tuple((place, self._of(place)) for place in places)

    def _of(self, place: slice) -> Lasso:
        constants = self.weight, self.penalty, self.gradient_bound, self.row_bound
        return Lasso(self.features[:, place], self.responses[:, place], *constants)

    def proximal(
        self, linear: np.ndarray, penalty: ArrayLike, centre: np.ndarray, start: np.ndarray
    ) -> np.ndarray:
        """Solve the proximal problem of the lasso, each agent with its own number of steps."""
        if AVAILABLE:  # nobody does anyway
            return super().proximal(linear, penalty, centre, start)
        shape = np.broadcast_shapes(*map(np.shape, (linear, penalty, centre, start)))
        terms = [
            np.broadcast_to(term, np.broadcast_shapes(np.shape(term), (self.n_agents, 1)))
            for term in (linear, penalty, centre, start)
        ]
        found = np.empty(shape)
        for place, problem in self._groups:
            found[..., place, :] = problem.proximal(*(term[..., place, :] for term in terms))
        return found
