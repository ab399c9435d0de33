r"""Gradient descent with a clip that follows a noised quantile.

In each round agent i releases two values,

.. math:: \frac1N\sum_j \mathrm{clip}_{C_i}(\nabla\ell_{ij}(z_i)) +
    N\bigl(0, (\sigma C_i/N)^2 I\bigr), \qquad b_i = \#\{j: \|\nabla\ell_{ij}(z_i)\| \le C_i\}
    + N(0, \tau^2)

and sets :math:`C_i \leftarrow C_i\exp(-0.3\,(b_i/N - 1/2))`, at most 10 and at least 0.001. The
clip is a function of released values. A replaced record moves the first value by at most
:math:`2C_i/N`, hence :math:`\mu = 2/\sigma`, and the count by at most 1, hence :math:`\mu =
1/\tau`. Both are counted T times. The count has a tenth of the squared loss.
"""

from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import ClassVar, NamedTuple

import numpy as np

from private_consensus.core.algorithms.base import Iterative, column, origin
from private_consensus.core.algorithms.noise import Noise
from private_consensus.core.algorithms.parameters import noise_field, positive
from private_consensus.privacy import Release, gaussian_mu

from ._common import record_gradients


class ClipState(NamedTuple):
    """Messages [settings, runs, agents, dim] and clips [settings, runs, agents, 1]."""

    x: np.ndarray
    clip: np.ndarray


class Draw(NamedTuple):
    """Unit noise of the gradient [runs, agents, dim] and of the count [runs, agents, 1]."""

    noise: tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class AdaptiveClipDescent(Algorithm):
    r"""Gradient descent with a clip that follows a noised quantile.

    Parameters
    ----------
    eta : float
        Step length.
    clip : float
        First clip.
    sigma : float
        Noise of the sum of clipped gradients over the clip.
    tau : float
        Standard deviation of the noise of the count.
    """

    eta: float = positive(0.2)
    clip: float = positive(0.2)
    sigma: Noise = noise_field("gradient")
    tau: Noise = noise_field("count")

    needs: ClassVar[tuple[str, ...]] = ("features",)
    quantities: ClassVar[tuple[str, ...]] = ("released", "clip")

    def calibrate(self, budget, problem, network, horizon):
        if budget.epsilon == inf:
            return replace(self, sigma=0.0, tau=0.0)
        mu = gaussian_mu(budget.epsilon, budget.delta) / sqrt(horizon)
        return replace(self, sigma=2.0 / (sqrt(0.9) * mu), tau=1.0 / (sqrt(0.1) * mu))

    def releases(self, problem, network, horizon):
        return [
            Release("gaussian", 2.0, self.sigma.scale, count=horizon),
            Release("gaussian", 1.0, self.tau.scale, count=horizon),
        ]

    def start(self, problem, network, streams, settings):
        zero = origin(problem, streams, settings)
        return ClipState(zero, column(self.clip) + np.zeros((*zero.shape[:-1], 1)))

    def draws(self, problem, streams):
        agents = problem.n_agents
        gradient = streams.sequence("noise", "normal", (agents, problem.dim), "gradient")
        count = streams.sequence("noise", "normal", (agents, 1), "count")
        for noise in zip(gradient, count, strict=False):
            yield Draw(noise)

    def count(self, below, noise):
        """Return the released count of gradients that the clip leaves as they are."""
        return below.sum(-1, keepdims=True) + column(self.tau.scale) * noise

    def step(self, state, problem, network, draw, t):
        z = network.mix(state.x)
        gradients = record_gradients(problem, z)
        norms = np.linalg.norm(gradients, axis=-1, keepdims=True)
        bound = state.clip[..., None]
        total = (gradients / np.maximum(1.0, norms / bound)).sum(-2)
        of_gradient, of_count = draw.noise
        total = total + column(self.sigma.scale) * state.clip * of_gradient
        count = self.count(norms[..., 0] <= state.clip, of_count)
        factor = np.exp(np.clip(-0.3 * (count / problem.records - 0.5), -5.0, 5.0))
        clip = np.clip(state.clip * factor, 0.001, 10.0)
        return ClipState(z - column(self.eta) * total / problem.records, clip)

    def observables(self, state, problem, t):
        return {"released": state.x, "clip": state.clip}


ALGORITHM = AdaptiveClipDescent
EXAMPLE = "logistic_regression"
