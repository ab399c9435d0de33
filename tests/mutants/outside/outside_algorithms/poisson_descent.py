r"""Gradient descent with Poisson sampling of records.

.. math:: x_i \leftarrow z_i - \eta\Bigl(\sum_{j\in S} \mathrm{clip}_C(\nabla\ell_{ij}(z_i))
    + N(0, \sigma^2 I)\Bigr)

Each record is in S with probability q, independently in each round. The relation is to add or
remove one record, which moves the sum by at most C. The account is that of T Gaussian mechanisms
of sensitivity C, each with Poisson sampling of rate q. The sample is secret. No constant of the
step depends on the number of records.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from private_consensus.core.algorithms.base import column
from private_consensus.core.algorithms.parameters import positive, unit_interval
from private_consensus.privacy import Relation, Release, Sampling
from private_consensus.privacy import calibrate as calibrate_scale

from ._common import GaussianSeries, State, clipped, record_gradients


class Draw(NamedTuple):
    """Unit noise [runs, agents, dim] and uniform numbers [runs, agents, records]."""

    noise: np.ndarray
    coins: np.ndarray


@dataclass(frozen=True, kw_only=True)
class PoissonDescent(GaussianSeries):
    """Gradient descent with Poisson sampling of records.

    Parameters
    ----------
    eta : float
        Step length.
    clip : float
        Largest l2 norm of one record's gradient.
    rate : float
        Probability of a record to be in the sample of a round.
    """

    eta: float = positive(0.02)
    clip: float = positive(0.1)
    rate: float = unit_interval(0.2)

    relation: ClassVar[Relation] = Relation("record", "add_remove")
    needs: ClassVar[tuple[str, ...]] = ("features",)

    @property
    def hidden_sampling(self):
        return True

    def change(self, problem):
        return float(self.clip)

    def calibrate(self, budget, problem, network, horizon):
        def made(sigma):
            return replace(self, sigma=sigma).releases(problem, network, horizon)

        return replace(self, sigma=calibrate_scale(made, budget))

    def releases(self, problem, network, horizon):
        sampling = Sampling("poisson", self.rate)
        scale = self.sigma.scale
        return [Release("gaussian", self.change(problem), scale, count=horizon, sampling=sampling)]

    def claimed_epsilon(self, delta, problem, network, horizon):
        return float("nan")

    def coins(self, problem, streams):
        """Return uniform numbers [runs, agents, records], one item per round."""
        shape = problem.features.shape[-3:-1]
        return streams.sequence("sampling", "uniform", shape, "coin")

    def draws(self, problem, streams):
        noises = super().draws(problem, streams)
        for noise, coins in zip(noises, self.coins(problem, streams), strict=False):
            yield Draw(noise, coins)

    def in_sample(self, coins, t):
        """Return which records are in the sample, broadcastable to [..., agents, records]."""
        return coins < column(self.rate)

    def step(self, state, problem, network, draw, t):
        z = network.mix(state.x)
        gradients = clipped(record_gradients(problem, z), self.clip)
        total = (self.in_sample(draw.coins, t)[..., None] * gradients).sum(-2)
        noise = column(self.sigma.scale) * draw.noise
        return State(z - column(self.eta) * (total + noise))


ALGORITHM = PoissonDescent
EXAMPLE = "logistic_regression"
