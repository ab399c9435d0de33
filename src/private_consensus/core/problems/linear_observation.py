r"""Estimation of a parameter from streams of linear observations (Wang et al., eq. (1)).

.. math:: y_i(t) = H_i(t)\,\theta^* + \omega_i(t), \qquad
          H_i(t) = A_i + B_i \sin t + C_i \cos t, \quad t = 0, 1, 2, \dots

with t in radians and :math:`\omega_i(t)` independent and uniform on :math:`[-w, w]`. Each agent
receives one vector of m numbers at each time and stores no data. The matrices are public, and only
the measurements are private.

Neighbours (Definition 3.1) differ in one :math:`y_i(t)`, by at most :math:`\delta` in l1 norm.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from private_consensus.common.errors import arguments, require

from ..parameters import FiniteNonNegative, validated
from ..randomness import Streams
from .base import Problem, consensus_error


@dataclass(frozen=True)
class LinearObservation(Problem):
    r"""Linear observations of a common parameter, with one sensor per agent.

    Parameters
    ----------
    theta : ndarray, shape (n,)
        Parameter :math:`\theta^*`, which the agents estimate.
    constant, sine, cosine : ndarray, shape (agents, m, n)
        Matrices :math:`A_i, B_i, C_i`.
    initial : ndarray, shape (agents, n)
        Initial estimates :math:`x_i(0)`.
    noise : float
        Bound :math:`w` on the absolute value of the observation noise.
    """

    theta: np.ndarray
    constant: np.ndarray
    sine: np.ndarray
    cosine: np.ndarray
    initial: np.ndarray
    noise: FiniteNonNegative

    axes: ClassVar[Mapping[str, str]] = {
        "theta": "coordinate",
        **dict.fromkeys(("constant", "sine", "cosine"), "agent measurement coordinate"),
        "initial": "agent coordinate",
    }
    oracles: ClassVar[tuple[str, ...]] = ("the matrices H_i(t) are public",)
    strong_convexity: ClassVar[float] = 0.0  # observations of one time do not determine theta

    @property
    def noise_variance(self) -> float:
        r"""Variance :math:`w^2/3` of the noise of each observed number."""
        return self.noise**2 / 3.0

    def matrices(self, t: float) -> np.ndarray:
        """Compute the observation matrices :math:`H_i(t)` of all agents; shape (agents, m, n)."""
        return self.constant + self.sine * math.sin(t) + self.cosine * math.cos(t)

    def gram(self, t: float) -> np.ndarray:
        r"""Compute the block-diagonal matrix :math:`G_t` with blocks :math:`H_i(t)^\top H_i(t)`.

        Its shape is (agents * n, agents * n).
        """
        H = self.matrices(t)
        agents, _, dim = H.shape
        blocks = np.zeros((agents, dim, agents, dim))
        np.einsum("ikil->ikl", blocks)[:] = H.transpose(0, 2, 1) @ H  # a view of the diagonal
        return blocks.reshape(agents * dim, agents * dim)

    def data(self, t: float, unit: np.ndarray) -> np.ndarray:
        """Compute the measurements :math:`y_i(t)`, [runs, agents, m], at time t in radians.

        ``unit`` is uniform on [0, 1), [runs, agents, m].
        """
        return self.matrices(t) @ self.theta + self.noise * (2.0 * unit - 1.0)

    def row_norm(self, t: float) -> np.ndarray:
        r"""Compute the largest :math:`\sum_k |H_i(t)_{jk}|` over rows j; shape (agents,).

        A change of :math:`y_i(t)` by :math:`\delta` in l1 norm changes :math:`H_i^\top y_i` by at
        most :math:`\delta` times this norm in l1. A change of the number of the largest row attains
        the bound. Lemma 4.4 has the sum over all rows, which is equal for m = 1 and looser
        otherwise (E3.3).
        """
        return np.abs(self.matrices(t)).sum(-1).max(-1)

    def row_norms(self, times: np.ndarray) -> np.ndarray:
        """Compute :meth:`row_norm` for many times; shape (times, agents)."""
        t = np.asarray(times, float)[:, None, None, None]
        H = self.constant + self.sine * np.sin(t) + self.cosine * np.cos(t)
        return np.abs(H).sum(-1).max(-1)

    @cached_property
    def largest_row_norm(self) -> float:
        r"""Supremum :math:`H_{\max}` of :meth:`row_norm` over agents and real t.

        It is computed on a grid of t, which is refined around its best point.
        """
        grid = np.linspace(0.0, 2.0 * np.pi, 4096, endpoint=False)
        for _ in range(4):
            best = grid[int(self.row_norms(grid).max(-1).argmax())]
            step = grid[1] - grid[0]
            grid = np.linspace(best - step, best + step, 65)
        return float(self.row_norm(best).max())

    def gradient(self, x: np.ndarray) -> np.ndarray:
        r"""Compute the gradient of :math:`\tfrac12 E\|y_i - H_i x_i\|^2`, averaged over time."""
        return np.einsum("ikl,...il->...ik", self.time_average, x - self.theta)

    @cached_property
    def time_average(self) -> np.ndarray:
        """Average of :math:`H_i^T H_i` over time; shape (agents, n, n)."""
        terms = ((self.constant, 1.0), (self.sine, 0.5), (self.cosine, 0.5))
        return sum(weight * matrix.transpose(0, 2, 1) @ matrix for matrix, weight in terms)

    @cached_property
    def smoothness(self) -> float:
        """Largest eigenvalue of an agent's average Hessian."""
        return float(np.linalg.eigvalsh(self.time_average)[:, -1].max())

    def squared_error(self, x: np.ndarray) -> np.ndarray:
        r"""Compute the mean over agents of the squared error :math:`\|x_i - \theta^*\|_2^2`."""
        return ((x - self.theta) ** 2).sum(-1).mean(-1)

    metrics = {  # noqa: RUF012
        "squared_error": squared_error,
        "consensus_error": consensus_error,
    }

    def measure(self, metric: str, x: np.ndarray) -> np.ndarray:
        """Accept ``agent_i_k`` for coordinate k of agent i, both counted from 1."""
        if metric in self.metrics:
            return super().measure(metric, x)
        agent, coordinate = _coordinate(metric, self.n_agents, self.dim)
        return x[..., agent, coordinate]


def _coordinate(metric: str, agents: int, dim: int) -> tuple[int, int]:
    """Return the indices of agent and coordinate in the name of a metric."""
    name, *numbers = metric.split("_")
    expected = f"squared_error, consensus_error or agent_i_k, i up to {agents}, k up to {dim}"
    require(name == "agent" and len(numbers) == 2, "metric", metric, expected)
    require(all(number.isdigit() for number in numbers), "metric", metric, expected)
    i, k = map(int, numbers)
    require(1 <= i <= agents and 1 <= k <= dim, "metric", metric, expected)
    return i - 1, k - 1


EXAMPLE = {
    "theta": [-1.0, 1.0],
    "initial": [0.0, 0.4],
    "noise": 0.2,
    "constant": [[1, 0], [1, 0], [0, 1], [1, 1], [1, 0]],
    "sine": [[1, 0], [0, 0], [0, 0], [0, -1], [0, 0.5]],
    "cosine": [[0, 0], [-1, 0], [0, 1], [0, 0], [0, 0]],
}
"""Matrices of the five agents of Wang et al., section 5, which repeat for more agents."""


@validated
def build(
    streams: Streams,
    agents: int,
    *,
    theta,
    constant,
    sine,
    cosine,
    initial,
    noise: FiniteNonNegative,
) -> LinearObservation:
    r"""Build the observation model that a configuration describes.

    Parameters
    ----------
    streams : Streams
        Ignored: the model has no random parameters.
    agents : int
        Number of agents.
    theta : sequence of n numbers
        Parameter :math:`\theta^*`.
    constant, sine, cosine : sequences of rows
        Matrices :math:`A_i`, :math:`B_i`, :math:`C_i` of each agent: a row of n numbers, or m such
        rows. If there are more agents than matrices, the matrices repeat.
    initial : sequence of n numbers
        Initial estimate :math:`x_i(0)` of all agents.
    noise : float
        Bound :math:`w \ge 0` on the absolute value of the observation noise.

    Returns
    -------
    LinearObservation

    Raises
    ------
    InvalidInput
        If shapes do not fit, or if the observations of all agents and times do not determine the
        parameter. (Assumption A2 requires this for each time.)
    """
    matrices = {
        key: _matrices(f"problem.{key}", rows, agents)
        for key, rows in {"constant": constant, "sine": sine, "cosine": cosine}.items()
    }
    theta, initial = (
        arguments.array(f"problem.{key}", value, "a list of numbers", np.isfinite)
        for key, value in {"theta": theta, "initial": initial}.items()
    )
    start = np.tile(initial, (agents, 1))
    problem = LinearObservation(theta=theta, initial=start, noise=noise, **matrices)
    smallest_eigenvalue = np.linalg.eigvalsh(problem.time_average.sum(0))[0]
    expected = "observation matrices that jointly determine every coordinate"
    require(smallest_eigenvalue > 1e-12, "problem.constant", constant, expected)
    return problem


def _matrices(key: str, rows, agents: int) -> np.ndarray:
    """Return one matrix per agent from rows or matrices of numbers, which repeat."""
    expected = "one row, or one matrix, of numbers per agent"
    array = arguments.array(key, rows, expected, np.isfinite)
    require(array.ndim in (2, 3), key, array.shape, expected)
    array = array[:, None, :] if array.ndim == 2 else array
    return array[np.arange(agents) % len(array)]
