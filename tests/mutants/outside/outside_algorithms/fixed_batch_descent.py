r"""Gradient descent on uniform subsets of records of fixed size.

Each round draws m of N records without replacement and releases the mean of their clipped
gradients with noise :math:`N(0, \sigma^2C^2 I)`. Replacing one record moves the mean of a sample
that contains it by at most :math:`2C/m`. The account is that of ``noisy_mean`` with fixed batches
for T rounds. The sample is secret.
"""

from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar, NamedTuple

import numpy as np

from private_consensus.core.algorithms.base import column
from private_consensus.core.algorithms.parameters import positive, positive_integer
from private_consensus.privacy import fixed_batches, noisy_mean

from ._common import GaussianSeries, State, clipped, record_gradients


class Draw(NamedTuple):
    """Unit noise [runs, agents, dim] and uniform numbers [runs, agents, records]."""

    noise: np.ndarray
    coins: np.ndarray


@dataclass(frozen=True, kw_only=True)
class FixedBatchDescent(GaussianSeries):
    """Gradient descent on uniform subsets of records of fixed size.

    Parameters
    ----------
    eta : float
        Step length.
    clip : float
        Largest l2 norm of one record's gradient.
    parts : int
        The size of a subset is the number of records over this number, and at least 1.
    """

    eta: float = positive(0.2)
    clip: float = positive(0.1)
    parts: int = positive_integer(5)

    needs: ClassVar[tuple[str, ...]] = ("features",)

    @property
    def hidden_sampling(self):
        return True

    def size(self, records):
        """Return the number of records in a subset."""
        return max(1, records // int(np.max(self.parts)))

    def mechanism(self, problem):
        """Return the noised mean as the accountant takes it."""
        return noisy_mean(fixed_batches(self.size(problem.records)), problem.records)

    def calibrate(self, budget, problem, network, horizon):
        if budget.epsilon == inf:
            return replace(self, sigma=0.0)
        return replace(self, sigma=self.mechanism(problem).sigma(budget, horizon))

    def releases(self, problem, network, horizon):
        return self.mechanism(problem).releases(float(self.sigma.scale), horizon)

    def claimed_epsilon(self, delta, problem, network, horizon):
        return float("nan")

    def draws(self, problem, streams):
        shape = problem.features.shape[-3:-1]
        uniform = streams.sequence("sampling", "uniform", shape, "subset")
        for noise, coins in zip(super().draws(problem, streams), uniform, strict=False):
            yield Draw(noise, coins)

    def step(self, state, problem, network, draw, t):
        z = network.mix(state.x)
        size = self.size(draw.coins.shape[-1])
        in_sample = draw.coins.argsort(-1).argsort(-1) < size
        gradients = clipped(record_gradients(problem, z), self.clip)
        mean = (in_sample[..., None] * gradients).sum(-2) / size
        noise = column(self.sigma.scale) * column(self.clip) * draw.noise
        return State(z - column(self.eta) * (mean + noise))


ALGORITHM = FixedBatchDescent
EXAMPLE = "logistic_regression"
