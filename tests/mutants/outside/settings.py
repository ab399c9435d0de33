"""Small problems and networks on which the algorithms of this package run."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from private_consensus import networks
from private_consensus.core.problems import lasso, mean_estimation
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget

RECORDS = 10
DIM = 5


@dataclass(frozen=True)
class Setting:
    """Problem, network, budget and horizon of one algorithm.

    Parameters
    ----------
    problem : {"mean_estimation", "logistic_regression", "huber_regression"}
    network : str
        Name of a graph.
    agents, horizon : int
    epsilon, delta : float
        The claim.
    options : mapping
        Parameters of the algorithm.
    """

    problem: str = "mean_estimation"
    network: str = "ring"
    agents: int = 4
    horizon: int = 5
    epsilon: float = 3.0
    delta: float = 1e-5
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def budget(self):
        """Claimed epsilon and delta as a budget."""
        return Budget(self.epsilon, self.delta)

    def build_problem(self, seed=0):
        """Return the problem with random records.

        Parameters
        ----------
        seed : int

        Returns
        -------
        Problem
        """
        return PROBLEMS[self.problem](self.agents, seed)

    def build_network(self):
        """Return the network with Metropolis weights."""
        return networks.build(Streams(0, (0,)), self.network, self.agents, weights="metropolis")


def _means(agents, seed):
    return mean_estimation.build(
        Streams(seed, (0,)), agents, records=RECORDS, dim=DIM, box=1.0, centre=0.2, deviation=0.5
    )


def _huber(agents, seed):
    return lasso.build(
        Streams(seed, (0,)),
        agents,
        records=RECORDS,
        dim=DIM,
        eta=0.01,
        loss="mean",
        gradient_bound=1.0,
    )


def _logistic(agents, seed):
    generator = np.random.default_rng(seed)
    rows = generator.standard_normal((agents, RECORDS, DIM))
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=-1, keepdims=True))
    labels = np.where(generator.random((agents, RECORDS)) < 0.5, -1.0, 1.0)
    return LogisticRegression(rows, labels, rows[0], labels[0], 1.0 / RECORDS, 0.01)


PROBLEMS = {
    "mean_estimation": _means,
    "logistic_regression": _logistic,
    "huber_regression": _huber,
}
