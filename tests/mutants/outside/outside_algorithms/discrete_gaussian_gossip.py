r"""Gossip that starts from rounded means with discrete Gaussian noise.

.. math:: y_i(1) = g\,\bigl(\mathrm{round}(\bar d_i/g) + N_{\mathbb Z}(0, \sigma^2 I)\bigr),
    \qquad y(t+1) = W y(t)

A replaced record moves the mean by :math:`\delta` with :math:`\|\delta\|_2 \le \Delta_2/N`.
Rounding adds at most one step of the grid per coordinate, so the rounded means differ by at most
:math:`\Delta_2/(Ng) + \sqrt p` steps (l2). The discrete Gaussian of parameter :math:`\sigma`
hides them.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from private_consensus.core.algorithms.base import Iterative, column, origin
from private_consensus.core.algorithms.noise import Noise
from private_consensus.core.algorithms.parameters import noise_field, positive
from private_consensus.privacy import Release, discrete_gaussian_pmf
from private_consensus.privacy import calibrate as calibrate_scale

from ._common import State


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussianGossip(Algorithm):
    """Gossip that starts from rounded means with discrete Gaussian noise.

    Parameters
    ----------
    grid : float
        Distance of two points of the grid.
    sigma : float
        Parameter of the discrete Gaussian, in steps of the grid.
    """

    grid: float = positive(0.05)
    sigma: Noise = noise_field(law="discrete_gaussian")

    needs: ClassVar[tuple[str, ...]] = ("means",)

    def change(self, problem):
        """Return the l2 sensitivity in steps of the grid (replace one record)."""
        moved = problem.record_change("l2") / problem.records
        return moved / self.grid + np.sqrt(problem.dim)

    def calibrate(self, budget, problem, network, horizon):
        def made(sigma):
            return replace(self, sigma=sigma).releases(problem, network, horizon)

        return replace(self, sigma=calibrate_scale(made, budget))

    def releases(self, problem, network, horizon):
        return [Release("discrete_gaussian", self.change(problem), self.sigma.scale)]

    def start(self, problem, network, streams, settings):
        return State(origin(problem, streams, settings))

    def draws(self, problem, streams):
        return streams.sequence("noise", "uniform", (problem.n_agents, problem.dim))

    def query(self, problem):
        """Return the means in steps of the grid."""
        return np.round(problem.means / column(self.grid))

    def step(self, state, problem, network, draw, t):
        if t > 1:
            return State(network.mix(state.x))
        noise = np.zeros((len(state.x), *draw.shape))
        for setting, sigma in enumerate(np.broadcast_to(self.sigma.scale, len(state.x))):
            if sigma > 0:
                noise[setting] = quantiles(draw, float(sigma) ** 2)
        return State(column(self.grid) * (self.query(problem) + noise))

    def observables(self, state, problem, t):
        return {"released": state.x}


def quantiles(uniform, variance):
    """Return discrete Gaussian quantiles, so that settings share their uniform draws.

    Parameters
    ----------
    uniform : ndarray
        Numbers in [0, 1).
    variance : float
        Positive.

    Returns
    -------
    ndarray of int, shape of ``uniform``
    """
    reach = int(np.ceil(9 * np.sqrt(variance))) + 1
    support = np.arange(-reach, reach + 1)
    cumulative = np.cumsum(discrete_gaussian_pmf(support, variance))
    index = np.searchsorted(cumulative, uniform, side="right")
    return support[np.minimum(index, support.size - 1)]


ALGORITHM = DiscreteGaussianGossip
EXAMPLE = "mean_estimation"
