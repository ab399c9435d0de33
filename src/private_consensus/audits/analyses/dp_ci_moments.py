r"""Exact mean and covariance of DP-CI (Wang et al., eqs. (7)-(8)), without random numbers.

With :math:`e(t) = X(t) - \Theta^*`, :math:`F_t = I - \alpha(t)(L \otimes I_n + G_t)` and
:math:`G_t = \mathrm{blockdiag}(H_i(t)^\top H_i(t))`,

.. math::
    m(t+1) &= F_t\, m(t) \\
    P(t+1) &= F_t \bigl(P(t) + 2\sigma_t^2 I\bigr) F_t^\top
              + \alpha(t)^2\, \mathrm{Var}(\omega)\, G_t

The recursions hold for all noise distributions with the variances :math:`2\sigma_t^2` and
:math:`\mathrm{Var}(\omega)` per coordinate. The analysis also computes the constants of Theorems
4.11 and 4.16.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from private_consensus.core.algorithms.base import Analysis
from private_consensus.core.algorithms.dp_ci import DPCI
from private_consensus.core.graphs import laplacian
from private_consensus.core.networks import Network

DEVIATIONS = 2.0
"""Half the width of the band ``expected_low`` to ``expected_high``, in standard deviations."""


class Moments(NamedTuple):
    """Mean [settings, k] and covariance [settings, k, k] of the error, with k = agents times n."""

    mean: np.ndarray
    covariance: np.ndarray


@dataclass(frozen=True, kw_only=True)
class DPCIMoments(DPCI, Analysis):
    """Exact moments of DP-CI, with the parameters, the noise and the privacy of DP-CI."""

    quantities: ClassVar = (
        "mean", "target", "expected", "expected_low", "expected_high", "squared_error",
        "disagreement", "internal_expected_low", "internal_expected_high",
        "least_eigenvalue", "printed_b0", "largest_factor", "theorem_4_16",
    )  # fmt: skip

    def start(self, problem, network, release):
        size = problem.n_agents * problem.dim
        error = (problem.initial - problem.theta).ravel()
        return Moments(
            np.tile(error, (release.settings, 1)), np.zeros((release.settings, size, size))
        )

    def step(self, state, problem, network, release, t):
        """Return the moments of x(t) from those of x(t - 1), by eqs. (7)-(8)."""
        before = t - 1
        eye = np.eye(state.mean.shape[-1])
        step = _matrix(self.step_size(before))
        noise = 2.0 * _matrix(self.noise_scale(problem, before)) ** 2
        F = eye - step * coupling(problem, network, before)
        sent_covariance = state.covariance + noise * eye
        measurement_noise = step**2 * (problem.noise_variance * problem.gram(before))
        mean = (F @ state.mean[..., None])[..., 0]
        return Moments(mean, F @ sent_covariance @ F.transpose(0, 2, 1) + measurement_noise)

    def observables(self, state, problem, t):
        r"""Return the moments as curves, of the messages :math:`\tilde x_i(t)` that agents release.

        ``squared_error`` is :math:`\frac1N\sum_i E\|\tilde x_i-\theta^*\|^2`, and ``disagreement``
        is :math:`\frac1N\sum_i E\|\tilde x_i-\bar x\|^2`, with :math:`\bar x` the mean of the
        messages. ``mean`` is the expected iterate, which noise does not change. ``expected`` is its
        mean over agents, in each coordinate. ``expected_low`` and ``expected_high`` are two root
        mean square deviations of an agent from this mean. Quantities named ``internal_...`` are
        those of :math:`x_i(t)`, which contains a measurement without noise.
        """
        shape = (len(state.mean), 1, problem.n_agents, problem.dim)
        agents, dim = shape[2:]
        mean = state.mean.reshape(shape) + problem.theta
        variance = np.diagonal(state.covariance, axis1=-2, axis2=-1).reshape(shape)
        centre = mean.sum(-2, keepdims=True) / agents
        squared_deviation = (mean - centre) ** 2
        spread = (variance + squared_deviation).sum(-2, keepdims=True) / agents
        blocks = state.covariance.reshape(-1, *2 * shape[2:])
        of_the_mean = np.einsum("sikjk->s", blocks)[:, None] / agents
        of_agents = variance.sum((-2, -1))
        error = problem.squared_error(mean) + of_agents / agents
        disagreement = (squared_deviation.sum((-2, -1)) + of_agents - of_the_mean) / agents
        # Independent noise of the message adds its variance to each coordinate of each agent.
        noise = 2.0 * np.reshape(self.noise_scale(problem, t), (-1, 1)) ** 2
        width = DEVIATIONS * np.sqrt(spread + noise[..., None, None])
        internal_width = DEVIATIONS * np.sqrt(spread)
        return {
            "mean": mean,
            "target": np.broadcast_to(problem.theta, shape),
            "expected": np.broadcast_to(centre, shape),
            "expected_low": np.broadcast_to(centre - width, shape),
            "expected_high": np.broadcast_to(centre + width, shape),
            "squared_error": error + dim * noise,
            "disagreement": disagreement + dim * noise * (agents - 1) / agents,
            "internal_expected_low": np.broadcast_to(centre - internal_width, shape),
            "internal_expected_high": np.broadcast_to(centre + internal_width, shape),
        }

    def outcome(self, state, problem, network, release, t):
        constants = constants_of(problem, network, t)
        b0 = constants.printed_b0
        growth = 2.0 * (constants.laplacian_norm**2 + constants.gamma0**2)
        steps = [np.atleast_1d(self.step_size(k)) for k in range(t)]
        factors = np.stack([1.0 - 2.0 * b0 * a + growth * a**2 for a in steps])
        unit_column = np.ones((len(state.mean), 1))
        quantities = {
            "least_eigenvalue": constants.least_eigenvalue * unit_column,
            "printed_b0": b0 * unit_column,
            "largest_factor": factors.max(0)[:, None] * unit_column,
        }
        if self.schedule == "exponential":
            bound = self._theorem_4_16(problem, constants)[:, None]
            quantities["theorem_4_16"] = bound * unit_column
        return quantities

    def _theorem_4_16(self, problem, constants) -> np.ndarray:
        """Return the published right side of Theorem 4.16, divided by N."""
        c, q, p = (np.atleast_1d(getattr(self, name)) for name in ("c", "q", "p"))
        agents, dim = problem.n_agents, problem.dim
        norm, gamma0 = constants.laplacian_norm, constants.gamma0
        # The exponent overflows for a large c; the bound is then infinite.
        exponent = 2 * constants.printed_b0 * c * (1 + q) - 2 * (norm**2 + gamma0**2) * c**2
        distance = ((problem.initial - problem.theta) ** 2).sum()
        start = np.exp(np.minimum(exponent / (1 - q**2), 700.0)) * distance
        spread = 2 * agents * dim * (self.delta * problem.largest_row_norm) ** 2
        observed = agents * problem.constant.shape[1] * problem.noise_variance
        noise = 3 * c**2 * spread / (1 - p**2)
        innovation = 3 * c**2 * q**2 * gamma0 * observed / (1 - q**2)
        both = 3 * c**4 * q**2 * (norm + gamma0) ** 2 * spread / (1 - q**2 * p**2)
        return (start + noise + innovation + both) / agents


ALGORITHM = DPCIMoments


class Constants(NamedTuple):
    r"""Constants of the theorems, over a range of times.

    ``least_eigenvalue`` of :math:`L \otimes I + HH^\top`; ``printed_b0`` =
    :math:`\min(\lambda_2(L), \eta_0)`; ``laplacian_norm``; ``eta0`` and ``gamma0`` bound the
    eigenvalues of :math:`\sum_i H_i^\top H_i` (assumption A2).
    """

    least_eigenvalue: float
    printed_b0: float
    laplacian_norm: float
    eta0: float
    gamma0: float


def constants_of(problem: Any, network: Network, horizon: int) -> Constants:
    """Return the constants of the theorems for the times 0, ..., horizon - 1."""
    times = range(horizon)
    lap = np.linalg.eigvalsh(laplacian(network.adjacency))
    couplings = np.stack([coupling(problem, network, t) for t in times])
    matrices = np.stack([problem.matrices(t) for t in times])
    summed = np.linalg.eigvalsh(np.einsum("timk,timl->tkl", matrices, matrices))
    eta0, gamma0 = float(summed.min()), float(summed.max())
    least = float(np.linalg.eigvalsh(couplings)[:, 0].min())
    return Constants(least, float(min(lap[1], eta0)), float(lap[-1]), eta0, gamma0)


def coupling(problem: Any, network: Network, t: float) -> np.ndarray:
    r"""Return :math:`L \otimes I_n + G_t`, [agents n, agents n], with the Laplacian L."""
    return np.kron(laplacian(network.adjacency), np.eye(problem.dim)) + problem.gram(t)


def _matrix(value) -> np.ndarray:
    """Return a field in a shape that broadcasts against [settings, k, k]."""
    return np.reshape(value, (-1, 1, 1))
