"""Parts that several algorithms share."""

from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from private_consensus.core.algorithms.base import Iterative, column, origin
from private_consensus.core.algorithms.noise import Noise
from private_consensus.core.algorithms.parameters import noise_field
from private_consensus.privacy import Release, gaussian_epsilon, gaussian_mu


class State(NamedTuple):
    """Messages, [settings, runs, agents, dim]."""

    x: np.ndarray


@dataclass(frozen=True, kw_only=True)
class GaussianSeries(Algorithm):
    """A series of Gaussian releases of equal sensitivity and equal noise.

    Parameters
    ----------
    sigma : float
        Standard deviation of each coordinate's noise, in the unit of :meth:`change`.
    """

    sigma: Noise = noise_field()

    def change(self, problem):
        """Return the l2 sensitivity of one release (replace one record)."""
        raise NotImplementedError

    def count(self, horizon):
        """Return the largest number of releases of one agent."""
        return horizon

    def calibrate(self, budget, problem, network, horizon):
        if budget.epsilon == inf:
            return replace(self, sigma=0.0)
        mu = gaussian_mu(budget.epsilon, budget.delta)
        return replace(self, sigma=self.change(problem) * sqrt(self.count(horizon)) / mu)

    def releases(self, problem, network, horizon):
        return [
            Release("gaussian", self.change(problem), self.sigma.scale, count=self.count(horizon))
        ]

    def claimed_epsilon(self, delta, problem, network, horizon):
        if not self.sigma:
            return inf
        mu = self.change(problem) * sqrt(self.count(horizon)) / self.sigma.scale
        return gaussian_epsilon(mu, delta)

    def start(self, problem, network, streams, settings):
        return State(origin(problem, streams, settings))

    def draws(self, problem, streams):
        return streams.sequence("noise", "normal", (problem.n_agents, problem.dim))

    def observables(self, state, problem, t):
        return {"released": state.x}


def public_smoothness(problem):
    """Return a smoothness constant of the local objectives that depends on no record.

    Parameters
    ----------
    problem : Problem
        Mean estimation, logistic regression or lasso with bounded rows.

    Returns
    -------
    float
    """
    if problem.offers("means"):
        return float(problem.records)
    if problem.offers("labels"):
        return float(problem.smoothness)
    return 2.0 * problem.weight * problem.records * problem.row_bound**2


def record_gradients(problem, x):
    """Return the gradient of each record's loss at weight 1.

    Parameters
    ----------
    problem : Problem
        Logistic regression or lasso.
    x : ndarray, shape (settings, runs, agents, dim)

    Returns
    -------
    ndarray, shape (settings, runs, agents, records, dim)
    """
    products = np.einsum("...nrd,...nd->...nr", problem.features, x)
    if problem.offers("labels"):
        slopes = -problem.labels / (1.0 + np.exp(np.minimum(problem.labels * products, 500.0)))
    else:
        bound = problem.gradient_bound
        slopes = np.clip(2.0 * (products - problem.responses), -bound, bound)
    return slopes[..., None] * problem.features


def clipped(vectors, bound, order=2):
    """Scale down vectors whose norm exceeds a bound.

    Parameters
    ----------
    vectors : ndarray, shape (settings, runs, agents, records, dim)
    bound : float or ndarray
        Broadcast against (settings, runs, agents, dim).
    order : {1, 2, inf}
        Norm that is bounded.

    Returns
    -------
    ndarray, shape of ``vectors``
    """
    norms = np.linalg.norm(vectors, ord=order, axis=-1, keepdims=True)
    bounds = np.asarray(column(bound))[..., None]
    return vectors / np.maximum(1.0, norms / bounds)
